use std::{sync::Arc, time::Duration};

use async_trait::async_trait;

use super::Erased;
use crate::framework::{
    diagnostics::Diagnostics,
    ephemeral::{EphemeralResource, Open, Opened, Renewed},
    held::Thing,
    model::{ModelError, Shape, from_value, shape},
    resource::Context,
    schema::Schema,
    value::Value,
};

/// An ephemeral resource whose models are plain values.
#[async_trait]
pub(in crate::framework) trait AnyEphemeralResource<C>: Send + Sync {
    fn type_name(&self) -> &'static str;
    fn schema(&self) -> &Schema;
    fn timeout(&self) -> Duration;
    fn shape(&self) -> Result<Shape, ModelError>;
    fn validate(&self, config: &Value, diagnostics: &mut Diagnostics) -> Result<(), ModelError>;
    async fn open(&self, config: Value, context: Context<C>) -> Result<Opened<Value, Arc<Thing>>, ModelError>;
    async fn renew(&self, open: Open<Thing>, context: Context<C>) -> Renewed;
    async fn close(&self, open: Open<Thing>, context: Context<C>) -> Diagnostics;
}

impl<E: EphemeralResource> Erased<E> {
    pub(in crate::framework) fn ephemeral_resource(typed: E) -> Self {
        let schema = typed.schema();
        Self::new(typed, schema)
    }
}

#[async_trait]
impl<E: EphemeralResource> AnyEphemeralResource<E::Client> for Erased<E> {
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
        shape::<E::Model>()
    }

    fn validate(&self, config: &Value, diagnostics: &mut Diagnostics) -> Result<(), ModelError> {
        self.typed.validate(&from_value(config)?, diagnostics);
        Ok(())
    }

    async fn open(&self, config: Value, context: Context<E::Client>) -> Result<Opened<Value, Arc<Thing>>, ModelError> {
        let opened = self.typed.open(from_value(&config)?, context).await;
        Ok(Opened {
            result: opened.result.map(|result| self.value(&result)).transpose()?,
            held: opened.held.map(|held| Arc::new(held) as Arc<Thing>),
            private: opened.private,
            renew_at: opened.renew_at,
            diagnostics: opened.diagnostics,
        })
    }

    async fn renew(&self, open: Open<Thing>, context: Context<E::Client>) -> Renewed {
        self.typed.renew(typed(open), context).await
    }

    async fn close(&self, open: Open<Thing>, context: Context<E::Client>) -> Diagnostics {
        self.typed.close(typed(open), context).await
    }
}

fn typed<H: Send + Sync + 'static>(open: Open<Thing>) -> Open<H> {
    Open { private: open.private, held: open.held.and_then(|held| held.downcast().ok()) }
}
