//! Faults that random schemas found once, each as a fixed case.

use terraform_plugin::{
    framework::{
        Schema, Type, Value,
        schema::{Attribute, AttributeType, Nesting, Replacement},
    },
    testing::Answer,
};

use super::{
    anything::{AnyResource, core_of},
    random::Choices,
};

fn optional(name: &'static str) -> Attribute {
    Attribute::optional(name, Type::String, "Any.")
}

fn optional_computed(name: &'static str) -> Attribute {
    Attribute::optional_computed(name, Type::String, "Any.")
}

fn nested(nesting: Nesting, attributes: Vec<Attribute>) -> AttributeType {
    AttributeType::Nested(nesting, attributes)
}

fn object<const N: usize>(attributes: [(&'static str, Value); N]) -> Value {
    Value::object(attributes)
}

/// A complete value with this one attribute.
fn whole(value: Value) -> Value {
    object([("a0", value), ("timeouts", Value::Null)])
}

/// A plan of a resource with one attribute.
async fn plan(attribute: Attribute, meddles: bool, config: Value, prior: Value) -> Answer {
    let resource = AnyResource::new(Schema::new("One.", vec![attribute]), Choices::new(Vec::new()), meddles);
    core_of(resource).await.plan(&config, &prior, b"").await
}

#[tokio::test]
async fn an_object_that_the_provider_filled_in_stays() {
    let single = nested(Nesting::Single, vec![optional("a0")]);
    let attribute = Attribute::optional_computed("a0", single, "Any.");
    let state = whole(object([("a0", "x".into())]));
    let plan = plan(attribute, false, whole(Value::Null), state.clone()).await;
    assert!(plan.value == state, "{:?}", plan.value);
}

#[tokio::test]
async fn an_unknown_object_announces_the_replacement_by_its_parts() {
    let single = nested(Nesting::Single, vec![optional("a0").replaces(Replacement::Always)]);
    let attribute = Attribute::optional("a0", single, "Any.");
    let plan = plan(attribute, false, whole(Value::Unknown), whole(Value::Null)).await;
    assert_eq!(plan.replace, ["a0"]);
}

#[tokio::test]
async fn a_refinement_that_needs_a_new_thing_says_so() {
    let attribute = optional_computed("a0").replaces(Replacement::Always);
    let prior = whole("before".into());
    let plan = plan(attribute, true, whole(Value::Null), prior.clone()).await;
    assert!(plan.value != prior);
    assert_eq!(plan.replace, ["a0"]);
}
