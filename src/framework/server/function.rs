//! The call of a function.

use super::Server;
use crate::framework::{FunctionError, Kind, Provider, Signature, Value, function::Parameter};

/// Why a call has no result, with the position of the argument to blame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    /// Why, as a fragment.
    pub text: String,
    /// The argument, counted from 0; variadic ones count on.
    pub argument: Option<usize>,
}

impl<P: Provider> Server<P> {
    /// Calls a function (plugin protocol, functions). What the core is to check of the arguments is checked here too: a
    /// null or unknown value that a parameter does not take never reaches the function.
    pub fn call_function(&self, name: &str, arguments: Vec<Value>) -> Result<Value, CallError> {
        let whole = |text: String| CallError { text, argument: None };
        let found = self.registry.find(Kind::Function, name).ok();
        let Some((function, signature)) = found.and_then(|entry| Some((entry, entry.signature.as_ref()?))) else {
            return Err(whole(format!("This version of the provider has no function {name:?}")));
        };
        if arguments.len() < signature.parameters.len() {
            return Err(whole(format!("it takes {} arguments", signature.parameters.len())));
        }
        let mut open = false;
        for (position, argument) in arguments.iter().enumerate() {
            let Some(parameter) = signature.parameter(position) else {
                return Err(whole(format!("it takes {} arguments", signature.parameters.len())));
            };
            open |= !parameter.takes_unknown && !argument.is_wholly_known();
            if let Some(text) = objection(parameter, argument) {
                return Err(CallError { text, argument: Some(position) });
            }
        }
        if open {
            return Ok(Value::Unknown);
        }
        match function.steps.call(&by_name(signature, arguments)) {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(error)) => Err(positioned(signature, error)),
            Err(error) => Err(whole(format!("this is a bug in the provider, please report it: {error}"))),
        }
    }
}

/// What is wrong with an argument, as far as its parameter tells. Its text is not repeated: it may be a secret.
fn objection(parameter: &Parameter, argument: &Value) -> Option<String> {
    if argument.is_null() {
        return (!parameter.takes_null).then(|| "must not be null".to_owned());
    }
    let broken = parameter.validators.iter().find(|rule| !argument.is_unknown() && !rule.accepts(argument));
    broken.map(|rule| format!("must be {}", rule.rule()))
}

fn by_name(signature: &Signature, arguments: Vec<Value>) -> Value {
    let mut arguments = arguments.into_iter();
    let named =
        signature.parameters.iter().map(|parameter| (parameter.name.clone(), arguments.next().unwrap_or_default()));
    let mut object = Value::object(named.collect::<Vec<_>>());
    if let Some(variadic) = &signature.variadic {
        object.set_attribute(&variadic.name, Value::List(arguments.collect()));
    }
    object
}

fn positioned(signature: &Signature, error: FunctionError) -> CallError {
    let mut parameters = signature.parameters.iter().chain(&signature.variadic);
    let argument = error.parameter.and_then(|blamed| parameters.position(|parameter| parameter.name == blamed));
    CallError { text: error.text, argument }
}
