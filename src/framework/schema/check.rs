use std::collections::BTreeSet;

use super::{Attribute, AttributeType, Nesting, Presence, Schema};
use crate::framework::{path::Path, value::Type};

/// A fault of a schema that would make the provider unusable in the core.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("schema of {path}: {fault}")]
pub struct SchemaFault {
    path: Path,
    fault: &'static str,
}

impl Schema {
    /// All faults by the core's own rules (plugin protocol, schema rules). A test holds every registered schema to none.
    pub fn faults(&self) -> Vec<SchemaFault> {
        let mut faults = Vec::new();
        let mut names = BTreeSet::new();
        for name in self.attributes.iter().map(|a| &a.name).chain(self.blocks.iter().map(|b| &b.name)) {
            if !names.insert(name) {
                faults.push(SchemaFault { path: Path::to(name), fault: "the name is used twice" });
            }
        }
        check_attributes(&self.attributes, &Path::root(), false, &mut faults);
        for block in &self.blocks {
            check_attributes(&block.attributes, &Path::to(&block.name), false, &mut faults);
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

fn check_attributes(attributes: &[Attribute], parent: &Path, in_set: bool, faults: &mut Vec<SchemaFault>) {
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
        if attribute.write_only && (attribute.is_computed() || in_set) {
            fault("a write-only attribute may be neither computed nor inside a set");
        }
        match &attribute.ty {
            AttributeType::Plain(ty) if has_dynamic_inside(ty) => fault("dynamic inside a collection"),
            AttributeType::Plain(_) => {}
            AttributeType::Nested(nesting, children) => {
                check_attributes(children, &path, in_set || *nesting == Nesting::Set, faults);
            }
        }
    }
}

/// Elements of different types inside one collection make the core's value library panic (plugin protocol, value encoding).
fn has_dynamic_inside(ty: &Type) -> bool {
    fn holds_dynamic(ty: &Type) -> bool {
        match ty {
            Type::Dynamic => true,
            Type::List(element) | Type::Set(element) | Type::Map(element) => holds_dynamic(element),
            Type::Object(attributes) => attributes.values().any(holds_dynamic),
            Type::Tuple(elements) => elements.iter().any(holds_dynamic),
            Type::Bool | Type::Number | Type::String => false,
        }
    }
    match ty {
        Type::List(element) | Type::Set(element) | Type::Map(element) => holds_dynamic(element),
        Type::Object(attributes) => attributes.values().any(has_dynamic_inside),
        Type::Tuple(elements) => elements.iter().any(has_dynamic_inside),
        Type::Bool | Type::Dynamic | Type::Number | Type::String => false,
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
                Attribute::optional("silent", Type::String, "The name again.").follows(&["nothing"]),
            ],
        );
        assert_eq!(schema.faults().len(), 7);
    }
}
