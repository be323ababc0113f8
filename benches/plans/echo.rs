//! A plugin that does nothing: calls about resources are answered with the values of the request, undecoded. The
//! provider answers all other calls, such as the schema.

use std::{env, process::ExitCode};

use axum::{Router, body::Body, http::HeaderMap, response::Response, routing::post};
use bytes::{BufMut, Bytes, BytesMut};
use damodel::{
    framework::Ends,
    plugin::{self, ServeOptions},
    protocol::{
        self,
        tfplugin6::{
            DynamicValue, apply_resource_change, plan_resource_change, read_resource, upgrade_resource_state,
            validate_resource_config,
        },
    },
    provider::{Damodel, Environment},
};
use futures_util::stream;
use http_body_util::StreamBody;
use hyper::body::Frame;
use prost::Message;

/// The length of the prefix of each message: a flag (not compressed), and the message's length.
const PREFIX: usize = 5;

pub(crate) fn serve() -> ExitCode {
    plugin::serve(
        |name| env::var_os(name),
        |options| {
            let provider = Damodel::new(Environment::of_process());
            let ServeOptions { stopping, caller_gone, work } = options.clone();
            let behind = protocol::service(provider, Ends { stopping, caller_gone, work });
            let apply = |body: Bytes| async move { answer(&body, apply) };
            let plan = |body: Bytes| async move { answer(&body, plan) };
            let read = |body: Bytes| async move { answer(&body, read) };
            let upgrade = |body: Bytes| async move { answer(&body, upgrade) };
            let validate = |body: Bytes| async move { answer(&body, validate) };
            let routes = behind
                .into_axum_router()
                .route("/tfplugin6.Provider/ApplyResourceChange", post(apply))
                .route("/tfplugin6.Provider/PlanResourceChange", post(plan))
                .route("/tfplugin6.Provider/ReadResource", post(read))
                .route("/tfplugin6.Provider/UpgradeResourceState", post(upgrade))
                .route("/tfplugin6.Provider/ValidateResourceConfig", post(validate));
            Router::into(routes)
        },
    )
}

fn apply(asked: apply_resource_change::Request) -> apply_resource_change::Response {
    apply_resource_change::Response {
        new_state: asked.planned_state,
        private: asked.planned_private,
        ..Default::default()
    }
}

fn plan(asked: plan_resource_change::Request) -> plan_resource_change::Response {
    plan_resource_change::Response {
        planned_state: asked.proposed_new_state,
        planned_private: asked.prior_private,
        ..Default::default()
    }
}

fn read(asked: read_resource::Request) -> read_resource::Response {
    read_resource::Response { new_state: asked.current_state, private: asked.private, ..Default::default() }
}

fn upgrade(asked: upgrade_resource_state::Request) -> upgrade_resource_state::Response {
    let state = asked.raw_state.map(|raw| DynamicValue { json: raw.json, ..Default::default() });
    upgrade_resource_state::Response { upgraded_state: state, ..Default::default() }
}

fn validate(_: validate_resource_config::Request) -> validate_resource_config::Response {
    validate_resource_config::Response::default()
}

/// Answers one gRPC call without a stream.
fn answer<Q: Message + Default, A: Message>(body: &[u8], call: impl Fn(Q) -> A) -> Response {
    let message = call(Q::decode(&body[PREFIX..]).unwrap()).encode_to_vec();
    let mut data = BytesMut::with_capacity(PREFIX + message.len());
    data.put_u8(0);
    data.put_u32(u32::try_from(message.len()).unwrap());
    data.put_slice(&message);
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", "0".parse().unwrap());
    let frames = [Frame::data(data.freeze()), Frame::trailers(trailers)].map(Ok::<_, std::convert::Infallible>);
    let body = Body::new(StreamBody::new(stream::iter(frames)));
    Response::builder().header("content-type", "application/grpc").body(body).unwrap()
}
