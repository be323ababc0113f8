//! Messages of functions.

use std::collections::HashMap;

use crate::{
    framework::{Diagnostics, Kind, Provider, Server, server::CallError},
    protocol::{
        convert,
        service::Call,
        tfplugin6::{Function, FunctionError, call_function, get_functions},
    },
};

/// Asked by OpenTofu of configured providers; what there is does not depend on the configuration.
impl Call for get_functions::Request {
    type Response = get_functions::Response;
    const NAME: &'static str = "GetFunctions";

    async fn answer<P: Provider>(&self, server: &Server<P>) -> Result<Self::Response, Diagnostics> {
        Ok(get_functions::Response { functions: functions(server), diagnostics: Vec::new() })
    }
}

/// The functions with what they take and give.
pub(super) fn functions<P: Provider>(server: &Server<P>) -> HashMap<String, Function> {
    let signatures = server.registry().of(Kind::Function).filter_map(|entry| Some((entry, entry.signature.as_ref()?)));
    signatures.map(|(entry, signature)| (entry.name.to_owned(), convert::function(signature))).collect()
}

impl Call for call_function::Request {
    type Response = call_function::Response;
    const NAME: &'static str = "CallFunction";

    fn type_name(&self) -> &str {
        &self.name
    }

    async fn answer<P: Provider>(&self, server: &Server<P>) -> Result<Self::Response, Diagnostics> {
        Ok(call(self, server).unwrap_or_else(|error| call_function::Response {
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
    server: &Server<P>,
) -> Result<call_function::Response, CallError> {
    let whole = |text: String| CallError { text, argument: None };
    let function = server.registry().find(Kind::Function, &request.name).ok();
    let signature = function
        .and_then(|function| function.signature.as_ref())
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
    let result = server.call_function(&request.name, arguments)?;
    let mut diagnostics = Diagnostics::new();
    let result = convert::written(&signature.returns, &result, &mut diagnostics);
    match diagnostics.into_iter().next() {
        Some(fault) => Err(whole(fault.detail)),
        None => Ok(call_function::Response { result, error: None }),
    }
}
