//! List resources, as their authors write them.

use std::{future::Future, marker::PhantomData, ops::ControlFlow, time::Duration};

use tokio::sync::mpsc;

use super::{
    diagnostics::Diagnostics,
    fill::{fill_defaults, without_secrets},
    identity::IdentitySchema,
    model::{Model, ModelError, to_value},
    resource::Context,
    schema::Schema,
    server::DEFAULT_TIMEOUT,
    value::Value,
};

/// The things of a resource's type that exist, whoever made them (plugin protocol, list resources).
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

    /// Tells what there is, one after another, until all is told or nobody wants more. Errors end the list.
    ///
    /// It only reads, and is dropped when the core has heard enough.
    fn list(
        &self,
        config: Self::Model,
        found: Found<'_, Self::Resource>,
        context: Context<Self::Client>,
    ) -> impl Future<Output = Diagnostics> + Send;
}

/// One thing that exists.
#[derive(Debug)]
pub struct Listed<M> {
    /// What the operator knows it by.
    pub display_name: String,
    /// What is known of it: at least what identifies it, and where [`Found::wants_state`] says so, all that a refresh
    /// would show.
    pub state: M,
}

/// Where a list tells what it finds.
#[derive(Debug)]
pub struct Found<'a, M> {
    told: &'a mut Told<'a>,
    model: PhantomData<fn(M)>,
}

impl<'a, M: Model> Found<'a, M> {
    pub(super) fn new(told: &'a mut Told<'a>) -> Self {
        Self { told, model: PhantomData }
    }

    /// Whether whole states are wanted, and not only names and identities.
    pub fn wants_state(&self) -> bool {
        self.told.wants_state
    }

    /// How many more are wanted.
    pub fn wanted(&self) -> usize {
        self.told.wanted
    }

    /// Tells of one. With [`ControlFlow::Break`] nobody wants more.
    pub async fn tell(&mut self, listed: Listed<M>) -> ControlFlow<()> {
        match to_value(&listed.state) {
            Ok(state) => self.told.tell(listed.display_name, state).await,
            Err(error) => {
                self.told.fault.get_or_insert(error);
                ControlFlow::Break(())
            }
        }
    }
}

/// One event of a list.
#[derive(Clone, Debug)]
pub struct ListEvent {
    /// What identifies the thing.
    pub identity: Value,
    /// What the operator knows it by.
    pub display_name: String,
    /// Its state, where whole states are wanted. Secrets in it are null: the core prints them in clear.
    pub state: Option<Value>,
}

/// Events on their way, made of plain values.
#[derive(Debug)]
pub(super) struct Told<'a> {
    pub(super) schema: &'a Schema,
    pub(super) identity: &'a IdentitySchema,
    pub(super) wants_state: bool,
    /// How many more are wanted.
    pub(super) wanted: usize,
    pub(super) events: mpsc::Sender<ListEvent>,
    /// A model that does not fit its schema.
    pub(super) fault: &'a mut Option<ModelError>,
}

impl Told<'_> {
    async fn tell(&mut self, display_name: String, state: Value) -> ControlFlow<()> {
        if self.wanted == 0 {
            return ControlFlow::Break(());
        }
        let state = state.unknown_as_null();
        // What nothing identifies cannot be told of.
        let Some(identity) = self.identity.of(&state) else { return ControlFlow::Continue(()) };
        let state = self.wants_state.then(|| without_secrets(self.schema, &fill_defaults(self.schema, &state)));
        self.wanted -= 1;
        match self.events.send(ListEvent { identity, display_name, state }).await {
            Ok(()) if self.wanted > 0 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }
}
