//! Schemas, configurations and values made from a tape of choices, which shrinks well: shorter and smaller is simpler.

use terraform_plugin::framework::{
    Schema, Type, Value,
    schema::{Attribute, AttributeType, Nesting, Replacement, Requirement},
    value::ValueKey,
};

const NAMES: [&str; 6] = ["a0", "a1", "a2", "a3", "a4", "a5"];
const BLOCK_NAMES: [&str; 5] = ["timeouts", "create", "read", "update", "delete"];

/// The static form of an attribute's name.
pub(crate) fn attribute_name(name: &str) -> Option<&'static str> {
    NAMES.into_iter().chain(BLOCK_NAMES).find(|known| *known == name)
}

/// A tape of choices; at its end every choice is the first one.
#[derive(Clone, Debug)]
pub(crate) struct Choices(std::vec::IntoIter<u8>);

impl Choices {
    pub(crate) fn new(tape: Vec<u8>) -> Self {
        Self(tape.into_iter())
    }

    /// One of `count` options.
    pub(crate) fn one_of(&mut self, count: u8) -> u8 {
        self.0.next().unwrap_or(0) % count
    }

    /// True about once in `count` times.
    pub(crate) fn once_in(&mut self, count: u8) -> bool {
        self.one_of(count) == count - 1
    }
}

pub(crate) fn schema(choices: &mut Choices) -> Schema {
    let mut attributes = attributes(choices, 2, Place::Top);
    let names: Vec<String> = attributes.iter().map(|a| a.name.to_string()).collect();
    for attribute in &mut attributes {
        if attribute.is_computed() && choices.once_in(3) {
            let followed = usize::from(choices.one_of(u8::try_from(names.len()).unwrap()));
            attribute.follows = vec![names[followed].clone()];
        }
    }
    Schema::new("Random.", attributes)
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Top,
    Object,
    Computed,
}

fn attributes(choices: &mut Choices, depth: u8, place: Place) -> Vec<Attribute> {
    let count = 1 + choices.one_of(if place == Place::Top { 5 } else { 3 });
    NAMES.iter().take(count.into()).map(|name| attribute(choices, name, depth, place)).collect()
}

fn attribute(choices: &mut Choices, name: &'static str, depth: u8, place: Place) -> Attribute {
    let requirement = match (place, choices.one_of(4)) {
        (Place::Computed, _) | (_, 1) => Requirement::Computed,
        (_, 0) => Requirement::Optional,
        (_, 2) => Requirement::OptionalComputed,
        _ => Requirement::Required,
    };
    let ty = if depth > 0 && choices.once_in(3) {
        let nesting = if choices.one_of(2) == 0 { Nesting::Single } else { Nesting::List };
        let inner = if requirement == Requirement::Computed { Place::Computed } else { Place::Object };
        AttributeType::Nested(nesting, attributes(choices, depth - 1, inner))
    } else {
        AttributeType::Plain(match choices.one_of(6) {
            0 => Type::String,
            1 => Type::Number,
            2 => Type::Bool,
            3 => Type::list(Type::String),
            4 => Type::map(Type::Number),
            _ => Type::list(Type::object([("a0", Type::String), ("a1", Type::Bool)])),
        })
    };
    let mut attribute = match requirement {
        Requirement::Computed => Attribute::computed(name, ty, "Any."),
        Requirement::Optional => Attribute::optional(name, ty, "Any."),
        Requirement::OptionalComputed => Attribute::optional_computed(name, ty, "Any."),
        Requirement::Required => Attribute::required(name, ty, "Any."),
    };
    if let AttributeType::Plain(ty) = &attribute.ty {
        let ty = ty.clone();
        if requirement == Requirement::OptionalComputed && choices.once_in(2) {
            attribute.default = Some(known(choices, &ty));
        }
        if !attribute.is_computed() && choices.once_in(5) {
            attribute = attribute.write_only();
        }
    } else if requirement == Requirement::OptionalComputed && choices.once_in(4) {
        attribute.default = match &attribute.ty.ty() {
            Type::List(_) => Some(Value::List(Vec::new())),
            _ => None,
        };
    }
    match choices.one_of(6) {
        // Attributes that only the provider computes force no replacement.
        4 | 5 if requirement == Requirement::Computed => attribute,
        5 => attribute.replaces(Replacement::Always),
        4 => attribute.replaces(Replacement::IfKnown),
        3 => attribute.sensitive(),
        _ => attribute,
    }
}

/// A known configuration that the schema permits.
pub(crate) fn config(choices: &mut Choices, schema: &Schema) -> Value {
    let mut config = configured(choices, &schema.attributes);
    for block in &schema.blocks {
        let value = if choices.once_in(3) {
            Value::object(block.attributes.iter().map(|attribute| {
                let value = if choices.once_in(2) { "90s".into() } else { Value::Null };
                (attribute.name.clone(), value)
            }))
        } else {
            Value::Null
        };
        config.set_attribute(&block.name, value);
        if let Value::Object(attributes) = &mut config {
            attributes.entry(block.name.clone()).or_default();
        }
    }
    config
}

fn configured(choices: &mut Choices, attributes: &[Attribute]) -> Value {
    Value::object(attributes.iter().map(|attribute| {
        let null = match attribute.requirement {
            Requirement::Computed => true,
            Requirement::Required => false,
            Requirement::Optional | Requirement::OptionalComputed => choices.one_of(2) == 0,
        };
        let value = match &attribute.ty {
            _ if null => Value::Null,
            AttributeType::Plain(ty) => known(choices, ty),
            AttributeType::Nested(Nesting::Single, children) => configured(choices, children),
            AttributeType::Nested(Nesting::List, children) => {
                Value::List(some(choices, |choices| configured(choices, children)))
            }
        };
        (attribute.name.clone(), value)
    }))
}

fn some(choices: &mut Choices, mut one: impl FnMut(&mut Choices) -> Value) -> Vec<Value> {
    (0..choices.one_of(4)).map(|_| one(choices)).collect()
}

fn keyed(values: Vec<Value>) -> std::collections::BTreeMap<ValueKey, Value> {
    values.into_iter().enumerate().map(|(index, value)| (format!("k{index}").into(), value)).collect()
}

/// A known value of a type, in which parts may be null.
pub(crate) fn known(choices: &mut Choices, ty: &Type) -> Value {
    match ty {
        Type::Bool => Value::Bool(choices.once_in(2)),
        Type::Number => match choices.one_of(3) {
            0 => 0.into(),
            1 => i64::from(choices.one_of(200)).into(),
            _ => Value::Number("0.1".parse().unwrap()),
        },
        Type::String => ["x", "", "y", "é"][usize::from(choices.one_of(4))].into(),
        Type::List(element) => Value::List(some(choices, |choices| known(choices, element))),
        Type::Map(element) => Value::Map(keyed(some(choices, |choices| known(choices, element)))),
        Type::Object(types) => Value::object(types.iter().map(|(name, ty)| {
            let value = if choices.once_in(4) { Value::Null } else { known(choices, ty) };
            (name.clone(), value)
        })),
        Type::Dynamic | Type::Set(_) | Type::Tuple(_) => panic!("no schema has these"),
    }
}

/// The configuration while parts of it come from resources that do not exist yet.
pub(crate) fn masked(choices: &mut Choices, schema: &Schema, config: &Value) -> Value {
    let mut masked = mask_attributes(choices, &schema.attributes, config);
    for block in &schema.blocks {
        masked.set_attribute(&block.name, config.attribute(&block.name).clone());
    }
    masked
}

fn mask_attributes(choices: &mut Choices, attributes: &[Attribute], config: &Value) -> Value {
    let Value::Object(_) = config else {
        return config.clone();
    };
    Value::object(attributes.iter().map(|attribute| {
        let config = config.attribute(&attribute.name);
        let masked = match &attribute.ty {
            _ if attribute.requirement == Requirement::Computed => Value::Null,
            _ if choices.once_in(5) => Value::Unknown,
            AttributeType::Plain(_) => mask_plain(choices, config),
            AttributeType::Nested(_, children) => {
                each(config, &mut |config| mask_attributes(choices, children, config))
            }
        };
        (attribute.name.clone(), masked)
    }))
}

fn mask_plain(choices: &mut Choices, value: &Value) -> Value {
    if let Value::Object(attributes) = value {
        return Value::object(attributes.iter().map(|(name, value)| {
            let value = if choices.once_in(5) { Value::Unknown } else { value.clone() };
            (name.clone(), value)
        }));
    }
    each(value, &mut |element| {
        if choices.once_in(5) {
            Value::Unknown
        } else if let Value::Object(_) = element {
            mask_plain(choices, element)
        } else {
            element.clone()
        }
    })
}

/// The value with every element of a collection, or the one object, replaced.
fn each(value: &Value, change: &mut dyn FnMut(&Value) -> Value) -> Value {
    match value {
        Value::List(elements) => Value::List(elements.iter().map(change).collect()),
        Value::Map(elements) => {
            Value::Map(elements.iter().map(|(key, element)| (key.clone(), change(element))).collect())
        }
        Value::Object(_) => change(value),
        other => other.clone(),
    }
}

/// The result of applying a plan: unknown parts get a value, or null, or stay unknown; with `wrong`, known parts change
/// too.
pub(crate) fn applied(choices: &mut Choices, ty: &Type, planned: &Value, wrong: bool) -> Value {
    if wrong && choices.once_in(4) {
        return known(choices, ty);
    }
    match (ty, planned) {
        (_, Value::Unknown) => match choices.one_of(6) {
            5 => Value::Unknown,
            4 => Value::Null,
            _ if *ty == Type::String => format!("made {}", choices.one_of(250)).into(),
            _ => known(choices, ty),
        },
        (Type::List(element), Value::List(elements)) => {
            Value::List(elements.iter().map(|planned| applied(choices, element, planned, wrong)).collect())
        }
        (Type::Map(element), Value::Map(elements)) => Value::Map(
            elements.iter().map(|(key, planned)| (key.clone(), applied(choices, element, planned, wrong))).collect(),
        ),
        (Type::Object(types), Value::Object(attributes)) => {
            Value::object(types.iter().map(|(name, ty)| (name.clone(), applied(choices, ty, &attributes[name], wrong))))
        }
        (_, planned) => planned.clone(),
    }
}
