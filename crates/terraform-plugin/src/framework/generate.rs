//! Generates a configuration from a state, for imports without one.

use super::{
    schema::{Attribute, AttributeType, Requirement, Schema},
    value::Value,
};

/// A configuration whose plan is empty for this state, as far as the schema allows. It omits attributes that only the
/// provider sets, write-only and deprecated ones, and those that have their default.
pub(super) fn configuration(schema: &Schema, state: &Value) -> Value {
    let attributes = schema.attributes.iter();
    let mut config = Value::object(
        attributes.map(|attribute| (attribute.name.clone(), configured(attribute, state).unwrap_or_default())),
    );
    for block in &schema.blocks {
        let inner = object(&block.attributes, state.attribute(&block.name));
        config.set_attribute(&block.name, inner.unwrap_or_default());
    }
    config
}

/// The configured value of an attribute; `None` if the attribute is required and its value is not in the state.
fn configured(attribute: &Attribute, state: &Value) -> Option<Value> {
    let value = state.attribute(&attribute.name);
    let is_default = attribute.default.as_ref() == Some(value);
    match &attribute.ty {
        _ if attribute.requirement == Requirement::Computed || is_default => Some(Value::Null),
        _ if attribute.write_only || attribute.deprecated.is_some() => {
            (attribute.requirement != Requirement::Required).then_some(Value::Null)
        }
        _ if value.is_null() => (attribute.requirement != Requirement::Required).then_some(Value::Null),
        AttributeType::Plain(_) => Some(value.clone()),
        // A value that cannot be configured is omitted: the provider keeps deciding it.
        AttributeType::Nested(_, children) if is_left_open(attribute) => {
            Some(nested(children, value).filter(|_| !lacks_a_default(children, value)).unwrap_or_default())
        }
        AttributeType::Nested(_, children) => nested(children, value),
    }
}

fn object(attributes: &[Attribute], state: &Value) -> Option<Value> {
    let Value::Object(_) = state else { return Some(Value::Null) };
    let said = attributes.iter().map(|attribute| Some((attribute.name.clone(), configured(attribute, state)?)));
    said.collect::<Option<_>>().map(Value::Object)
}

fn nested(children: &[Attribute], value: &Value) -> Option<Value> {
    let objects = |elements: &[Value]| elements.iter().map(|element| object(children, element)).collect::<Option<_>>();
    Some(match value {
        Value::Object(_) => object(children, value)?,
        Value::List(elements) => Value::List(objects(elements)?),
        other => other.clone(),
    })
}

/// Whether an attribute with a default is null, which a configuration cannot express.
fn lacks_a_default(children: &[Attribute], value: &Value) -> bool {
    let elements: Vec<&Value> = match value {
        Value::Object(_) => vec![value],
        Value::List(elements) => elements.iter().collect(),
        _ => Vec::new(),
    };
    elements.iter().any(|element| {
        children.iter().any(|child| {
            let value = element.attribute(&child.name);
            let inner = |children| !is_left_open(child) && lacks_a_default(children, value);
            child.default.is_some() && value.is_null()
                || matches!(&child.ty, AttributeType::Nested(_, children) if inner(children))
        })
    })
}

/// Whether the provider decides the value when the configuration omits it.
fn is_left_open(attribute: &Attribute) -> bool {
    attribute.is_computed() && attribute.default.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framework::{
        schema::{Block, Nesting},
        value::Type,
    };

    #[test]
    fn what_the_provider_decided_against_a_default_is_left_to_it() {
        let disk = vec![
            Attribute::optional("path", Type::String, "Path."),
            Attribute::with_default("kind", Type::String, "ssd", "Kind."),
        ];
        let disks = Attribute::optional_computed("disks", AttributeType::Nested(Nesting::List, disk), "Disks.");
        let schema = Schema::new("A machine.", vec![disks]);
        let of = |kind: Value| {
            let disk = Value::object([("path", "/a".into()), ("kind", kind)]);
            configuration(&schema, &Value::object([("disks", Value::List(vec![disk]))])).attribute("disks").clone()
        };
        assert!(of(Value::Null).is_null());
        let said = Value::object([("path", "/a".into()), ("kind", Value::Null)]);
        assert_eq!(of("ssd".into()), Value::List(vec![said]));
    }

    #[test]
    fn what_need_not_be_said_is_left_out() {
        let disk = vec![
            Attribute::required("size", Type::Number, "Size."),
            Attribute::computed("path", Type::String, "Path."),
        ];
        let text = |name| Attribute::optional(name, Type::String, "Any.");
        let mut schema = Schema::new(
            "A machine.",
            vec![
                Attribute::computed("id", Type::String, "Id."),
                Attribute::with_default("renew", Type::Bool, false, "Renew."),
                Attribute::with_default("wait", Type::Bool, true, "Wait."),
                text("name"),
                text("password").write_only(),
                Attribute::optional_computed("region", Type::String, "Region."),
                Attribute::optional("disks", AttributeType::Nested(Nesting::List, disk), "Disks."),
            ],
        );
        schema.blocks.push(Block {
            name: "timeouts".into(),
            description: "Timeouts.".to_owned(),
            attributes: vec![text("create")],
        });
        let disk = |path: Value| Value::object([("size", 5.into()), ("path", path)]);
        let machine = |id: Value, renew: Value, path: Value, timeouts: Value| {
            Value::object([
                ("id", id),
                ("renew", renew),
                ("wait", false.into()),
                ("name", "a".into()),
                ("password", Value::Null),
                ("region", "here".into()),
                ("disks", Value::List(vec![disk(path)])),
                ("timeouts", timeouts),
            ])
        };
        for timeouts in [Value::Null, Value::object([("create", "5m".into())])] {
            let state = machine("i".into(), false.into(), "/a".into(), timeouts.clone());
            let expected = machine(Value::Null, Value::Null, Value::Null, timeouts);
            assert_eq!(configuration(&schema, &state), expected);
        }
    }
}
