//! What a configuration may say: attributes with their types, requirements and rules, from which the core's schema, the
//! checks, the plan and the docs are made.

pub mod validator;

use std::{collections::BTreeMap, sync::Arc};

pub use validator::Validator;

use super::value::{Type, Value};

/// The schema of the provider, a resource, a data source, or anything else that is configured.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    /// Version of the state's layout, from 0; a state of an older version is upgraded.
    pub version: i64,
    /// What is configured, in Markdown.
    pub description: String,
    /// The attributes, in the order in which the docs list them.
    pub attributes: Vec<Attribute>,
    /// Blocks that may appear once (`timeouts { … }`).
    pub blocks: Vec<Block>,
}

/// A block that appears once or not at all.
///
/// Lists of objects are nested attributes here, which may be null, computed and have defaults; the only block is the
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

/// Who sets an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// The provider alone.
    Computed,
    /// The configuration; null without it.
    Optional,
    /// The configuration, or else the provider.
    OptionalComputed,
    /// The configuration, always.
    Required,
}

/// Whether a changed value needs a replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// Any change, from and to null included.
    Always,
    /// Any change, but for what an import could not know because the service never reports it: saying that is an update
    /// in place.
    IfKnown,
    /// None: changes are made in place.
    Never,
}

/// How the objects of a nested attribute are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nesting {
    /// A list of objects.
    List,
    /// One object.
    Single,
}

/// What an attribute holds.
#[derive(Clone, Debug)]
pub enum AttributeType {
    /// Objects whose attributes have requirements and rules of their own.
    Nested(Nesting, Vec<Attribute>),
    /// A plain value.
    Plain(Type),
}

impl AttributeType {
    /// The type of a value of the attribute.
    pub fn ty(&self) -> Type {
        match self {
            Self::Plain(ty) => ty.clone(),
            Self::Nested(nesting, attributes) => {
                let object = Type::Object(object_type(attributes));
                match nesting {
                    Nesting::List => Type::list(object),
                    Nesting::Single => object,
                }
            }
        }
    }
}

impl From<Type> for AttributeType {
    fn from(ty: Type) -> Self {
        Self::Plain(ty)
    }
}

/// One attribute.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// The name, lower case with underscores.
    pub name: String,
    /// What it holds.
    pub ty: AttributeType,
    /// Who sets it.
    pub requirement: Requirement,
    /// What it means, in Markdown.
    pub description: String,
    /// Whether the core hides the value.
    pub sensitive: bool,
    /// Whether the value is for the apply alone, and never enters plan or state.
    pub write_only: bool,
    /// The value when the configuration has none.
    pub default: Option<Value>,
    /// Whether a change needs a replacement.
    pub replacement: Replacement,
    /// Names of top-level attributes: a change of one makes this computed value unknown. In an update in place every
    /// other computed value stays known, so that what hangs on it is left alone.
    pub follows: Vec<String>,
    /// What a configured value must obey.
    pub validators: Vec<Arc<dyn Validator>>,
}

impl Attribute {
    /// An attribute that the configuration must set.
    pub fn required(name: &str, ty: impl Into<AttributeType>, description: impl Into<String>) -> Self {
        Self::new(name, ty.into(), Requirement::Required, description.into())
    }

    /// An attribute that the configuration may set.
    pub fn optional(name: &str, ty: impl Into<AttributeType>, description: impl Into<String>) -> Self {
        Self::new(name, ty.into(), Requirement::Optional, description.into())
    }

    /// An attribute that only the provider sets.
    pub fn computed(name: &str, ty: impl Into<AttributeType>, description: impl Into<String>) -> Self {
        Self::new(name, ty.into(), Requirement::Computed, description.into())
    }

    /// An attribute that the configuration may set and the provider otherwise does.
    pub fn optional_computed(name: &str, ty: impl Into<AttributeType>, description: impl Into<String>) -> Self {
        Self::new(name, ty.into(), Requirement::OptionalComputed, description.into())
    }

    /// An attribute with a default, which shows in plan and state and so is optional and computed on the wire.
    pub fn with_default(
        name: &str,
        ty: impl Into<AttributeType>,
        default: impl Into<Value>,
        description: impl Into<String>,
    ) -> Self {
        let mut attribute = Self::optional_computed(name, ty, description);
        attribute.default = Some(default.into());
        attribute
    }

    /// Hides the value in the core's output.
    #[must_use]
    pub fn sensitive(mut self) -> Self {
        self.sensitive = true;
        self
    }

    /// Keeps the value out of plan and state.
    #[must_use]
    pub fn write_only(mut self) -> Self {
        self.write_only = true;
        self
    }

    /// Says when a change needs a replacement.
    #[must_use]
    pub fn replaces(mut self, replacement: Replacement) -> Self {
        self.replacement = replacement;
        self
    }

    /// Makes this computed value unknown when one of the named top-level attributes changes.
    #[must_use]
    pub fn follows(mut self, names: &[&str]) -> Self {
        self.follows = names.iter().map(|&name| name.to_owned()).collect();
        self
    }

    /// Adds a rule for configured values.
    #[must_use]
    pub fn validate(mut self, validator: impl Validator + 'static) -> Self {
        self.validators.push(Arc::new(validator));
        self
    }

    /// Whether the provider may set it.
    pub fn is_computed(&self) -> bool {
        matches!(self.requirement, Requirement::Computed | Requirement::OptionalComputed)
    }

    fn new(name: &str, ty: AttributeType, requirement: Requirement, description: String) -> Self {
        Self {
            name: name.to_owned(),
            ty,
            requirement,
            description,
            sensitive: false,
            write_only: false,
            default: None,
            replacement: Replacement::Never,
            follows: Vec::new(),
            validators: Vec::new(),
        }
    }
}
