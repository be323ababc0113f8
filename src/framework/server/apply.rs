//! The call that applies a planned change.

use super::{Server, configure::model_fault};
use crate::framework::{
    Create, Diagnostics, Kind, Outcome, Private, Provider, Schema, State, Update, Value, assumed::confirm,
    fill::without_write_only, settle::settled, steps::Step, timeouts::tell_overrun,
};

/// An apply asked for.
#[derive(Debug)]
pub struct ApplyRequest {
    /// What the operator wrote, write-only values included; null for a destroy.
    pub config: Value,
    /// The state before; null for a create.
    pub prior: Value,
    /// The planned state; null for a destroy.
    pub planned: Value,
    /// What the plan kept.
    pub private: Private,
}

/// What an apply led to.
#[derive(Debug)]
pub struct ApplyResponse {
    /// The state now: wholly known, and equal to the plan where that was known, unless there are errors.
    pub state: Value,
    /// What is kept beside it.
    pub private: Private,
    /// What identifies the thing, as soon as that is known.
    pub identity: Option<Value>,
    /// Messages for the operator.
    pub diagnostics: Diagnostics,
}

impl<P: Provider> Server<P> {
    /// Carries out a planned change (plugin protocol, ApplyResourceChange).
    pub async fn apply(&self, type_name: &str, request: ApplyRequest) -> ApplyResponse {
        let mut response = self.answer_apply(type_name, request).await;
        response.identity = self.identity(type_name, &response.state);
        response
    }

    async fn answer_apply(&self, type_name: &str, request: ApplyRequest) -> ApplyResponse {
        let before = (request.prior.clone(), request.private.clone());
        let (resource, client) = match self.ready(Kind::Resource, type_name) {
            Ok(ready) => ready,
            Err(diagnostics) => return unchanged(before, diagnostics),
        };
        let timeouts = resource.timeouts(if request.planned.is_null() { &request.prior } else { &request.planned });
        let (step, timeout) = match (&request.prior, &request.planned) {
            (_, Value::Null) => ("delete", timeouts.delete),
            (Value::Null, _) => ("create", timeouts.create),
            _ => ("update", timeouts.update),
        };
        let context = self.context(client, timeout);
        let deadline = context.deadline;
        let planned = request.planned.clone();
        let mut outcome = match resource.steps.act(change(request), context).await {
            Ok(outcome) => outcome,
            Err(error) => return unchanged(before, model_fault(&error)),
        };
        tell_overrun(step, timeout, deadline, &mut outcome.diagnostics);
        if planned.is_null() { deleted(before, outcome) } else { changed(before, outcome, &planned, &resource.schema) }
    }
}

fn change(request: ApplyRequest) -> Step {
    let ApplyRequest { config, prior, planned, private } = request;
    match (&prior, &planned) {
        (_, Value::Null) => Step::Delete(State { state: prior, private }),
        (Value::Null, _) => Step::Create(Create { config, planned, private }),
        _ => Step::Update(Update { config, prior, planned, private }),
    }
}

fn unchanged((state, private): (Value, Private), diagnostics: Diagnostics) -> ApplyResponse {
    ApplyResponse { state, private, identity: None, diagnostics }
}

fn deleted(before: (Value, Private), outcome: Outcome<Value>) -> ApplyResponse {
    let mut diagnostics = outcome.diagnostics;
    match outcome.state {
        None if !diagnostics.has_errors() => {
            ApplyResponse { state: Value::Null, private: Private::default(), identity: None, diagnostics }
        }
        None => unchanged(before, diagnostics),
        Some(state) => {
            if !diagnostics.has_errors() {
                diagnostics.error(
                    "The destroy did not end",
                    "This is a bug in the provider, please report it: a destroy left the object in place without an \
                     error. It is still in the state.",
                );
            }
            let state = state.unknown_as_null();
            ApplyResponse { state, private: outcome.private, identity: None, diagnostics }
        }
    }
}

fn changed(before: (Value, Private), outcome: Outcome<Value>, planned: &Value, schema: &Schema) -> ApplyResponse {
    let mut diagnostics = outcome.diagnostics;
    let Some(state) = outcome.state else {
        if !diagnostics.has_errors() {
            diagnostics.error(
                "The apply led to nothing",
                "This is a bug in the provider, please report it: a change ended without a state and without an error.",
            );
        }
        return unchanged(before, diagnostics);
    };
    let state = without_write_only(schema, &state);
    // With errors the core compares nothing, and the state is what was really reached.
    let state = if diagnostics.has_errors() { state.unknown_as_null() } else { settled(planned, &state) };
    let mut private = outcome.private;
    if !diagnostics.has_errors() {
        confirm(&before.0, planned, &mut private);
    }
    ApplyResponse { state, private, identity: None, diagnostics }
}
