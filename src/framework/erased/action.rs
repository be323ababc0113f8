use std::time::Duration;

use async_trait::async_trait;

use super::Erased;
use crate::framework::{
    action::{Action, Progress},
    diagnostics::Diagnostics,
    model::{ModelError, Shape, from_value, shape},
    resource::{Context, PlanContext},
    schema::Schema,
    value::Value,
};

/// An action whose model is a plain value.
#[async_trait]
pub(in crate::framework) trait AnyAction<C>: Send + Sync {
    fn type_name(&self) -> &'static str;
    fn schema(&self) -> &Schema;
    fn timeout(&self) -> Duration;
    fn shape(&self) -> Result<Shape, ModelError>;
    fn validate(&self, config: &Value, diagnostics: &mut Diagnostics) -> Result<(), ModelError>;
    async fn plan(&self, config: Value, context: PlanContext<'_, C>) -> Result<Diagnostics, ModelError>;
    async fn invoke(&self, config: Value, progress: Progress, context: Context<C>) -> Result<Diagnostics, ModelError>;
}

impl<A: Action> Erased<A> {
    pub(in crate::framework) fn action(typed: A) -> Self {
        let schema = typed.schema();
        Self::new(typed, schema)
    }
}

#[async_trait]
impl<A: Action> AnyAction<A::Client> for Erased<A> {
    fn type_name(&self) -> &'static str {
        self.typed.type_name()
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn timeout(&self) -> Duration {
        self.typed.timeout()
    }

    fn shape(&self) -> Result<Shape, ModelError> {
        shape::<A::Model>()
    }

    fn validate(&self, config: &Value, diagnostics: &mut Diagnostics) -> Result<(), ModelError> {
        self.typed.validate(&from_value(config)?, diagnostics);
        Ok(())
    }

    async fn plan(&self, config: Value, context: PlanContext<'_, A::Client>) -> Result<Diagnostics, ModelError> {
        Ok(self.typed.plan(from_value(&config)?, context).await)
    }

    async fn invoke(
        &self,
        config: Value,
        progress: Progress,
        context: Context<A::Client>,
    ) -> Result<Diagnostics, ModelError> {
        Ok(self.typed.invoke(from_value(&config)?, progress, context).await)
    }
}
