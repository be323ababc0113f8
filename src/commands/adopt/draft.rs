//! The import block and configuration of one object.

use super::{Kind, hcl};
use crate::framework::Value;

/// The configuration of one thing.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) kind: Kind,
    /// The import id.
    pub(super) id: String,
    /// What the operator knows it by.
    pub(super) name: String,
    /// What the configuration calls it.
    pub(super) label: String,
    /// What is said of it, in the order of the schema.
    pub(super) arguments: Vec<(String, Value)>,
    /// What has to be said and the service never tells: a guess that the plan passes over.
    pub(super) untold: Vec<(String, Value)>,
}

impl Draft {
    /// Its address in the configuration.
    pub(super) fn address(&self) -> String {
        format!("{}.{}", self.kind.type_name(), self.label)
    }

    /// Its import block.
    pub(super) fn import(&self) -> String {
        format!("import {{\n  to = {}\n  id = {}\n}}\n", self.address(), hcl::quoted(&self.id))
    }

    /// Its resource block.
    pub(super) fn resource(&self) -> String {
        let mut paragraphs = vec![hcl::arguments(&self.arguments)];
        if !self.untold.is_empty() {
            let names: Vec<&str> = self.untold.iter().map(|(name, _)| name.as_str()).collect();
            paragraphs.push(format!(
                "  # The service never tells this. Write what is true before it leaves ignore_changes.\n{}",
                hcl::arguments(&self.untold)
            ));
            paragraphs.push(format!("  lifecycle {{\n    ignore_changes = [{}]\n  }}\n", names.join(", ")));
        }
        let (kind, label) = (hcl::quoted(self.kind.type_name()), hcl::quoted(&self.label));
        format!("resource {kind} {label} {{\n{}}}\n", paragraphs.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guess_is_told_apart_from_what_is_known() {
        let draft = Draft {
            kind: Kind::Instance,
            id: "ins-\"1".to_owned(),
            name: "X".to_owned(),
            label: "x".to_owned(),
            arguments: vec![("name".to_owned(), "X".into()), ("gpu_num".to_owned(), 1.into())],
            untold: vec![("purchase_duration".to_owned(), 1.into())],
        };
        assert_eq!(draft.import(), "import {\n  to = damodel_instance.x\n  id = \"ins-\\\"1\"\n}\n");
        let expected = "resource \"damodel_instance\" \"x\" {\n  name    = \"X\"\n  gpu_num = 1\n\n  # The service \
                        never tells this. Write what is true before it leaves ignore_changes.\n  purchase_duration = \
                        1\n\n  lifecycle {\n    ignore_changes = [purchase_duration]\n  }\n}\n";
        assert_eq!(draft.resource(), expected);
    }
}
