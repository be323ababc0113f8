//! The steps of every offered thing on plain values: behind one trait that can be an object, each kind with its own.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Serialize, de::DeserializeOwned};

use super::{
    action::{Action, Progress},
    data_source::DataSource,
    diagnostics::Diagnostics,
    ephemeral::{EphemeralResource, Open, Opened, Renewed},
    function::{Function, FunctionError},
    held::Thing,
    identity::Identity,
    list_resource::{Found, ListResource, Told},
    model::{ModelError, from_value, to_value},
    resource::{Context, Create, Outcome, Plan, PlanContext, Resource, State, Update},
    value::Value,
};

/// A step that works on what exists.
#[derive(Debug)]
pub(super) enum Step {
    Create(Create<Value>),
    Delete(State<Value>),
    Import(String),
    Read(State<Value>),
    Update(Update<Value>),
}

/// What can be done with an offered thing. A step of another kind is an error; the registry keeps it from being asked
/// for.
#[async_trait]
pub(super) trait Steps<C: Send + Sync + 'static>: Send + Sync {
    /// Judges a configuration.
    fn validate(&self, _config: &Value, _diagnostics: &mut Diagnostics) -> Result<(), ModelError> {
        misplaced()
    }

    /// Plans a resource.
    async fn plan(&self, _plan: Plan<Value>, _context: PlanContext<'_, C>) -> Result<Plan<Value>, ModelError> {
        misplaced()
    }

    /// A step of a resource, or the read of a data source.
    async fn act(&self, _step: Step, _context: Context<C>) -> Result<Outcome<Value>, ModelError> {
        misplaced()
    }

    /// Of a resource.
    fn upgrade(&self, _version: i64, _state: serde_json::Value) -> Result<serde_json::Value, Diagnostics> {
        Err(Diagnostics::new())
    }

    /// Of a resource.
    fn upgrade_identity(&self, _version: i64, _identity: serde_json::Value) -> Result<serde_json::Value, Diagnostics> {
        Err(Diagnostics::new())
    }

    /// Of a resource.
    fn import_id(&self, _identity: &Identity) -> Result<String, Diagnostics> {
        Err(Diagnostics::new())
    }

    /// Of a resource.
    fn generate(&self, _config: Value, _diagnostics: &mut Diagnostics) -> Result<Value, ModelError> {
        misplaced()
    }

    /// Of an ephemeral resource.
    async fn open(&self, _config: Value, _context: Context<C>) -> Result<Opened<Value, Arc<Thing>>, ModelError> {
        misplaced()
    }

    /// Of an ephemeral resource.
    async fn renew(&self, _open: Open<Thing>, _context: Context<C>) -> Result<Renewed, ModelError> {
        misplaced()
    }

    /// Of an ephemeral resource.
    async fn close(&self, _open: Open<Thing>, _context: Context<C>) -> Result<Diagnostics, ModelError> {
        misplaced()
    }

    /// Of a list resource.
    async fn list<'a>(
        &self,
        _config: Value,
        _told: &'a mut Told<'a>,
        _context: Context<C>,
    ) -> Result<Diagnostics, ModelError> {
        misplaced()
    }

    /// Plans an action.
    async fn plan_action(&self, _config: Value, _context: PlanContext<'_, C>) -> Result<Diagnostics, ModelError> {
        misplaced()
    }

    /// Of an action.
    async fn invoke(
        &self,
        _config: Value,
        _progress: Progress,
        _context: Context<C>,
    ) -> Result<Diagnostics, ModelError> {
        misplaced()
    }

    /// Calls a function with an object of all arguments.
    fn call(&self, _arguments: &Value) -> Result<Result<Value, FunctionError>, ModelError> {
        misplaced()
    }
}

fn misplaced<T>() -> Result<T, ModelError> {
    Err(serde::de::Error::custom("a step of another kind of thing"))
}

fn judge<M: DeserializeOwned>(
    validate: impl FnOnce(&M, &mut Diagnostics),
    config: &Value,
    diagnostics: &mut Diagnostics,
) -> Result<(), ModelError> {
    validate(&from_value(config)?, diagnostics);
    Ok(())
}

fn outcome<M: Serialize>(outcome: Outcome<M>) -> Result<Outcome<Value>, ModelError> {
    let state = outcome.state.as_ref().map(to_value).transpose()?;
    Ok(Outcome { state, private: outcome.private, diagnostics: outcome.diagnostics })
}

fn state<M: DeserializeOwned>(State { state, private }: &State<Value>) -> Result<State<M>, ModelError> {
    Ok(State { state: from_value(state)?, private: private.clone() })
}

/// A resource.
pub(super) struct OfResource<R>(pub(super) R);

#[async_trait]
impl<R: Resource> Steps<R::Client> for OfResource<R> {
    fn validate(&self, config: &Value, diagnostics: &mut Diagnostics) -> Result<(), ModelError> {
        judge(|config, diagnostics| self.0.validate(config, diagnostics), config, diagnostics)
    }

    async fn plan(&self, plan: Plan<Value>, context: PlanContext<'_, R::Client>) -> Result<Plan<Value>, ModelError> {
        let read = |value: &Option<Value>| value.as_ref().map(from_value::<R::Model>).transpose();
        let mut typed = Plan {
            kind: plan.kind,
            config: read(&plan.config)?,
            prior: read(&plan.prior)?,
            planned: read(&plan.planned)?,
            replace: plan.replace,
            private: plan.private,
            earlier: plan.earlier,
            diagnostics: plan.diagnostics,
        };
        self.0.plan(&mut typed, context).await;
        Ok(Plan {
            kind: plan.kind,
            config: plan.config,
            prior: plan.prior,
            planned: typed.planned.as_ref().map(to_value).transpose()?,
            replace: typed.replace,
            private: typed.private,
            earlier: typed.earlier,
            diagnostics: typed.diagnostics,
        })
    }

    async fn act(&self, step: Step, context: Context<R::Client>) -> Result<Outcome<Value>, ModelError> {
        let made = match step {
            Step::Create(Create { config, planned, private }) => {
                let change = Create { config: from_value(&config)?, planned: from_value(&planned)?, private };
                self.0.create(change, context).await
            }
            Step::Delete(current) => self.0.delete(state(&current)?, context).await,
            Step::Import(id) => self.0.import(&id, context).await,
            Step::Read(current) => self.0.read(state(&current)?, context).await,
            Step::Update(Update { config, prior, planned, private }) => {
                let [config, prior, planned] = [from_value(&config)?, from_value(&prior)?, from_value(&planned)?];
                self.0.update(Update { config, prior, planned, private }, context).await
            }
        };
        outcome(made)
    }

    fn upgrade(&self, version: i64, state: serde_json::Value) -> Result<serde_json::Value, Diagnostics> {
        self.0.upgrade(version, state)
    }

    fn upgrade_identity(&self, version: i64, identity: serde_json::Value) -> Result<serde_json::Value, Diagnostics> {
        self.0.upgrade_identity(version, identity)
    }

    fn import_id(&self, identity: &Identity) -> Result<String, Diagnostics> {
        self.0.import_id(identity)
    }

    fn generate(&self, config: Value, diagnostics: &mut Diagnostics) -> Result<Value, ModelError> {
        let mut config = from_value(&config)?;
        self.0.generate(&mut config, diagnostics);
        to_value(&config)
    }
}

/// A data source.
pub(super) struct OfDataSource<D>(pub(super) D);

#[async_trait]
impl<D: DataSource> Steps<D::Client> for OfDataSource<D> {
    fn validate(&self, config: &Value, diagnostics: &mut Diagnostics) -> Result<(), ModelError> {
        judge(|config, diagnostics| self.0.validate(config, diagnostics), config, diagnostics)
    }

    async fn act(&self, step: Step, context: Context<D::Client>) -> Result<Outcome<Value>, ModelError> {
        let Step::Read(config) = step else { return misplaced() };
        outcome(self.0.read(from_value(&config.state)?, context).await)
    }
}

/// An ephemeral resource.
pub(super) struct OfEphemeralResource<E>(pub(super) E);

#[async_trait]
impl<E: EphemeralResource> Steps<E::Client> for OfEphemeralResource<E> {
    fn validate(&self, config: &Value, diagnostics: &mut Diagnostics) -> Result<(), ModelError> {
        judge(|config, diagnostics| self.0.validate(config, diagnostics), config, diagnostics)
    }

    async fn open(&self, config: Value, context: Context<E::Client>) -> Result<Opened<Value, Arc<Thing>>, ModelError> {
        let opened = self.0.open(from_value(&config)?, context).await;
        Ok(Opened {
            result: opened.result.as_ref().map(to_value).transpose()?,
            held: opened.held.map(|held| Arc::new(held) as Arc<Thing>),
            private: opened.private,
            renew_at: opened.renew_at,
            diagnostics: opened.diagnostics,
        })
    }

    async fn renew(&self, open: Open<Thing>, context: Context<E::Client>) -> Result<Renewed, ModelError> {
        Ok(self.0.renew(held(open), context).await)
    }

    async fn close(&self, open: Open<Thing>, context: Context<E::Client>) -> Result<Diagnostics, ModelError> {
        Ok(self.0.close(held(open), context).await)
    }
}

fn held<H: Send + Sync + 'static>(open: Open<Thing>) -> Open<H> {
    Open { private: open.private, held: open.held.and_then(|held| held.downcast().ok()) }
}

/// A list resource.
pub(super) struct OfListResource<L>(pub(super) L);

#[async_trait]
impl<L: ListResource> Steps<L::Client> for OfListResource<L> {
    fn validate(&self, config: &Value, diagnostics: &mut Diagnostics) -> Result<(), ModelError> {
        judge(|config, diagnostics| self.0.validate(config, diagnostics), config, diagnostics)
    }

    async fn list<'a>(
        &self,
        config: Value,
        told: &'a mut Told<'a>,
        context: Context<L::Client>,
    ) -> Result<Diagnostics, ModelError> {
        Ok(self.0.list(from_value(&config)?, Found::new(told), context).await)
    }
}

/// An action.
pub(super) struct OfAction<A>(pub(super) A);

#[async_trait]
impl<A: Action> Steps<A::Client> for OfAction<A> {
    fn validate(&self, config: &Value, diagnostics: &mut Diagnostics) -> Result<(), ModelError> {
        judge(|config, diagnostics| self.0.validate(config, diagnostics), config, diagnostics)
    }

    async fn plan_action(&self, config: Value, context: PlanContext<'_, A::Client>) -> Result<Diagnostics, ModelError> {
        Ok(self.0.plan(from_value(&config)?, context).await)
    }

    async fn invoke(
        &self,
        config: Value,
        progress: Progress,
        context: Context<A::Client>,
    ) -> Result<Diagnostics, ModelError> {
        Ok(self.0.invoke(from_value(&config)?, progress, context).await)
    }
}

/// A function. It has no client.
pub(super) struct OfFunction<F>(pub(super) F);

impl<F: Function, C: Send + Sync + 'static> Steps<C> for OfFunction<F> {
    fn call(&self, arguments: &Value) -> Result<Result<Value, FunctionError>, ModelError> {
        let called = from_value(arguments).map_err(|error| {
            let (parameter, text) = error.by_attribute();
            FunctionError { parameter, text }
        });
        match called.and_then(|arguments| self.0.call(arguments)) {
            Ok(output) => to_value(&output).map(Ok),
            Err(error) => Ok(Err(error)),
        }
    }
}
