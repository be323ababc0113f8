//! Messages of actions.

use tokio::sync::mpsc;

use crate::{
    framework::{Diagnostics, Kind, Provider, Server},
    protocol::{
        convert,
        service::{Answer as _, Call, Events, StreamCall},
        tfplugin6::{
            invoke_action::{
                self,
                event::{Progress, Type},
            },
            plan_action,
        },
    },
};

impl Call for plan_action::Request {
    type Response = plan_action::Response;
    const NAME: &'static str = "PlanAction";

    fn type_name(&self) -> &str {
        &self.action_type
    }

    async fn answer<P: Provider>(&self, server: &Server<P>) -> Result<Self::Response, Diagnostics> {
        let ty = &server.registry().find(Kind::Action, &self.action_type)?.ty;
        let config = convert::read(ty, self.config.as_ref(), "configuration")?;
        let deferral_allowed = self.client_capabilities.is_some_and(|client| client.deferral_allowed);
        let (diagnostics, deferred) = server.plan_action(&self.action_type, &config, deferral_allowed).await;
        let mut response =
            plan_action::Response { deferred: deferred.map(convert::deferred), ..Self::Response::default() };
        response.say(diagnostics);
        Ok(response)
    }
}

impl StreamCall for invoke_action::Request {
    type Event = invoke_action::Event;
    const NAME: &'static str = "InvokeAction";

    fn type_name(&self) -> &str {
        &self.action_type
    }

    async fn answer<P: Provider>(&self, server: &Server<P>, events: &Events<Self::Event>) -> Diagnostics {
        invoke(self, server, events).await.unwrap_or_else(|diagnostics| diagnostics)
    }

    /// Without a completed event the core would take anything for success (plugin protocol, actions).
    fn last(diagnostics: Diagnostics) -> Option<Self::Event> {
        let mut event = Self::Event::default();
        event.say(diagnostics);
        Some(event)
    }
}

async fn invoke<P: Provider>(
    call: &invoke_action::Request,
    server: &Server<P>,
    events: &Events<invoke_action::Event>,
) -> Result<Diagnostics, Diagnostics> {
    let ty = &server.registry().find(Kind::Action, &call.action_type)?.ty;
    let config = convert::read(ty, call.config.as_ref(), "configuration")?;
    let (sender, mut lines) = mpsc::unbounded_channel();
    // The action goes on when nobody listens: what it does may not be left half done.
    let forwarding = async {
        while let Some(message) = lines.recv().await {
            events.send(invoke_action::Event { r#type: Some(Type::Progress(Progress { message })) }).await;
        }
    };
    let invoking = server.invoke_action(&call.action_type, &config, sender);
    let (diagnostics, ()) = tokio::join!(invoking, forwarding);
    Ok(diagnostics)
}
