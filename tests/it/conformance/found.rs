//! What random schemas found once, each as a fixed case.

use damodel::framework::{
    Schema, Type, Value,
    schema::{Attribute, AttributeType, Nesting, Replacement},
};

use super::{
    anything::{AnyResource, core_of, default_timeouts},
    core::{Answer, Core},
    proposed::proposed_new,
    random::Choices,
};

fn computed(name: &str) -> Attribute {
    Attribute::computed(name, Type::String, "Any.")
}

fn optional(name: &str) -> Attribute {
    Attribute::optional(name, Type::String, "Any.")
}

fn optional_computed(name: &str) -> Attribute {
    Attribute::optional_computed(name, Type::String, "Any.")
}

fn nested(nesting: Nesting, attributes: Vec<Attribute>) -> AttributeType {
    AttributeType::Nested(nesting, attributes)
}

fn object<const N: usize>(attributes: [(&str, Value); N]) -> Value {
    Value::object(attributes)
}

/// The core and the whole schema of a resource with one attribute; its applies go as the tape says.
async fn core(attribute: Attribute, meddles: bool, tape: &[u8]) -> (Core, Schema) {
    let schema = Schema::new("One.", vec![attribute]);
    let resource = AnyResource::new(schema.clone(), Choices::new(tape.to_vec()), meddles);
    let schema = schema.with_block(default_timeouts().block());
    let mut core = core_of(resource);
    let said = core.configure(&Type::object::<&str>([]), &object([])).await;
    assert!(said.is_empty());
    (core, schema)
}

/// A whole value with this one attribute.
fn whole(value: Value) -> Value {
    object([("a0", value), ("timeouts", Value::Null)])
}

async fn plan(attribute: Attribute, meddles: bool, config: Value, prior: Value) -> Answer {
    let (mut core, schema) = core(attribute, meddles, &[]).await;
    let proposed = proposed_new(&schema, &prior, &config);
    core.plan(&config, &prior, &proposed, b"").await
}

#[tokio::test]
async fn an_element_of_a_set_may_hold_an_object_with_computed_values() {
    let inner = Attribute::optional("a0", nested(Nesting::Single, vec![computed("a0")]), "Any.");
    let set = Attribute::required("a0", nested(Nesting::Set, vec![inner]), "Any.");
    let of = |value: Value| whole(Value::set(vec![object([("a0", object([("a0", value)]))])]));
    let plan = plan(set, false, of(Value::Null), Value::Null).await;
    assert!(plan.value == of(Value::Unknown), "{:?}", plan.value);
}

#[tokio::test]
async fn two_elements_of_a_set_never_come_from_the_same_one() {
    let set = nested(Nesting::Set, vec![optional_computed("a0")]);
    let of = |values: Vec<Value>| {
        let objects = values.into_iter().map(|value| object([("a0", value)]));
        whole(Value::set(objects.collect()))
    };
    let plan =
        plan(Attribute::required("a0", set, "Any."), false, of(vec![Value::Null, "x".into()]), of(vec!["x".into()]))
            .await;
    assert!(plan.value == of(vec![Value::Unknown, "x".into()]), "{:?}", plan.value);
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

#[tokio::test]
async fn the_elements_of_a_resulting_set_are_those_of_the_plan() {
    let set = nested(Nesting::Set, vec![optional("a0"), computed("a1")]);
    let attribute = Attribute::required("a0", set, "Any.");
    let of = |computed: Value| {
        let element = object([("a0", "x".into()), ("a1", computed)]);
        whole(Value::set(vec![element]))
    };
    // No failure, a wrong result, the whole as planned, the set another, and empty.
    let (mut core, _) = core(attribute, false, &[0, 2, 0, 3, 0]).await;
    let config = of(Value::Null);
    let applied = core.apply(&config, &Value::Null, &of(Value::Unknown), b"").await;
    assert!(!applied.has_errors());
    assert!(applied.value == of(Value::Null), "{:?}", applied.value);
}

#[tokio::test]
async fn a_refinement_waits_until_every_element_of_a_set_is_known() {
    let set = nested(Nesting::Set, vec![optional_computed("a0"), optional_computed("a1")]);
    let of = |elements: [[Value; 2]; 2]| {
        let objects = elements.map(|[first, second]| object([("a0", first), ("a1", second)]));
        whole(Value::set(objects.into()))
    };
    // What the resource's own plan makes of the set may be of either, as the final plan will know.
    let config = of([[Value::Null, Value::Null], [Value::Unknown, "".into()]]);
    let plan = plan(Attribute::required("a0", set, "Any."), true, config, Value::Null).await;
    assert!(plan.value == of([[Value::Unknown, Value::Unknown], [Value::Unknown, "".into()]]), "{:?}", plan.value);
}

#[tokio::test]
async fn a_refinement_cannot_merge_two_elements_of_a_set() {
    let inner = vec![Attribute::computed("a0", Type::Number, "Any."), Attribute::required("a1", Type::Bool, "Any.")];
    let inner = Attribute::optional_computed("a0", nested(Nesting::Single, inner), "Any.");
    let attribute = Attribute::required("a0", nested(Nesting::Set, vec![inner]), "Any.");
    let of = |value: Value| object([("a0", value)]);
    let filled = |number: Value| of(object([("a0", number), ("a1", true.into())]));
    let config = Value::set(vec![of(Value::Null), filled(Value::Null)]);
    let prior = whole(Value::set(vec![filled(1.into()), filled(5.into())]));
    // The resource's own plan makes a set of the one element with 1.
    let plan = plan(attribute, true, whole(config), prior.clone()).await;
    assert!(plan.value == prior, "{:?}", plan.value);
}
