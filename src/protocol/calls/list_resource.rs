//! Messages of list resources.

use tokio::sync::mpsc;

use crate::{
    framework::{Diagnostics, IdentitySchema, Kind, ListEvent, Provider, Server, Type, server::ListRequest},
    protocol::{
        convert,
        service::{Answer as _, Events, StreamCall},
        tfplugin6::list_resource,
    },
};

impl StreamCall for list_resource::Request {
    type Event = list_resource::Event;
    const NAME: &'static str = "ListResource";

    fn type_name(&self) -> &str {
        &self.type_name
    }

    async fn answer<P: Provider>(&self, server: &Server<P>, events: &Events<Self::Event>) -> Diagnostics {
        list(self, server, events).await.unwrap_or_else(|diagnostics| diagnostics)
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
    server: &Server<P>,
    events: &Events<list_resource::Event>,
) -> Result<Diagnostics, Diagnostics> {
    let type_name = &call.type_name;
    let ty = &server.registry().find(Kind::ListResource, type_name)?.ty;
    let resource = server.registry().find(Kind::Resource, type_name)?;
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
            events.send(self::event(&resource.ty, resource.identity.as_ref(), event)).await;
        }
    };
    let (diagnostics, ()) = tokio::join!(server.list(type_name, request, sender), forwarding);
    Ok(diagnostics)
}

fn event(state_type: &Type, identity: Option<&IdentitySchema>, event: ListEvent) -> list_resource::Event {
    let mut diagnostics = Diagnostics::new();
    let mut wire = list_resource::Event {
        identity: convert::identity(identity, Some(&event.identity), &mut diagnostics),
        display_name: event.display_name,
        resource_object: event.state.and_then(|state| convert::written(state_type, &state, &mut diagnostics)),
        diagnostic: Vec::new(),
    };
    wire.say(diagnostics);
    wire
}
