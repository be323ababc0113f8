//! The gRPC service: the table of its calls, each answered in a task of its own, with its span, its log line and its
//! panics caught.

use std::{
    future::Future,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::FutureExt as _;
use tokio::{sync::mpsc, time::Instant};
use tokio_stream::Stream;
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};
use tonic::{Request, Response, Status, async_trait, codegen::BoxStream, service::Routes};
use tracing::{Instrument as _, Span};

use super::{
    convert,
    tfplugin6::{
        self, call_function,
        invoke_action::{
            self,
            event::{self, Completed},
        },
        list_resource,
        provider_server::{Provider as Rpc, ProviderServer},
        stop_provider,
    },
};
use crate::framework::{
    Diagnostic, Diagnostics, Ends, Provider, Server,
    server::{Caller, answer_to},
};

/// The largest message in both directions: the limit of the usual servers (plugin protocol, sizes and connection).
const LARGEST_MESSAGE: usize = 256 << 20;

/// The service of a provider, as routes for a gRPC server.
///
/// A request may have a `CancellationToken` as an extension, which is cancelled when its caller is gone.
pub fn service<P: Provider>(provider: P, ends: Ends) -> Routes {
    let work = ends.work.clone();
    let service = Service { server: Arc::new(Server::new(provider, ends)), work };
    Routes::new(
        ProviderServer::new(service)
            .max_decoding_message_size(LARGEST_MESSAGE)
            .max_encoding_message_size(LARGEST_MESSAGE),
    )
}

struct Service<P: Provider> {
    server: Arc<Server<P>>,
    work: TaskTracker,
}

/// The reply to the core: a message, or a failure of the call itself.
type Reply<T> = Result<Response<T>, Status>;

impl<P: Provider> Service<P> {
    async fn call<C: Call>(&self, request: Request<C>) -> Reply<C::Response> {
        let caller = self.caller(&request);
        Ok(Response::new(run(self.server.clone(), &self.work, caller, request.into_inner()).await))
    }

    /// Answers a call with a stream of events.
    fn stream<C: StreamCall>(&self, request: Request<C>) -> Reply<BoxStream<C::Event>> {
        let caller = self.caller(&request);
        Ok(Response::new(Box::pin(stream(self.server.clone(), &self.work, caller, request.into_inner()))))
    }

    fn caller<C>(&self, request: &Request<C>) -> Caller {
        self.server.caller(request.extensions().get::<CancellationToken>())
    }
}

/// The calls with one answer that may have diagnostics: the name of each, and the field of its request that names its
/// type. The core does not call the others, because no schema has state stores.
macro_rules! calls {
    ($($name:literal $message:ident $(.$subject:ident)?;)*) => {
        $(impl Message for tfplugin6::$message::Request {
            type Response = tfplugin6::$message::Response;
            const NAME: &'static str = $name;

            $(fn subject(&self) -> &str {
                &self.$subject
            })?
        }

        impl CarriesDiagnostics for tfplugin6::$message::Response {
            fn say(&mut self, diagnostics: Diagnostics) {
                self.diagnostics.extend(super::convert::diagnostics(diagnostics));
            }
        })*

        #[async_trait]
        impl<P: Provider> Rpc for Service<P> {
            // The signature that `async_trait` generates.
            $(fn $message<'life0, 'async_trait>(
                &'life0 self,
                request: Request<tfplugin6::$message::Request>,
            ) -> Pin<Box<dyn Future<Output = Reply<tfplugin6::$message::Response>> + Send + 'async_trait>>
            where
                'life0: 'async_trait,
                Self: 'async_trait,
            {
                Box::pin(self.call(request))
            })*

            /// Answered at once, without a task: the core holds a lock during the call (plugin protocol, StopProvider).
            async fn stop_provider(&self, _: Request<stop_provider::Request>) -> Reply<stop_provider::Response> {
                self.server.stop();
                tracing::debug!(tf_rpc = "StopProvider", "answered");
                Ok(Response::new(stop_provider::Response::default()))
            }

            async fn call_function(
                &self,
                request: Request<call_function::Request>,
            ) -> Reply<call_function::Response> {
                self.call(request).await
            }

            async fn list_resource(
                &self,
                request: Request<list_resource::Request>,
            ) -> Reply<BoxStream<list_resource::Event>> {
                self.stream(request)
            }

            async fn invoke_action(
                &self,
                request: Request<invoke_action::Request>,
            ) -> Reply<BoxStream<invoke_action::Event>> {
                self.stream(request)
            }
        }
    };
}

calls! {
    "ApplyResourceChange" apply_resource_change.type_name;
    "CloseEphemeralResource" close_ephemeral_resource.type_name;
    "ConfigureProvider" configure_provider;
    "GenerateResourceConfig" generate_resource_config.type_name;
    "GetFunctions" get_functions;
    "GetMetadata" get_metadata;
    "GetProviderSchema" get_provider_schema;
    "GetResourceIdentitySchemas" get_resource_identity_schemas;
    "ImportResourceState" import_resource_state.type_name;
    "MoveResourceState" move_resource_state.target_type_name;
    "OpenEphemeralResource" open_ephemeral_resource.type_name;
    "PlanAction" plan_action.action_type;
    "PlanResourceChange" plan_resource_change.type_name;
    "ReadDataSource" read_data_source.type_name;
    "ReadResource" read_resource.type_name;
    "RenewEphemeralResource" renew_ephemeral_resource.type_name;
    "UpgradeResourceIdentity" upgrade_resource_identity.type_name;
    "UpgradeResourceState" upgrade_resource_state.type_name;
    "ValidateActionConfig" validate_action_config.type_name;
    "ValidateDataResourceConfig" validate_data_resource_config.type_name;
    "ValidateEphemeralResourceConfig" validate_ephemeral_resource_config.type_name;
    "ValidateListResourceConfig" validate_list_resource_config.type_name;
    "ValidateProviderConfig" validate_provider_config;
    "ValidateResourceConfig" validate_resource_config.type_name;
}

/// The number of events that may wait for the core.
const WAITING: usize = 16;

/// A request in the table of calls.
pub(super) trait Message: Send + Sync + Sized + 'static {
    /// The type of the answer.
    type Response: CarriesDiagnostics;
    /// The call's name in the protocol.
    const NAME: &'static str;

    /// The type of its object; empty if it has none.
    fn subject(&self) -> &str {
        ""
    }
}

/// A call with one answer; implemented by the request.
pub(super) trait Call: Message {
    /// The answer to a failed call: the last known state, without diagnostics.
    fn fallback(&self) -> Self::Response {
        Self::Response::default()
    }

    /// Answers the call.
    fn answer<P: Provider>(&self, server: &Server<P>) -> impl Future<Output = Answered<Self>> + Send;
}

/// An answer with its diagnostics, or the reasons of a failure.
pub(super) type Answered<C> = Result<(<C as Message>::Response, Diagnostics), Diagnostics>;

/// An answer that can carry diagnostics.
pub(super) trait CarriesDiagnostics: Default + Send + 'static {
    /// Adds diagnostics.
    fn say(&mut self, diagnostics: Diagnostics);
}

/// A call that is answered by a stream of events; implemented by the request.
pub(super) trait StreamCall: Send + Sync + Sized + 'static {
    /// The type of its events.
    type Event: CarriesDiagnostics;
    /// The call's name in the protocol.
    const NAME: &'static str;

    /// The type of its object.
    fn subject(&self) -> &str;

    /// Answers the call. The returned diagnostics go into the last event.
    fn answer<P: Provider>(
        &self,
        server: &Server<P>,
        events: &Events<Self::Event>,
    ) -> impl Future<Output = Result<Diagnostics, Diagnostics>> + Send;

    /// The last event, with these diagnostics; `None` if the stream needs no last event.
    fn last(diagnostics: Diagnostics) -> Option<Self::Event>;
}

/// The sender of a call's events.
#[derive(Debug)]
pub(super) struct Events<E>(mpsc::Sender<Result<E, Status>>);

impl<E> Events<E> {
    /// Sends an event, unless the core has stopped reading.
    pub(in crate::protocol) async fn send(&self, event: E) {
        let _ = self.0.send(Ok(event)).await;
    }

    /// Waits until the core stops reading.
    pub(in crate::protocol) async fn closed(&self) {
        self.0.closed().await;
    }
}

/// Answers a call in its own task: neither a client that disconnects (plugin protocol, request cancellation) nor a
/// panic in another call ends work in progress.
async fn run<P: Provider, C: Call>(server: Arc<Server<P>>, work: &TaskTracker, caller: Caller, call: C) -> C::Response {
    let (id, span) = identified(C::NAME, call.subject());
    // The layers around it move a pointer.
    let answering = Box::pin(async move {
        let started = Instant::now();
        let (mut response, diagnostics) = match catch(&id, call.answer(&server)).await.and_then(|answered| answered) {
            Ok(answered) => answered,
            Err(diagnostics) => (call.fallback(), diagnostics),
        };
        log_answered(started, &diagnostics);
        response.say(diagnostics);
        response
    });
    // A broken connection drops this future, long before the exit of the core is noticed otherwise.
    let gave_up = caller.caller_gone.clone().drop_guard();
    let response = work.spawn(answer_to(caller, answering).instrument(span)).await.unwrap_or_else(|_| {
        let mut response = C::Response::default();
        response.say(
            Diagnostic::error(
                "The operation was interrupted",
                "The provider is shutting down. Run the plan again to see the current state.",
            )
            .into(),
        );
        response
    });
    gave_up.disarm();
    response
}

/// Answers a call with events, in its own task. A panic ends in a last event too.
fn stream<P: Provider, C: StreamCall>(
    server: Arc<Server<P>>,
    work: &TaskTracker,
    caller: Caller,
    call: C,
) -> impl Stream<Item = Result<C::Event, Status>> + Send + 'static {
    let (id, span) = identified(C::NAME, call.subject());
    let (sender, receiver) = mpsc::channel(WAITING);
    let answering = async move {
        let (started, events) = (Instant::now(), Events(sender));
        let answered = catch(&id, call.answer(&server, &events)).await.and_then(|answered| answered);
        let diagnostics = answered.unwrap_or_else(|diagnostics| diagnostics);
        log_answered(started, &diagnostics);
        if let Some(last) = C::last(diagnostics) {
            events.send(last).await;
        }
    };
    let gave_up = Some(caller.caller_gone.clone().drop_guard());
    work.spawn(answer_to(caller, answering).instrument(span));
    EventStream { events: receiver, gave_up }
}

/// The events for the core. If the core stops reading before the last one, the caller is gone.
#[derive(Debug)]
struct EventStream<E> {
    events: mpsc::Receiver<Result<E, Status>>,
    gave_up: Option<DropGuard>,
}

impl<E> Stream for EventStream<E> {
    type Item = Result<E, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let event = self.events.poll_recv(context);
        if let Poll::Ready(None) = event {
            self.gave_up.take().map(DropGuard::disarm);
        }
        event
    }
}

/// The id of a call, and the span of its log lines, which has the id as a field.
fn identified(name: &str, subject: &str) -> (String, Span) {
    let id = format!("{:016x}", rand::random::<u64>());
    let span = tracing::error_span!(
        "rpc",
        tf_rpc = name,
        tf_resource_type = subject,
        tf_req_id = %id
    );
    (id, span)
}

fn log_answered(started: Instant, diagnostics: &Diagnostics) {
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
    let warnings = diagnostics.iter().count() - errors;
    tracing::debug!(duration_ms, errors, warnings, "answered");
}

/// Runs the work of the call with this id. The program's panic hook logs a panic with message, source location and
/// backtrace, inside the span of the call and so with the same id.
async fn catch<T>(id: &str, work: impl Future<Output = T>) -> Result<T, Diagnostics> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|_| {
        let detail = format!(
            "Report it with the id {id}; the provider's log has details under this id (TF_LOG=error). Other operations \
             were not affected. This one may have taken effect: check the service before you try again."
        );
        Diagnostic::error("Bug in the provider", detail).into()
    })
}

impl Message for call_function::Request {
    type Response = call_function::Response;
    const NAME: &'static str = "CallFunction";

    fn subject(&self) -> &str {
        &self.name
    }
}

/// A function can return one error, and no warnings.
impl CarriesDiagnostics for call_function::Response {
    fn say(&mut self, diagnostics: Diagnostics) {
        if let Some(error) = diagnostics.into_iter().find(Diagnostic::is_error) {
            let text = format!("{}: {}", error.summary, error.detail);
            self.error = Some(tfplugin6::FunctionError { text, function_argument: None });
        }
    }
}

impl CarriesDiagnostics for list_resource::Event {
    fn say(&mut self, diagnostics: Diagnostics) {
        self.diagnostic.extend(convert::diagnostics(diagnostics));
    }
}

/// Diagnostics end an action, because they are in its completed event.
impl CarriesDiagnostics for invoke_action::Event {
    fn say(&mut self, diagnostics: Diagnostics) {
        let diagnostics = convert::diagnostics(diagnostics);
        self.r#type = Some(event::Type::Completed(Completed { diagnostics }));
    }
}
