//! Terraform's merge of prior state and configuration (plugin protocol, meaning of the plan inputs).

use crate::framework::{
    Schema, Value,
    schema::{Attribute, AttributeType, Requirement},
};

/// The new state that Terraform proposes.
pub fn proposed_new(schema: &Schema, prior: &Value, config: &Value) -> Value {
    if config.is_null() {
        return Value::Null;
    }
    let mut proposed = attributes(&schema.attributes, prior, config);
    for block in &schema.blocks {
        proposed.set_attribute(&block.name, config.attribute(&block.name).clone());
    }
    proposed
}

fn attributes(all: &[Attribute], prior: &Value, config: &Value) -> Value {
    Value::object(all.iter().map(|attribute| {
        let name = &attribute.name;
        let (prior, config) = (prior.attribute(name), config.attribute(name));
        let proposed = match &attribute.ty {
            AttributeType::Nested(_, children) if attribute.is_computed() && config.is_null() => {
                let was_configured =
                    attribute.requirement == Requirement::OptionalComputed && holds_non_computed(children, prior);
                if was_configured { config } else { prior }.clone()
            }
            AttributeType::Plain(_) if attribute.is_computed() && config.is_null() => prior.clone(),
            AttributeType::Plain(_) => config.clone(),
            AttributeType::Nested(_, children) => nested(children, prior, config),
        };
        (name.clone(), proposed)
    }))
}

fn nested(children: &[Attribute], prior: &Value, config: &Value) -> Value {
    match (config, prior) {
        (Value::Object(_), prior) => attributes(children, prior, config),
        (Value::List(elements), prior) => {
            let prior = if let Value::List(prior) = prior { &prior[..] } else { &[] };
            Value::List(
                elements
                    .iter()
                    .enumerate()
                    .map(|(index, element)| match prior.get(index) {
                        Some(prior) => nested(children, prior, element),
                        None => element.clone(),
                    })
                    .collect(),
            )
        }
        (other, _) => other.clone(),
    }
}

fn holds_non_computed(children: &[Attribute], prior: &Value) -> bool {
    match prior {
        Value::Object(_) => children.iter().any(|attribute| {
            let value = prior.attribute(&attribute.name);
            !value.is_null()
                && (!attribute.is_computed()
                    || match &attribute.ty {
                        AttributeType::Plain(_) => false,
                        AttributeType::Nested(_, children) => holds_non_computed(children, value),
                    })
        }),
        Value::List(elements) => elements.iter().any(|element| holds_non_computed(children, element)),
        _ => false,
    }
}
