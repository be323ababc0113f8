use tokio::sync::mpsc;

use crate::{
    framework::{Diagnostics, Provider},
    protocol::{
        convert,
        service::{Answer as _, Call, Driver, Events, StreamCall},
        tfplugin6::{
            invoke_action::{
                self,
                event::{Progress, Type},
            },
            plan_action, validate_action_config,
        },
    },
};

impl Call for validate_action_config::Request {
    type Response = validate_action_config::Response;
    const NAME: &'static str = "ValidateActionConfig";

    fn type_name(&self) -> &str {
        &self.type_name
    }

    async fn answer<P: Provider>(&self, driver: &Driver<P>) -> Result<Self::Response, Diagnostics> {
        let ty = driver.action_type(&self.type_name)?;
        let config = convert::read(ty, self.config.as_ref(), "configuration")?;
        let mut response = Self::Response::default();
        response.say(driver.server.validate_action(&self.type_name, &config));
        Ok(response)
    }
}

impl Call for plan_action::Request {
    type Response = plan_action::Response;
    const NAME: &'static str = "PlanAction";

    fn type_name(&self) -> &str {
        &self.action_type
    }

    async fn answer<P: Provider>(&self, driver: &Driver<P>) -> Result<Self::Response, Diagnostics> {
        let ty = driver.action_type(&self.action_type)?;
        let config = convert::read(ty, self.config.as_ref(), "configuration")?;
        let deferral_allowed = self.client_capabilities.is_some_and(|client| client.deferral_allowed);
        let (diagnostics, deferred) = driver.server.plan_action(&self.action_type, &config, deferral_allowed).await;
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

    async fn answer<P: Provider>(&self, driver: &Driver<P>, events: &Events<Self::Event>) -> Diagnostics {
        invoke(self, driver, events).await.unwrap_or_else(|diagnostics| diagnostics)
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
    driver: &Driver<P>,
    events: &Events<invoke_action::Event>,
) -> Result<Diagnostics, Diagnostics> {
    let ty = driver.action_type(&call.action_type)?;
    let config = convert::read(ty, call.config.as_ref(), "configuration")?;
    let (sender, mut lines) = mpsc::unbounded_channel();
    // The action goes on when nobody listens: what it does may not be left half done.
    let forwarding = async {
        while let Some(message) = lines.recv().await {
            events.send(invoke_action::Event { r#type: Some(Type::Progress(Progress { message })) }).await;
        }
    };
    let invoking = driver.server.invoke_action(&call.action_type, &config, sender);
    let (diagnostics, ()) = tokio::join!(invoking, forwarding);
    Ok(diagnostics)
}
