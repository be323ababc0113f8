//! The call that refreshes a state.

use super::{
    Server,
    configure::{Configuration, model_fault},
};
use crate::framework::{
    Diagnostics, Kind, Private, Provider, State, Value, fill::without_write_only, steps::Step, timeouts::tell_overrun,
};

/// A refresh asked for.
#[derive(Debug)]
pub struct ReadRequest {
    /// The state as stored, or as imported.
    pub state: Value,
    /// What is kept beside it.
    pub private: Private,
}

/// What a refresh saw.
#[derive(Debug)]
pub struct ReadResponse {
    /// The state now; null says that the thing is gone. With errors, the state as it was.
    pub state: Value,
    /// What is kept beside it.
    pub private: Private,
    /// What identifies the thing.
    pub identity: Option<Value>,
    /// Messages for the operator.
    pub diagnostics: Diagnostics,
}

impl<P: Provider> Server<P> {
    /// Refreshes a state (plugin protocol, ReadResource). While the provider's configuration is unknown, states stay as
    /// they are.
    pub async fn read(&self, type_name: &str, request: ReadRequest) -> ReadResponse {
        let ReadRequest { state, private } = request;
        let identity = |state: &Value| self.identity(type_name, state);
        let unchanged = |diagnostics| ReadResponse {
            state: state.clone(),
            private: private.clone(),
            identity: identity(&state),
            diagnostics,
        };
        if matches!(self.configuration(), Configuration::Unknown(_)) {
            return unchanged(Diagnostics::new());
        }
        let (resource, client) = match self.ready(Kind::Resource, type_name) {
            Ok(ready) => ready,
            Err(diagnostics) => return unchanged(diagnostics),
        };
        let timeout = resource.timeouts(&state).read;
        let context = self.context(client, timeout);
        let deadline = context.deadline;
        let current = State { state: state.clone(), private: private.clone() };
        match resource.steps.act(Step::Read(current), context).await {
            Err(error) => unchanged(model_fault(&error)),
            Ok(mut outcome) if outcome.diagnostics.has_errors() => {
                tell_overrun("read", timeout, deadline, &mut outcome.diagnostics);
                unchanged(outcome.diagnostics)
            }
            Ok(outcome) => {
                let state = outcome
                    .state
                    .map_or(Value::Null, |state| without_write_only(&resource.schema, &state.unknown_as_null()));
                let identity = identity(&state);
                ReadResponse { state, private: outcome.private, identity, diagnostics: outcome.diagnostics }
            }
        }
    }
}
