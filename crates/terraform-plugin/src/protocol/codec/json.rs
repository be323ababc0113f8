//! Reads values from the JSON of stored states.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::{DecodeError, decode::normalized, ty};
use crate::framework::{
    PathStep, Type, Value,
    value::{Dynamic, Number, ValueKey},
};

/// The treatment of an attribute that the type does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsaid {
    /// It is omitted: a stored state may be older than the schema.
    Dropped,
    /// It is an error.
    Refused,
}

/// Reads the JSON form of a value (plugin protocol, JSON rules). Attributes that are absent are null.
///
/// # Errors
///
/// If the bytes are not JSON, or of another type.
pub fn decode_json(ty: &Type, bytes: &[u8], unsaid: Unsaid) -> Result<Value, DecodeError> {
    let json = serde_json::from_slice(bytes).map_err(|_| DecodeError::new("not JSON"))?;
    from_json(ty, &json, unsaid)
}

/// The same from parsed JSON.
pub fn from_json(ty: &Type, json: &Json, unsaid: Unsaid) -> Result<Value, DecodeError> {
    match (ty, json) {
        (_, Json::Null) => Ok(Value::Null),
        (Type::Bool, Json::Bool(truth)) => Ok(Value::Bool(*truth)),
        (Type::Bool, Json::String(text)) => match text.as_str() {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            _ => Err(DecodeError::new("not a bool")),
        },
        (Type::Number, Json::Number(number)) => self::number(number.as_str()),
        (Type::Number, Json::String(text)) => number(text),
        (Type::String, Json::String(text)) => Ok(Value::String(normalized(text))),
        (Type::String, Json::Bool(truth)) => Ok(Value::String(truth.to_string())),
        (Type::String, Json::Number(number)) => self::number(number.as_str())
            .map(|value| if let Value::Number(number) = value { Value::String(number.to_string()) } else { value }),
        (Type::List(element), Json::Array(array)) => elements(element, array, unsaid).map(Value::List),
        (Type::Set(element), Json::Array(array)) => {
            elements(element, array, unsaid).map(Value::set).map_err(DecodeError::inside_set)
        }
        (Type::Tuple(types), Json::Array(array)) if types.len() == array.len() => types
            .iter()
            .zip(array)
            .enumerate()
            .map(|(index, (ty, json))| element(ty, json, index, unsaid))
            .collect::<Result<_, _>>()
            .map(Value::Tuple),
        (Type::Map(element), Json::Object(object)) => object
            .iter()
            .map(|(key, json)| {
                let value =
                    from_json(element, json, unsaid).map_err(|error| error.inside(PathStep::Key(key.clone())))?;
                Ok((normalized(key).into(), value))
            })
            .collect::<Result<_, _>>()
            .map(Value::Map),
        (Type::Object(types), Json::Object(object)) => attributes(types, object, unsaid),
        (Type::Dynamic, Json::Object(object)) => dynamic(object, unsaid),
        (Type::Bool, _) => Err(DecodeError::new("not a bool")),
        (Type::Number, _) => Err(DecodeError::new("not a number")),
        (Type::String, _) => Err(DecodeError::new("not a string")),
        (Type::List(_) | Type::Set(_) | Type::Tuple(_), _) => Err(DecodeError::new("not an array of the right length")),
        (Type::Map(_) | Type::Object(_) | Type::Dynamic, _) => Err(DecodeError::new("not an object")),
    }
}

fn number(text: &str) -> Result<Value, DecodeError> {
    text.parse::<Number>().map(Value::Number).map_err(|_| DecodeError::new("not a number, or too large"))
}

fn elements(ty: &Type, array: &[Json], unsaid: Unsaid) -> Result<Vec<Value>, DecodeError> {
    array.iter().enumerate().map(|(index, json)| element(ty, json, index, unsaid)).collect()
}

fn element(ty: &Type, json: &Json, index: usize, unsaid: Unsaid) -> Result<Value, DecodeError> {
    from_json(ty, json, unsaid).map_err(|error| error.inside(PathStep::index(index)))
}

fn attributes(
    types: &BTreeMap<ValueKey, Type>,
    object: &serde_json::Map<String, Json>,
    unsaid: Unsaid,
) -> Result<Value, DecodeError> {
    if unsaid == Unsaid::Refused && object.keys().any(|name| !types.contains_key(name.as_str())) {
        return Err(DecodeError::new("an object with an attribute too many"));
    }
    types
        .iter()
        .map(|(name, ty)| {
            let json = object.get(&**name).unwrap_or(&Json::Null);
            let value =
                from_json(ty, json, unsaid).map_err(|error| error.inside(PathStep::Attribute(name.to_string())))?;
            Ok((name.clone(), value))
        })
        .collect::<Result<_, _>>()
        .map(Value::Object)
}

fn dynamic(object: &serde_json::Map<String, Json>, unsaid: Unsaid) -> Result<Value, DecodeError> {
    let ty = object
        .get("type")
        .and_then(|json| ty::from_json(json, 0).ok())
        .filter(|ty| *ty != Type::Dynamic)
        .ok_or_else(|| DecodeError::new("not a type"))?;
    let value = from_json(&ty, object.get("value").unwrap_or(&Json::Null), unsaid)?;
    Ok(Value::Dynamic(Box::new(Dynamic { ty, value })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> Type {
        Type::object([("size", Type::Number), ("name", Type::String), ("tags", Type::set(Type::String))])
    }

    #[test]
    fn a_stored_state_of_another_age_is_read() {
        let json = br#"{"size": 9007199254740993, "gone": {"x": 1}, "tags": ["b", "a", "a"]}"#;
        let value = decode_json(&disk(), json, Unsaid::Dropped).unwrap();
        let expected = Value::object([
            ("size", Value::from(9_007_199_254_740_993)),
            ("name", Value::Null),
            ("tags", Value::Set(vec!["a".into(), "b".into()])),
        ]);
        assert_eq!(value, expected);
        let error = decode_json(&disk(), json, Unsaid::Refused).unwrap_err();
        assert_eq!(error.to_string(), "an object with an attribute too many");
    }

    #[test]
    fn numbers_are_exact() {
        for text in ["0.1", "18446744073709551616", "-3.14159265358979323846"] {
            let value = decode_json(&Type::Number, text.as_bytes(), Unsaid::Refused).unwrap();
            assert_eq!(value, Value::Number(text.parse().unwrap()));
        }
        let value = decode_json(&Type::String, b"1e3", Unsaid::Refused).unwrap();
        assert_eq!(value, Value::from("1000"));
    }

    #[test]
    fn primitives_are_read_in_each_others_form() {
        let read = |ty, text: &str| decode_json(&ty, text.as_bytes(), Unsaid::Refused).unwrap();
        assert_eq!(read(Type::Number, "\"2\""), Value::from(2));
        assert_eq!(read(Type::Bool, "\"true\""), Value::from(true));
        assert_eq!(read(Type::String, "false"), Value::from("false"));
    }

    #[test]
    fn a_dynamic_value_names_its_type() {
        let json = br#"{"value": ["a"], "type": ["list", "string"]}"#;
        let Value::Dynamic(dynamic) = decode_json(&Type::Dynamic, json, Unsaid::Refused).unwrap() else {
            panic!("not dynamic")
        };
        assert_eq!(dynamic.ty, Type::list(Type::String));
        assert_eq!(dynamic.value, Value::List(vec!["a".into()]));
    }

    #[test]
    fn an_error_says_where_and_never_what() {
        let ty = Type::object([("disks", Type::list(disk()))]);
        let json = br#"{"disks": [{}, {"size": "planted"}]}"#;
        let error = decode_json(&ty, json, Unsaid::Dropped).unwrap_err();
        assert_eq!(error.to_string(), "disks[1].size: not a number, or too large");
    }
}
