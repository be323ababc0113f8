//! Messages of list resources and of actions that are invoked: calls that are answered by a stream of events.

use tokio::sync::mpsc;

use super::convert;
use crate::{
    framework::{Diagnostics, IdentitySchema, Kind, ListEvent, Provider, Server, Type, server::ListRequest},
    protocol::{
        service::{Answer as _, Events, StreamCall},
        tfplugin6::{
            invoke_action::{
                self,
                event::{self, Progress},
            },
            list_resource,
        },
    },
};

impl StreamCall for invoke_action::Request {
    type Event = invoke_action::Event;
    const NAME: &'static str = "InvokeAction";

    fn subject(&self) -> &str {
        &self.action_type
    }

    async fn answer<P: Provider>(
        &self,
        server: &Server<P>,
        events: &Events<Self::Event>,
    ) -> Result<Diagnostics, Diagnostics> {
        let action = server.registry().find(Kind::Action, &self.action_type)?;
        let config = convert::read(&action.ty, self.config.as_ref(), "configuration")?;
        let (sender, mut lines) = mpsc::unbounded_channel();
        // The action goes on when its lines are not taken any more: what it does may not be left half done.
        let forwarding = async {
            while let Some(message) = lines.recv().await {
                let progress = event::Type::Progress(Progress { message });
                events.send(invoke_action::Event { r#type: Some(progress) }).await;
            }
        };
        tokio::join!(server.invoke_action(action, &config, sender), forwarding).0
    }

    /// Without a completed event the core would take anything for success (plugin protocol, actions).
    fn last(diagnostics: Diagnostics) -> Option<Self::Event> {
        let mut event = Self::Event::default();
        event.say(diagnostics);
        Some(event)
    }
}

impl StreamCall for list_resource::Request {
    type Event = list_resource::Event;
    const NAME: &'static str = "ListResource";

    fn subject(&self) -> &str {
        &self.type_name
    }

    async fn answer<P: Provider>(
        &self,
        server: &Server<P>,
        events: &Events<Self::Event>,
    ) -> Result<Diagnostics, Diagnostics> {
        let list = server.registry().find(Kind::ListResource, &self.type_name)?;
        let resource = server.registry().find(Kind::Resource, &self.type_name)?;
        let request = ListRequest {
            config: convert::read(&list.ty, self.config.as_ref(), "configuration")?,
            wants_state: self.include_resource_object,
            // Only tests leave it out: the core always says how many it takes.
            limit: usize::try_from(self.limit).ok().filter(|limit| *limit > 0).unwrap_or(usize::MAX),
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
                events.send(listed(&resource.ty, resource.identity.as_ref(), event)).await;
            }
        };
        Ok(tokio::join!(server.list(&self.type_name, request, sender), forwarding).0)
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

fn listed(state_type: &Type, identity: Option<&IdentitySchema>, event: ListEvent) -> list_resource::Event {
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
