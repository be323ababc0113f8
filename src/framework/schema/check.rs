//! Checks schemas as they are registered.

use std::collections::BTreeSet;

use super::{Attribute, AttributeType, Presence, Schema};
use crate::framework::{path::Path, value::Type};

/// A fault of a schema that would make the provider unusable in the core.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("schema of {path}: {fault}")]
pub(in crate::framework) struct SchemaFault {
    path: Path,
    fault: &'static str,
}

impl Schema {
    /// All faults by the core's own rules (plugin protocol, schema rules). A test holds every registered schema to
    /// none.
    pub(in crate::framework) fn faults(&self) -> Vec<SchemaFault> {
        let mut faults = Vec::new();
        let mut names = BTreeSet::new();
        for name in self.attributes.iter().map(|a| &a.name).chain(self.blocks.iter().map(|b| &b.name)) {
            if !names.insert(name) {
                faults.push(SchemaFault { path: Path::to(name), fault: "the name is used twice" });
            }
        }
        check_attributes(&self.attributes, &Path::root(), &mut faults);
        for block in &self.blocks {
            check_attributes(&block.attributes, &Path::to(&block.name), &mut faults);
            if block.attributes.iter().any(|attribute| !is_plain_argument(attribute)) {
                faults.push(SchemaFault { path: Path::to(&block.name), fault: "a block takes plain arguments only" });
            }
        }
        for attribute in &self.attributes {
            for name in attribute.follows.iter().filter(|name| self.attribute(name).is_none()) {
                faults.push(SchemaFault { path: Path::to(name), fault: "followed, but there is no such attribute" });
            }
        }
        if self.version < 0 {
            faults.push(SchemaFault { path: Path::root(), fault: "the version is negative" });
        }
        faults
    }
}

fn check_attributes(attributes: &[Attribute], parent: &Path, faults: &mut Vec<SchemaFault>) {
    for attribute in attributes {
        let path = parent.attribute(&attribute.name);
        let mut fault = |fault| faults.push(SchemaFault { path: path.clone(), fault });
        let mut letters = attribute.name.chars();
        if !letters.next().is_some_and(|first| first.is_ascii_lowercase() || first == '_')
            || !letters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        {
            fault("the name is not lower case letters, digits and underscores");
        }
        if attribute.description.is_empty() {
            fault("there is no description");
        }
        if attribute.default.is_some() && attribute.presence != Presence::OptionalComputed {
            fault("a default needs optional and computed");
        }
        if attribute.write_only && attribute.is_computed() {
            fault("a write-only attribute cannot be computed");
        }
        match &attribute.ty {
            AttributeType::Plain(ty) if !is_planned(ty) => {
                fault("the plan has no rules for sets, tuples and dynamic values")
            }
            AttributeType::Plain(_) => {}
            AttributeType::Nested(_, children) => check_attributes(children, &path, faults),
        }
    }
}

/// Whether a plan can copy the attribute from the configuration.
fn is_plain_argument(attribute: &Attribute) -> bool {
    !attribute.is_computed() && matches!(attribute.ty, AttributeType::Plain(_))
}

/// Whether the rules of plans and results know the type. A set has no paths and needs rules of its own for what belongs
/// together.
fn is_planned(ty: &Type) -> bool {
    match ty {
        Type::Bool | Type::Number | Type::String => true,
        Type::List(element) | Type::Map(element) => is_planned(element),
        Type::Object(attributes) => attributes.values().all(is_planned),
        Type::Dynamic | Type::Set(_) | Type::Tuple(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framework::value::Value;

    #[test]
    fn a_sound_schema_has_no_faults() {
        let schema = Schema::new(
            "A thing.",
            vec![
                Attribute::required("name", Type::String, "The name."),
                Attribute::with_default("size", Type::Number, 20, "The size."),
            ],
        );
        assert_eq!(schema.faults(), vec![]);
    }

    #[test]
    fn each_fault_is_found() {
        let mut defaulted = Attribute::optional("defaulted", Type::Bool, "A default without computed.");
        defaulted.default = Some(Value::Bool(true));
        let schema = Schema::new(
            "Faults.",
            vec![
                Attribute::optional("Upper", Type::String, "Upper case."),
                Attribute::optional("silent", Type::String, ""),
                defaulted,
                Attribute::computed("secret", Type::String, "Computed and write-only.").write_only(),
                Attribute::optional("mixed", Type::list(Type::Dynamic), "Dynamic in a list."),
                Attribute::optional("set", Type::set(Type::String), "A set."),
                Attribute::optional("silent", Type::String, "The name again.").follows(&["nothing"]),
            ],
        );
        assert_eq!(schema.faults().len(), 8);
    }
}
