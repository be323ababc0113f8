//! A provider of one resource with any schema, whose applies go as a tape of choices says.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use damodel::framework::{
    Context, Create, Diagnostic, Diagnostics, Outcome, Plan, PlanContext, Private, Provider, Registry, Resource,
    Schema, State, Type, Update, timeouts::DefaultTimeouts,
};

use super::{
    any_model::Any,
    random::{Choices, applied, known},
};

pub(crate) const TYPE_NAME: &str = "any_thing";

#[derive(Debug)]
pub(crate) struct AnyProvider(pub(crate) AnyResource);

/// The resource.
#[derive(Clone, Debug)]
pub(crate) struct AnyResource {
    pub(crate) schema: Schema,
    /// Of a value, the `timeouts` block included.
    pub(crate) ty: Type,
    pub(crate) choices: Arc<Mutex<Choices>>,
    /// Whether its own plan writes into every attribute.
    pub(crate) meddles: bool,
}

impl AnyResource {
    pub(crate) fn new(schema: Schema, choices: Choices, meddles: bool) -> Self {
        let ty = schema.clone().with_block(default_timeouts().block()).ty();
        Self { schema, ty, choices: Arc::new(Mutex::new(choices)), meddles }
    }

    fn outcome(&self, planned: &Any, private: Private) -> Outcome<Any> {
        let mut choices = self.choices.lock().unwrap();
        let fails = choices.once_in(5);
        let wrong = choices.once_in(3);
        let state = applied(&mut choices, &self.ty, &planned.0, wrong);
        let outcome = Outcome::present(Any(state), private);
        if fails { outcome.with(Diagnostic::error("Failed", "Planted.")) } else { outcome }
    }
}

pub(crate) fn default_timeouts() -> DefaultTimeouts {
    let minute = Duration::from_secs(60);
    DefaultTimeouts { create: minute, read: minute, update: minute, delete: minute }
}

impl Provider for AnyProvider {
    type Client = ();
    type Model = Any;

    fn schema(&self) -> Schema {
        Schema::default()
    }

    fn registry(&self) -> Registry<()> {
        Registry::new().resource(self.0.clone())
    }

    async fn configure(&self, _: Any, _: &str) -> Result<(Arc<()>, Diagnostics), Diagnostics> {
        Ok((Arc::new(()), Diagnostics::new()))
    }
}

impl Resource for AnyResource {
    type Client = ();
    type Model = Any;

    fn type_name(&self) -> &'static str {
        TYPE_NAME
    }

    fn schema(&self) -> Schema {
        self.schema.clone()
    }

    fn timeouts(&self) -> DefaultTimeouts {
        default_timeouts()
    }

    async fn plan(&self, plan: &mut Plan<Any>, _: PlanContext<'_, ()>) {
        if let (true, Some(Any(planned))) = (self.meddles, &mut plan.planned) {
            for attribute in &self.schema.attributes {
                let meddled = known(&mut Choices::new(vec![1; 8]), &attribute.ty.ty());
                planned.set_attribute(&attribute.name, meddled);
            }
        }
    }

    async fn create(&self, change: Create<Any>, _: Context<()>) -> Outcome<Any> {
        self.outcome(&change.planned, change.private)
    }

    async fn read(&self, current: State<Any>, _: Context<()>) -> Outcome<Any> {
        current.unchanged(Diagnostics::new())
    }

    async fn update(&self, change: Update<Any>, _: Context<()>) -> Outcome<Any> {
        self.outcome(&change.planned, change.private)
    }

    async fn delete(&self, _: State<Any>, _: Context<()>) -> Outcome<Any> {
        Outcome::absent()
    }

    async fn import(&self, _: &str, _: Context<()>) -> Outcome<Any> {
        Outcome::absent()
    }
}
