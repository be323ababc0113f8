//! Comparison of an apply's result with its plan.

use super::{
    diagnostics::Path,
    schema::{Attribute, AttributeType, Schema},
    value::Value,
};

/// The state after an apply: the planned value of everything that the plan knew, and the actual value of the rest; a
/// part that is still unknown becomes null. The core refuses anything else (plugin protocol, ApplyResourceChange).
///
/// A part that differs from the plan is logged. The next refresh shows it as drift.
pub(super) fn applied_state(planned: &Value, actual: &Value) -> Value {
    let mut different = Vec::new();
    differences(planned, actual, &Path::root(), &mut different);
    for path in different {
        tracing::warn!(attribute = %path, "{OTHERWISE}");
    }
    merged(planned, actual)
}

/// The log message for an attribute whose value is not the planned one. It omits the values, which may be secrets.
pub const OTHERWISE: &str = "the result of an apply is not the planned one";

fn differences(planned: &Value, actual: &Value, path: &Path, found: &mut Vec<Path>) {
    match (planned, actual) {
        (Value::Unknown, _) => {}
        (Value::Object(attributes), Value::Object(_)) => {
            for (name, planned) in attributes {
                differences(planned, actual.attribute(name), &path.attribute(name), found);
            }
        }
        (Value::List(planned), Value::List(actual)) if planned.len() == actual.len() => {
            for (index, (planned, actual)) in planned.iter().zip(actual).enumerate() {
                differences(planned, actual, &path.index(index), found);
            }
        }
        (planned, actual) if planned == actual => {}
        (Value::Map(planned), Value::Map(actual)) if planned.keys().eq(actual.keys()) => {
            for ((key, planned), actual) in planned.iter().zip(actual.values()) {
                differences(planned, actual, &path.key(key), found);
            }
        }
        _ => found.push(path.clone()),
    }
}

fn merged(planned: &Value, actual: &Value) -> Value {
    match planned {
        Value::Unknown => actual.clone().unknown_as_null(),
        Value::Object(attributes) => Value::object(
            attributes.iter().map(|(name, planned)| (name.clone(), merged(planned, actual.attribute(name)))),
        ),
        Value::List(elements) => {
            let actual: &[Value] = if let Value::List(actual) = actual { actual } else { &[] };
            let actual = actual.iter().chain(std::iter::repeat(&Value::Null));
            Value::List(elements.iter().zip(actual).map(|(planned, actual)| merged(planned, actual)).collect())
        }
        Value::Map(elements) => {
            let element = |key| if let Value::Map(actual) = actual { actual.get(key) } else { None };
            let merged = |key, planned| merged(planned, element(key).unwrap_or(&Value::Null));
            Value::Map(elements.iter().map(|(key, planned)| (key.clone(), merged(key, planned))).collect())
        }
        planned => planned.clone().unknown_as_null(),
    }
}

/// The value with the numbers of an earlier one where both are equal: a core that compares floats by all of their bits
/// sees a change in every other form.
pub(super) fn with_numbers_of(before: &Value, mut value: Value) -> Value {
    keep_numbers(before, &mut value);
    value
}

fn keep_numbers(before: &Value, value: &mut Value) {
    match (before, value) {
        (Value::Number(before), Value::Number(number)) if before == number => number.clone_from(before),
        (Value::List(before), Value::List(elements)) => {
            before.iter().zip(elements).for_each(|(before, element)| keep_numbers(before, element));
        }
        (Value::Object(before), Value::Object(parts)) | (Value::Map(before), Value::Map(parts)) => {
            for (name, part) in parts {
                keep_numbers(before.get(name).unwrap_or(&Value::Null), part);
            }
        }
        _ => {}
    }
}

/// The value with the schema's defaults in place of null.
pub(super) fn fill_defaults(schema: &Schema, value: Value) -> Value {
    changed(schema, value, |attribute| attribute.default.is_some(), &|attribute, value| {
        if let (Some(default), Value::Null) = (&attribute.default, &*value) {
            *value = default.clone();
        }
    })
}

/// The value with null for every write-only attribute: plan, state and answers never have one (plugin protocol, meaning
/// of the plan inputs).
pub(super) fn without_write_only(schema: &Schema, value: Value) -> Value {
    changed(schema, value, |attribute| attribute.write_only, &|_, value| *value = Value::Null)
}

/// The value with null for sensitive and write-only attributes, because the core prints lists in clear.
pub(super) fn without_secrets(schema: &Schema, value: Value) -> Value {
    changed(schema, value, |attribute| attribute.sensitive || attribute.write_only, &|_, value| *value = Value::Null)
}

type Change<'a> = &'a dyn Fn(&Attribute, &mut Value);

/// The value with a change of the attributes that it concerns, the innermost first.
fn changed(schema: &Schema, mut value: Value, concerns: fn(&Attribute) -> bool, change: Change<'_>) -> Value {
    walk(&schema.attributes, &mut value, concerns, change);
    if let Value::Object(attributes) = &mut value {
        for block in &schema.blocks {
            walk(&block.attributes, attributes.entry(block.name.clone()).or_default(), concerns, change);
        }
    }
    value
}

fn walk(attributes: &[Attribute], value: &mut Value, concerns: fn(&Attribute) -> bool, change: Change<'_>) {
    let Value::Object(object) = value else { return };
    for attribute in attributes {
        let children = match &attribute.ty {
            AttributeType::Nested(_, children) => children.as_slice(),
            AttributeType::Plain(_) if concerns(attribute) => &[],
            AttributeType::Plain(_) => continue,
        };
        let inner = object.entry(attribute.name.clone()).or_default();
        match inner {
            Value::List(elements) => elements.iter_mut().for_each(|element| walk(children, element, concerns, change)),
            _ => walk(children, inner, concerns, change),
        }
        if concerns(attribute) {
            change(attribute, inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(region: &str, disks: Vec<Value>) -> Value {
        let disks = disks.into_iter().map(|size| Value::object([("size", size)])).collect();
        Value::object([("region", region.into()), ("disks", Value::List(disks))])
    }

    #[test]
    fn a_plan_holds_and_every_difference_has_its_path() {
        let planned = machine("here", vec![20.into(), Value::Unknown]);
        let actual = machine("there", vec![30.into(), 40.into()]);
        assert_eq!(merged(&planned, &actual), machine("here", vec![20.into(), 40.into()]));
        let mut found = Vec::new();
        differences(&planned, &actual, &Path::root(), &mut found);
        let found: Vec<String> = found.iter().map(Path::to_string).collect();
        assert_eq!(found, ["disks[0].size", "region"]);
    }

    #[test]
    fn a_part_that_is_missing_is_one_difference() {
        let planned = machine("here", vec![Value::Unknown]);
        let mut found = Vec::new();
        differences(&planned, &machine("here", vec![]), &Path::root(), &mut found);
        assert_eq!(found, [Path::to("disks")]);
        assert_eq!(merged(&planned, &machine("here", vec![])), machine("here", vec![Value::Null]));
    }
}
