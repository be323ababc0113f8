//! What a configuration must obey that the core leaves to the provider (plugin protocol, what core does not check).

use super::{
    diagnostics::Diagnostics,
    path::Path,
    schema::{Attribute, AttributeType, Presence, Schema},
    value::Value,
};

/// Checks a configuration against its schema. `write_only_allowed` says whether the core keeps write-only values out of
/// its plan.
pub(super) fn check(schema: &Schema, config: &Value, write_only_allowed: bool) -> Diagnostics {
    let mut checker = Checker { write_only_allowed, diagnostics: Diagnostics::new() };
    checker.attributes(&schema.attributes, config, &Path::root());
    for block in &schema.blocks {
        checker.attributes(&block.attributes, config.attribute(&block.name), &Path::to(&block.name));
    }
    checker.diagnostics
}

struct Checker {
    write_only_allowed: bool,
    diagnostics: Diagnostics,
}

impl Checker {
    fn attributes(&mut self, attributes: &[Attribute], object: &Value, parent: &Path) {
        let Value::Object(_) = object else { return };
        for attribute in attributes {
            self.attribute(attribute, object.attribute(&attribute.name), &parent.attribute(&attribute.name));
        }
    }

    fn attribute(&mut self, attribute: &Attribute, value: &Value, path: &Path) {
        if value.is_null() {
            if attribute.presence == Presence::Required {
                self.diagnostics.error_at(
                    path.clone(),
                    "Missing required argument",
                    format!("{path} must be set to a value other than null."),
                );
            }
            return;
        }
        if attribute.presence == Presence::Computed {
            self.diagnostics.error_at(
                path.clone(),
                "Read-only attribute",
                format!("{path} is set by the provider and cannot be configured. Remove it from the configuration."),
            );
            return;
        }
        if attribute.write_only && !self.write_only_allowed {
            self.diagnostics.error_at(
                path.clone(),
                "Write-only arguments need a newer core",
                format!(
                    "{path} is write-only, which needs Terraform 1.11 or OpenTofu 1.11. Older ones would store it \
                         in the plan."
                ),
            );
        }
        self.null_elements(value, path);
        self.rules(attribute, value, path);
        if let AttributeType::Nested(_, children) = &attribute.ty {
            for (element, path) in elements(value, path) {
                self.attributes(children, element, &path);
            }
        }
    }

    /// A null in a list has no meaning; in a map it may mean that there is no such entry.
    fn null_elements(&mut self, value: &Value, path: &Path) {
        if let Value::Map(_) | Value::Null = value {
            return;
        }
        for (_, path) in elements(value, path).into_iter().filter(|(element, _)| element.is_null()) {
            self.diagnostics.error_at(
                path.clone(),
                "An element that is null",
                format!(
                    "{path} must not hold null. Leave such elements out: [for element in … : element if element \
                         != null]."
                ),
            );
        }
    }

    fn rules(&mut self, attribute: &Attribute, value: &Value, path: &Path) {
        if attribute.validators.is_empty() {
            return;
        }
        for (element, path) in elements(value, path) {
            for validator in &attribute.validators {
                if !matches!(element, Value::Null | Value::Unknown) && !validator.accepts(element) {
                    let shown = shown(attribute, element);
                    self.diagnostics.error_at(
                        path.clone(),
                        "Invalid value",
                        format!("{path} must be {}{shown}.", validator.rule()),
                    );
                }
            }
        }
    }
}

/// The value as an addition to an error, unless it is a secret or too long to help.
fn shown(attribute: &Attribute, value: &Value) -> String {
    const LONGEST: usize = 120;
    let text = match value {
        Value::String(text) if text.chars().count() <= LONGEST => format!("{text:?}"),
        Value::Number(number) => number.to_string(),
        _ => return String::new(),
    };
    if attribute.sensitive || attribute.write_only { String::new() } else { format!("; it is {text}") }
}

/// The elements of a collection with their paths, or a single value with its own.
fn elements<'a>(value: &'a Value, path: &Path) -> Vec<(&'a Value, Path)> {
    match value {
        Value::List(elements) => {
            elements.iter().enumerate().map(|(index, element)| (element, path.index(index))).collect()
        }
        Value::Map(elements) => elements.iter().map(|(key, element)| (element, path.key(key))).collect(),
        single => vec![(single, path.clone())],
    }
}
