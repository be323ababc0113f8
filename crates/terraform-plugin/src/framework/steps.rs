//! The steps of all offers on plain values: each kind has its own, behind a trait object.

use async_trait::async_trait;

use super::{
    diagnostics::{Diagnostics, Path, Result},
    ephemeral::{EphemeralResource, OpenObject, Opened},
    function::{Function, FunctionError, Signature},
    identity::Identity,
    model::{FromValue, ToValue, from_value, to_value},
    private::Private,
    resource::{
        Action, ActionProgress, Create, CreatePlan, DataSource, DestroyPlan, EventSender, ListResource, ListSender,
        Outcome, PlanContext, Resource, State, StepContext, Update, UpdatePlan,
    },
    value::Value,
};

/// A step of a resource.
#[derive(Debug)]
pub(crate) enum ResourceStep {
    Create(Create<Value>),
    Delete(State<Value>),
    Import(String),
    Read(State<Value>),
    Update(Update<Value>),
}

/// A plan that its resource has refined.
#[derive(Debug)]
pub(crate) struct RefinedPlan {
    /// Null for a destroy.
    pub(super) planned: Value,
    pub(super) replace: Vec<Path>,
    pub(super) private: Private,
    pub(super) diagnostics: Diagnostics,
}

/// The rules of what is configured.
pub(crate) trait Validates: Send + Sync {
    /// Validates a configuration.
    fn validate(&self, config: &Value, diagnostics: &mut Diagnostics) -> Result<()>;
}

/// The steps of a resource.
#[async_trait]
pub(crate) trait ResourceSteps<C>: Validates {
    async fn plan_create(&self, plan: CreatePlan<&Value>, context: PlanContext<'_, C>) -> Result<RefinedPlan>;
    async fn plan_update(&self, plan: UpdatePlan<&Value>, context: PlanContext<'_, C>) -> Result<RefinedPlan>;
    async fn plan_destroy(&self, plan: DestroyPlan<&Value>, context: PlanContext<'_, C>) -> Result<RefinedPlan>;
    async fn act(&self, step: ResourceStep, context: StepContext<C>) -> Result<Outcome<Value>>;
    fn upgrade(&self, version: i64, state: serde_json::Value) -> Result<serde_json::Value>;
    fn stored(&self, state: &serde_json::Value, client: &C);
    fn import_id(&self, identity: &Identity) -> Result<String>;
    fn generate(&self, config: Value, diagnostics: &mut Diagnostics) -> Result<Value>;
}

/// The read of a data source.
#[async_trait]
pub(crate) trait DataSourceSteps<C>: Validates {
    async fn read(&self, config: Value, context: StepContext<C>) -> Result<Outcome<Value>>;
}

/// The open of an ephemeral resource.
#[async_trait]
pub(crate) trait EphemeralSteps<C>: Validates {
    async fn open(&self, config: Value, context: StepContext<C>) -> Result<Opened<Value, OpenObject>>;
}

/// The list of a list resource.
#[async_trait]
pub(crate) trait ListSteps<C>: Validates {
    async fn list<'a>(
        &self,
        config: Value,
        sender: &'a mut EventSender<'a>,
        context: StepContext<C>,
    ) -> Result<Diagnostics>;
}

/// The plan and the invocation of an action.
#[async_trait]
pub(crate) trait ActionSteps<C>: Validates {
    async fn plan(&self, config: Value, context: PlanContext<'_, C>) -> Result<Diagnostics>;
    async fn invoke(&self, config: Value, progress: ActionProgress, context: StepContext<C>) -> Result<Diagnostics>;
}

/// The call of a function, with an object of all arguments.
pub(crate) trait FunctionSteps: Send + Sync {
    fn signature(&self) -> &Signature;
    fn call(&self, arguments: &Value) -> Result<Value, FunctionError>;
}

fn outcome<M: ToValue>(outcome: Outcome<M>) -> Result<Outcome<Value>> {
    let state = outcome.state.as_ref().map(to_value).transpose()?;
    Ok(Outcome { state, private: outcome.private, diagnostics: outcome.diagnostics })
}

fn state<M: FromValue>(State { state, private }: &State<Value>) -> Result<State<M>> {
    Ok(State { state: from_value(state)?, private: private.clone() })
}

macro_rules! validates {
    ($($of:ident $offer:ident),*) => {
        $(impl<T: $offer> Validates for $of<T> {
            fn validate(&self, config: &Value, diagnostics: &mut Diagnostics) -> Result<()> {
                self.0.validate(&from_value(config)?, diagnostics);
                Ok(())
            }
        })*
    };
}

validates! {
    OfAction Action, OfDataSource DataSource, OfEphemeralResource EphemeralResource, OfListResource ListResource,
    OfResource Resource
}

/// A resource.
pub(super) struct OfResource<R>(pub(super) R);

#[async_trait]
impl<R: Resource> ResourceSteps<R::Client> for OfResource<R> {
    async fn plan_create(&self, plan: CreatePlan<&Value>, context: PlanContext<'_, R::Client>) -> Result<RefinedPlan> {
        let CreatePlan { private, earlier, walk, diagnostics, .. } = plan;
        let (config, planned) = (from_value(plan.config)?, from_value(plan.planned)?);
        let mut plan = CreatePlan { config, planned, private, earlier, walk, diagnostics };
        self.0.plan_create(&mut plan, context).await;
        let CreatePlan { planned, private, diagnostics, .. } = plan;
        Ok(RefinedPlan { planned: to_value(&planned)?, replace: Vec::new(), private, diagnostics })
    }

    async fn plan_update(&self, plan: UpdatePlan<&Value>, context: PlanContext<'_, R::Client>) -> Result<RefinedPlan> {
        let UpdatePlan { replace, private, diagnostics, .. } = plan;
        let [config, prior, planned] = [from_value(plan.config)?, from_value(plan.prior)?, from_value(plan.planned)?];
        let mut plan = UpdatePlan { config, prior, planned, replace, private, diagnostics };
        self.0.plan_update(&mut plan, context).await;
        let UpdatePlan { planned, replace, private, diagnostics, .. } = plan;
        Ok(RefinedPlan { planned: to_value(&planned)?, replace, private, diagnostics })
    }

    async fn plan_destroy(
        &self,
        plan: DestroyPlan<&Value>,
        context: PlanContext<'_, R::Client>,
    ) -> Result<RefinedPlan> {
        let DestroyPlan { prior, private, diagnostics } = plan;
        let mut plan = DestroyPlan { prior: from_value(prior)?, private, diagnostics };
        self.0.plan_destroy(&mut plan, context).await;
        let DestroyPlan { private, diagnostics, .. } = plan;
        Ok(RefinedPlan { planned: Value::Null, replace: Vec::new(), private, diagnostics })
    }

    async fn act(&self, step: ResourceStep, context: StepContext<R::Client>) -> Result<Outcome<Value>> {
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
        outcome(made?)
    }

    fn upgrade(&self, version: i64, state: serde_json::Value) -> Result<serde_json::Value> {
        self.0.upgrade(version, state)
    }

    fn stored(&self, state: &serde_json::Value, client: &R::Client) {
        self.0.stored(state, client);
    }

    fn import_id(&self, identity: &Identity) -> Result<String> {
        self.0.import_id(identity)
    }

    fn generate(&self, config: Value, diagnostics: &mut Diagnostics) -> Result<Value> {
        let mut config = from_value(&config)?;
        self.0.generate(&mut config, diagnostics);
        Ok(to_value(&config)?)
    }
}

/// A data source.
pub(super) struct OfDataSource<D>(pub(super) D);

#[async_trait]
impl<D: DataSource> DataSourceSteps<D::Client> for OfDataSource<D> {
    async fn read(&self, config: Value, context: StepContext<D::Client>) -> Result<Outcome<Value>> {
        outcome(self.0.read(from_value(&config)?, context).await?)
    }
}

/// An ephemeral resource.
pub(super) struct OfEphemeralResource<E>(pub(super) E);

#[async_trait]
impl<E: EphemeralResource> EphemeralSteps<E::Client> for OfEphemeralResource<E> {
    async fn open(&self, config: Value, context: StepContext<E::Client>) -> Result<Opened<Value, OpenObject>> {
        let opened = self.0.open(from_value(&config)?, context).await?;
        Ok(Opened {
            result: to_value(&opened.result)?,
            held: opened.held.map(|held| Box::new(held) as OpenObject),
            diagnostics: opened.diagnostics,
        })
    }
}

/// A list resource.
pub(super) struct OfListResource<L>(pub(super) L);

#[async_trait]
impl<L: ListResource> ListSteps<L::Client> for OfListResource<L> {
    async fn list<'a>(
        &self,
        config: Value,
        sender: &'a mut EventSender<'a>,
        context: StepContext<L::Client>,
    ) -> Result<Diagnostics> {
        self.0.list(from_value(&config)?, ListSender::new(sender), context).await
    }
}

/// An action.
pub(super) struct OfAction<A>(pub(super) A);

#[async_trait]
impl<A: Action> ActionSteps<A::Client> for OfAction<A> {
    async fn plan(&self, config: Value, context: PlanContext<'_, A::Client>) -> Result<Diagnostics> {
        Ok(self.0.plan(from_value(&config)?, context).await)
    }

    async fn invoke(
        &self,
        config: Value,
        progress: ActionProgress,
        context: StepContext<A::Client>,
    ) -> Result<Diagnostics> {
        self.0.invoke(from_value(&config)?, progress, context).await
    }
}

/// A function and its signature. It has no client.
pub(super) struct OfFunction<F>(pub(super) F, pub(super) Signature);

impl<F: Function> FunctionSteps for OfFunction<F> {
    fn signature(&self) -> &Signature {
        &self.1
    }

    fn call(&self, arguments: &Value) -> Result<Value, FunctionError> {
        let arguments = from_value(arguments).map_err(|error| {
            let (parameter, text) = error.by_attribute();
            FunctionError { parameter, text }
        })?;
        to_value(&self.0.call(arguments)?)
            .map_err(|error| FunctionError::whole(format!("this is a bug in the provider, please report it: {error}")))
    }
}
