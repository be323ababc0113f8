//! Functions, as their authors write them.

use std::sync::Arc;

use serde::{Serialize, de::DeserializeOwned};

use super::{schema::Validator, value::Type};

/// A function that configurations call, as in `provider::damodel::parse_image_address(…)`.
///
/// It is pure: it sees its arguments and nothing else, since the core calls it on unconfigured processes, any number of
/// times, and refuses answers that differ (plugin protocol, functions).
pub trait Function: Send + Sync + 'static {
    /// A struct with a field for each parameter, the variadic one as a `Vec`. A parameter that takes null or unknown is
    /// an [`super::Attr`].
    type Arguments: DeserializeOwned + Send + 'static;
    /// The typed form of the result.
    type Output: Serialize + DeserializeOwned + Send + 'static;

    /// The name behind the provider's.
    fn name(&self) -> &'static str;

    /// Parameters, result and description.
    fn signature(&self) -> Signature;

    /// Computes the result. The arguments obey the rules of their parameters.
    fn call(&self, arguments: Self::Arguments) -> Result<Self::Output, FunctionError>;
}

/// What a function takes and gives.
#[derive(Clone, Debug)]
pub struct Signature {
    /// What it does, in one line.
    pub summary: String,
    /// The same at length, in Markdown.
    pub description: String,
    /// The parameters, in their order.
    pub parameters: Vec<Parameter>,
    /// The one that takes all arguments after them.
    pub variadic: Option<Parameter>,
    /// The type of the result.
    pub returns: Type,
}

impl Signature {
    /// The parameter of an argument, by its position; none where there are too many arguments.
    pub fn parameter(&self, position: usize) -> Option<&Parameter> {
        self.parameters.get(position).or(self.variadic.as_ref())
    }
}

/// One parameter.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The name, which errors and docs use.
    pub name: String,
    /// The type that the core converts an argument to.
    pub ty: Type,
    /// What it means, in Markdown.
    pub description: String,
    /// Whether null may be given; if not, null is an error.
    pub takes_null: bool,
    /// Whether unknown values may be given; if not, the result of a call with one is unknown.
    pub takes_unknown: bool,
    /// What a known argument must obey.
    pub validators: Vec<Arc<dyn Validator>>,
}

impl Parameter {
    /// A parameter that takes neither null nor unknown values.
    pub fn new(name: &str, ty: Type, description: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            ty,
            description: description.into(),
            takes_null: false,
            takes_unknown: false,
            validators: Vec::new(),
        }
    }

    /// The same, which takes null.
    #[must_use]
    pub fn takes_null(mut self) -> Self {
        self.takes_null = true;
        self
    }

    /// The same, which takes unknown values.
    #[must_use]
    pub fn takes_unknown(mut self) -> Self {
        self.takes_unknown = true;
        self
    }

    /// Adds a rule.
    #[must_use]
    pub fn validate(mut self, validator: impl Validator + 'static) -> Self {
        self.validators.push(Arc::new(validator));
        self
    }
}

/// Why a function has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionError {
    /// Why, as a fragment that reads after "failed:" or after the name of the parameter. It holds no argument's text,
    /// which may be a secret.
    pub text: String,
    /// The parameter to blame.
    pub parameter: Option<String>,
}

impl FunctionError {
    /// An error about one argument.
    pub fn on(parameter: &str, text: impl Into<String>) -> Self {
        Self { text: text.into(), parameter: Some(parameter.to_owned()) }
    }

    /// An error about the whole call.
    pub fn whole(text: impl Into<String>) -> Self {
        Self { text: text.into(), parameter: None }
    }
}
