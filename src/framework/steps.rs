//! The steps of all offers on plain values: one trait object for each offer; each kind has its own steps.

use async_trait::async_trait;

use super::{
    diagnostics::Diagnostics,
    ephemeral::{EphemeralResource, OpenObject, Opened},
    function::{Function, FunctionError},
    identity::Identity,
    model::{FromValue, ModelError, ToValue, from_value, to_value},
    resource::{
        Action, ActionProgress, Create, DataSource, EventSender, ListResource, ListSender, Outcome, Plan, PlanContext,
        Resource, State, StepContext, Update,
    },
    value::Value,
};

/// A step of a resource, or the read of a data source.
#[derive(Debug)]
pub(super) enum ResourceStep {
    Create(Create<Value>),
    Delete(State<Value>),
    Import(String),
    Read(State<Value>),
    Update(Update<Value>),
}

/// The outcome of a step, or the reason why it was not done.
type Done<T> = Result<T, Diagnostics>;

/// The steps of an offer. A step of another kind is an error, which lookups in the registry by kind exclude.
#[async_trait]
pub(super) trait Steps<C: Send + Sync + 'static>: Send + Sync {
    /// Validates a configuration.
    fn validate(&self, _config: &Value, _diagnostics: &mut Diagnostics) -> Done<()> {
        misplaced()
    }

    /// Plans a resource. The refined plan has neither configuration nor prior state.
    async fn plan(&self, _plan: Plan<&Value>, _context: PlanContext<'_, C>) -> Done<Plan<Value>> {
        misplaced()
    }

    /// Carries out a step of a resource, or the read of a data source.
    async fn act(&self, _step: ResourceStep, _context: StepContext<C>) -> Done<Outcome<Value>> {
        misplaced()
    }

    /// Of a resource.
    fn upgrade(&self, _version: i64, _state: serde_json::Value) -> Done<serde_json::Value> {
        misplaced()
    }

    /// Of a resource.
    fn stored(&self, _state: &serde_json::Value, _client: &C) {}

    /// Of a resource.
    fn import_id(&self, _identity: &Identity) -> Done<String> {
        misplaced()
    }

    /// Of a resource.
    fn generate(&self, _config: Value, _diagnostics: &mut Diagnostics) -> Done<Value> {
        misplaced()
    }

    /// Of an ephemeral resource.
    async fn open(&self, _config: Value, _context: StepContext<C>) -> Done<Opened<Value, OpenObject>> {
        misplaced()
    }

    /// Of a list resource.
    async fn list<'a>(
        &self,
        _config: Value,
        _sender: &'a mut EventSender<'a>,
        _context: StepContext<C>,
    ) -> Done<Diagnostics> {
        misplaced()
    }

    /// Plans an action.
    async fn plan_action(&self, _config: Value, _context: PlanContext<'_, C>) -> Done<Diagnostics> {
        misplaced()
    }

    /// Of an action.
    async fn invoke(&self, _config: Value, _progress: ActionProgress, _context: StepContext<C>) -> Done<Diagnostics> {
        misplaced()
    }

    /// Calls a function with an object of all arguments.
    fn call(&self, _arguments: &Value) -> Result<Value, FunctionError> {
        Err(FunctionError::whole(MISPLACED))
    }
}

const MISPLACED: &str = "a step of another kind of offer";

fn misplaced<T>() -> Done<T> {
    Err(<ModelError as serde::de::Error>::custom(MISPLACED).into())
}

fn outcome<M: ToValue>(outcome: Outcome<M>) -> Done<Outcome<Value>> {
    let state = outcome.state.as_ref().map(to_value).transpose()?;
    Ok(Outcome { state, private: outcome.private, diagnostics: outcome.diagnostics })
}

fn state<M: FromValue>(State { state, private }: &State<Value>) -> Done<State<M>> {
    Ok(State { state: from_value(state)?, private: private.clone() })
}

/// A resource.
pub(super) struct OfResource<R>(pub(super) R);

#[async_trait]
impl<R: Resource> Steps<R::Client> for OfResource<R> {
    fn validate(&self, config: &Value, diagnostics: &mut Diagnostics) -> Done<()> {
        self.0.validate(&from_value(config)?, diagnostics);
        Ok(())
    }

    async fn plan(&self, plan: Plan<&Value>, context: PlanContext<'_, R::Client>) -> Done<Plan<Value>> {
        let read = |value: Option<&Value>| value.map(from_value::<R::Model>).transpose();
        let mut typed = Plan {
            kind: plan.kind,
            config: read(plan.config)?,
            prior: read(plan.prior)?,
            planned: read(plan.planned)?,
            replace: plan.replace,
            private: plan.private,
            earlier: plan.earlier,
            diagnostics: plan.diagnostics,
        };
        self.0.plan(&mut typed, context).await;
        Ok(Plan {
            kind: plan.kind,
            config: None,
            prior: None,
            planned: typed.planned.as_ref().map(to_value).transpose()?,
            replace: typed.replace,
            private: typed.private,
            earlier: typed.earlier,
            diagnostics: typed.diagnostics,
        })
    }

    async fn act(&self, step: ResourceStep, context: StepContext<R::Client>) -> Done<Outcome<Value>> {
        let made = match step {
            ResourceStep::Create(Create { config, planned, private }) => {
                let change = Create { config: from_value(&config)?, planned: from_value(&planned)?, private };
                self.0.create(change, context).await
            }
            ResourceStep::Delete(current) => self.0.delete(state(&current)?, context).await,
            ResourceStep::Import(id) => self.0.import(&id, context).await,
            ResourceStep::Read(current) => self.0.read(state(&current)?, context).await,
            ResourceStep::Update(Update { config, prior, planned, private }) => {
                let [config, prior, planned] = [from_value(&config)?, from_value(&prior)?, from_value(&planned)?];
                self.0.update(Update { config, prior, planned, private }, context).await
            }
        };
        outcome(made)
    }

    fn upgrade(&self, version: i64, state: serde_json::Value) -> Done<serde_json::Value> {
        self.0.upgrade(version, state)
    }

    fn stored(&self, state: &serde_json::Value, client: &R::Client) {
        self.0.stored(state, client);
    }

    fn import_id(&self, identity: &Identity) -> Done<String> {
        self.0.import_id(identity)
    }

    fn generate(&self, config: Value, diagnostics: &mut Diagnostics) -> Done<Value> {
        let mut config = from_value(&config)?;
        self.0.generate(&mut config, diagnostics);
        Ok(to_value(&config)?)
    }
}

/// A data source.
pub(super) struct OfDataSource<D>(pub(super) D);

#[async_trait]
impl<D: DataSource> Steps<D::Client> for OfDataSource<D> {
    fn validate(&self, config: &Value, diagnostics: &mut Diagnostics) -> Done<()> {
        self.0.validate(&from_value(config)?, diagnostics);
        Ok(())
    }

    async fn act(&self, step: ResourceStep, context: StepContext<D::Client>) -> Done<Outcome<Value>> {
        let ResourceStep::Read(config) = step else { return misplaced() };
        outcome(self.0.read(from_value(&config.state)?, context).await)
    }
}

/// An ephemeral resource.
pub(super) struct OfEphemeralResource<E>(pub(super) E);

#[async_trait]
impl<E: EphemeralResource> Steps<E::Client> for OfEphemeralResource<E> {
    fn validate(&self, config: &Value, diagnostics: &mut Diagnostics) -> Done<()> {
        self.0.validate(&from_value(config)?, diagnostics);
        Ok(())
    }

    async fn open(&self, config: Value, context: StepContext<E::Client>) -> Done<Opened<Value, OpenObject>> {
        let opened = self.0.open(from_value(&config)?, context).await;
        Ok(Opened {
            result: opened.result.as_ref().map(to_value).transpose()?,
            held: opened.held.map(|held| Box::new(held) as OpenObject),
            diagnostics: opened.diagnostics,
        })
    }
}

/// A list resource.
pub(super) struct OfListResource<L>(pub(super) L);

#[async_trait]
impl<L: ListResource> Steps<L::Client> for OfListResource<L> {
    fn validate(&self, config: &Value, diagnostics: &mut Diagnostics) -> Done<()> {
        self.0.validate(&from_value(config)?, diagnostics);
        Ok(())
    }

    async fn list<'a>(
        &self,
        config: Value,
        sender: &'a mut EventSender<'a>,
        context: StepContext<L::Client>,
    ) -> Done<Diagnostics> {
        Ok(self.0.list(from_value(&config)?, ListSender::new(sender), context).await)
    }
}

/// An action.
pub(super) struct OfAction<A>(pub(super) A);

#[async_trait]
impl<A: Action> Steps<A::Client> for OfAction<A> {
    fn validate(&self, config: &Value, diagnostics: &mut Diagnostics) -> Done<()> {
        self.0.validate(&from_value(config)?, diagnostics);
        Ok(())
    }

    async fn plan_action(&self, config: Value, context: PlanContext<'_, A::Client>) -> Done<Diagnostics> {
        Ok(self.0.plan(from_value(&config)?, context).await)
    }

    async fn invoke(
        &self,
        config: Value,
        progress: ActionProgress,
        context: StepContext<A::Client>,
    ) -> Done<Diagnostics> {
        Ok(self.0.invoke(from_value(&config)?, progress, context).await)
    }
}

/// A function. It has no client.
pub(super) struct OfFunction<F>(pub(super) F);

impl<F: Function, C: Send + Sync + 'static> Steps<C> for OfFunction<F> {
    fn call(&self, arguments: &Value) -> Result<Value, FunctionError> {
        let arguments = from_value(arguments).map_err(|error| {
            let (parameter, text) = error.by_attribute();
            FunctionError { parameter, text }
        })?;
        to_value(&self.0.call(arguments)?)
            .map_err(|error| FunctionError::whole(format!("this is a bug in the provider, please report it: {error}")))
    }
}
