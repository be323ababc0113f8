//! The line of one attribute in a page.

use std::sync::Arc;

use crate::framework::{
    Type, Value,
    schema::{Attribute, AttributeType, Nesting, Presence, Replacement, Validator},
};

/// What is said of a value behind its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flag {
    Optional,
    Sensitive,
    WriteOnly,
}

/// The line of an attribute in the registry's form: name, type, description, and what the description leaves to the
/// schema.
pub(super) fn line(attribute: &Attribute) -> String {
    let flags: Vec<Flag> = [(attribute.sensitive, Flag::Sensitive), (attribute.write_only, Flag::WriteOnly)]
        .into_iter()
        .filter_map(|(is_set, flag)| is_set.then_some(flag))
        .collect();
    let text = std::iter::once(attribute.description.clone()).chain(facts(attribute)).collect::<Vec<_>>().join(" ");
    named(&attribute.name, &attribute_type(&attribute.ty), &flags, &text)
}

/// A line of a list. Further paragraphs of the text are indented, so that they stay in it.
pub(super) fn named(name: &str, ty: &str, flags: &[Flag], text: &str) -> String {
    let flags: String = flags.iter().map(|flag| format!(", {}", flag.word())).collect();
    format!("- `{name}` ({ty}{flags}) {}", text.replace("\n", "\n  ").replace("\n  \n", "\n\n"))
}

impl Flag {
    fn word(self) -> &'static str {
        match self {
            Self::Optional => "Optional",
            Self::Sensitive => "Sensitive",
            Self::WriteOnly => {
                "[Write-only](https://developer.hashicorp.com/terraform/language/resources/ephemeral#write-only-arguments)"
            }
        }
    }
}

/// What the schema knows and the description does not say.
fn facts(attribute: &Attribute) -> Vec<String> {
    let description = &attribute.description;
    let default = attribute.default.as_ref().filter(|_| !description.contains("Default"));
    let default = default.map(|default| format!("Default: `{}`.", literal(default)));
    let is_collection = matches!(&attribute.ty, AttributeType::Plain(Type::List(_) | Type::Set(_) | Type::Map(_)));
    let rules = rules(&attribute.validators, description, is_collection);
    let replacement = match attribute.replacement {
        // Never null, so never set for the first time.
        Replacement::Always if attribute.presence == Presence::Required || attribute.default.is_some() => {
            Some("Forces replacement.")
        }
        Replacement::Always => Some("Forces replacement, also when it is set for the first time."),
        Replacement::IfKnown => Some("Forces replacement."),
        Replacement::Never => None,
    };
    default.into_iter().chain(rules).chain(replacement.map(str::to_owned)).collect()
}

/// The rules that a description leaves out, in sentences.
pub(super) fn rules(validators: &[Arc<dyn Validator>], description: &str, is_collection: bool) -> Vec<String> {
    let subject = if is_collection { "Each must be" } else { "Must be" };
    let rules = validators.iter().map(|validator| validator.rule()).filter(|rule| !is_said(rule, description));
    rules.map(|rule| format!("{subject} {}.", rule.replace('"', "`"))).collect()
}

/// Whether a description has a rule in it already: as it is, or all the words that the rule quotes, as code.
fn is_said(rule: &str, description: &str) -> bool {
    let mut quoted = rule.split('"').skip(1).step_by(2).peekable();
    description.contains(rule)
        || (quoted.peek().is_some() && quoted.all(|word| description.contains(&format!("`{word}`"))))
}

fn attribute_type(ty: &AttributeType) -> String {
    match ty {
        AttributeType::Plain(ty) => plain_type(ty),
        AttributeType::Nested(Nesting::List, _) => "Attributes List".to_owned(),
        AttributeType::Nested(Nesting::Single, _) => "Attributes".to_owned(),
    }
}

/// A type in the registry's words.
pub(super) fn plain_type(ty: &Type) -> String {
    match ty {
        Type::Bool => "Boolean".to_owned(),
        Type::Dynamic => "Dynamic".to_owned(),
        Type::List(element) => format!("List of {}", plain_type(element)),
        Type::Map(element) => format!("Map of {}", plain_type(element)),
        Type::Number => "Number".to_owned(),
        Type::Object(_) => "Object".to_owned(),
        Type::Set(element) => format!("Set of {}", plain_type(element)),
        Type::String => "String".to_owned(),
        Type::Tuple(_) => "Tuple".to_owned(),
    }
}

/// A default as one would write it, but for the quotes around a text.
fn literal(value: &Value) -> String {
    let listed = |elements: &[Value]| format!("[{}]", elements.iter().map(literal).collect::<Vec<_>>().join(", "));
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Dynamic(dynamic) => literal(&dynamic.value),
        Value::List(elements) | Value::Set(elements) | Value::Tuple(elements) => listed(elements),
        Value::Map(elements) | Value::Object(elements) => {
            let pairs = elements.iter().map(|(name, value)| format!("{name} = {}", literal(value)));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
        Value::Null | Value::Unknown => "null".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
    }
}
