//! The trait of functions, and their calls.

use super::{
    model::{FromValue, ToValue},
    schema::{Validator, description::rules},
    value::Type,
};

/// A function that configurations call, as in `provider::acme::parse_address(…)`.
///
/// It must depend on its arguments alone: the core calls it on unconfigured processes, any number of times, and refuses
/// answers that differ (plugin protocol, functions).
pub trait Function: Send + Sync + 'static {
    /// A struct with a field for each parameter. A parameter that takes null is an [`super::Attr`]. Or
    /// [`super::Value`]: an object of all arguments.
    type Arguments: FromValue + Send + 'static;
    /// The typed form of the result.
    type Output: ToValue + FromValue + Send + 'static;

    /// The name, without the provider's.
    fn name(&self) -> &'static str;

    /// Parameters, result and description.
    fn signature(&self) -> Signature;

    /// Computes the result. The arguments satisfy the rules of their parameters.
    fn call(&self, arguments: Self::Arguments) -> Result<Self::Output, FunctionError>;
}

/// The parameters and the result of a function.
#[derive(Clone, Debug)]
pub struct Signature {
    /// The description in one line.
    pub summary: String,
    /// The same at length, in Markdown.
    pub description: String,
    /// The parameters, in their order.
    pub parameters: Vec<Parameter>,
    /// The type of the result.
    pub returns: Type,
}

impl Signature {
    /// The same with the rules of the parameters in their descriptions.
    #[must_use]
    pub(super) fn described(mut self) -> Self {
        for parameter in &mut self.parameters {
            for rule in rules(&parameter.validators, &parameter.description, Some(&parameter.ty)) {
                parameter.description.push(' ');
                parameter.description.push_str(&rule);
            }
        }
        self
    }
}

/// One parameter.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The name, which errors and docs use.
    pub name: String,
    /// The type that the core converts an argument to.
    pub ty: Type,
    /// The description, in Markdown.
    pub description: String,
    /// Whether null may be given; if not, null is an error.
    pub takes_null: bool,
    /// The rules for a known argument.
    pub validators: Vec<Validator>,
}

impl Parameter {
    /// A parameter that does not take null.
    pub fn new(name: &str, ty: Type, description: impl Into<String>) -> Self {
        Self { name: name.to_owned(), ty, description: description.into(), takes_null: false, validators: Vec::new() }
    }

    /// Allows null.
    #[must_use]
    pub fn takes_null(mut self) -> Self {
        self.takes_null = true;
        self
    }

    /// Adds a rule.
    #[must_use]
    pub fn validate(mut self, validator: Validator) -> Self {
        self.validators.push(validator);
        self
    }
}

/// An error of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionError {
    /// The reason, as a fragment that reads after "failed:" or after the name of the parameter. It never repeats an
    /// argument, which may be a secret.
    pub text: String,
    /// The parameter that caused it.
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

/// An error of a call, with the position of the argument that caused it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    /// The reason, as a fragment.
    pub text: String,
    /// The argument, counted from 0.
    pub argument: Option<usize>,
}

impl CallError {
    /// An error about the whole call.
    pub fn whole(text: impl Into<String>) -> Self {
        Self { text: text.into(), argument: None }
    }
}
