//! Configurations.

use std::{collections::BTreeMap, fmt};

/// A valid `damodel_instance`: named like its label, one RTX 4090, PyTorch.
#[derive(Clone, Debug)]
pub(crate) struct Instance {
    label: String,
    arguments: BTreeMap<String, String>,
    blocks: String,
}

impl Instance {
    pub(crate) fn new(label: &str) -> Self {
        let arguments = [
            ("name", format!("{label:?}")),
            ("spec_id", "103".to_owned()),
            ("gpu_num", "1".to_owned()),
            ("image_id", "902".to_owned()),
            ("image_type", "\"public\"".to_owned()),
        ];
        let arguments = arguments.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Self { label: label.to_owned(), arguments, blocks: String::new() }
    }

    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    /// The same under another label and name.
    pub(crate) fn named(mut self, label: &str) -> Self {
        label.clone_into(&mut self.label);
        self.text("name", label)
    }

    /// Sets an argument to an expression.
    pub(crate) fn set(mut self, name: &str, expression: impl fmt::Display) -> Self {
        self.arguments.insert(name.to_owned(), expression.to_string());
        self
    }

    /// Sets an argument to a text.
    pub(crate) fn text(self, name: &str, value: &str) -> Self {
        self.set(name, format_args!("{value:?}"))
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.arguments.remove(name);
        self
    }

    /// Adds a nested block.
    pub(crate) fn block(mut self, block: &str) -> Self {
        self.blocks.push_str("  ");
        self.blocks.push_str(block);
        self.blocks.push('\n');
        self
    }
}

impl fmt::Display for Instance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "resource \"damodel_instance\" {:?} {{", self.label)?;
        for (name, expression) in &self.arguments {
            writeln!(formatter, "  {name} = {expression}")?;
        }
        writeln!(formatter, "{}}}", self.blocks)
    }
}

/// A `damodel_cloud_disk` named like its label.
pub(crate) fn disk(label: &str) -> String {
    format!("resource \"damodel_cloud_disk\" {label:?} {{\n  name = {label:?}\n  size_gb = 20\n  spec_id = 31\n}}\n")
}

/// A `damodel_private_image` named like its label, of the instance `builder`.
pub(crate) fn image(label: &str) -> String {
    format!(
        "resource \"damodel_private_image\" {label:?} {{\n  name = {label:?}\n  instance_id = \
         damodel_instance.builder.id\n}}\n"
    )
}

/// A configuration with a provider for `cn-east-1` and this body.
pub(crate) fn config(body: impl fmt::Display) -> String {
    config_with("region = \"cn-east-1\"", body)
}

/// The same without live checks of plans, for errors of the service itself.
pub(crate) fn unchecked(body: impl fmt::Display) -> String {
    config_with("region = \"cn-east-1\"\npreflight = false", body)
}

/// A configuration with these arguments of the provider, and this body.
pub(crate) fn config_with(provider: &str, body: impl fmt::Display) -> String {
    format!(
        "terraform {{\n  required_providers {{\n    damodel = {{ source = \"damodel/damodel\" }}\n  }}\n}}\n\
         provider \"damodel\" {{\n{provider}\n}}\n{body}"
    )
}
