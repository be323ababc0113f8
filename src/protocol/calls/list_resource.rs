use tokio::sync::mpsc;

use crate::{
    framework::{Diagnostics, ListEvent, Provider, Type, server::ListRequest},
    protocol::{
        convert,
        service::{Answer as _, Call, Driver, Events, StreamCall, not_offered},
        tfplugin6::{list_resource, validate_list_resource_config},
    },
};

impl Call for validate_list_resource_config::Request {
    type Response = validate_list_resource_config::Response;
    const NAME: &'static str = "ValidateListResourceConfig";

    fn type_name(&self) -> &str {
        &self.type_name
    }

    async fn answer<P: Provider>(&self, driver: &Driver<P>) -> Result<Self::Response, Diagnostics> {
        let ty = driver.list_resource_type(&self.type_name)?;
        let config = convert::read(ty, self.config.as_ref(), "configuration")?;
        let mut response = Self::Response::default();
        response.say(driver.server.validate_list_resource(&self.type_name, &config));
        Ok(response)
    }
}

impl StreamCall for list_resource::Request {
    type Event = list_resource::Event;
    const NAME: &'static str = "ListResource";

    fn type_name(&self) -> &str {
        &self.type_name
    }

    async fn answer<P: Provider>(&self, driver: &Driver<P>, events: &Events<Self::Event>) -> Diagnostics {
        list(self, driver, events).await.unwrap_or_else(|diagnostics| diagnostics)
    }

    /// An event without an identity may only say something (plugin protocol, list resources).
    fn last(diagnostics: Diagnostics) -> Option<Self::Event> {
        (!diagnostics.is_empty()).then(|| {
            let mut event = Self::Event::default();
            event.say(diagnostics);
            event
        })
    }
}

async fn list<P: Provider>(
    call: &list_resource::Request,
    driver: &Driver<P>,
    events: &Events<list_resource::Event>,
) -> Result<Diagnostics, Diagnostics> {
    let type_name = &call.type_name;
    let ty = driver.list_resource_type(type_name)?;
    let state_type = driver.resource_type(type_name)?;
    let identity_type = driver.identity_type(type_name).ok_or_else(|| not_offered("identity of", type_name))?;
    let request = ListRequest {
        config: convert::read(ty, call.config.as_ref(), "configuration")?,
        wants_state: call.include_resource_object,
        // None is named by nobody but tests: the core always says how many it takes.
        limit: usize::try_from(call.limit).ok().filter(|limit| *limit > 0).unwrap_or(usize::MAX),
    };
    let (sender, mut found) = mpsc::channel(1);
    // The receiver goes with this future, which ends the list.
    let forwarding = async move {
        loop {
            let event = tokio::select! {
                event = found.recv() => event,
                () = events.closed() => return,
            };
            let Some(event) = event else { return };
            events.send(self::event(state_type, identity_type, event)).await;
        }
    };
    let (diagnostics, ()) = tokio::join!(driver.server.list(type_name, request, sender), forwarding);
    Ok(diagnostics)
}

fn event(state_type: &Type, identity_type: &Type, event: ListEvent) -> list_resource::Event {
    let mut diagnostics = Diagnostics::new();
    let mut wire = list_resource::Event {
        identity: convert::identity(Some(identity_type), Some(&event.identity), &mut diagnostics),
        display_name: event.display_name,
        resource_object: event.state.and_then(|state| convert::written(state_type, &state, &mut diagnostics)),
        diagnostic: Vec::new(),
    };
    wire.say(diagnostics);
    wire
}
