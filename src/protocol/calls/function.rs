use std::collections::HashMap;

use crate::{
    framework::{Diagnostics, Provider, server::CallError},
    protocol::{
        convert,
        service::{Call, Driver},
        tfplugin6::{FunctionError, call_function, get_functions},
    },
};

/// Asked by OpenTofu of configured providers; what there is does not depend on the configuration.
impl Call for get_functions::Request {
    type Response = get_functions::Response;
    const NAME: &'static str = "GetFunctions";

    async fn answer<P: Provider>(&self, driver: &Driver<P>) -> Result<Self::Response, Diagnostics> {
        let functions = &driver.server.schemas().functions;
        let functions: HashMap<_, _> =
            functions.iter().map(|(&name, signature)| (name.to_owned(), convert::function(signature))).collect();
        Ok(get_functions::Response { functions, diagnostics: Vec::new() })
    }
}

impl Call for call_function::Request {
    type Response = call_function::Response;
    const NAME: &'static str = "CallFunction";

    fn type_name(&self) -> &str {
        &self.name
    }

    async fn answer<P: Provider>(&self, driver: &Driver<P>) -> Result<Self::Response, Diagnostics> {
        Ok(call(self, driver).unwrap_or_else(|error| call_function::Response {
            result: None,
            error: Some(FunctionError {
                text: error.text,
                function_argument: error.argument.and_then(|argument| i64::try_from(argument).ok()),
            }),
        }))
    }
}

fn call<P: Provider>(
    request: &call_function::Request,
    driver: &Driver<P>,
) -> Result<call_function::Response, CallError> {
    let whole = |text: String| CallError { text, argument: None };
    let signature = driver.server.schemas().functions.get(request.name.as_str());
    let signature = signature
        .ok_or_else(|| whole(format!("No such function: this version of the provider has no {:?}", request.name)))?;
    let mut arguments = Vec::with_capacity(request.arguments.len());
    for (position, argument) in request.arguments.iter().enumerate() {
        let parameter = signature
            .parameter(position)
            .ok_or_else(|| whole(format!("it takes {} arguments", signature.parameters.len())))?;
        // An empty value is null: so OpenTofu sends it (plugin protocol, functions).
        let argument =
            convert::argument(&parameter.ty, argument).map_err(|text| CallError { text, argument: Some(position) })?;
        arguments.push(argument);
    }
    let result = driver.server.call_function(&request.name, arguments)?;
    let mut diagnostics = Diagnostics::new();
    let result = convert::written(&signature.returns, &result, &mut diagnostics);
    match diagnostics.into_iter().next() {
        Some(fault) => Err(whole(fault.detail)),
        None => Ok(call_function::Response { result, error: None }),
    }
}
