//! The calls that read a state of a resource, make one, and write the configuration that it could have come from.

use super::{Server, configure::Configuration};
use crate::framework::{
    Diagnostic, Diagnostics, Entry, Identity, Outcome, Private, Provider, State, Value,
    assumed::assume,
    fill::{fill_defaults, without_write_only},
    generate::configuration,
    steps::Step,
    timeouts::tell_overrun,
};

/// A state, or a planned one, and what goes with it.
#[derive(Debug)]
pub struct Answer {
    /// The state; null says that the object is gone.
    pub state: Value,
    /// What is kept beside it.
    pub private: Private,
    /// What identifies the object, as soon as that is known.
    pub identity: Option<Value>,
    /// Messages for the operator.
    pub diagnostics: Diagnostics,
}

impl Answer {
    /// An answer with the identity of its state.
    pub(super) fn of<C: Send + Sync + 'static>(
        resource: &Entry<C>,
        state: Value,
        private: Private,
        diagnostics: Diagnostics,
    ) -> Self {
        Self { identity: resource.identity_of(&state), state, private, diagnostics }
    }
}

impl<P: Provider> Server<P> {
    /// Refreshes a state (plugin protocol, ReadResource). While the provider's configuration is unknown, states stay as
    /// they are.
    pub async fn read(&self, resource: &Entry<P::Client>, current: State<Value>) -> Result<Answer, Diagnostics> {
        if matches!(self.configuration(), Configuration::Unknown(_)) {
            return Ok(Answer::of(resource, current.state, current.private, Diagnostics::new()));
        }
        let timeout = resource.timeouts(&current.state).read;
        let context = self.context(self.client()?, timeout);
        let deadline = context.deadline;
        let Outcome { state, private, mut diagnostics } = resource.steps.act(Step::Read(current), context).await?;
        if diagnostics.has_errors() {
            tell_overrun("read", timeout, deadline, &mut diagnostics);
            return Err(diagnostics);
        }
        let state = state.unwrap_or_default().unknown_as_null();
        Ok(Answer::of(resource, without_write_only(&resource.schema, &state), private, diagnostics))
    }

    /// Imports by id (plugin protocol, import): a state that the following refresh completes. Arguments with a default
    /// get it, so that the plan that follows is empty.
    pub async fn import(&self, resource: &Entry<P::Client>, id: &str) -> Result<Answer, Diagnostics> {
        let context = self.context(self.client()?, resource.timeout());
        let Outcome { state, mut private, mut diagnostics } =
            resource.steps.act(Step::Import(id.to_owned()), context).await?;
        match state {
            _ if diagnostics.has_errors() => Err(diagnostics),
            Some(state) => {
                let schema = &resource.schema;
                assume(schema, &state, &mut private);
                let state = without_write_only(schema, &fill_defaults(schema, &state.unknown_as_null()));
                Ok(Answer::of(resource, state, private, diagnostics))
            }
            None => {
                diagnostics.error("Nothing to import", format!("{} {id:?} does not exist.", resource.name));
                Err(diagnostics)
            }
        }
    }
}

impl<C: Send + Sync + 'static> Entry<C> {
    /// What identifies the object of a state, where its type has an identity.
    pub(super) fn identity_of(&self, state: &Value) -> Option<Value> {
        self.identity.as_ref()?.of(state)
    }

    /// The import id of an identity; newer cores offer that in import blocks.
    pub fn import_id(&self, identity: &Value) -> Result<String, Diagnostics> {
        match self.identity.as_ref().and_then(|schema| schema.missing(identity)) {
            Some(attribute) => {
                let detail = format!("The identity of the import must have {}.", attribute.name);
                Err(Diagnostic::error("An incomplete identity", detail).into())
            }
            None => self.steps.import_id(&Identity(identity.clone())),
        }
    }

    /// Brings the JSON of a stored state into today's layout. Cores ask for every stored state, whatever its version
    /// (plugin protocol, UpgradeResourceState).
    pub fn upgrade(&self, version: i64, state: serde_json::Value) -> Result<serde_json::Value, Diagnostics> {
        if version == self.schema.version { Ok(state) } else { self.steps.upgrade(version, state) }
    }

    /// A state with null for its write-only attributes: an upgraded one may hold values from before they were
    /// write-only.
    pub fn without_write_only(&self, state: &Value) -> Value {
        without_write_only(&self.schema, state)
    }

    /// The configuration that a state could have come from (plugin protocol, import: config generation). It needs no
    /// service; null with errors.
    pub fn generate(&self, state: &Value) -> (Value, Diagnostics) {
        let mut diagnostics = Diagnostics::new();
        match self.steps.generate(configuration(&self.schema, state), &mut diagnostics) {
            Ok(config) => (config, diagnostics),
            Err(bug) => (Value::Null, bug),
        }
    }
}
