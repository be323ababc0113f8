//! The plan of one object, attribute by attribute (plugin protocol, the framework's plan algorithm): defaults, what becomes
//! unknown, what needs a new thing, and the guard that keeps a plan within what the core accepts.

use super::{
    path::Path,
    schema::{Attribute, AttributeType, Nesting, Replacement, Schema},
    value::Value,
};

/// The planned state before any live knowledge.
///
/// `prior` is null for a create. Where the configuration leaves a computed attribute open, a create makes it unknown; an update
/// keeps what the state says, unless the attribute follows one that changes.
pub(super) fn planned_state(schema: &Schema, config: &Value, proposed: &Value, prior: &Value) -> Value {
    let mut planned = with_blocks(schema, with_defaults(&schema.attributes, config, proposed), config);
    if prior.is_null() || planned != *prior {
        planned = with_blocks(schema, open_computed(&schema.attributes, config, &planned, prior), config);
        if !prior.is_null() {
            open_followers(&schema.attributes, config, &mut planned, prior);
        }
    }
    planned
}

/// The attributes whose change needs a new thing, in order.
pub(super) fn replacements(schema: &Schema, planned: &Value, prior: &Value) -> Vec<Path> {
    let mut paths = Vec::new();
    collect_replacements(&schema.attributes, planned, prior, &Path::root(), &mut paths);
    paths
}

/// The plan with everything put back that only the configuration may say, whatever a resource's own refinement made of it
/// (plugin protocol, PlanResourceChange: rule for each attribute).
pub(super) fn guarded(schema: &Schema, config: &Value, refined: &Value, planned: &Value) -> Value {
    with_blocks(schema, guard_attributes(&schema.attributes, config, refined, planned), config)
}

/// Adds the blocks as they are configured: nothing in them is computed or has a default.
fn with_blocks(schema: &Schema, mut planned: Value, config: &Value) -> Value {
    for block in &schema.blocks {
        planned.set_attribute(&block.name, config.attribute(&block.name).clone());
    }
    planned
}

fn with_defaults(attributes: &[Attribute], config: &Value, proposed: &Value) -> Value {
    let Value::Object(_) = proposed else {
        return proposed.clone();
    };
    Value::object(attributes.iter().map(|attribute| {
        let (configured, proposed) = (config.attribute(&attribute.name), proposed.attribute(&attribute.name));
        let planned = match (&attribute.ty, configured, &attribute.default) {
            _ if attribute.write_only => Value::Null,
            (_, Value::Null, Some(default)) => default.clone(),
            (_, Value::Null, None) if !attribute.is_computed() => Value::Null,
            (_, Value::Null, None) => proposed.clone(),
            (AttributeType::Nested(_, children), configured, _) => {
                each_element(configured, proposed, &Value::Null, &|configured, proposed, _| {
                    with_defaults(children, configured, proposed)
                })
            }
            (AttributeType::Plain(_), configured, _) => configured.clone(),
        };
        (attribute.name.clone(), planned)
    }))
}

/// Makes computed attributes unknown in every object that has no prior one.
fn open_computed(attributes: &[Attribute], config: &Value, planned: &Value, prior: &Value) -> Value {
    let Value::Object(_) = planned else {
        return planned.clone();
    };
    Value::object(attributes.iter().map(|attribute| {
        let name = &attribute.name;
        let (configured, planned) = (config.attribute(name), planned.attribute(name));
        let opened = match &attribute.ty {
            _ if is_open(attribute, configured) => {
                if prior.is_null() {
                    Value::Unknown
                } else {
                    planned.clone()
                }
            }
            AttributeType::Nested(_, children) if !configured.is_null() => {
                each_element(configured, planned, prior.attribute(name), &|configured, planned, prior| {
                    open_computed(children, configured, planned, prior)
                })
            }
            _ => planned.clone(),
        };
        (name.clone(), opened)
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
        let (after, before) = (planned.attribute(&attribute.name), prior.attribute(&attribute.name));
        if after == before {
            continue;
        }
        let path = parent.attribute(&attribute.name);
        match (attribute.replacement, &attribute.ty) {
            (Replacement::Always, _) => paths.push(path),
            (Replacement::IfKnown, _) if !before.is_null() => paths.push(path),
            (_, AttributeType::Nested(Nesting::Single, children)) => {
                collect_replacements(children, after, before, &path, paths);
            }
            _ => {}
        }
    }
}

fn guard_attributes(attributes: &[Attribute], config: &Value, refined: &Value, planned: &Value) -> Value {
    let Value::Object(_) = planned else {
        return planned.clone();
    };
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

/// A nested value made anew from each configured object and its counterparts in two other values: by position in a list, by key
/// in a map, by agreement in a set. What has no counterpart meets null; a configured null or unknown stays as it is.
fn each_element(
    configured: &Value,
    first: &Value,
    second: &Value,
    make: &dyn Fn(&Value, &Value, &Value) -> Value,
) -> Value {
    match configured {
        Value::Object(_) => make(configured, first, second),
        Value::List(elements) => Value::List(
            elements
                .iter()
                .enumerate()
                .map(|(index, element)| make(element, at(first, index), at(second, index)))
                .collect(),
        ),
        Value::Map(elements) => Value::Map(
            elements
                .iter()
                .map(|(key, element)| (key.clone(), make(element, under(first, key), under(second, key))))
                .collect(),
        ),
        Value::Set(elements) => Value::set(
            elements.iter().map(|element| make(element, agreeing(first, element), agreeing(second, element))).collect(),
        ),
        other => other.clone(),
    }
}

fn at(list: &Value, index: usize) -> &Value {
    match list {
        Value::List(elements) => elements.get(index).unwrap_or(&Value::Null),
        _ => &Value::Null,
    }
}

fn under<'a>(map: &'a Value, key: &str) -> &'a Value {
    match map {
        Value::Map(elements) => elements.get(key).unwrap_or(&Value::Null),
        _ => &Value::Null,
    }
}

/// The element of a set that holds everything that a configured object says. Sets have no keys, so this is the best that can be
/// done; the core does the same.
fn agreeing<'a>(set: &'a Value, configured: &Value) -> &'a Value {
    let agrees = |candidate: &&Value| match (configured, candidate) {
        (Value::Object(said), candidate @ Value::Object(_)) => {
            said.iter().all(|(name, value)| value.is_null() || value == candidate.attribute(name))
        }
        (configured, candidate) => configured == *candidate,
    };
    match set {
        Value::Set(elements) => elements.iter().find(agrees).unwrap_or(&Value::Null),
        _ => &Value::Null,
    }
}

#[cfg(test)]
mod tests;
