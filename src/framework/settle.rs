//! What an apply answers, held to its plan.

use super::value::Value;

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
        (Value::Set(_), actual @ Value::Set(_)) if !planned.is_wholly_known() => actual.clone().unknown_as_null(),
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
