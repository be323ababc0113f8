//! A provider of one resource with any schema, whose applies follow a tape of choices.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use terraform_plugin::{
    framework::{
        ConfigureContext, Create, CreatePlan, Diagnostic, Diagnostics, EphemeralResource, IdentityAttribute,
        IdentitySchema, Opened, Outcome, PlanContext, Private, Provider, Registry, Resource, Result, Schema, State,
        StepContext, Type, Update, UpdatePlan, Value,
        schema::{Attribute, AttributeType},
        timeouts::DefaultTimeouts,
    },
    testing::Core,
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
    /// The type of a value, including the `timeouts` block.
    pub(crate) ty: Type,
    pub(crate) choices: Arc<Mutex<Choices>>,
    /// Whether its own plan sets every attribute.
    pub(crate) meddles: bool,
}

impl AnyResource {
    pub(crate) fn new(schema: Schema, choices: Choices, meddles: bool) -> Self {
        let ty = with_timeouts(schema.clone()).ty();
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

/// The schema of a resource, as the framework serves it.
pub(crate) fn with_timeouts(schema: Schema) -> Schema {
    Schema { blocks: vec![default_timeouts().block()], ..schema }
}

/// The `Core` of a resource, with a configured provider.
pub(crate) async fn core_of(resource: AnyResource) -> Core {
    let mut core = Core::new(AnyProvider(resource), TYPE_NAME);
    assert!(core.configure(&Value::object::<&str>([])).await.is_empty());
    core
}

fn default_timeouts() -> DefaultTimeouts {
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
        Registry::new().resource(self.0.clone()).ephemeral_resource(AnyEphemeral(self.0.clone()))
    }

    async fn configure(&self, _: Any, _: ConfigureContext<'_>) -> Result<(Arc<()>, Diagnostics), Diagnostics> {
        Ok((Arc::new(()), Diagnostics::new()))
    }
}

/// The same as an ephemeral resource.
#[derive(Clone, Debug)]
struct AnyEphemeral(AnyResource);

/// The schema of an ephemeral resource, which must not have write-only attributes.
pub(crate) fn without_write_only(mut schema: Schema) -> Schema {
    fn clear(attributes: &mut [Attribute]) {
        for attribute in attributes {
            attribute.write_only = false;
            if let AttributeType::Nested(_, children) = &mut attribute.ty {
                clear(children);
            }
        }
    }
    clear(&mut schema.attributes);
    schema
}

impl EphemeralResource for AnyEphemeral {
    type Client = ();
    type Model = Any;
    type Held = ();

    fn type_name(&self) -> &'static str {
        TYPE_NAME
    }

    fn schema(&self) -> Schema {
        without_write_only(self.0.schema.clone())
    }

    async fn open(&self, Any(config): Any, _: StepContext<()>) -> Result<Opened<Any, ()>> {
        let mut choices = self.0.choices.lock().unwrap();
        let wrong = choices.once_in(3);
        // A null attribute may stay open: a wrong provider would set it.
        let mut asked = config;
        for attribute in self.0.schema.attributes.iter().filter(|attribute| attribute.is_computed() || wrong) {
            if asked.attribute(&attribute.name).is_null() {
                asked.set_attribute(&attribute.name, Value::Unknown);
            }
        }
        Ok(Opened::ready(Any(applied(&mut choices, &EphemeralResource::schema(self).ty(), &asked, wrong))))
    }
}

impl AnyResource {
    /// Changes every attribute of a plan, whether it may or not.
    fn meddle(&self, Any(planned): &mut Any) {
        for attribute in self.schema.attributes.iter().filter(|_| self.meddles) {
            let meddled = known(&mut Choices::new(vec![1; 8]), &attribute.ty.ty());
            planned.set_attribute(&attribute.name, meddled);
        }
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

    fn timeouts(&self) -> Option<DefaultTimeouts> {
        Some(default_timeouts())
    }

    /// The first plain attribute that the provider computes, if there is one.
    fn identity(&self) -> Option<IdentitySchema> {
        let is_plain = |ty: &Type| matches!(ty, Type::String | Type::Number | Type::Bool);
        self.schema.attributes.iter().filter(|attribute| attribute.is_computed() && !attribute.sensitive).find_map(
            |attribute| match &attribute.ty {
                AttributeType::Plain(ty) if is_plain(ty) => {
                    let copy = IdentityAttribute::required(&attribute.name, &attribute.name, ty.clone(), "Any.");
                    Some(IdentitySchema::new(vec![copy]))
                }
                _ => None,
            },
        )
    }

    async fn plan_create(&self, plan: &mut CreatePlan<Any>, _: PlanContext<'_, ()>) {
        self.meddle(&mut plan.planned);
    }

    async fn plan_update(&self, plan: &mut UpdatePlan<Any>, _: PlanContext<'_, ()>) {
        self.meddle(&mut plan.planned);
    }

    async fn create(&self, change: Create<Any>, _: StepContext<()>) -> Result<Outcome<Any>> {
        Ok(self.outcome(&change.planned, change.private))
    }

    async fn read(&self, current: State<Any>, _: StepContext<()>) -> Result<Outcome<Any>> {
        Ok(current.unchanged(Diagnostics::new()))
    }

    async fn update(&self, change: Update<Any>, _: StepContext<()>) -> Result<Outcome<Any>> {
        Ok(self.outcome(&change.planned, change.private))
    }

    async fn delete(&self, _: State<Any>, _: StepContext<()>) -> Result<Outcome<Any>> {
        Ok(Outcome::absent())
    }

    async fn import(&self, _: &str, _: StepContext<()>) -> Result<Outcome<Any>> {
        Ok(Outcome::absent())
    }
}
