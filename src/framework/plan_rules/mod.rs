//! The plan of one object, attribute by attribute (plugin protocol, the framework's plan algorithm): defaults, what
//! becomes unknown, what needs a new thing, and the guard that keeps a plan within what the core accepts.

use super::{
    path::Path,
    schema::{Attribute, AttributeType, Nesting, Replacement, Schema},
    value::Value,
};

/// The planned state before any live knowledge.
///
/// `prior` is null for a create. Where the configuration leaves a computed attribute open, a new object gets it
/// unknown; an existing one keeps what the state says, unless the attribute follows one that changes.
///
/// The core's proposal is not used: it is a merge of the same two values that drops an object which the provider filled
/// in.
pub(super) fn planned_state(schema: &Schema, config: &Value, prior: &Value) -> Value {
    let mut planned = with_blocks(schema, planned_attributes(&schema.attributes, config, prior), config);
    if !prior.is_null() {
        open_followers(&schema.attributes, config, &mut planned, prior);
    }
    planned
}

/// The attributes whose change needs a new thing, in order.
pub(super) fn replacements(schema: &Schema, planned: &Value, prior: &Value) -> Vec<Path> {
    let mut paths = Vec::new();
    collect_replacements(&schema.attributes, planned, prior, &Path::root(), &mut paths);
    paths
}

/// The plan with everything put back that only the configuration may say, whatever a resource's own refinement made of
/// it (plugin protocol, PlanResourceChange: rule for each attribute). A refinement may keep the prior value of a
/// configured attribute: both then mean the same.
pub(super) fn guarded(schema: &Schema, config: &Value, prior: &Value, refined: &Value, planned: &Value) -> Value {
    let mut guarded = guard_attributes(&schema.attributes, config, refined, planned);
    for attribute in schema.attributes.iter().filter(|attribute| !attribute.write_only) {
        let (configured, before) = (config.attribute(&attribute.name), prior.attribute(&attribute.name));
        let is_known = !configured.is_null() && configured.is_wholly_known();
        if is_known && !before.is_null() && refined.attribute(&attribute.name) == before {
            guarded.set_attribute(&attribute.name, before.clone());
        }
    }
    with_blocks(schema, guarded, config)
}

/// Adds the blocks as they are configured: nothing in them is computed or has a default.
fn with_blocks(schema: &Schema, mut planned: Value, config: &Value) -> Value {
    for block in &schema.blocks {
        planned.set_attribute(&block.name, config.attribute(&block.name).clone());
    }
    planned
}

fn planned_attributes(attributes: &[Attribute], config: &Value, prior: &Value) -> Value {
    let Value::Object(_) = config else {
        return config.clone();
    };
    Value::object(attributes.iter().map(|attribute| {
        let (configured, before) = (config.attribute(&attribute.name), prior.attribute(&attribute.name));
        let planned = match (&attribute.ty, configured, &attribute.default) {
            _ if attribute.write_only => Value::Null,
            (_, Value::Null, Some(default)) => default.clone(),
            (_, Value::Null, None) if !attribute.is_computed() => Value::Null,
            (_, Value::Null, None) if prior.is_null() => Value::Unknown,
            (_, Value::Null, None) => before.clone(),
            (AttributeType::Nested(_, children), configured, _) => {
                each_element(configured, before, &Value::Null, &|configured, before, _| {
                    planned_attributes(children, configured, before)
                })
            }
            (AttributeType::Plain(_), configured, _) => configured.clone(),
        };
        (attribute.name.clone(), planned)
    }))
}

/// Makes the top-level computed attributes unknown that follow a changed one, until nothing more changes.
fn open_followers(attributes: &[Attribute], config: &Value, planned: &mut Value, prior: &Value) {
    loop {
        let changed: Vec<&str> = attributes
            .iter()
            .map(|attribute| attribute.name.as_str())
            .filter(|name| planned.attribute(name) != prior.attribute(name))
            .collect();
        let followers: Vec<&Attribute> = attributes
            .iter()
            .filter(|attribute| is_open(attribute, config.attribute(&attribute.name)))
            .filter(|attribute| !planned.attribute(&attribute.name).is_unknown())
            .filter(|attribute| attribute.follows.iter().any(|name| changed.contains(&name.as_str())))
            .collect();
        if followers.is_empty() {
            return;
        }
        for attribute in followers {
            planned.set_attribute(&attribute.name, Value::Unknown);
        }
    }
}

/// Whether the provider decides this attribute.
fn is_open(attribute: &Attribute, configured: &Value) -> bool {
    attribute.is_computed() && attribute.default.is_none() && configured.is_null()
}

fn collect_replacements(
    attributes: &[Attribute],
    planned: &Value,
    prior: &Value,
    parent: &Path,
    paths: &mut Vec<Path>,
) {
    for attribute in attributes {
        // Each part of an unknown object may turn out to differ; a replacement that shows only in the apply would be
        // refused.
        let after = planned.attribute(&attribute.name);
        let before = prior.attribute(&attribute.name);
        if after == before {
            continue;
        }
        let path = parent.attribute(&attribute.name);
        match (attribute.replacement, &attribute.ty) {
            (Replacement::Always | Replacement::IfKnown, _) => paths.push(path),
            (_, AttributeType::Nested(Nesting::Single, children)) => {
                collect_replacements(children, after, before, &path, paths);
            }
            _ => {}
        }
    }
}

fn guard_attributes(attributes: &[Attribute], config: &Value, refined: &Value, planned: &Value) -> Value {
    let (Value::Object(_), Value::Object(_)) = (config, planned) else {
        return planned.clone();
    };
    // An element that the refinement dropped comes back as it was planned.
    let refined = if let Value::Object(_) = refined { refined } else { planned };
    Value::object(attributes.iter().map(|attribute| {
        let name = &attribute.name;
        let (configured, refined, planned) = (config.attribute(name), refined.attribute(name), planned.attribute(name));
        let guarded = match &attribute.ty {
            _ if attribute.write_only => Value::Null,
            _ if attribute.is_computed() && configured.is_null() => refined.clone(),
            AttributeType::Nested(_, children) if !configured.is_null() => {
                each_element(configured, refined, planned, &|configured, refined, planned| {
                    guard_attributes(children, configured, refined, planned)
                })
            }
            _ => planned.clone(),
        };
        (name.clone(), guarded)
    }))
}

/// A nested value made anew from each configured object and the objects at its place in two other values. What is
/// missing there is null; a configured null or unknown stays as it is.
fn each_element(
    configured: &Value,
    first: &Value,
    second: &Value,
    make: &dyn Fn(&Value, &Value, &Value) -> Value,
) -> Value {
    match configured {
        Value::Object(_) => make(configured, first, second),
        Value::List(elements) => {
            let elements = elements.iter().enumerate();
            Value::List(elements.map(|(index, element)| make(element, at(first, index), at(second, index))).collect())
        }
        other => other.clone(),
    }
}

fn at(list: &Value, index: usize) -> &Value {
    match list {
        Value::List(elements) => elements.get(index).unwrap_or(&Value::Null),
        _ => &Value::Null,
    }
}

#[cfg(test)]
mod tests;
