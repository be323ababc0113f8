//! What an apply answers, held to its plan.

use super::{correlate::matching, value::Value};

/// The state after an apply: what the plan knew, word for word, and for the rest what came about; a part that nobody knows
/// becomes null. The core refuses anything else (plugin protocol, ApplyResourceChange); where the service did otherwise, the next
/// refresh shows it as drift.
pub(super) fn settled(planned: &Value, actual: &Value) -> Value {
    match (planned, actual) {
        (Value::Unknown, actual) => actual.clone().unknown_as_null(),
        (Value::Object(attributes), actual) => Value::object(
            attributes.iter().map(|(name, planned)| (name.clone(), settled(planned, actual.attribute(name)))),
        ),
        (Value::List(elements), actual) => Value::List(settled_elements(elements, actual)),
        (Value::Tuple(elements), actual) => Value::Tuple(settled_elements(elements, actual)),
        (Value::Map(elements), actual) => {
            let actual = if let Value::Map(actual) = actual { Some(actual) } else { None };
            Value::Map(
                elements
                    .iter()
                    .map(|(key, planned)| {
                        let actual = actual.and_then(|actual| actual.get(key)).unwrap_or(&Value::Null);
                        (key.clone(), settled(planned, actual))
                    })
                    .collect(),
            )
        }
        (Value::Set(elements), actual) if !planned.is_wholly_known() => Value::set(settled_set(elements, actual)),
        (planned, _) => planned.clone().unknown_as_null(),
    }
}

fn settled_elements(planned: &[Value], actual: &Value) -> Vec<Value> {
    let actual: &[Value] = match actual {
        Value::List(actual) | Value::Tuple(actual) => actual,
        _ => &[],
    };
    planned
        .iter()
        .enumerate()
        .map(|(index, planned)| settled(planned, actual.get(index).unwrap_or(&Value::Null)))
        .collect()
}

/// Each planned element settled by an actual one of its own, or else by any that fits: elements whose unknown parts turn out the
/// same become one.
fn settled_set(planned: &[Value], actual: &Value) -> Vec<Value> {
    let actual: &[Value] = if let Value::Set(actual) = actual { actual } else { &[] };
    planned
        .iter()
        .zip(matching(planned, actual, &is_settled_by))
        .map(|(planned, own)| {
            let actual = own
                .and_then(|index| actual.get(index))
                .or_else(|| actual.iter().find(|actual| is_settled_by(planned, actual)));
            settled(planned, actual.unwrap_or(&Value::Null))
        })
        .collect()
}

/// Whether everything that the plan knew is there.
fn is_settled_by(planned: &Value, actual: &Value) -> bool {
    settled(planned, actual) == actual.clone().unknown_as_null()
}
