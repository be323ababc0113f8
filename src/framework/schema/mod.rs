//! What a configuration may say: attributes with their types, presence and rules, from which the core's schema, the
//! checks, the plan and the docs are made.

mod attribute;
#[cfg(test)]
mod check;
pub mod validator;

use std::collections::BTreeMap;

pub use attribute::{Attribute, AttributeType, Nesting, Presence, Replacement};
pub use validator::Validator;

use super::value::Type;

/// The schema of the provider, a resource, a data source, or anything else that is configured.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    /// Version of the state's layout, from 0; a state of an older version is upgraded.
    pub version: i64,
    /// What the thing is, in Markdown.
    pub description: String,
    /// The attributes, in the order in which the docs list them.
    pub attributes: Vec<Attribute>,
    /// Blocks that may appear once (`timeouts { … }`).
    pub blocks: Vec<Block>,
}

/// A block that appears once or not at all.
///
/// Lists of things are nested attributes here, which may be null, computed and have defaults; the only block is the
/// customary `timeouts`.
#[derive(Clone, Debug)]
pub struct Block {
    /// The block's name.
    pub name: String,
    /// What it is, in Markdown.
    pub description: String,
    /// What it holds.
    pub attributes: Vec<Attribute>,
}

impl Schema {
    /// A schema of version 0.
    pub fn new(description: impl Into<String>, attributes: Vec<Attribute>) -> Self {
        Self { version: 0, description: description.into(), attributes, blocks: Vec::new() }
    }

    /// The same with a block.
    #[must_use]
    pub fn with_block(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }

    /// The type of a whole value of this schema (plugin protocol, value encoding: implied type).
    pub fn ty(&self) -> Type {
        let mut attributes = object_type(&self.attributes);
        for block in &self.blocks {
            attributes.insert(block.name.clone(), Type::Object(object_type(&block.attributes)));
        }
        Type::Object(attributes)
    }

    /// The attribute of this name, at the top.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| attribute.name == name)
    }
}

fn object_type(attributes: &[Attribute]) -> BTreeMap<String, Type> {
    attributes.iter().map(|attribute| (attribute.name.clone(), attribute.ty.ty())).collect()
}
