//! The recorded answers of the real Terraform, unpacked: `tests/fixtures/core-verdicts` and the README there.

use std::{collections::BTreeMap, fs::File, io::Read as _};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use flate2::read::GzDecoder;
use serde_json::{Value as Json, value::RawValue};
use terraform_plugin::{
    framework::{
        Path, PathStep, Schema, Type, Value,
        schema::{Attribute, AttributeType, Block, Nesting, Requirement},
        value::{Dynamic, ValueKey},
    },
    protocol::codec::decode_type,
};

/// The lines of a file of verdicts.
pub(super) fn lines(name: &str) -> Vec<Json> {
    let path = format!("{}/tests/fixtures/core-verdicts/{name}.jsonl.gz", env!("CARGO_MANIFEST_DIR"));
    let mut text = String::new();
    GzDecoder::new(File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text.lines().map(line).collect()
}

/// The JSON of an input is dropped: it is not compared, and may be nested too deeply for the reader.
fn line(line: &str) -> Json {
    let mut fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(line).unwrap();
    if fields.get("section").is_some_and(|section| section.get() == "\"input\"") {
        fields.remove("json");
    }
    let fields = fields.into_iter().map(|(name, raw)| (name, serde_json::from_str(raw.get()).unwrap()));
    Json::Object(fields.collect())
}

pub(super) fn text<'a>(json: &'a Json, name: &str) -> &'a str {
    json[name].as_str().unwrap()
}

pub(super) fn bytes(json: &Json) -> Vec<u8> {
    STANDARD.decode(json.as_str().unwrap()).unwrap()
}

pub(super) fn ty(json: &Json) -> Type {
    decode_type(json.to_string().as_bytes()).unwrap()
}

/// The value of a verdict. Refinements of unknown values are dropped; `None` if a number is not finite.
pub(super) fn value(ty: &Type, json: &Json) -> Option<Value> {
    let number = |text: &str| text.parse().ok().map(Value::Number);
    Some(match (ty, json) {
        (_, Json::Null) => Value::Null,
        (_, Json::Object(object)) if object.contains_key("$unknown") => Value::Unknown,
        (_, Json::Object(object)) if object.contains_key("$number") => number(object["$number"].as_str()?)?,
        (Type::Dynamic, Json::Object(object)) => {
            let (ty, inner) = (self::ty(&object["$dynamic"]["type"]), &object["$dynamic"]["value"]);
            let value = value(&ty, inner)?;
            Value::Dynamic(Box::new(Dynamic { ty, value }))
        }
        (_, Json::Bool(truth)) => (*truth).into(),
        (_, Json::Number(whole)) => number(&whole.to_string())?,
        (_, Json::String(text)) => text.as_str().into(),
        (Type::List(ty), Json::Array(all)) => {
            Value::List(all.iter().map(|json| value(ty, json)).collect::<Option<_>>()?)
        }
        (Type::Set(ty), Json::Array(all)) => Value::set(all.iter().map(|json| value(ty, json)).collect::<Option<_>>()?),
        (Type::Tuple(types), Json::Array(all)) => {
            Value::Tuple(types.iter().zip(all).map(|(ty, json)| value(ty, json)).collect::<Option<_>>()?)
        }
        (Type::Map(ty), Json::Object(object)) => Value::Map(entries(object, |_| &**ty)?),
        (Type::Object(types), Json::Object(object)) => Value::Object(entries(object, |name| &types[name])?),
        (ty, json) => panic!("{json} is no {ty:?}"),
    })
}

fn entries<'a>(
    object: &serde_json::Map<String, Json>,
    ty: impl Fn(&str) -> &'a Type,
) -> Option<BTreeMap<ValueKey, Value>> {
    object.iter().map(|(name, json)| Some((name.clone().into(), value(ty(name), json)?))).collect()
}

pub(super) fn path(json: &Json) -> Path {
    let step = |step: &Json| match step.as_object().and_then(|step| step.iter().next()) {
        Some((kind, name)) if kind == "attribute" => PathStep::Attribute(name.as_str().unwrap().to_owned()),
        Some((kind, key)) if kind == "key" => PathStep::Key(key.as_str().unwrap().to_owned()),
        Some((kind, index)) if kind == "index" => PathStep::Index(index.as_i64().unwrap()),
        _ => panic!("{step} is no step of a list, map or object"),
    };
    json.as_array().unwrap().iter().map(step).collect()
}

/// The schema, if ours can express it: attributes of lists, maps and objects, nested ones single or in lists, and
/// single blocks of plain arguments.
pub(super) fn schema(block: &Json) -> Option<Schema> {
    let mut schema = Schema::new("Recorded.", attributes(block)?);
    for (name, block) in block["block_types"].as_object().into_iter().flatten() {
        let inner = &block["block"];
        let is_simple = block["nesting_mode"] == "single" && inner.get("block_types").is_none();
        if !is_simple || inner.get("computed").is_some() {
            return None;
        }
        let attributes = attributes(inner)?;
        if attributes
            .iter()
            .any(|attribute| attribute.is_computed() || matches!(attribute.ty, AttributeType::Nested(..)))
        {
            return None;
        }
        schema.blocks.push(Block { name: name.clone().into(), description: "Recorded.".to_owned(), attributes });
    }
    Some(schema)
}

/// Whether plans have rules for the type.
pub(super) fn is_planned(ty: &Type) -> bool {
    match ty {
        Type::Bool | Type::Number | Type::String => true,
        Type::List(element) | Type::Map(element) => is_planned(element),
        Type::Object(attributes) => attributes.values().all(is_planned),
        Type::Dynamic | Type::Set(_) | Type::Tuple(_) => false,
    }
}

fn attributes(block: &Json) -> Option<Vec<Attribute>> {
    block["attributes"].as_object().into_iter().flatten().map(|(name, json)| attribute(name, json)).collect()
}

fn attribute(name: &str, json: &Json) -> Option<Attribute> {
    let is = |flag: &str| json[flag] == true;
    let ty = match json.get("nested_type") {
        None => AttributeType::Plain(Some(ty(&json["type"])).filter(is_planned)?),
        Some(nested) => {
            let nesting = match text(nested, "nesting_mode") {
                "single" => Nesting::Single,
                "list" => Nesting::List,
                _ => return None,
            };
            AttributeType::Nested(nesting, attributes(nested)?)
        }
    };
    let mut attribute = Attribute::optional(name.to_owned(), ty, "Recorded.");
    attribute.requirement = match (is("required"), is("optional"), is("computed")) {
        (true, _, _) => Requirement::Required,
        (_, true, true) => Requirement::OptionalComputed,
        (_, false, _) => Requirement::Computed,
        (_, true, false) => Requirement::Optional,
    };
    attribute.write_only = is("write_only");
    Some(attribute)
}
