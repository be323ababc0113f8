//! The result of an apply, compared with its plan.

use super::{path::Path, value::Value};

/// The state after an apply: the planned value of everything that the plan knew, and the actual value of the rest; a
/// part that is still unknown becomes null. The core refuses anything else (plugin protocol, ApplyResourceChange).
///
/// A part that came out otherwise than planned is logged. The next refresh shows it as drift.
pub(super) fn settled(planned: &Value, actual: &Value) -> Value {
    let mut different = Vec::new();
    differences(planned, actual, &Path::root(), &mut different);
    for path in different {
        tracing::warn!(attribute = %path, "{OTHERWISE}");
    }
    merged(planned, actual)
}

/// The message in the log for an attribute whose value is not the planned one. It comes without the values, which may
/// be secrets.
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
