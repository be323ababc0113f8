//! Results and documented errors in the envelope (service API, Response envelope), in the chosen [`Form`].

use serde_json::{Map, Number, Value, json};

use super::{
    form::{Booleans, Empty, ErrorShape, ErrorStatus, Form, Integers, Metadata},
    refusal::ServiceRefusal,
};

/// Times that are 0 until they come; 0 in other fields is a quantity.
const TIMES: [&str; 4] = ["release_time", "rent_deadline", "start_time", "stop_time"];

/// The identifiers of one answer.
#[derive(Debug)]
pub(super) struct Identifiers {
    pub(super) request: String,
    pub(super) trace: String,
}

/// The envelope of a success.
pub(super) fn success(form: &Form, ids: &Identifiers, result: Value) -> Value {
    let is_empty_list = result.as_array().is_some_and(Vec::is_empty);
    let result = if is_empty_list && form.empty == Empty::Null { Value::Null } else { reform(form, result) };
    let mut envelope = Map::from_iter([("result".to_owned(), result)]);
    if form.metadata != Metadata::Missing {
        envelope.insert("response_metadata".to_owned(), metadata(form, ids, Value::Null));
    }
    finish(form, envelope)
}

/// The envelope of a refusal, with its HTTP status.
pub(super) fn refusal(form: &Form, ids: &Identifiers, refusal: &ServiceRefusal) -> (u16, Value) {
    let status = match form.error_status {
        ErrorStatus::Always200 => 200,
        ErrorStatus::Matched => refusal.code.fitting_status(),
    };
    let error = error(form, refusal);
    let metadata =
        if form.metadata == Metadata::Missing { json!({ "error": error }) } else { metadata(form, ids, error) };
    let envelope = Map::from_iter([("result".to_owned(), Value::Null), ("response_metadata".to_owned(), metadata)]);
    (status, finish(form, envelope))
}

fn metadata(form: &Form, ids: &Identifiers, error: Value) -> Value {
    let (request, trace) = match form.metadata {
        Metadata::Full | Metadata::Missing => (ids.request.as_str(), ids.trace.as_str()),
        Metadata::WithoutIdentifiers => ("", ""),
    };
    json!({ "request_id": request, "trace_id": trace, "action": "", "version": "", "service": "", "error": error })
}

fn error(form: &Form, refusal: &ServiceRefusal) -> Value {
    let (number, name, message) = (refusal.code.number(), refusal.code.name(), &refusal.message);
    let full = json!({ "code_n": number, "code": name, "message": message });
    match form.error_shape {
        ErrorShape::Array => json!([full]),
        ErrorShape::Capitalised => json!({ "Code": name, "Message": message }),
        ErrorShape::Full => full,
        ErrorShape::Nested => json!({ "error": full }),
        ErrorShape::NumericCode => json!({ "code": number, "message": message }),
        ErrorShape::StringNumber => {
            json!({ "code_n": number.to_string(), "code": name, "message": message })
        }
        ErrorShape::Text => json!(format!("{number} {name}: {message}")),
    }
}

fn finish(form: &Form, mut envelope: Map<String, Value>) -> Value {
    if form.extra_fields {
        envelope.insert("sandbox_extra".to_owned(), json!({ "nested": [1, null] }));
    }
    Value::Object(envelope)
}

/// A result in the chosen form, recursively.
fn reform(form: &Form, value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(|item| reform(form, item)).collect(),
        Value::Object(fields) => {
            let mut reformed: Map<String, Value> = fields
                .into_iter()
                .filter_map(|(name, value)| Some((name.clone(), field(form, &name, value)?)))
                .collect();
            if form.extra_fields {
                reformed.insert("sandbox_extra".to_owned(), json!("not in the document"));
            }
            Value::Object(reformed)
        }
        Value::Number(number) if number.is_i64() => integer(form, &number),
        Value::Bool(flag) => match form.booleans {
            Booleans::AsIs => json!(flag),
            Booleans::Numbers => json!(i64::from(flag)),
            Booleans::Strings => json!(flag.to_string()),
        },
        Value::Null | Value::Number(_) | Value::String(_) => value,
    }
}

fn field(form: &Form, name: &str, value: Value) -> Option<Value> {
    let is_empty = match &value {
        Value::Array(items) => items.is_empty() && (name != "data" || form.empty == Empty::Null),
        Value::Number(number) => number.as_i64() == Some(0) && TIMES.contains(&name),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Null | Value::Object(_) => false,
    };
    match form.empty {
        Empty::Missing if is_empty => None,
        Empty::Null if is_empty => Some(Value::Null),
        Empty::Text if is_empty => Some(json!("")),
        Empty::AsIs | Empty::Missing | Empty::Null | Empty::Text => match (name, &value) {
            ("total", Value::Number(total)) if form.total_as_string => Some(json!(total.to_string())),
            _ => Some(reform(form, value)),
        },
    }
}

fn integer(form: &Form, number: &Number) -> Value {
    match form.integers {
        Integers::AsIs => Value::Number(number.clone()),
        Integers::Floats => Value::Number(Number::from_string_unchecked(format!("{number}.0"))),
        Integers::Strings => json!(number.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::refusal::Code;

    fn ids() -> Identifiers {
        Identifiers { request: "req-1".to_owned(), trace: "trace-1".to_owned() }
    }

    fn record() -> Value {
        json!({ "id": 7, "name": "", "cloud_disks": [], "release_time": 0, "gpu_num": 0, "auto": true, "price": 1.5 })
    }

    #[rstest]
    #[case("", json!({ "id": 7, "name": "", "cloud_disks": [], "release_time": 0, "gpu_num": 0, "auto": true,
        "price": 1.5 }))]
    #[case("empty=null", json!({ "id": 7, "name": null, "cloud_disks": null, "release_time": null, "gpu_num": 0,
        "auto": true, "price": 1.5 }))]
    #[case("empty=missing", json!({ "id": 7, "gpu_num": 0, "auto": true, "price": 1.5 }))]
    #[case("empty=text", json!({ "id": 7, "name": "", "cloud_disks": "", "release_time": "", "gpu_num": 0,
        "auto": true, "price": 1.5 }))]
    #[case("integers=strings,booleans=numbers", json!({ "id": "7", "name": "", "cloud_disks": [], "release_time": "0",
        "gpu_num": "0", "auto": 1, "price": 1.5 }))]
    #[case("booleans=strings", json!({ "id": 7, "name": "", "cloud_disks": [], "release_time": 0, "gpu_num": 0,
        "auto": "true", "price": 1.5 }))]
    fn a_record_keeps_its_information(#[case] form: &str, #[case] expected: Value) {
        let envelope = success(&form.parse().unwrap(), &ids(), record());
        assert_eq!(envelope["result"], expected);
    }

    #[test]
    fn integers_as_floats_are_written_with_a_point() {
        let text = success(&"integers=floats".parse().unwrap(), &ids(), json!({ "id": 7 })).to_string();
        assert!(text.contains("\"id\":7.0"), "{text}");
    }

    #[rstest]
    #[case("error_shape=array", json!([{ "code_n": 160_003, "code": "InstanceNotExistOrNoPrivilege",
        "message": "gone" }]))]
    #[case("error_shape=capitalised", json!({ "Code": "InstanceNotExistOrNoPrivilege", "Message": "gone" }))]
    #[case("error_shape=full", json!({ "code_n": 160_003, "code": "InstanceNotExistOrNoPrivilege",
        "message": "gone" }))]
    #[case("error_shape=nested", json!({ "error": { "code_n": 160_003, "code": "InstanceNotExistOrNoPrivilege",
        "message": "gone" } }))]
    #[case("error_shape=numeric_code", json!({ "code": 160_003, "message": "gone" }))]
    #[case("error_shape=string_number", json!({ "code_n": "160003", "code": "InstanceNotExistOrNoPrivilege",
        "message": "gone" }))]
    #[case("error_shape=text", json!("160003 InstanceNotExistOrNoPrivilege: gone"))]
    fn an_error_takes_each_shape(#[case] form: &str, #[case] expected: Value) {
        let gone = ServiceRefusal::new(Code::InstanceNotExistOrNoPrivilege, "gone");
        let (status, envelope) = refusal(&form.parse().unwrap(), &ids(), &gone);
        assert_eq!((status, &envelope["response_metadata"]["error"]), (200, &expected));
        assert_eq!(envelope["result"], Value::Null);
    }

    #[test]
    fn missing_metadata_keeps_the_error() {
        let form = "metadata=missing,error_status=matched".parse().unwrap();
        let (status, envelope) = refusal(&form, &ids(), &ServiceRefusal::invalid("page: missing"));
        assert_eq!(status, 400);
        assert_eq!(envelope["response_metadata"]["error"]["code_n"], 100_002);
        assert_eq!(success(&form, &ids(), Value::Null), json!({ "result": null }));
    }
}
