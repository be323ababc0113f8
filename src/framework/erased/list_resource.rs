use std::time::Duration;

use async_trait::async_trait;

use super::Erased;
use crate::framework::{
    diagnostics::Diagnostics,
    list_resource::{Found, ListResource, Told},
    model::{ModelError, Shape, from_value, shape},
    resource::Context,
    schema::Schema,
    value::Value,
};

/// A list resource whose models are plain values.
#[async_trait]
pub(in crate::framework) trait AnyListResource<C>: Send + Sync {
    fn type_name(&self) -> &'static str;
    fn schema(&self) -> &Schema;
    fn timeout(&self) -> Duration;
    /// The types of both models, to be compared with the schemas'.
    fn shapes(&self) -> Result<(Shape, Shape), ModelError>;
    fn validate(&self, config: &Value, diagnostics: &mut Diagnostics) -> Result<(), ModelError>;
    async fn list<'a>(
        &self,
        config: Value,
        told: &'a mut Told<'a>,
        context: Context<C>,
    ) -> Result<Diagnostics, ModelError>;
}

impl<L: ListResource> Erased<L> {
    pub(in crate::framework) fn list_resource(typed: L) -> Self {
        let schema = typed.schema();
        Self::new(typed, schema)
    }
}

#[async_trait]
impl<L: ListResource> AnyListResource<L::Client> for Erased<L> {
    fn type_name(&self) -> &'static str {
        self.typed.type_name()
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn timeout(&self) -> Duration {
        self.typed.timeout()
    }

    fn shapes(&self) -> Result<(Shape, Shape), ModelError> {
        Ok((shape::<L::Model>()?, shape::<L::Resource>()?))
    }

    fn validate(&self, config: &Value, diagnostics: &mut Diagnostics) -> Result<(), ModelError> {
        self.typed.validate(&from_value(config)?, diagnostics);
        Ok(())
    }

    async fn list<'a>(
        &self,
        config: Value,
        told: &'a mut Told<'a>,
        context: Context<L::Client>,
    ) -> Result<Diagnostics, ModelError> {
        Ok(self.typed.list(from_value(&config)?, Found::new(told), context).await)
    }
}
