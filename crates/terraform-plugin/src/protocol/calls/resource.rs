//! Messages of resources, list resources, and invocations of actions; the latter two are answered by a stream of
//! events.

use tokio::sync::mpsc;

use super::{Answered, Call, Message as _, convert};
use crate::{
    framework::{
        Diagnostic, Diagnostics, IdentitySchema, ListEvent, Offering, Private, Provider, Server, State, Type, Walk,
        server::{ApplyRequest, ListRequest, PlanRequest, ResourceAnswer},
    },
    protocol::{
        service::{CarriesDiagnostics as _, Events, StreamCall},
        tfplugin6::{
            DynamicValue, RawState, ResourceIdentityData, apply_resource_change, generate_resource_config,
            import_resource_state,
            invoke_action::{
                self,
                event::{self, Progress},
            },
            list_resource, move_resource_state, plan_resource_change, read_resource, upgrade_resource_identity,
            upgrade_resource_state,
        },
    },
};

/// The msgpack of null.
const NIL: u8 = 0xc0;

/// The parts of an answer as messages: state, private data, identity and diagnostics.
type Parts = (Option<DynamicValue>, Vec<u8>, Option<ResourceIdentityData>, Diagnostics);

fn parts(resource: &Offering, answer: ResourceAnswer) -> Parts {
    let ResourceAnswer { state, private, identity, mut diagnostics } = answer;
    let state = convert::written(&resource.ty, &state, &mut diagnostics);
    let identity = convert::identity(resource.identity.as_ref(), identity.as_ref(), &mut diagnostics);
    (state, private.encode(), identity, diagnostics)
}

impl Call for plan_resource_change::Request {
    fn fallback(&self) -> Self::Response {
        plan_resource_change::Response {
            planned_state: self.proposed_new_state.clone(),
            planned_private: self.prior_private.clone(),
            planned_identity: self.prior_identity.clone(),
            ..Self::Response::default()
        }
    }

    async fn answer<P: Provider>(&self, server: &Server<P>) -> Answered<Self> {
        let resource = server.registry().find_resource(&self.type_name)?;
        let read = |value: &Option<DynamicValue>, name| convert::read(&resource.ty, value.as_ref(), name);
        let request = PlanRequest {
            config: read(&self.config, "configuration")?,
            prior: read(&self.prior_state, "prior state")?,
            proposed: read(&self.proposed_new_state, "proposed state")?,
            private: Private::decode(&self.prior_private),
            earlier: (!self.planned_private.is_empty()).then(|| Private::decode(&self.planned_private)),
            walk: self.walk(),
        };
        let (plan, replace) = server.plan(resource, request).await?;
        let (planned_state, mut planned_private, planned_identity, diagnostics) = parts(resource, plan);
        if planned_private.is_empty() {
            // By them the plan of the apply is recognized.
            planned_private = b"{}".to_vec();
        }
        let response = plan_resource_change::Response {
            planned_state,
            requires_replace: convert::paths(&replace),
            planned_private,
            planned_identity,
            ..Self::Response::default()
        };
        Ok((response, diagnostics))
    }
}

impl plan_resource_change::Request {
    /// Terraform 1.16 and newer give an apply the private data of the plan; from 1.9 on it allows deferrals in calls of
    /// an apply and in no others (`-allow-deferral` of alpha builds apart). OpenTofu sends neither.
    fn walk(&self) -> Walk {
        match self.client_capabilities.unwrap_or_default() {
            client if client.store_planned_private && self.planned_private.is_empty() => Walk::Plan,
            client if client.store_planned_private || client.deferral_allowed => Walk::Apply,
            _ => Walk::Unknown,
        }
    }
}

impl Call for apply_resource_change::Request {
    /// No state: with an error, the core keeps what it has stored of an existing object, its private data and identity
    /// too. A transport error instead would lose the object (plugin protocol, status errors).
    fn fallback(&self) -> Self::Response {
        let new_state = Some(DynamicValue { msgpack: vec![NIL], json: Vec::new() });
        apply_resource_change::Response { new_state, ..Self::Response::default() }
    }

    async fn answer<P: Provider>(&self, server: &Server<P>) -> Answered<Self> {
        let resource = server.registry().find_resource(&self.type_name)?;
        let read = |value: &Option<DynamicValue>, name| convert::read(&resource.ty, value.as_ref(), name);
        let request = ApplyRequest {
            config: read(&self.config, "configuration")?,
            prior: read(&self.prior_state, "prior state")?,
            planned: read(&self.planned_state, "planned state")?,
            private: Private::decode(&self.planned_private),
        };
        let (new_state, private, new_identity, diagnostics) = parts(resource, server.apply(resource, request).await?);
        let response =
            apply_resource_change::Response { new_state, private, new_identity, ..Self::Response::default() };
        Ok((response, diagnostics))
    }
}

impl Call for read_resource::Request {
    /// The prior state: an empty answer would mean that the object is gone.
    fn fallback(&self) -> Self::Response {
        read_resource::Response {
            new_state: self.current_state.clone(),
            private: self.private.clone(),
            new_identity: self.current_identity.clone(),
            ..Self::Response::default()
        }
    }

    async fn answer<P: Provider>(&self, server: &Server<P>) -> Answered<Self> {
        let resource = server.registry().find_resource(&self.type_name)?;
        let current = State {
            state: convert::read(&resource.ty, self.current_state.as_ref(), "state")?,
            private: Private::decode(&self.private),
        };
        let (new_state, private, new_identity, diagnostics) = parts(resource, server.read(resource, current).await?);
        Ok((read_resource::Response { new_state, private, new_identity, ..Self::Response::default() }, diagnostics))
    }
}

impl Call for import_resource_state::Request {
    async fn answer<P: Provider>(&self, server: &Server<P>) -> Answered<Self> {
        let resource = server.registry().find_resource(&self.type_name)?;
        let imported = match (&resource.identity, &self.identity) {
            (Some(schema), Some(identity)) if self.id.is_empty() => {
                let identity = convert::read(&schema.ty(), identity.identity_data.as_ref(), "identity")?;
                server.import(resource, &resource.import_id(&identity)?).await?
            }
            _ => server.import(resource, &self.id).await?,
        };
        let (state, private, identity, diagnostics) = parts(resource, imported);
        let type_name = self.type_name.clone();
        let imported = import_resource_state::ImportedResource { type_name, state, private, identity };
        let imported_resources = vec![imported];
        Ok((import_resource_state::Response { imported_resources, ..Self::Response::default() }, diagnostics))
    }
}

impl Call for generate_resource_config::Request {
    async fn answer<P: Provider>(&self, server: &Server<P>) -> Answered<Self> {
        let resource = server.registry().find_resource(&self.type_name)?;
        let state = convert::read(&resource.ty, self.state.as_ref(), "state")?;
        let (config, mut diagnostics) = server.generate(&self.type_name, &state)?;
        let config = convert::written(&resource.ty, &config, &mut diagnostics);
        Ok((generate_resource_config::Response { config, diagnostics: Vec::new() }, diagnostics))
    }
}

impl Call for upgrade_resource_state::Request {
    async fn answer<P: Provider>(&self, server: &Server<P>) -> Answered<Self> {
        let resource = server.registry().find_resource(&self.type_name)?;
        let upgraded = server.upgrade(resource, self.version, stored_state(self.raw_state.as_ref())?)?;
        let state = resource.without_write_only(convert::read_stored(&resource.ty, &upgraded, "stored state")?);
        let mut diagnostics = Diagnostics::new();
        let upgraded_state = convert::written(&resource.ty, &state, &mut diagnostics);
        Ok((upgrade_resource_state::Response { upgraded_state, diagnostics: Vec::new() }, diagnostics))
    }
}

/// The core calls this only if the version differs from the schema's or is missing. All versions have one layout.
impl Call for upgrade_resource_identity::Request {
    async fn answer<P: Provider>(&self, server: &Server<P>) -> Answered<Self> {
        let Some(schema) = &server.registry().find_resource(&self.type_name)?.identity else {
            let detail = format!("This version of the provider has no identity for {}.", self.type_name);
            return Err(Diagnostic::error("No identity", detail).into());
        };
        if self.version != convert::IDENTITY_VERSION {
            let detail =
                format!("Its version is {}, which this provider cannot read. The state is unchanged.", self.version);
            return Err(Diagnostic::error("The identity is of an unknown version", detail).into());
        }
        // A state without an identity has no JSON here.
        let json = self.raw_identity.as_ref().map(|raw| raw.json.as_slice()).filter(|json| !json.is_empty());
        let stored = stored_json(json.unwrap_or(b"{}"), "identity")?;
        let identity = convert::read_stored(&schema.ty(), &stored, "stored identity")?;
        let mut diagnostics = Diagnostics::new();
        let upgraded_identity = convert::identity(Some(schema), Some(&identity), &mut diagnostics);
        Ok((upgrade_resource_identity::Response { upgraded_identity, diagnostics: Vec::new() }, diagnostics))
    }
}

/// States of other types lack attributes that a state of this provider needs.
impl Call for move_resource_state::Request {
    async fn answer<P: Provider>(&self, _: &Server<P>) -> Answered<Self> {
        let (from, to) = (&self.source_type_name, self.subject());
        Err(Diagnostic::error(
            format!("{from} cannot be moved to {to}"),
            format!(
                "The state is unchanged. Instead of the moved block, write a removed block for the {from} with \
                 destroy = false, and an import block for the {to}."
            ),
        )
        .into())
    }
}

/// The JSON of a stored state (plugin protocol, UpgradeResourceState input).
fn stored_state(raw: Option<&RawState>) -> Result<serde_json::Value, Diagnostics> {
    let (json, flatmap) = raw.map_or((&[][..], None), |raw| (raw.json.as_slice(), Some(&raw.flatmap)));
    if json.is_empty() && flatmap.is_some_and(|flatmap| !flatmap.is_empty()) {
        return Err(Diagnostic::error(
            "The state is too old",
            "Terraform before 0.12 wrote this state, in a form that this provider never used. The state is unchanged. \
             Remove the resource from the state, and import it.",
        )
        .into());
    }
    stored_json(json, "state")
}

fn stored_json(json: &[u8], what: &str) -> Result<serde_json::Value, Diagnostics> {
    serde_json::from_slice(json).map_err(|_| {
        Diagnostic::error(
            format!("The stored {what} cannot be read"),
            format!("The stored {what} that Terraform sent is not JSON. The state is unchanged."),
        )
        .into()
    })
}

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
        let action = server.registry().find_action(&self.action_type)?;
        let config = convert::read(&action.ty, self.config.as_ref(), "configuration")?;
        let (sender, mut lines) = mpsc::unbounded_channel();
        // The action continues when the core stops reading its lines, because it must not be left half done.
        let forwarding = async {
            while let Some(message) = lines.recv().await {
                let progress = event::Type::Progress(Progress { message });
                events.send(invoke_action::Event { r#type: Some(progress) }).await;
            }
        };
        tokio::join!(server.invoke_action(action, &config, sender), forwarding).0
    }

    /// Without a completed event the core would assume success (plugin protocol, actions).
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
        let list = server.registry().find_list(&self.type_name)?;
        let resource = server.registry().find_resource(&self.type_name)?;
        let request = ListRequest {
            config: convert::read(&list.ty, self.config.as_ref(), "configuration")?,
            wants_state: self.include_resource_object,
            // Only tests omit it: the core always sets a limit.
            limit: usize::try_from(self.limit).ok().filter(|limit| *limit > 0).unwrap_or(usize::MAX),
        };
        let (sender, mut found) = mpsc::channel(1);
        // This future drops the receiver, which ends the list.
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

    /// An event without an identity may only have diagnostics (plugin protocol, list resources).
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
