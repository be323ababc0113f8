//! The call that plans a change.

use super::{
    Server,
    configure::{Configuration, model_fault},
};
use crate::framework::{
    Diagnostics, Path, Plan, PlanContext, PlanKind, Private, Provider, Value,
    assumed::without_assumed,
    fill::without_write_only,
    plan_rules::{guarded, planned_state, replacements},
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

/// A plan.
#[derive(Debug)]
pub struct PlanResponse {
    /// The state to come; null for a destroy.
    pub planned: Value,
    /// The attributes that need a new thing.
    pub replace: Vec<Path>,
    /// What the plan keeps for the apply.
    pub private: Private,
    /// What identifies the thing, where that is known: Terraform up to 1.17 cannot show a plan (`show -json`) with an
    /// identity that is not, though the protocol allows it.
    pub identity: Option<Value>,
    /// Messages for the operator.
    pub diagnostics: Diagnostics,
}

impl<P: Provider> Server<P> {
    /// Plans a change (plugin protocol, planning).
    pub async fn plan(&self, type_name: &str, request: PlanRequest) -> PlanResponse {
        let resource = match self.resource(type_name) {
            Ok(resource) => resource,
            Err(diagnostics) => return failed(request, diagnostics),
        };
        let schema = &resource.schema;
        let kind = match (&request.proposed, &request.prior) {
            (Value::Null, _) => PlanKind::Destroy,
            (_, Value::Null) => PlanKind::Create,
            _ => PlanKind::Update,
        };
        let (planned, by_rule) = if kind == PlanKind::Destroy {
            (Value::Null, Vec::new())
        } else {
            let planned = planned_state(schema, &request.config, &request.prior);
            let by_rule = match kind {
                PlanKind::Update => replacements(schema, &planned, &request.prior),
                PlanKind::Create | PlanKind::Destroy => Vec::new(),
            };
            (planned, by_rule)
        };
        let some = |value: &Value| (!value.is_null()).then(|| value.clone());
        let draft = Plan {
            kind,
            config: some(&request.config),
            prior: some(&request.prior),
            planned: some(&planned),
            replace: without_assumed(by_rule.clone(), schema, &request.prior, &request.private),
            private: request.private.clone(),
            earlier: request.earlier.clone(),
            diagnostics: Diagnostics::new(),
        };
        let configuration = self.configuration();
        let client = if let Configuration::Ready(client) = &configuration { Some(client) } else { None };
        let refined = match resource.steps.plan(draft, PlanContext { client, cancel: self.stopping() }).await {
            Ok(refined) => refined,
            Err(error) => {
                let proposed = without_write_only(schema, &request.proposed);
                return failed(PlanRequest { proposed, ..request }, model_fault(&error));
            }
        };
        let planned = match refined.planned {
            Some(refined) => {
                without_write_only(schema, &guarded(schema, &request.config, &request.prior, &refined, &planned))
            }
            None => Value::Null,
        };
        let mut replace = Vec::new();
        if kind == PlanKind::Update {
            // The resource has the last word on what its own refinement did not touch.
            replace = refined.replace;
            let mut by_refinement = replacements(schema, &planned, &request.prior);
            by_refinement.retain(|path| !by_rule.contains(path));
            replace.extend(without_assumed(by_refinement, schema, &request.prior, &request.private));
            replace.sort();
            replace.dedup();
        }
        // While it lives, a thing is the one that it was.
        let lives = if request.prior.is_null() { &planned } else { &request.prior };
        let identity =
            resource.identity.as_ref().and_then(|identity| identity.of(lives)).filter(Value::is_wholly_known);
        PlanResponse { planned, replace, private: refined.private, identity, diagnostics: refined.diagnostics }
    }
}

fn failed(request: PlanRequest, diagnostics: Diagnostics) -> PlanResponse {
    PlanResponse {
        planned: request.proposed,
        replace: Vec::new(),
        private: request.private,
        identity: None,
        diagnostics,
    }
}
