//! Types as JSON.

use serde_json::{Map, Value as Json, json};

use super::DEEPEST;
use crate::framework::Type;

/// Bytes that are not a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a type constraint")]
pub struct InvalidType;

/// Writes a type as JSON (plugin protocol, type constraints).
pub fn encode_type(ty: &Type) -> Vec<u8> {
    to_json(ty).to_string().into_bytes()
}

/// Reads a type from JSON. The names of optional attributes that some objects have are skipped: only conversions need
/// them.
pub fn decode_type(bytes: &[u8]) -> Result<Type, InvalidType> {
    let json = serde_json::from_slice(bytes).map_err(|_| InvalidType)?;
    from_json(&json, 0)
}

fn to_json(ty: &Type) -> Json {
    match ty {
        Type::Bool => json!("bool"),
        Type::Dynamic => json!("dynamic"),
        Type::Number => json!("number"),
        Type::String => json!("string"),
        Type::List(element) => json!(["list", to_json(element)]),
        Type::Map(element) => json!(["map", to_json(element)]),
        Type::Set(element) => json!(["set", to_json(element)]),
        Type::Tuple(elements) => {
            json!(["tuple", elements.iter().map(to_json).collect::<Vec<_>>()])
        }
        Type::Object(attributes) => {
            let attributes: Map<String, Json> =
                attributes.iter().map(|(name, ty)| (name.to_string(), to_json(ty))).collect();
            json!(["object", attributes])
        }
    }
}

pub(super) fn from_json(json: &Json, depth: usize) -> Result<Type, InvalidType> {
    if depth == DEEPEST {
        return Err(InvalidType);
    }
    let inner = |json| from_json(json, depth + 1);
    match json {
        Json::String(name) => match name.as_str() {
            "bool" => Ok(Type::Bool),
            "dynamic" => Ok(Type::Dynamic),
            "number" => Ok(Type::Number),
            "string" => Ok(Type::String),
            _ => Err(InvalidType),
        },
        Json::Array(parts) => match parts.as_slice() {
            [Json::String(kind), element] => match (kind.as_str(), element) {
                ("list", element) => inner(element).map(Type::list),
                ("map", element) => inner(element).map(Type::map),
                ("set", element) => inner(element).map(Type::set),
                ("tuple", Json::Array(elements)) => {
                    elements.iter().map(inner).collect::<Result<_, _>>().map(Type::Tuple)
                }
                ("object", Json::Object(attributes)) => object(attributes, depth),
                _ => Err(InvalidType),
            },
            [Json::String(kind), Json::Object(attributes), Json::Array(optional)]
                if kind == "object"
                    && optional.iter().all(|name| name.as_str().is_some_and(|name| attributes.contains_key(name))) =>
            {
                object(attributes, depth)
            }
            _ => Err(InvalidType),
        },
        _ => Err(InvalidType),
    }
}

fn object(attributes: &Map<String, Json>, depth: usize) -> Result<Type, InvalidType> {
    attributes
        .iter()
        .map(|(name, ty)| Ok((name.clone().into(), from_json(ty, depth + 1)?)))
        .collect::<Result<_, _>>()
        .map(Type::Object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_json_without_spaces() {
        let ty = Type::object([("b", Type::Tuple(vec![Type::Number])), ("a", Type::set(Type::Dynamic))]);
        let bytes = br#"["object",{"a":["set","dynamic"],"b":["tuple",["number"]]}]"#;
        assert_eq!(encode_type(&ty), bytes);
        assert_eq!(decode_type(bytes), Ok(ty));
    }

    #[test]
    fn an_object_may_name_its_optional_attributes() {
        let ty = Type::object([("a", Type::String), ("b", Type::Bool)]);
        assert_eq!(decode_type(br#"["object",{"a":"string","b":"bool"},["a"]]"#), Ok(ty));
    }

    #[test]
    fn what_is_no_type_is_refused() {
        let deep = format!("{}\"string\"{}", "[\"list\",".repeat(200), "]".repeat(200));
        for text in [
            "",
            "string",
            "\"text\"",
            "1",
            "[]",
            "[\"list\"]",
            "[\"tuple\",\"string\"]",
            "[\"object\",{\"a\":\"string\"},[\"b\"]]",
            deep.as_str(),
        ] {
            assert_eq!(decode_type(text.as_bytes()), Err(InvalidType), "{text}");
        }
    }
}
