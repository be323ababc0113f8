//! The calls that validate configurations and configure the provider, and those of data sources, ephemeral resources,
//! list resources and actions.

use std::sync::{Arc, PoisonError};

use tokio::{sync::mpsc, time::Instant};

use super::{PLANNING, Server};
use crate::framework::{
    ActionProgress, ConfigureContext, Diagnostic, Diagnostics, ListEvent, Offered, Offering, Opened, Outcome, Provider,
    Schema, Value, Walk,
    model::from_value,
    plan_rules::{check, planned_state},
    registry::{OfferedAction, OfferedDataSource, OfferedEphemeralResource},
    resource::EventSender,
    result::{applied_state, fill_defaults},
    steps::Validates,
};

/// A request for a list.
#[derive(Debug)]
pub struct ListRequest {
    /// The `config` block.
    pub config: Value,
    /// Whether to send whole states.
    pub wants_state: bool,
    /// The maximum number of objects.
    pub limit: usize,
}

impl<P: Provider> Server<P> {
    /// Whether to defer the call: the core allows it, and the provider's configuration is still unknown.
    pub fn defers(&self, deferral_allowed: bool) -> bool {
        deferral_allowed && matches!(self.configuration(), ConfigurationState::Unknown(_))
    }

    /// Reads a data source (plugin protocol, data sources).
    pub(crate) async fn read_data_source(
        &self,
        source: &OfferedDataSource<P::Client>,
        config: &Value,
    ) -> Result<(Value, Diagnostics), Diagnostics> {
        let context = self.context(self.client()?, source.timeout());
        let config = fill_defaults(&source.schema, config.clone());
        let Outcome { state, diagnostics, .. } = source.steps.read(config, context).await.map_err(advised)?;
        result(source, state.map(Value::unknown_as_null), diagnostics)
    }

    /// Opens an ephemeral resource (plugin protocol, ephemeral resources). The answer is the result, the key for the
    /// close, and diagnostics. The result is wholly known: the configured values and those of the open.
    pub(crate) async fn open(
        &self,
        resource: &OfferedEphemeralResource<P::Client>,
        config: &Value,
    ) -> Result<(Value, String, Diagnostics), Diagnostics> {
        let context = self.context(self.client()?, resource.timeout());
        let caller = self.current_caller();
        let full = fill_defaults(&resource.schema, config.clone());
        let Opened { result, held, diagnostics } = resource.steps.open(full, context).await.map_err(advised)?;
        if diagnostics.has_errors() {
            return Err(diagnostics);
        }
        // If the caller is gone, no close can follow, so the object is dropped here.
        let held = held.filter(|_| !caller.caller_gone.is_cancelled());
        let key = held.map(|held| self.held.hold(held, caller.disconnected)).unwrap_or_default();
        Ok((applied_state(&self.expected(resource, config), &result), key, diagnostics))
    }

    /// The result of an ephemeral resource before it is opened.
    pub fn expected(&self, resource: &Offering, config: &Value) -> Value {
        planned_state(&resource.schema, config, &Value::Null)
    }

    /// Closes an ephemeral resource. `key` comes from the answer of its open.
    pub fn close(&self, key: &str) {
        self.held.release(key);
    }

    /// Lists the objects of a resource's type (plugin protocol, list resources). It ends early when the receiver of the
    /// events is dropped.
    pub async fn list(&self, type_name: &str, request: ListRequest, events: mpsc::Sender<ListEvent>) -> Diagnostics {
        self.listed(type_name, request, events).await.unwrap_or_else(|diagnostics| diagnostics)
    }

    async fn listed(
        &self,
        type_name: &str,
        request: ListRequest,
        events: mpsc::Sender<ListEvent>,
    ) -> Result<Diagnostics, Diagnostics> {
        let (list, resource) = (self.registry.find_list(type_name)?, self.registry.find_resource(type_name)?);
        let identity = resource.identity.as_ref().ok_or_else(|| {
            let detail = format!("A {type_name} has no identity in this version of the provider.");
            Diagnostics::from(Diagnostic::error("The resource type cannot be listed", detail))
        })?;
        let mut fault = None;
        let mut sender = EventSender {
            schema: &resource.schema,
            identity,
            wants_state: request.wants_state,
            wanted: request.limit,
            events: events.clone(),
            fault: &mut fault,
        };
        let config = fill_defaults(&list.schema, request.config);
        let listing = list.steps.list(config, &mut sender, self.context(self.client()?, list.timeout()));
        let diagnostics = tokio::select! {
            listed = listing => listed?,
            () = events.closed() => return Ok(Diagnostics::new()),
        };
        Ok(fault.map_or(diagnostics, Diagnostics::from))
    }

    /// Plans an action (plugin protocol, actions). Without a client, the plan makes no request to the service.
    pub(crate) async fn plan_action(
        &self,
        action: &OfferedAction<P::Client>,
        config: &Value,
    ) -> Result<Diagnostics, Diagnostics> {
        let config = fill_defaults(&action.schema, config.clone());
        action.steps.plan(config, self.plan_context(&self.configuration())).await
    }

    /// Invokes an action, whose progress messages go to `progress`.
    pub(crate) async fn invoke_action(
        &self,
        action: &OfferedAction<P::Client>,
        config: &Value,
        progress: mpsc::UnboundedSender<String>,
    ) -> Result<Diagnostics, Diagnostics> {
        let context = self.context(self.client()?, action.timeout());
        action.steps.invoke(fill_defaults(&action.schema, config.clone()), ActionProgress(progress), context).await
    }
}

/// The result of a read, or an error if it has neither a result nor an error.
fn result(
    source: &Offering,
    result: Option<Value>,
    mut diagnostics: Diagnostics,
) -> Result<(Value, Diagnostics), Diagnostics> {
    match result {
        Some(result) => Ok((result, diagnostics)),
        None if diagnostics.has_errors() => Err(diagnostics),
        None => {
            let detail = format!(
                "This is a bug in the provider, please report it: {} was read without a result and without an error.",
                source.name
            );
            diagnostics.error("The data source has no result", detail);
            Err(diagnostics)
        }
    }
}

/// The request that configures the provider.
#[derive(Debug)]
pub struct ConfigureRequest {
    /// The configuration; in a plan, parts may be unknown.
    pub config: Value,
    /// The core's version. It does not distinguish Terraform from OpenTofu (plugin protocol, field notes).
    pub core_version: String,
    /// The phase of the run.
    pub walk: Walk,
}

/// The state of the provider's configuration.
pub(super) enum ConfigurationState<C> {
    /// Not configured yet.
    Missing,
    /// Configured, with this client.
    Ready(Arc<C>),
    /// These arguments are unknown before an apply.
    Unknown(Vec<String>),
}

impl<P: Provider> Server<P> {
    /// Checks the provider's configuration.
    pub fn validate_provider(&self, config: &Value) -> Diagnostics {
        judged(&self.schema, config, true, |config, diagnostics| {
            self.provider.validate(&from_value(config)?, diagnostics);
            Ok(())
        })
    }

    /// Configures the provider. Unknown values are accepted without a message: the plan continues without the service.
    pub async fn configure(&self, request: ConfigureRequest) -> Diagnostics {
        let names = self.schema.attributes.iter().map(|attribute| &attribute.name);
        let unknown: Vec<String> =
            names.filter(|name| !request.config.attribute(name).is_wholly_known()).map(ToString::to_string).collect();
        if !unknown.is_empty() || request.config.is_unknown() {
            self.set_configuration(ConfigurationState::Unknown(unknown));
            return Diagnostics::new();
        }
        let model = match from_value::<P::Model>(&fill_defaults(&self.schema, request.config)) {
            Ok(model) => model,
            Err(error) => return error.into(),
        };
        let context = ConfigureContext {
            core_version: &request.core_version,
            walk: request.walk,
            stopping: self.stopping(),
            deadline: Instant::now() + PLANNING,
            work: self.ends.work.clone(),
        };
        let (configuration, diagnostics) = match self.provider.configure(model, context).await {
            Ok((client, diagnostics)) => (ConfigurationState::Ready(client), diagnostics),
            Err(diagnostics) => (ConfigurationState::Missing, diagnostics),
        };
        self.set_configuration(configuration);
        diagnostics
    }

    fn set_configuration(&self, configuration: ConfigurationState<P::Client>) {
        *self.configuration.write().unwrap_or_else(PoisonError::into_inner) = configuration;
    }
}

impl<S: Validates + ?Sized> Offered<S> {
    /// Checks a configuration. `write_only_allowed`: the core supports write-only attributes.
    pub(crate) fn validate(&self, config: &Value, write_only_allowed: bool) -> Diagnostics {
        judged(&self.schema, config, write_only_allowed, |config, diagnostics| self.steps.validate(config, diagnostics))
    }
}

/// The errors of a read, which also stop a destroy.
fn advised(mut diagnostics: Diagnostics) -> Diagnostics {
    diagnostics.advise_destroy();
    diagnostics
}

/// Checks the rules of the schema and, if they hold, those of the author.
fn judged(
    schema: &Schema,
    config: &Value,
    write_only_allowed: bool,
    validate: impl FnOnce(&Value, &mut Diagnostics) -> Result<(), Diagnostics>,
) -> Diagnostics {
    let mut diagnostics = check(schema, config, write_only_allowed);
    if !diagnostics.has_errors() {
        schema.selections.iter().for_each(|selection| selection.check(config, &mut diagnostics));
        if let Err(bug) = validate(&fill_defaults(schema, config.clone()), &mut diagnostics) {
            diagnostics.extend(bug);
        }
    }
    diagnostics
}

impl<C> ConfigurationState<C> {
    /// The client, or the reason why it is missing.
    pub(super) fn client(self) -> Result<Arc<C>, Diagnostics> {
        let missing = match self {
            Self::Ready(client) => return Ok(client),
            Self::Missing => Diagnostic::error(
                "The provider is not configured",
                "Terraform called the provider before configuring it.",
            ),
            Self::Unknown(arguments) => Diagnostic::error(
                "The provider's configuration is unknown until the apply",
                format!(
                    "This needs the service, but the provider's {} is known only after an apply. Give the provider a \
                     value that is known in the plan, a literal or one from a data source, or apply the resource that \
                     it comes from first (with -target). If that resource no longer exists, an apply would create it \
                     again: destroy with -refresh=false while the state has it, and with a known value after that.",
                    arguments.join(", ")
                ),
            ),
        };
        Err(missing.into())
    }
}
