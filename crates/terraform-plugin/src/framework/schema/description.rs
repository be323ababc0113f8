//! The descriptions that the core, editors and the docs show: the written text, then default, rules and replacement.

use super::{Attribute, AttributeType, Replacement, Requirement, Schema, Validator};
use crate::framework::value::{Type, Value};

impl Schema {
    /// The same with complete descriptions.
    #[must_use]
    pub fn described(mut self) -> Self {
        complete(&mut self.attributes);
        for block in &mut self.blocks {
            complete(&mut block.attributes);
        }
        self
    }
}

fn complete(attributes: &mut [Attribute]) {
    for attribute in attributes {
        for fact in facts(attribute) {
            attribute.description.push(' ');
            attribute.description.push_str(&fact);
        }
        if let AttributeType::Nested(_, children) = &mut attribute.ty {
            complete(children);
        }
    }
}

/// The facts that the written description omits.
fn facts(attribute: &Attribute) -> Vec<String> {
    let description = &attribute.description;
    let default = attribute.default.as_ref().filter(|_| !description.contains("Default"));
    let default = default.map(|default| format!("Default: `{}`.", literal(default)));
    let ty = match &attribute.ty {
        AttributeType::Plain(ty) => Some(ty),
        AttributeType::Nested(..) => None,
    };
    let rules = rules(&attribute.validators, description, ty);
    let replacement = match attribute.replacement {
        // It is never null, so the exception for a first value does not apply.
        Replacement::Always if attribute.requirement == Requirement::Required || attribute.default.is_some() => {
            Some("Forces replacement.")
        }
        Replacement::Always => Some("Forces replacement, also when it is set for the first time."),
        Replacement::IfKnown => Some("Forces replacement."),
        Replacement::Never => None,
    };
    default.into_iter().chain(rules).chain(replacement.map(str::to_owned)).collect()
}

/// The rules that a description omits, in sentences.
pub(in crate::framework) fn rules(validators: &[Validator], description: &str, ty: Option<&Type>) -> Vec<String> {
    let is_collection = matches!(ty, Some(Type::List(_) | Type::Set(_) | Type::Map(_)));
    let rules = validators.iter().filter(|validator| !is_said(validator.rule(), description));
    let rules = rules.map(|validator| {
        let subject = if is_collection && !validator.is_of_collection { "Each must be" } else { "Must be" };
        format!("{subject} {}.", validator.rule().replace('"', "`"))
    });
    rules.collect()
}

/// Whether a description already has a rule: in the same words, or all its quoted words as code.
fn is_said(rule: &str, description: &str) -> bool {
    let mut quoted = rule.split('"').skip(1).step_by(2).peekable();
    description.to_lowercase().contains(&rule.to_lowercase())
        || (quoted.peek().is_some() && quoted.all(|word| description.contains(&format!("`{word}`"))))
}

/// A default in HCL, without the quotes around a text.
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

#[cfg(test)]
mod tests {
    use crate::framework::{
        Schema, Type,
        schema::{Attribute, AttributeType, Nesting, Replacement, Requirement, Validator},
    };

    fn described(attribute: Attribute) -> String {
        Schema::new("A thing.", vec![attribute]).described().attributes.remove(0).description
    }

    #[test]
    fn a_description_gets_what_the_written_one_omits() {
        let bare = Attribute::with_default("size", Type::Number, 20, "The size in GB.")
            .replaces(Replacement::IfKnown)
            .validate(Validator::between(20..=100));
        let text = "The size in GB. Default: `20`. Must be a whole number from 20 to 100. Forces replacement.";
        assert_eq!(described(bare.clone()), text);
        let nested = Attribute::optional("disk", AttributeType::Nested(Nesting::Single, vec![bare]), "A disk.");
        let schema = Schema::new("A thing.", vec![nested]).described();
        let AttributeType::Nested(_, children) = &schema.attributes[0].ty else { panic!("{schema:?}") };
        assert_eq!(children[0].description, text);
        let said = Attribute::with_default("size", Type::String, "s", "`s` or `l`. Default: `s`.")
            .validate(Validator::one_of(&["s", "l"]));
        assert_eq!(described(said), "`s` or `l`. Default: `s`.");
        let half = Attribute::optional("size", Type::String, "Such as `s`.").validate(Validator::one_of(&["s", "l"]));
        assert_eq!(described(half), "Such as `s`. Must be one of `s`, `l`.");
    }

    #[test]
    fn a_first_value_replaces_only_if_it_can_be_null() {
        let mut secret = Attribute::optional("keys", Type::list(Type::map(Type::Bool)), "The keys.")
            .validate(Validator::text("a key", |_| true))
            .replaces(Replacement::Always);
        assert_eq!(
            described(secret.clone()),
            "The keys. Each must be a key. Forces replacement, also when it is set for the first time."
        );
        secret.requirement = Requirement::Required;
        assert_eq!(described(secret), "The keys. Each must be a key. Forces replacement.");
    }
}
