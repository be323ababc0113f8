//! The calls of a resource: plan and apply a change, read, import or upgrade a state, and generate a configuration from
//! one.

use super::{Server, offers::ConfigurationState};
use crate::framework::{
    Create, CreatePlan, DestroyPlan, Diagnostic, Diagnostics, Identity, Offering, Outcome, Path, Private, Provider,
    State, Update, UpdatePlan, Value, Walk,
    assumed::{assume, confirm, without_assumed},
    generate::configuration,
    plan_rules::{guarded, planned_state, replacements},
    registry::OfferedResource,
    result::{applied_state, fill_defaults, with_numbers_of, without_write_only},
    steps::{RefinedPlan, ResourceStep},
};

/// A request for a plan.
#[derive(Debug)]
pub struct PlanRequest {
    /// The configuration; null for a destroy.
    pub config: Value,
    /// The state before; null for a create.
    pub prior: Value,
    /// The core's merge of both; null for a destroy.
    pub proposed: Value,
    /// The private data of the prior state, or of the first plan of a replacement.
    pub private: Private,
    /// The private data of the same plan before the apply, if the core stored them.
    pub earlier: Option<Private>,
    /// The phase.
    pub walk: Walk,
}

/// A request for an apply.
#[derive(Debug)]
pub struct ApplyRequest {
    /// The configuration, write-only values included; null for a destroy.
    pub config: Value,
    /// The state before; null for a create.
    pub prior: Value,
    /// The planned state; null for a destroy.
    pub planned: Value,
    /// The plan's private data.
    pub private: Private,
}

impl<P: Provider> Server<P> {
    /// Converts a stored state to the current layout (plugin protocol, UpgradeResourceState).
    pub(crate) fn upgrade(
        &self,
        resource: &OfferedResource<P::Client>,
        version: i64,
        state: serde_json::Value,
    ) -> Result<serde_json::Value, Diagnostics> {
        if let ConfigurationState::Ready(client) = self.configuration() {
            resource.steps.stored(&state, &client);
        }
        if version == resource.schema.version { Ok(state) } else { resource.steps.upgrade(version, state) }
    }

    /// Plans a change (plugin protocol, planning): the planned state, and the attributes that need a replacement.
    ///
    /// The answer has an identity only if it is known: Terraform up to 1.17 cannot show a plan (`show -json`) with an
    /// unknown one, although the protocol allows it.
    pub(crate) async fn plan(
        &self,
        resource: &OfferedResource<P::Client>,
        request: PlanRequest,
    ) -> Result<(ResourceAnswer, Vec<Path>), Diagnostics> {
        let PlanRequest { config, prior, proposed, private, earlier, walk } = request;
        let (schema, steps, diagnostics) = (&resource.schema, &resource.steps, Diagnostics::new());
        let configuration = self.configuration();
        let context = self.plan_context(&configuration);
        let mut replace = Vec::new();
        let refined = if proposed.is_null() {
            steps.plan_destroy(DestroyPlan { prior: &prior, private, diagnostics }, context).await?
        } else {
            let draft = planned_state(schema, &config, &prior);
            let guard = |refined| guarded(schema, &config, &prior, &with_numbers_of(&prior, refined), &draft);
            let (config, planned) = (&config, &draft);
            if prior.is_null() {
                let plan = CreatePlan { config, planned, private, earlier, walk, diagnostics };
                let refined = steps.plan_create(plan, context).await?;
                RefinedPlan { planned: guard(refined.planned), ..refined }
            } else {
                let by_rule = replacements(schema, &draft, &prior);
                replace = without_assumed(by_rule.clone(), schema, &prior, &private);
                let plan =
                    UpdatePlan { config, prior: &prior, planned, replace, private: private.clone(), diagnostics };
                let mut refined = steps.plan_update(plan, context).await?;
                let planned = guard(refined.planned);
                // For attributes that its refinement did not change, the resource's own list is final.
                let mut by_refinement = replacements(schema, &planned, &prior);
                by_refinement.retain(|path| !by_rule.contains(path));
                replace = refined.replace;
                replace.extend(without_assumed(by_refinement, schema, &prior, &private));
                replace.sort();
                replace.dedup();
                if !replace.is_empty() && !refined.diagnostics.has_errors() {
                    // The core plans the create of a replacement next, with these private data, and shows what that
                    // plan says only beside an error.
                    let planned = &planned_state(schema, config, &Value::Null);
                    let (private, diagnostics) = (refined.private, Diagnostics::new());
                    let plan = CreatePlan { config, planned, private, earlier, walk, diagnostics };
                    let create = steps.plan_create(plan, self.plan_context(&configuration)).await?;
                    refined.private = create.private;
                    refined.diagnostics.extend(create.diagnostics.warnings());
                } else if walk == Walk::Apply && !refined.diagnostics.has_errors() {
                    // The operator has seen the warnings of the plan that is applied.
                    refined.diagnostics = Diagnostics::new();
                }
                RefinedPlan { planned, replace: Vec::new(), ..refined }
            }
        };
        let planned = without_write_only(schema, refined.planned);
        let mut answer = ResourceAnswer::of(resource, planned, refined.private, refined.diagnostics);
        if !prior.is_null() {
            // The identity of an existing object does not change.
            answer.identity = resource.identity_of(&prior);
        }
        answer.identity = answer.identity.filter(Value::is_wholly_known);
        Ok((answer, replace))
    }

    /// Carries out a planned change (plugin protocol, ApplyResourceChange). The state is wholly known, and equal to the
    /// plan where that was known, unless there are errors. `Err` means that nothing was changed: the core keeps what it
    /// has.
    pub(crate) async fn apply(
        &self,
        resource: &OfferedResource<P::Client>,
        request: ApplyRequest,
    ) -> Result<ResourceAnswer, Diagnostics> {
        let ApplyRequest { config, prior, planned, private } = request;
        let timeouts = resource.timeouts(if planned.is_null() { &prior } else { &planned });
        let (name, timeout) = match (&prior, &planned) {
            (_, Value::Null) => ("delete", timeouts.delete),
            (Value::Null, _) => ("create", timeouts.create),
            _ => ("update", timeouts.update),
        };
        let context = self.context(self.client()?, timeout);
        let (deadline, before, expected) = (context.deadline, (prior.clone(), private.clone()), planned.clone());
        let step = match name {
            "delete" => ResourceStep::Delete(State { state: prior, private }),
            "create" => ResourceStep::Create(Create { config, planned, private }),
            _ => ResourceStep::Update(Update { config, prior, planned, private }),
        };
        let outcome = resource.steps.act(step, context).await;
        let outcome = outcome.map_err(|failed| resource.tell_overrun(name, timeout, deadline, failed))?;
        let Outcome { state, mut private, diagnostics } = outcome;
        let mut diagnostics = resource.tell_overrun(name, timeout, deadline, diagnostics);
        let is_failed = diagnostics.has_errors();
        let state = match state {
            None if expected.is_null() && !is_failed => {
                return Ok(ResourceAnswer::of(resource, Value::Null, Private::default(), diagnostics));
            }
            None if is_failed => return Err(diagnostics),
            None => {
                diagnostics.error(
                    "The apply returned no result",
                    "This is a bug in the provider, please report it: a change ended without a state and without an \
                     error.",
                );
                return Err(diagnostics);
            }
            Some(state) => without_write_only(&resource.schema, state),
        };
        if expected.is_null() && !is_failed {
            diagnostics.error(
                "The destroyed object was not removed",
                "The object still exists, and stays in the state. This is a bug in the provider, please report it.",
            );
        }
        let state = with_numbers_of(&before.0, state);
        // With errors the core does not compare the state with the plan, so the answer is the state actually reached.
        if diagnostics.has_errors() {
            let state = state.unknown_as_null();
            if (&state, &private) == (&before.0, &before.1) {
                return Err(diagnostics);
            }
            return Ok(ResourceAnswer::of(resource, state, private, diagnostics));
        }
        confirm(&before.0, &expected, &mut private);
        Ok(ResourceAnswer::of(resource, applied_state(&expected, &state), private, diagnostics))
    }
}

/// An actual or planned state with its private data, identity and diagnostics.
#[derive(Debug)]
pub struct ResourceAnswer {
    /// The state; null if the object does not exist.
    pub state: Value,
    /// The private data.
    pub private: Private,
    /// The object's identity, if it is known.
    pub identity: Option<Value>,
    /// Messages for the operator.
    pub diagnostics: Diagnostics,
}

impl ResourceAnswer {
    /// An answer with the identity of its state.
    pub(super) fn of(resource: &Offering, state: Value, private: Private, diagnostics: Diagnostics) -> Self {
        Self { identity: resource.identity_of(&state), state, private, diagnostics }
    }
}

impl<P: Provider> Server<P> {
    /// Refreshes a state (plugin protocol, ReadResource). While the provider's configuration is unknown, states stay as
    /// they are.
    pub(crate) async fn read(
        &self,
        resource: &OfferedResource<P::Client>,
        current: State<Value>,
    ) -> Result<ResourceAnswer, Diagnostics> {
        if matches!(self.configuration(), ConfigurationState::Unknown(_)) {
            return Ok(ResourceAnswer::of(resource, current.state, current.private, Diagnostics::new()));
        }
        let timeout = resource.timeouts(&current.state).read;
        let context = self.context(self.client()?, timeout);
        let (deadline, before) = (context.deadline, current.state.clone());
        let overrun = |failed| resource.tell_overrun("read", timeout, deadline, failed);
        let outcome = resource.steps.act(ResourceStep::Read(current), context).await;
        let Outcome { state, private, diagnostics } = outcome.map_err(overrun)?;
        if diagnostics.has_errors() {
            return Err(overrun(diagnostics));
        }
        let state = with_numbers_of(&before, state.unwrap_or_default().unknown_as_null());
        Ok(ResourceAnswer::of(resource, without_write_only(&resource.schema, state), private, diagnostics))
    }

    /// Generates the configuration of a resource from a state without the service (plugin protocol, import: config
    /// generation). `Err` means that no configuration was generated.
    pub fn generate(&self, type_name: &str, state: &Value) -> Result<(Value, Diagnostics), Diagnostics> {
        let resource = self.registry().find_resource(type_name)?;
        let mut diagnostics = Diagnostics::new();
        let config = resource.steps.generate(configuration(&resource.schema, state), &mut diagnostics)?;
        Ok((config, diagnostics))
    }

    /// Imports by id (plugin protocol, import): a state that the following refresh completes. Defaults are filled in,
    /// so that the next plan is empty.
    pub(crate) async fn import(
        &self,
        resource: &OfferedResource<P::Client>,
        id: &str,
    ) -> Result<ResourceAnswer, Diagnostics> {
        let context = self.context(self.client()?, resource.timeout());
        let Outcome { state, mut private, mut diagnostics } =
            resource.steps.act(ResourceStep::Import(id.to_owned()), context).await?;
        match state {
            _ if diagnostics.has_errors() => Err(diagnostics),
            Some(state) => {
                let schema = &resource.schema;
                assume(schema, &state, &mut private);
                let state = without_write_only(schema, fill_defaults(schema, state.unknown_as_null()));
                Ok(ResourceAnswer::of(resource, state, private, diagnostics))
            }
            None => {
                diagnostics
                    .error("The object to import does not exist", format!("{} {id:?} does not exist.", resource.name));
                Err(diagnostics)
            }
        }
    }
}

impl Offering {
    /// The identity of a state's object, if its type has one.
    fn identity_of(&self, state: &Value) -> Option<Value> {
        self.identity.as_ref()?.of(state)
    }
}

impl<C> OfferedResource<C> {
    /// The import id of an identity. Newer cores allow identities in import blocks.
    pub(crate) fn import_id(&self, identity: &Value) -> Result<String, Diagnostics> {
        match self.identity.as_ref().and_then(|schema| schema.missing(identity)) {
            Some(attribute) => {
                let detail = format!("The identity of the import must have {}.", attribute.name);
                Err(Diagnostic::error("An incomplete identity", detail).into())
            }
            None => self.steps.import_id(&Identity(identity.clone())),
        }
    }

    /// A state with null for its write-only attributes: an upgraded one may have values from before they became
    /// write-only.
    pub(crate) fn without_write_only(&self, state: Value) -> Value {
        without_write_only(&self.schema, state)
    }
}
