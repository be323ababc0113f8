//! The calls that plan and apply a change of a resource.

use super::{Answer, Server, configure::Configuration};
use crate::framework::{
    Create, Diagnostics, Entry, Outcome, Path, Plan, PlanContext, PlanKind, Private, Provider, State, Update, Value,
    assumed::{confirm, without_assumed},
    fill::without_write_only,
    plan_rules::{guarded, planned_state, replacements},
    settle::settled,
    steps::Step,
    timeouts::tell_overrun,
};

/// A plan asked for.
#[derive(Debug)]
pub struct PlanRequest {
    /// What the operator wrote; null for a destroy.
    pub config: Value,
    /// The state before; null for a create.
    pub prior: Value,
    /// The core's merge of both; null for a destroy.
    pub proposed: Value,
    /// What is kept beside the prior state, or what the first plan of a replacement kept.
    pub private: Private,
    /// What the same plan kept before the apply, where the core stored it.
    pub earlier: Option<Private>,
}

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

impl<P: Provider> Server<P> {
    /// Plans a change (plugin protocol, planning): the state to come, and the attributes that need a replacement.
    ///
    /// The identity is answered where it is known: Terraform up to 1.17 cannot show a plan (`show -json`) with one that
    /// is not, though the protocol allows it.
    pub async fn plan(
        &self,
        resource: &Entry<P::Client>,
        request: PlanRequest,
    ) -> Result<(Answer, Vec<Path>), Diagnostics> {
        let PlanRequest { config, prior, proposed, private, earlier } = request;
        let schema = &resource.schema;
        let kind = match (&proposed, &prior) {
            (Value::Null, _) => PlanKind::Destroy,
            (_, Value::Null) => PlanKind::Create,
            _ => PlanKind::Update,
        };
        let planned = if kind == PlanKind::Destroy { Value::Null } else { planned_state(schema, &config, &prior) };
        let by_rule = if kind == PlanKind::Update { replacements(schema, &planned, &prior) } else { Vec::new() };
        let some = |value: &Value| (!value.is_null()).then(|| value.clone());
        let draft = Plan {
            kind,
            config: some(&config),
            prior: some(&prior),
            planned: some(&planned),
            replace: without_assumed(by_rule.clone(), schema, &prior, &private),
            private: private.clone(),
            earlier,
            diagnostics: Diagnostics::new(),
        };
        let configuration = self.configuration();
        let client = if let Configuration::Ready(client) = &configuration { Some(client) } else { None };
        let refined = resource.steps.plan(draft, PlanContext { client, stopping: self.stopping() }).await?;
        let planned = refined.planned.map_or(Value::Null, |refined| {
            without_write_only(schema, &guarded(schema, &config, &prior, &refined, &planned))
        });
        let mut replace = Vec::new();
        if kind == PlanKind::Update {
            // The resource has the last word on what its own refinement did not touch.
            replace = refined.replace;
            let mut by_refinement = replacements(schema, &planned, &prior);
            by_refinement.retain(|path| !by_rule.contains(path));
            replace.extend(without_assumed(by_refinement, schema, &prior, &private));
            replace.sort();
            replace.dedup();
        }
        let mut answer = Answer::of(resource, planned, refined.private, refined.diagnostics);
        if !prior.is_null() {
            // While it lives, an object is the one that it was.
            answer.identity = resource.identity_of(&prior);
        }
        answer.identity = answer.identity.filter(Value::is_wholly_known);
        Ok((answer, replace))
    }

    /// Carries out a planned change (plugin protocol, ApplyResourceChange). The state is wholly known, and equal to the
    /// plan where that was known, unless there are errors. An error in its place says that all is as it was.
    pub async fn apply(&self, resource: &Entry<P::Client>, request: ApplyRequest) -> Result<Answer, Diagnostics> {
        let ApplyRequest { config, prior, planned, private } = request;
        let timeouts = resource.timeouts(if planned.is_null() { &prior } else { &planned });
        let (name, timeout) = match (&prior, &planned) {
            (_, Value::Null) => ("delete", timeouts.delete),
            (Value::Null, _) => ("create", timeouts.create),
            _ => ("update", timeouts.update),
        };
        let context = self.context(self.client()?, timeout);
        let (deadline, before, expected) = (context.deadline, prior.clone(), planned.clone());
        let step = match name {
            "delete" => Step::Delete(State { state: prior, private }),
            "create" => Step::Create(Create { config, planned, private }),
            _ => Step::Update(Update { config, prior, planned, private }),
        };
        let Outcome { state, mut private, mut diagnostics } = resource.steps.act(step, context).await?;
        tell_overrun(name, timeout, deadline, &mut diagnostics);
        let is_failed = diagnostics.has_errors();
        let state = match state {
            None if expected.is_null() && !is_failed => {
                return Ok(Answer::of(resource, Value::Null, Private::default(), diagnostics));
            }
            None if is_failed => return Err(diagnostics),
            None => {
                diagnostics.error(
                    "The apply led to nothing",
                    "This is a bug in the provider, please report it: a change ended without a state and without an \
                     error.",
                );
                return Err(diagnostics);
            }
            Some(state) => without_write_only(&resource.schema, &state),
        };
        if expected.is_null() && !is_failed {
            diagnostics.error(
                "The destroy did not end",
                "This is a bug in the provider, please report it: a destroy left the object in place without an \
                 error. It is still in the state.",
            );
        }
        // With errors the core compares nothing, and the state is what was really reached.
        if diagnostics.has_errors() {
            return Ok(Answer::of(resource, state.unknown_as_null(), private, diagnostics));
        }
        confirm(&before, &expected, &mut private);
        Ok(Answer::of(resource, settled(&expected, &state), private, diagnostics))
    }
}
