//! The object-safe twins of the typed traits: the same steps on plain values.

mod action;
mod ephemeral;
mod function;
mod list_resource;

pub(super) use action::AnyAction;
pub(super) use ephemeral::AnyEphemeralResource;
pub(super) use function::AnyFunction;
pub(super) use list_resource::AnyListResource;

use async_trait::async_trait;
use serde::{Serialize, de::DeserializeOwned};

use super::{
    data_source::DataSource,
    diagnostics::Diagnostics,
    fill::conform,
    identity::{Identity, IdentitySchema},
    model::{ModelError, Shape, from_value, to_value},
    resource::{Context, Create, Outcome, Plan, PlanContext, Resource, State, Update},
    schema::Schema,
    timeouts::{DefaultTimeouts, TIMEOUTS, Timeouts},
    value::{Type, Value},
};

/// A typed thing behind an object-safe trait, with its schema and type built once.
pub(super) struct Erased<T> {
    typed: T,
    schema: Schema,
    ty: Type,
    identity: Option<IdentitySchema>,
}

/// A resource whose models are plain values.
#[async_trait]
pub(super) trait AnyResource<C>: Send + Sync {
    fn type_name(&self) -> &'static str;
    /// The schema with its `timeouts` block.
    fn schema(&self) -> &Schema;
    /// The timeouts that a state or configuration asks for.
    fn timeouts(&self, value: &Value) -> DefaultTimeouts;
    /// What the model can read, to be compared with the schema.
    fn shape(&self) -> Result<Shape, ModelError>;
    fn validate(&self, config: &Value, diagnostics: &mut Diagnostics) -> Result<(), ModelError>;
    fn upgrade(&self, version: i64, state: serde_json::Value) -> Result<serde_json::Value, Diagnostics>;
    async fn plan(&self, plan: Plan<Value>, context: PlanContext<'_, C>) -> Result<Plan<Value>, ModelError>;
    async fn create(&self, change: Create<Value>, context: Context<C>) -> Result<Outcome<Value>, ModelError>;
    async fn read(&self, current: State<Value>, context: Context<C>) -> Result<Outcome<Value>, ModelError>;
    async fn update(&self, change: Update<Value>, context: Context<C>) -> Result<Outcome<Value>, ModelError>;
    async fn delete(&self, current: State<Value>, context: Context<C>) -> Result<Outcome<Value>, ModelError>;
    async fn import(&self, id: &str, context: Context<C>) -> Result<Outcome<Value>, ModelError>;
    fn identity(&self) -> Option<&IdentitySchema>;
    fn upgrade_identity(&self, version: i64, identity: serde_json::Value) -> Result<serde_json::Value, Diagnostics>;
    fn import_id(&self, identity: &Identity) -> Result<String, Diagnostics>;
    fn generate(&self, config: Value, diagnostics: &mut Diagnostics) -> Result<Value, ModelError>;
}

/// A data source whose models are plain values.
#[async_trait]
pub(super) trait AnyDataSource<C>: Send + Sync {
    fn type_name(&self) -> &'static str;
    fn schema(&self) -> &Schema;
    fn timeout(&self) -> std::time::Duration;
    fn shape(&self) -> Result<Shape, ModelError>;
    fn validate(&self, config: &Value, diagnostics: &mut Diagnostics) -> Result<(), ModelError>;
    async fn read(&self, config: Value, context: Context<C>) -> Result<Outcome<Value>, ModelError>;
}

impl<R: Resource> Erased<R> {
    pub(super) fn resource(typed: R) -> Self {
        let schema = typed.schema().with_block(typed.timeouts().block());
        let identity = typed.identity();
        Self { identity, ..Self::new(typed, schema) }
    }
}

impl<D: DataSource> Erased<D> {
    pub(super) fn data_source(typed: D) -> Self {
        let schema = typed.schema();
        Self::new(typed, schema)
    }
}

impl<T> Erased<T> {
    fn new(typed: T, schema: Schema) -> Self {
        Self { ty: schema.ty(), typed, schema, identity: None }
    }

    fn outcome<M: Serialize>(&self, outcome: Outcome<M>) -> Result<Outcome<Value>, ModelError> {
        Ok(Outcome {
            state: outcome.state.map(|state| self.value(&state)).transpose()?,
            private: outcome.private,
            diagnostics: outcome.diagnostics,
        })
    }

    fn value<M: Serialize>(&self, model: &M) -> Result<Value, ModelError> {
        Ok(conform(&self.ty, to_value(model)?))
    }
}

fn state<M: DeserializeOwned>(current: &State<Value>) -> Result<State<M>, ModelError> {
    Ok(State { state: from_value(&current.state)?, private: current.private.clone() })
}

#[async_trait]
impl<R: Resource> AnyResource<R::Client> for Erased<R> {
    fn type_name(&self) -> &'static str {
        self.typed.type_name()
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn timeouts(&self, value: &Value) -> DefaultTimeouts {
        let configured: Timeouts = from_value(value.attribute(TIMEOUTS)).unwrap_or_default();
        self.typed.timeouts().with(&configured)
    }

    fn shape(&self) -> Result<Shape, ModelError> {
        super::model::shape::<R::Model>()
    }

    fn validate(&self, config: &Value, diagnostics: &mut Diagnostics) -> Result<(), ModelError> {
        self.typed.validate(&from_value(config)?, diagnostics);
        Ok(())
    }

    fn upgrade(&self, version: i64, state: serde_json::Value) -> Result<serde_json::Value, Diagnostics> {
        self.typed.upgrade(version, state)
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
        self.typed.plan(&mut typed, context).await;
        Ok(Plan {
            kind: plan.kind,
            config: plan.config,
            prior: plan.prior,
            planned: typed.planned.map(|planned| self.value(&planned)).transpose()?,
            replace: typed.replace,
            private: typed.private,
            earlier: typed.earlier,
            diagnostics: typed.diagnostics,
        })
    }

    async fn create(&self, change: Create<Value>, context: Context<R::Client>) -> Result<Outcome<Value>, ModelError> {
        let change = Create {
            config: from_value(&change.config)?,
            planned: from_value(&change.planned)?,
            private: change.private,
        };
        self.outcome(self.typed.create(change, context).await)
    }

    async fn read(&self, current: State<Value>, context: Context<R::Client>) -> Result<Outcome<Value>, ModelError> {
        self.outcome(self.typed.read(state(&current)?, context).await)
    }

    async fn update(&self, change: Update<Value>, context: Context<R::Client>) -> Result<Outcome<Value>, ModelError> {
        let change = Update {
            config: from_value(&change.config)?,
            prior: from_value(&change.prior)?,
            planned: from_value(&change.planned)?,
            private: change.private,
        };
        self.outcome(self.typed.update(change, context).await)
    }

    async fn delete(&self, current: State<Value>, context: Context<R::Client>) -> Result<Outcome<Value>, ModelError> {
        self.outcome(self.typed.delete(state(&current)?, context).await)
    }

    async fn import(&self, id: &str, context: Context<R::Client>) -> Result<Outcome<Value>, ModelError> {
        self.outcome(self.typed.import(id, context).await)
    }

    fn identity(&self) -> Option<&IdentitySchema> {
        self.identity.as_ref()
    }

    fn upgrade_identity(&self, version: i64, identity: serde_json::Value) -> Result<serde_json::Value, Diagnostics> {
        self.typed.upgrade_identity(version, identity)
    }

    fn import_id(&self, identity: &Identity) -> Result<String, Diagnostics> {
        self.typed.import_id(identity)
    }

    fn generate(&self, config: Value, diagnostics: &mut Diagnostics) -> Result<Value, ModelError> {
        let mut config = from_value(&config)?;
        self.typed.generate(&mut config, diagnostics);
        self.value(&config)
    }
}

#[async_trait]
impl<D: DataSource> AnyDataSource<D::Client> for Erased<D> {
    fn type_name(&self) -> &'static str {
        self.typed.type_name()
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn timeout(&self) -> std::time::Duration {
        self.typed.timeout()
    }

    fn shape(&self) -> Result<Shape, ModelError> {
        super::model::shape::<D::Model>()
    }

    fn validate(&self, config: &Value, diagnostics: &mut Diagnostics) -> Result<(), ModelError> {
        self.typed.validate(&from_value(config)?, diagnostics);
        Ok(())
    }

    async fn read(&self, config: Value, context: Context<D::Client>) -> Result<Outcome<Value>, ModelError> {
        self.outcome(self.typed.read(from_value(&config)?, context).await)
    }
}
