//! Which paths of a plan force a replacement in Terraform (plugin protocol, PlanResourceChange).

use crate::framework::{
    Path, PathStep, Schema, Value,
    schema::{Attribute, AttributeType},
};

/// What the core makes of a path that is to force a replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heeded {
    /// It forces a replacement.
    Kept,
    /// The value there does not change.
    Ignored,
    /// The path is in neither state: an error.
    Missing,
}

/// Terraform's decision about one path.
pub fn heeded(schema: &Schema, prior: &Value, planned: &Value, path: &Path) -> Heeded {
    if prior.is_null() {
        return Heeded::Ignored;
    }
    match (at(prior, path), at(planned, path)) {
        (None, None) => Heeded::Missing,
        (Some(before), Some(after))
            if before == after && !after.is_unknown() && !is_write_only(&schema.attributes, path.steps()) =>
        {
            Heeded::Ignored
        }
        _ => Heeded::Kept,
    }
}

/// The value at a path; `None` if the path does not exist.
fn at<'a>(value: &'a Value, path: &Path) -> Option<&'a Value> {
    path.steps().iter().try_fold(value, |value, step| match (value, step) {
        (Value::Object(attributes), PathStep::Attribute(name)) => attributes.get(name.as_str()),
        (Value::Map(elements), PathStep::Key(key)) => elements.get(key.as_str()),
        (Value::List(elements), PathStep::Index(index)) => elements.get(usize::try_from(*index).ok()?),
        _ => None,
    })
}

fn is_write_only(attributes: &[Attribute], steps: &[PathStep]) -> bool {
    let mut steps =
        steps.iter().filter_map(|step| if let PathStep::Attribute(name) = step { Some(name) } else { None });
    let mut attributes = attributes;
    let mut found = None;
    loop {
        let Some(name) = steps.next() else { return found.is_some_and(|found: &Attribute| found.write_only) };
        let Some(attribute) = attributes.iter().find(|attribute| attribute.name == *name) else { return false };
        attributes = if let AttributeType::Nested(_, children) = &attribute.ty { children } else { &[] };
        found = Some(attribute);
    }
}
