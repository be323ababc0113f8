//! Terraform's rules for a later value, given an earlier plan of it (plugin protocol, ApplyResourceChange): known
//! values are the same, and unknown values may become anything.

use crate::framework::{Path, Value};

/// All violations; empty for compatible values.
pub fn compatibility_faults(planned: &Value, actual: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    compare(planned, actual, &Path::root(), &mut faults);
    faults
}

fn compare(planned: &Value, actual: &Value, path: &Path, faults: &mut Vec<String>) {
    let mut fault = |text: &str| faults.push(format!("{path}: {text}"));
    match (planned, actual) {
        (Value::Unknown, _) => {}
        (_, Value::Unknown) => fault("was known, but now unknown"),
        (Value::Null, Value::Null) => {}
        (Value::Null, _) => fault("was null, but now is not"),
        (_, Value::Null) => fault("was not null, but now is"),
        (Value::Object(planned), Value::Object(actual)) => {
            if !planned.keys().eq(actual.keys()) {
                fault("other attributes");
            }
            for (name, planned) in planned {
                let actual = actual.get(name).unwrap_or(&Value::Null);
                compare(planned, actual, &path.attribute(name), faults);
            }
        }
        (Value::Map(planned), Value::Map(actual)) => {
            if !planned.keys().eq(actual.keys()) {
                fault("an element has vanished or appeared");
            }
            for (key, planned) in planned {
                let actual = actual.get(key).unwrap_or(&Value::Null);
                compare(planned, actual, &path.key(key), faults);
            }
        }
        (Value::List(planned), Value::List(actual)) => {
            if planned.len() != actual.len() {
                fault("the length changed");
            }
            for (index, (planned, actual)) in planned.iter().zip(actual).enumerate() {
                compare(planned, actual, &path.index(index), faults);
            }
        }
        (planned, actual) if planned == actual => {}
        _ => fault("was one value, but now is another"),
    }
}
