//! Resources, data sources, list resources and actions, as their authors write them.

use std::{future::Future, marker::PhantomData, ops::ControlFlow, sync::Arc, time::Duration};

use tokio::{sync::mpsc, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    diagnostics::{Diagnostic, Diagnostics, Path},
    identity::{Identity, IdentitySchema},
    model::{Model, ModelError, to_value},
    private::Private,
    schema::Schema,
    server::DEFAULT_TIMEOUT,
    settle::{fill_defaults, without_secrets},
    timeouts::DefaultTimeouts,
    value::Value,
};

/// A resource: its life cycle is managed by Terraform. One value of the implementing type serves all of its objects.
///
/// The framework does what every resource needs (plugin protocol, rules core enforces on answers): required and
/// read-only checks, validators, defaults, what becomes unknown, replacement, write-only values, timeouts, states that
/// are wholly known and equal to their plan. What is left here is the life cycle itself.
pub trait Resource: Send + Sync + 'static {
    /// What the provider's configuration became.
    type Client: Send + Sync + 'static;
    /// The typed form of a configuration, a plan or a state.
    type Model: Model;

    /// The full type name, such as `damodel_instance`.
    fn type_name(&self) -> &'static str;

    /// The schema, without the `timeouts` block.
    fn schema(&self) -> Schema;

    /// How long the steps may take by default. With some, the schema gets a `timeouts` block, and the model needs a
    /// field `timeouts: Attr<Timeouts>`.
    fn timeouts(&self) -> DefaultTimeouts;

    /// Rules between attributes, judged without the service. Unknown values obey every rule.
    fn validate(&self, _config: &Self::Model, _diagnostics: &mut Diagnostics) {}

    /// Brings the JSON of a state that an older version wrote into today's layout. What is dropped or missing needs no
    /// care: unknown attributes are ignored and missing ones become null.
    fn upgrade(&self, version: i64, _state: serde_json::Value) -> Result<serde_json::Value, Diagnostics> {
        Err(Diagnostic::error(
            "The state is of an unknown version",
            format!("Its version is {version}, which this provider cannot read. The state is unchanged."),
        )
        .into())
    }

    /// Refines a plan after the framework's own rules: live checks, computed values that are known early, warnings.
    fn plan(
        &self,
        _plan: &mut Plan<Self::Model>,
        _context: PlanContext<'_, Self::Client>,
    ) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Makes the object. Whatever exists afterwards is in the outcome's state, with or without errors.
    fn create(
        &self,
        change: Create<Self::Model>,
        context: StepContext<Self::Client>,
    ) -> impl Future<Output = Outcome<Self::Model>> + Send;

    /// Looks at the object. No state means that it is gone for sure.
    fn read(
        &self,
        current: State<Self::Model>,
        context: StepContext<Self::Client>,
    ) -> impl Future<Output = Outcome<Self::Model>> + Send;

    /// Changes the object in place. The outcome's state is what was really reached.
    fn update(
        &self,
        change: Update<Self::Model>,
        context: StepContext<Self::Client>,
    ) -> impl Future<Output = Outcome<Self::Model>> + Send;

    /// Ends the object. An outcome with a state says that it is still there, and comes with an error.
    fn delete(
        &self,
        current: State<Self::Model>,
        context: StepContext<Self::Client>,
    ) -> impl Future<Output = Outcome<Self::Model>> + Send;

    /// What identifies one of them. None: it can be neither listed nor imported by identity.
    fn identity(&self) -> Option<IdentitySchema> {
        None
    }

    /// Mends a configuration that was made of a state, for an import that has none yet: the framework left out what the
    /// schema tells that need not be said, and knows nothing of arguments that exclude each other.
    fn generate(&self, _config: &mut Self::Model, _diagnostics: &mut Diagnostics) {}

    /// The import id of what an identity names, as [`Self::import`] takes it. By default it is the one attribute that
    /// is said.
    fn import_id(&self, identity: &Identity) -> Result<String, Diagnostics> {
        Ok(identity.texts().join("/"))
    }

    /// Turns an import id into a state that a read can complete; everything else in it is null. Defaults are filled in
    /// by the framework.
    fn import(&self, id: &str, context: StepContext<Self::Client>)
    -> impl Future<Output = Outcome<Self::Model>> + Send;
}

/// A data source: it is only read.
pub trait DataSource: Send + Sync + 'static {
    /// What the provider's configuration became.
    type Client: Send + Sync + 'static;
    /// The typed form of a configuration and its result.
    type Model: Model;

    /// The full type name, such as `damodel_specs`.
    fn type_name(&self) -> &'static str;

    /// The schema.
    fn schema(&self) -> Schema;

    /// How long a read may take.
    fn timeout(&self) -> Duration {
        DEFAULT_TIMEOUT
    }

    /// Rules between attributes, judged without the service. Unknown values obey every rule.
    fn validate(&self, _config: &Self::Model, _diagnostics: &mut Diagnostics) {}

    /// Reads. The configuration is wholly known and has its defaults; the outcome has a state unless it has errors.
    fn read(
        &self,
        config: Self::Model,
        context: StepContext<Self::Client>,
    ) -> impl Future<Output = Outcome<Self::Model>> + Send;
}

/// What every step that may call the service has.
#[derive(Debug)]
pub struct StepContext<C> {
    /// The configured client.
    pub client: Arc<C>,
    /// Ends waits when the core is told to stop (plugin protocol, StopProvider).
    pub stopping: CancellationToken,
    /// Cancelled when the core is gone, or has given up this call: the answer of this step will not be stored.
    pub caller_gone: CancellationToken,
    /// Cancelled when the answer of this step went to the core's connection.
    pub answered: CancellationToken,
    /// When the step's timeout runs out.
    pub deadline: Instant,
}

/// What planning has. There may be no client yet.
#[derive(Debug)]
pub struct PlanContext<'a, C> {
    /// The configured client; none while the provider's configuration holds unknown values.
    pub client: Option<&'a Arc<C>>,
    /// Ends waits when the core is told to stop.
    pub stopping: CancellationToken,
}

/// What kind of change is planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanKind {
    /// Something new; also the second plan of a replacement, whose private data are those of the first.
    Create,
    /// The end of the object. There is no configuration and no planned state.
    Destroy,
    /// A change of an existing object, in place or, with paths in `replace`, by a new one.
    Update,
}

/// A plan in the making.
#[derive(Debug)]
pub struct Plan<M> {
    /// What is planned.
    pub kind: PlanKind,
    /// What the operator wrote. None for a destroy.
    pub config: Option<M>,
    /// The state before. None for a create.
    pub prior: Option<M>,
    /// The state to come. None for a destroy. Only computed attributes that the configuration leaves open may be
    /// changed.
    pub planned: Option<M>,
    /// Attributes whose change needs a replacement.
    pub replace: Vec<Path>,
    /// Handed to the second plan of a replacement, to the plan inside the apply where the core stores it, and to the
    /// apply.
    pub private: Private,
    /// What the same plan kept when it was made before the apply; only newer cores store that
    /// (plugin protocol, store_planned_private).
    pub earlier: Option<Private>,
    /// Messages for the operator.
    pub diagnostics: Diagnostics,
}

/// A planned create.
#[derive(Debug)]
pub struct Create<M> {
    /// What the operator wrote; the only place where write-only values are.
    pub config: M,
    /// The planned state, with what is still unknown.
    pub planned: M,
    /// What the plan kept.
    pub private: Private,
}

/// A planned change in place.
#[derive(Debug)]
pub struct Update<M> {
    /// What the operator wrote; the only place where write-only values are.
    pub config: M,
    /// The state before.
    pub prior: M,
    /// The planned state, with what is still unknown.
    pub planned: M,
    /// What the plan kept.
    pub private: Private,
}

/// A state and what is kept beside it.
#[derive(Debug)]
pub struct State<M> {
    /// The state.
    pub state: M,
    /// What is kept beside it.
    pub private: Private,
}

/// What a step led to. State and diagnostics travel together, so that an object that half came about cannot be dropped.
#[derive(Debug)]
pub struct Outcome<M> {
    /// What exists now. Unknown parts become null.
    pub state: Option<M>,
    /// What is kept beside it.
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

    /// The same with messages.
    #[must_use]
    pub fn with(mut self, diagnostics: impl Into<Diagnostics>) -> Self {
        self.diagnostics.extend(diagnostics.into());
        self
    }
}

impl<M> State<M> {
    /// Nothing changed, and here is why.
    pub fn unchanged(self, diagnostics: impl Into<Diagnostics>) -> Outcome<M> {
        Outcome::present(self.state, self.private).with(diagnostics)
    }
}

/// Something that is done when a configuration or an operator asks for it, and leaves no state (plugin protocol,
/// actions).
pub trait Action: Send + Sync + 'static {
    /// What the provider's configuration became.
    type Client: Send + Sync + 'static;
    /// The typed form of the `config` block.
    type Model: Model;

    /// The full type name, such as `damodel_chat_completion`.
    fn type_name(&self) -> &'static str;

    /// The schema of the `config` block.
    fn schema(&self) -> Schema;

    /// How long an invocation may take.
    fn timeout(&self) -> Duration {
        Duration::from_secs(30 * 60)
    }

    /// Rules between attributes, judged without the service. Unknown values obey every rule.
    fn validate(&self, _config: &Self::Model, _diagnostics: &mut Diagnostics) {}

    /// Checks while planning what an invocation would meet. Parts of the configuration may be unknown.
    fn plan(
        &self,
        _config: Self::Model,
        _context: PlanContext<'_, Self::Client>,
    ) -> impl Future<Output = Diagnostics> + Send {
        async { Diagnostics::new() }
    }

    /// Does it. The configuration is wholly known and has its defaults.
    fn invoke(
        &self,
        config: Self::Model,
        progress: ActionProgress,
        context: StepContext<Self::Client>,
    ) -> impl Future<Output = Diagnostics> + Send;
}

/// Where an action reports its progress. Once the core has gone, what is sent here is dropped without an error.
#[derive(Clone, Debug)]
pub struct ActionProgress(pub(super) mpsc::UnboundedSender<String>);

impl ActionProgress {
    /// Shows the operator a line, which must hold no secret.
    pub fn say(&self, line: impl Into<String>) {
        let _ = self.0.send(line.into());
    }
}

/// The objects of a resource's type that exist, whoever made them (plugin protocol, list resources).
pub trait ListResource: Send + Sync + 'static {
    /// What the provider's configuration became.
    type Client: Send + Sync + 'static;
    /// The typed form of the `config` block: filters.
    type Model: Model;
    /// The model of the resource.
    type Resource: Model;

    /// The full type name, which is the resource's.
    fn type_name(&self) -> &'static str;

    /// The schema of the `config` block.
    fn schema(&self) -> Schema;

    /// How long a list may take.
    fn timeout(&self) -> Duration {
        DEFAULT_TIMEOUT
    }

    /// Rules between attributes, judged without the service. Unknown values obey every rule.
    fn validate(&self, _config: &Self::Model, _diagnostics: &mut Diagnostics) {}

    /// Sends what exists, one object after another, until all is sent or no more is wanted. Errors end the list.
    ///
    /// It only reads, and is dropped when the core has heard enough.
    fn list(
        &self,
        config: Self::Model,
        found: ListSender<'_, Self::Resource>,
        context: StepContext<Self::Client>,
    ) -> impl Future<Output = Diagnostics> + Send;
}

/// One object that exists.
#[derive(Debug)]
pub struct Listed<M> {
    /// What the operator knows it by.
    pub display_name: String,
    /// Its values: at least those that identify it, and all that a refresh reads if [`ListSender::wants_state`].
    pub state: M,
}

/// Where a list resource sends the objects that it finds.
#[derive(Debug)]
pub struct ListSender<'a, M> {
    sender: &'a mut EventSender<'a>,
    model: PhantomData<fn(M)>,
}

impl<'a, M: Model> ListSender<'a, M> {
    pub(super) fn new(sender: &'a mut EventSender<'a>) -> Self {
        Self { sender, model: PhantomData }
    }

    /// Whether whole states are wanted, and not only names and identities.
    pub fn wants_state(&self) -> bool {
        self.sender.wants_state
    }

    /// How many more are wanted.
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
    /// What identifies the object.
    pub identity: Value,
    /// What the operator knows it by.
    pub display_name: String,
    /// Its state, where whole states are wanted. Secrets in it are null: the core prints them in clear.
    pub state: Option<Value>,
}

/// Events on their way, made of plain values.
#[derive(Debug)]
pub(super) struct EventSender<'a> {
    pub(super) schema: &'a Schema,
    pub(super) identity: &'a IdentitySchema,
    pub(super) wants_state: bool,
    /// How many more are wanted.
    pub(super) wanted: usize,
    pub(super) events: mpsc::Sender<ListEvent>,
    /// A model that does not fit its schema.
    pub(super) fault: &'a mut Option<ModelError>,
}

impl EventSender<'_> {
    async fn send(&mut self, display_name: String, state: Value) -> ControlFlow<()> {
        if self.wanted == 0 {
            return ControlFlow::Break(());
        }
        let state = state.unknown_as_null();
        // What nothing identifies cannot be listed.
        let Some(identity) = self.identity.of(&state) else { return ControlFlow::Continue(()) };
        let state = self.wants_state.then(|| without_secrets(self.schema, &fill_defaults(self.schema, &state)));
        self.wanted -= 1;
        match self.events.send(ListEvent { identity, display_name, state }).await {
            Ok(()) if self.wanted > 0 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }
}
