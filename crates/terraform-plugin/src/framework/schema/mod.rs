//! Schemas: attributes with their types, requirements and rules. The core's schema, the checks, the plan and the docs
//! are derived from them.

pub(super) mod description;
mod validator;

use std::collections::BTreeMap;

pub use validator::{Selection, Validator};

use super::value::{Type, Value, ValueKey};

/// The schema of the provider, a resource, a data source, or another configured object.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    /// The version of the state's layout, from 0; a state of an older version is upgraded.
    pub version: i64,
    /// The description, in Markdown.
    pub description: String,
    /// The attributes, in the order in which the docs list them.
    pub attributes: Vec<Attribute>,
    /// Blocks that may appear once (`timeouts { … }`).
    pub blocks: Vec<Block>,
    /// Rules about which arguments are set.
    pub selections: Vec<Selection>,
    /// What to use instead, if the whole is deprecated.
    pub deprecated: Option<String>,
}

/// A block that appears once or not at all.
///
/// Lists of objects are nested attributes, which may be null or computed and may have defaults. The only block is the
/// customary `timeouts`.
#[derive(Clone, Debug)]
pub struct Block {
    /// The block's name.
    pub name: ValueKey,
    /// The description, in Markdown.
    pub description: String,
    /// Its attributes.
    pub attributes: Vec<Attribute>,
}

impl Schema {
    /// A schema of version 0.
    pub fn new(description: impl Into<String>, attributes: Vec<Attribute>) -> Self {
        Self { description: description.into(), attributes, ..Self::default() }
    }

    /// Adds a rule about which arguments are set.
    #[must_use]
    pub fn select(mut self, selection: Selection) -> Self {
        self.selections.push(selection);
        self
    }

    /// Warns everybody who configures it; the text says what to use instead.
    #[must_use]
    pub fn deprecated(mut self, instead: impl Into<String>) -> Self {
        self.deprecated = Some(instead.into());
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

fn object_type(attributes: &[Attribute]) -> BTreeMap<ValueKey, Type> {
    attributes.iter().map(|attribute| (attribute.name.clone(), attribute.ty.ty())).collect()
}

/// Whether the configuration or the provider sets an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// Only the provider sets it.
    Computed,
    /// The configuration may set it; otherwise it is null.
    Optional,
    /// The configuration may set it; otherwise the provider does.
    OptionalComputed,
    /// The configuration must set it.
    Required,
}

/// Whether a changed value needs a replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// Every change, including from and to null.
    Always,
    /// Every change, except of an argument that an import could not read because the service never reports it: setting
    /// it is an update in place.
    IfKnown,
    /// No change: every change is in place.
    Never,
}

/// The form of a nested attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nesting {
    /// A list of objects.
    List,
    /// One object.
    Single,
}

/// The type of an attribute.
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
    pub name: ValueKey,
    /// The type.
    pub ty: AttributeType,
    /// Whether the configuration or the provider sets it.
    pub requirement: Requirement,
    /// The description, in Markdown.
    pub description: String,
    /// Whether the core hides the value.
    pub sensitive: bool,
    /// Whether only the apply sees the value, and plan and state never store it.
    pub write_only: bool,
    /// The value if the configuration sets none.
    pub default: Option<Value>,
    /// Whether a change needs a replacement.
    pub replacement: Replacement,
    /// Names of top-level attributes: a change of one makes this computed value unknown. In an update in place every
    /// other computed value stays known, so that dependent resources do not change.
    pub follows: Vec<String>,
    /// The rules for a configured value.
    pub validators: Vec<Validator>,
    /// What to use instead, if it is deprecated.
    pub deprecated: Option<String>,
}

impl Attribute {
    /// An attribute that the configuration must set.
    pub fn required(name: impl Into<ValueKey>, ty: impl Into<AttributeType>, description: impl Into<String>) -> Self {
        Self::new(name, ty.into(), Requirement::Required, description.into())
    }

    /// An attribute that the configuration may set.
    pub fn optional(name: impl Into<ValueKey>, ty: impl Into<AttributeType>, description: impl Into<String>) -> Self {
        Self::new(name, ty.into(), Requirement::Optional, description.into())
    }

    /// An attribute that only the provider sets.
    pub fn computed(name: impl Into<ValueKey>, ty: impl Into<AttributeType>, description: impl Into<String>) -> Self {
        Self::new(name, ty.into(), Requirement::Computed, description.into())
    }

    /// An attribute that the configuration may set, and the provider sets otherwise.
    pub fn optional_computed(
        name: impl Into<ValueKey>,
        ty: impl Into<AttributeType>,
        description: impl Into<String>,
    ) -> Self {
        Self::new(name, ty.into(), Requirement::OptionalComputed, description.into())
    }

    /// An attribute with a default. The default is shown in plan and state, so the attribute is optional and computed
    /// for the core.
    pub fn with_default(
        name: impl Into<ValueKey>,
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

    /// Sets which changes need a replacement.
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
    pub fn validate(mut self, validator: Validator) -> Self {
        self.validators.push(validator);
        self
    }

    /// Warns everybody who sets it; the text says what to use instead.
    #[must_use]
    pub fn deprecated(mut self, instead: impl Into<String>) -> Self {
        self.deprecated = Some(instead.into());
        self
    }

    /// Whether the provider may set it.
    pub fn is_computed(&self) -> bool {
        matches!(self.requirement, Requirement::Computed | Requirement::OptionalComputed)
    }

    fn new(name: impl Into<ValueKey>, ty: AttributeType, requirement: Requirement, description: String) -> Self {
        Self {
            name: name.into(),
            ty,
            requirement,
            description,
            sensitive: false,
            write_only: false,
            default: None,
            replacement: Replacement::Never,
            follows: Vec::new(),
            validators: Vec::new(),
            deprecated: None,
        }
    }
}
