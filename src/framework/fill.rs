//! Small walks over a value along its schema.

use super::{
    schema::{Attribute, AttributeType, Schema},
    value::Value,
};

/// The value with the schema's defaults where it has none.
pub(super) fn fill_defaults(schema: &Schema, value: &Value) -> Value {
    walk_schema(schema, value, &|attribute, value| match (&attribute.default, value) {
        (Some(default), Value::Null) => default.clone(),
        (_, value) => value,
    })
}

/// The value with null for every write-only attribute: plan, state and answers never hold one
/// (plugin protocol, meaning of the plan inputs).
pub(super) fn without_write_only(schema: &Schema, value: &Value) -> Value {
    walk_schema(schema, value, &|attribute, value| {
        if attribute.write_only { Value::Null } else { value }
    })
}

/// The value with null for everything that is hidden: what a list shows is printed in clear.
pub(super) fn without_secrets(schema: &Schema, value: &Value) -> Value {
    walk_schema(schema, value, &|attribute, value| {
        if attribute.sensitive || attribute.write_only { Value::Null } else { value }
    })
}

fn walk_schema(schema: &Schema, value: &Value, change: &dyn Fn(&Attribute, Value) -> Value) -> Value {
    let mut walked = walk(&schema.attributes, value, change);
    for block in &schema.blocks {
        let inner = walk(&block.attributes, value.attribute(&block.name), change);
        walked.set_attribute(&block.name, inner);
    }
    walked
}

fn walk(attributes: &[Attribute], value: &Value, change: &dyn Fn(&Attribute, Value) -> Value) -> Value {
    let Value::Object(_) = value else {
        return value.clone();
    };
    Value::object(attributes.iter().map(|attribute| {
        let inner = match (&attribute.ty, value.attribute(&attribute.name)) {
            (AttributeType::Plain(_), inner) => inner.clone(),
            (AttributeType::Nested(_, children), inner) => walk_nested(children, inner, change),
        };
        (attribute.name.clone(), change(attribute, inner))
    }))
}

fn walk_nested(children: &[Attribute], value: &Value, change: &dyn Fn(&Attribute, Value) -> Value) -> Value {
    match value {
        Value::Object(_) => walk(children, value, change),
        Value::List(elements) => Value::List(elements.iter().map(|element| walk(children, element, change)).collect()),
        other => other.clone(),
    }
}
