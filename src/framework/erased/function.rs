use super::Erased;
use crate::framework::{
    fill::conform,
    function::{Function, FunctionError, Signature},
    model::{ModelError, Shape, from_value, shape, to_value},
    value::Value,
};

/// A function whose arguments and result are plain values.
pub(in crate::framework) trait AnyFunction: Send + Sync {
    fn name(&self) -> &'static str;
    fn signature(&self) -> Signature;
    /// The types of the arguments' and the result's models, to be compared with the signature.
    fn shapes(&self) -> Result<(Shape, Shape), ModelError>;
    /// Calls with an object of all arguments.
    fn call(&self, arguments: &Value) -> Result<Result<Value, FunctionError>, ModelError>;
}

impl<F: Function> Erased<F> {
    pub(in crate::framework) fn function(typed: F) -> Self {
        let ty = typed.signature().returns;
        Self { typed, schema: Default::default(), ty, identity: None }
    }
}

impl<F: Function> AnyFunction for Erased<F> {
    fn name(&self) -> &'static str {
        self.typed.name()
    }

    fn signature(&self) -> Signature {
        self.typed.signature()
    }

    fn shapes(&self) -> Result<(Shape, Shape), ModelError> {
        Ok((shape::<F::Arguments>()?, shape::<F::Output>()?))
    }

    fn call(&self, arguments: &Value) -> Result<Result<Value, FunctionError>, ModelError> {
        let arguments = match from_value(arguments) {
            Ok(arguments) => arguments,
            Err(error) => {
                let (parameter, text) = error.by_attribute();
                return Ok(Err(FunctionError { parameter, text }));
            }
        };
        match self.typed.call(arguments) {
            Ok(output) => Ok(Ok(conform(&self.ty, to_value(&output)?))),
            Err(error) => Ok(Err(error)),
        }
    }
}
