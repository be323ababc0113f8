//! The traits of resources, data sources, list resources and actions, and the types of their steps.

use std::{future::Future, marker::PhantomData, ops::ControlFlow, sync::Arc, time::Duration};

use tokio::{sync::mpsc, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    diagnostics::{Diagnostic, Diagnostics, Path, Result},
    identity::{Identity, IdentitySchema},
    model::{Model, ModelError, to_value},
    private::Private,
    result::{fill_defaults, without_secrets},
    schema::Schema,
    timeouts::{DEFAULT_TIMEOUT, DefaultTimeouts},
    value::Value,
};

/// A resource: its life cycle is managed by Terraform. One value of the implementing type serves all of its objects.
///
/// The framework does the work that every resource needs (plugin protocol, rules core enforces on answers): required
/// and read-only checks, validators, defaults, unknown values, replacement, write-only values, timeouts, states that
/// are wholly known and equal to their plan. A resource implements the life cycle itself.
///
/// A step ends with `?` as long as nothing was changed: `Err` keeps what the core has. From then on it returns an
/// [`Outcome`], with what exists and the errors.
pub trait Resource: Send + Sync + 'static {
    /// The client that the provider's configuration yields.
    type Client: Send + Sync + 'static;
    /// The typed form of a configuration, a plan or a state.
    type Model: Model;

    /// The full type name, such as `acme_server`.
    fn type_name(&self) -> &'static str;

    /// The schema, without the `timeouts` block.
    fn schema(&self) -> Schema;

    /// The default timeouts of the steps. With some, the schema gets a `timeouts` block, and the model needs a field
    /// `timeouts: Attr<Timeouts>`.
    fn timeouts(&self) -> Option<DefaultTimeouts> {
        None
    }

    /// Checks rules between attributes without the service. Unknown values satisfy every rule.
    fn validate(&self, _config: &Self::Model, _diagnostics: &mut Diagnostics) {}

    /// Converts the JSON of a state of an older version to the current layout. Added and removed attributes need no
    /// code: unknown attributes are ignored, and missing ones become null.
    fn upgrade(&self, version: i64, _state: serde_json::Value) -> Result<serde_json::Value> {
        Err(Diagnostic::error(
            "The state is of an unknown version",
            format!("Its version is {version}, which this provider cannot read. The state is unchanged."),
        )
        .into())
    }

    /// Takes note of a state that Terraform has stored, as its JSON.
    fn stored(&self, _state: &serde_json::Value, _client: &Self::Client) {}

    /// Refines the plan of a create after the framework's own rules: live checks, computed values that are known early,
    /// warnings.
    fn plan_create(
        &self,
        _plan: &mut CreatePlan<Self::Model>,
        _context: PlanContext<'_, Self::Client>,
    ) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Refines the plan of a change in the same way.
    fn plan_update(
        &self,
        _plan: &mut UpdatePlan<Self::Model>,
        _context: PlanContext<'_, Self::Client>,
    ) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Checks the plan of a destroy: warnings, and errors if it is not allowed.
    fn plan_destroy(
        &self,
        _plan: &mut DestroyPlan<Self::Model>,
        _context: PlanContext<'_, Self::Client>,
    ) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Creates the object. If it may exist afterwards, it is in the outcome's state, with or without errors; `Err`
    /// means that it does not.
    fn create(
        &self,
        change: Create<Self::Model>,
        context: StepContext<Self::Client>,
    ) -> impl Future<Output = Result<Outcome<Self::Model>>> + Send;

    /// Reads the object. An outcome without a state means that the object certainly no longer exists; `Err` leaves the
    /// state as it is.
    fn read(
        &self,
        current: State<Self::Model>,
        context: StepContext<Self::Client>,
    ) -> impl Future<Output = Result<Outcome<Self::Model>>> + Send;

    /// Changes the object in place. The outcome's state is the one actually reached; `Err` means that nothing changed.
    fn update(
        &self,
        change: Update<Self::Model>,
        context: StepContext<Self::Client>,
    ) -> impl Future<Output = Result<Outcome<Self::Model>>> + Send;

    /// Deletes the object. An outcome with a state means that it still exists, and must have an error; `Err` means that
    /// nothing changed.
    fn delete(
        &self,
        current: State<Self::Model>,
        context: StepContext<Self::Client>,
    ) -> impl Future<Output = Result<Outcome<Self::Model>>> + Send;

    /// The identity schema. Without one, objects can be neither listed nor imported by identity.
    fn identity(&self) -> Option<IdentitySchema> {
        None
    }

    /// Corrects a configuration generated from a state, for an import without one. The framework has left out what the
    /// schema allows to omit, but does not handle arguments that exclude each other.
    fn generate(&self, _config: &mut Self::Model, _diagnostics: &mut Diagnostics) {}

    /// The import id of an identity, in the form that [`Self::import`] takes. By default it is the single attribute
    /// that is set.
    fn import_id(&self, identity: &Identity) -> Result<String> {
        Ok(identity.texts().join("/"))
    }

    /// Converts an import id to a state that a read can complete; all other attributes are null. The framework fills in
    /// defaults.
    fn import(
        &self,
        id: &str,
        context: StepContext<Self::Client>,
    ) -> impl Future<Output = Result<Outcome<Self::Model>>> + Send;
}

/// A data source: it is only read.
pub trait DataSource: Send + Sync + 'static {
    /// The client that the provider's configuration yields.
    type Client: Send + Sync + 'static;
    /// The typed form of a configuration and its result.
    type Model: Model;

    /// The full type name, such as `acme_sizes`.
    fn type_name(&self) -> &'static str;

    /// The schema.
    fn schema(&self) -> Schema;

    /// The timeout of a read.
    fn timeout(&self) -> Duration {
        DEFAULT_TIMEOUT
    }

    /// Checks rules between attributes without the service. Unknown values satisfy every rule.
    fn validate(&self, _config: &Self::Model, _diagnostics: &mut Diagnostics) {}

    /// Reads. The configuration is wholly known and has its defaults; the outcome has a state.
    fn read(
        &self,
        config: Self::Model,
        context: StepContext<Self::Client>,
    ) -> impl Future<Output = Result<Outcome<Self::Model>>> + Send;
}

/// The context of a step that may call the service.
#[derive(Debug)]
pub struct StepContext<C> {
    /// The configured client.
    pub client: Arc<C>,
    /// Ends waits when the core is interrupted (plugin protocol, StopProvider).
    pub stopping: CancellationToken,
    /// Cancelled when the core has exited or cancelled this call: the answer of this step will not be stored.
    pub caller_gone: CancellationToken,
    /// When the step's timeout runs out.
    pub deadline: Instant,
}

/// The context of a plan, possibly without a client.
#[derive(Debug)]
pub struct PlanContext<'a, C> {
    /// The configured client; `None` while the provider's configuration has unknown values.
    pub client: Option<&'a Arc<C>>,
    /// Ends waits when the core is interrupted.
    pub stopping: CancellationToken,
    /// When the time for the live checks of this plan runs out. Checks without an answer by then are warnings.
    pub deadline: Instant,
}

/// The plan of a new object, which a resource refines; also the second plan of a replacement, whose private data are
/// those of the first. That plan is made twice: with the first one too, for its warnings.
#[derive(Debug)]
pub struct CreatePlan<M> {
    /// The configuration.
    pub config: M,
    /// The planned state. Only computed attributes that the configuration does not set may be changed.
    pub planned: M,
    /// Passed to the apply and, if the core stores it, to the plan inside the apply.
    pub private: Private,
    /// The private data of the same plan before the apply; only newer cores store them (plugin protocol,
    /// store_planned_private).
    pub earlier: Option<Private>,
    /// The phase that the plan is made in.
    pub walk: Walk,
    /// Messages for the operator.
    pub diagnostics: Diagnostics,
}

/// The phase of a run in which the core asks for a plan, as far as the request shows it (plugin protocol,
/// Capabilities).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// The plan is repeated inside an apply.
    Apply,
    /// The plan is shown to the operator.
    Plan,
    /// Either: the request does not show it.
    Unknown,
}

/// The plan of a change of an existing object: in place, or by replacement if `replace` has paths.
#[derive(Debug)]
pub struct UpdatePlan<M> {
    /// The configuration.
    pub config: M,
    /// The state before.
    pub prior: M,
    /// The planned state. Only computed attributes that the configuration does not set may be changed.
    pub planned: M,
    /// Attributes whose change needs a replacement.
    pub replace: Vec<Path>,
    /// Passed to the second plan of a replacement and to the apply.
    pub private: Private,
    /// Messages for the operator.
    pub diagnostics: Diagnostics,
}

/// The plan of a destroy.
#[derive(Debug)]
pub struct DestroyPlan<M> {
    /// The state before.
    pub prior: M,
    /// Passed to the apply.
    pub private: Private,
    /// Messages for the operator.
    pub diagnostics: Diagnostics,
}

/// A planned create.
#[derive(Debug)]
pub struct Create<M> {
    /// The configuration; only it has write-only values.
    pub config: M,
    /// The planned state, unknown values included.
    pub planned: M,
    /// The plan's private data.
    pub private: Private,
}

/// A planned change in place.
#[derive(Debug)]
pub struct Update<M> {
    /// The configuration; only it has write-only values.
    pub config: M,
    /// The state before.
    pub prior: M,
    /// The planned state, unknown values included.
    pub planned: M,
    /// The plan's private data.
    pub private: Private,
}

/// A state and its private data.
#[derive(Debug)]
pub struct State<M> {
    /// The state.
    pub state: M,
    /// Its private data.
    pub private: Private,
}

/// The outcome of a step. It has state and diagnostics together, so that a partly created object cannot be dropped.
#[derive(Debug)]
pub struct Outcome<M> {
    /// The object as it exists now. Unknown parts become null.
    pub state: Option<M>,
    /// Its private data.
    pub private: Private,
    /// Messages for the operator.
    pub diagnostics: Diagnostics,
}

impl<M> Outcome<M> {
    /// The object exists.
    pub fn present(state: M, private: Private) -> Self {
        Self { state: Some(state), private, diagnostics: Diagnostics::new() }
    }

    /// The object does not exist.
    pub fn absent() -> Self {
        Self { state: None, private: Private::default(), diagnostics: Diagnostics::new() }
    }

    /// The same with diagnostics.
    #[must_use]
    pub fn with(mut self, diagnostics: impl Into<Diagnostics>) -> Self {
        self.diagnostics.extend(diagnostics.into());
        self
    }
}

impl<M> State<M> {
    /// The unchanged state, with the reasons.
    pub fn unchanged(self, diagnostics: impl Into<Diagnostics>) -> Outcome<M> {
        Outcome::present(self.state, self.private).with(diagnostics)
    }
}

/// An operation that a configuration or an operator requests, and that leaves no state (plugin protocol, actions).
pub trait Action: Send + Sync + 'static {
    /// The client that the provider's configuration yields.
    type Client: Send + Sync + 'static;
    /// The typed form of the `config` block.
    type Model: Model;

    /// The full type name, such as `acme_restart`.
    fn type_name(&self) -> &'static str;

    /// The schema of the `config` block.
    fn schema(&self) -> Schema;

    /// The timeout of an invocation.
    fn timeout(&self) -> Duration {
        Duration::from_secs(30 * 60)
    }

    /// Checks rules between attributes without the service. Unknown values satisfy every rule.
    fn validate(&self, _config: &Self::Model, _diagnostics: &mut Diagnostics) {}

    /// Checks in the plan whether an invocation can succeed. Parts of the configuration may be unknown.
    fn plan(
        &self,
        _config: Self::Model,
        _context: PlanContext<'_, Self::Client>,
    ) -> impl Future<Output = Diagnostics> + Send {
        async { Diagnostics::new() }
    }

    /// Runs the action, and returns its warnings. The configuration is wholly known and has its defaults.
    fn invoke(
        &self,
        config: Self::Model,
        progress: ActionProgress,
        context: StepContext<Self::Client>,
    ) -> impl Future<Output = Result<Diagnostics>> + Send;
}

/// The progress messages of an action. After the core has exited, they are dropped without an error.
#[derive(Clone, Debug)]
pub struct ActionProgress(pub(super) mpsc::UnboundedSender<String>);

impl ActionProgress {
    /// Shows the operator a line, which must not contain a secret.
    pub fn say(&self, line: impl Into<String>) {
        let _ = self.0.send(line.into());
    }
}

/// Lists the existing objects of a resource's type, regardless of who created them (plugin protocol, list resources).
pub trait ListResource: Send + Sync + 'static {
    /// The client that the provider's configuration yields.
    type Client: Send + Sync + 'static;
    /// The typed form of the `config` block: filters.
    type Model: Model;
    /// The model of the resource.
    type Resource: Model;

    /// The full type name, which is the resource's.
    fn type_name(&self) -> &'static str;

    /// The schema of the `config` block.
    fn schema(&self) -> Schema;

    /// The timeout of a list.
    fn timeout(&self) -> Duration {
        DEFAULT_TIMEOUT
    }

    /// Checks rules between attributes without the service. Unknown values satisfy every rule.
    fn validate(&self, _config: &Self::Model, _diagnostics: &mut Diagnostics) {}

    /// Sends the existing objects one by one, until all are sent or the limit is reached, and returns warnings.
    ///
    /// It only reads, and is dropped when the core takes no more objects.
    fn list(
        &self,
        config: Self::Model,
        found: ListSender<'_, Self::Resource>,
        context: StepContext<Self::Client>,
    ) -> impl Future<Output = Result<Diagnostics>> + Send;
}

/// One object that exists.
#[derive(Debug)]
pub struct Listed<M> {
    /// The name that operators see.
    pub display_name: String,
    /// Its values: at least its identity, and all that a refresh reads if [`ListSender::wants_state`].
    pub state: M,
}

/// The receiver of the objects of a list.
#[derive(Debug)]
pub struct ListSender<'a, M> {
    sender: &'a mut EventSender<'a>,
    model: PhantomData<fn(M)>,
}

impl<'a, M: Model> ListSender<'a, M> {
    pub(super) fn new(sender: &'a mut EventSender<'a>) -> Self {
        Self { sender, model: PhantomData }
    }

    /// Whether the caller wants whole states in addition to names and identities.
    pub fn wants_state(&self) -> bool {
        self.sender.wants_state
    }

    /// The number of objects still wanted.
    pub fn wanted(&self) -> usize {
        self.sender.wanted
    }

    /// Sends one object. [`ControlFlow::Break`] means that no more are wanted.
    pub async fn send(&mut self, listed: Listed<M>) -> ControlFlow<()> {
        match to_value(&listed.state) {
            Ok(state) => self.sender.send(listed.display_name, state).await,
            Err(error) => {
                self.sender.fault.get_or_insert(error);
                ControlFlow::Break(())
            }
        }
    }
}

/// One event of a list.
#[derive(Clone, Debug)]
pub struct ListEvent {
    /// The object's identity.
    pub identity: Value,
    /// The name that operators see.
    pub display_name: String,
    /// Its state, if the caller wants it. Secrets in it are null, because the core prints them in clear.
    pub state: Option<Value>,
}

/// The sender of events with plain values.
#[derive(Debug)]
pub(crate) struct EventSender<'a> {
    pub(super) schema: &'a Schema,
    pub(super) identity: &'a IdentitySchema,
    pub(super) wants_state: bool,
    /// The number of objects still wanted.
    pub(super) wanted: usize,
    pub(super) events: mpsc::Sender<ListEvent>,
    /// The error of a model that does not fit its schema.
    pub(super) fault: &'a mut Option<ModelError>,
}

impl EventSender<'_> {
    async fn send(&mut self, display_name: String, state: Value) -> ControlFlow<()> {
        if self.wanted == 0 {
            return ControlFlow::Break(());
        }
        let state = state.unknown_as_null();
        // An object without an identity cannot be listed.
        let Some(identity) = self.identity.of(&state) else { return ControlFlow::Continue(()) };
        let state = self.wants_state.then(|| without_secrets(self.schema, fill_defaults(self.schema, state)));
        self.wanted -= 1;
        match self.events.send(ListEvent { identity, display_name, state }).await {
            Ok(()) if self.wanted > 0 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }
}
