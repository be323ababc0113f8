//! Signatures of functions as messages.

use crate::{
    framework::{Parameter, Signature},
    protocol::{
        codec::encode_type,
        tfplugin6::{
            Function, StringKind,
            function::{Parameter as WireParameter, Return},
        },
    },
};

/// A signature as a message. The core crashes on a function without a return (plugin protocol, missing-field crashes).
pub(in crate::protocol) fn function(signature: &Signature) -> Function {
    Function {
        parameters: signature.parameters.iter().map(parameter).collect(),
        variadic_parameter: signature.variadic.as_ref().map(parameter),
        r#return: Some(Return { r#type: encode_type(&signature.returns) }),
        summary: signature.summary.clone(),
        description: signature.description.clone(),
        description_kind: StringKind::Markdown.into(),
        deprecation_message: String::new(),
    }
}

fn parameter(parameter: &Parameter) -> WireParameter {
    WireParameter {
        name: parameter.name.clone(),
        r#type: encode_type(&parameter.ty),
        allow_null_value: parameter.takes_null,
        allow_unknown_values: parameter.takes_unknown,
        description: parameter.description.clone(),
        description_kind: StringKind::Markdown.into(),
    }
}
