//! The page of a function.

use std::path::{Path, PathBuf};

use super::{
    Error,
    page::{self, Examples, MARK, provider_name},
    schema::{plain_type, rules},
};
use crate::framework::{Parameter, Signature, Type};

/// The cores that know functions.
const NEEDS: &str = "-> It needs Terraform 1.8 or newer, or OpenTofu 1.7 or newer.";

/// Where the page of a function is.
pub(super) fn path(name: &str) -> PathBuf {
    Path::new("functions").join(name).with_extension("md")
}

/// The page of a function.
pub(super) fn page(name: &str, signature: &Signature, examples: &Examples) -> Result<String, Error> {
    let example = Path::new("functions").join(name).join("function.tf");
    let mut paragraphs = vec![
        page::front_matter(&format!("{name} function - {}", provider_name()), &signature.summary),
        MARK.to_owned(),
        format!("# function: {name}"),
        signature.description.clone(),
        NEEDS.to_owned(),
        "## Example Usage".to_owned(),
        examples.block(&example, "terraform")?,
        "## Signature".to_owned(),
        format!("```text\n{}\n```", line(name, signature)),
        "## Arguments".to_owned(),
        arguments(signature),
    ];
    if let Type::Object(attributes) = &signature.returns {
        let attributes = attributes.iter().map(|(name, ty)| format!("- `{name}` ({})", plain_type(ty)));
        paragraphs.push("## Result".to_owned());
        paragraphs.push("An object with these attributes:".to_owned());
        paragraphs.push(attributes.collect::<Vec<_>>().join("\n"));
    }
    Ok(page::text(&paragraphs))
}

/// The signature in a line, in the words of type constraints.
fn line(name: &str, signature: &Signature) -> String {
    let parameter = |parameter: &Parameter| format!("{} {}", parameter.name, constraint(&parameter.ty));
    let variadic = signature.variadic.iter().map(|it| format!("{}...", parameter(it)));
    let parameters: Vec<String> = signature.parameters.iter().map(parameter).chain(variadic).collect();
    format!("{name}({}) {}", parameters.join(", "), constraint(&signature.returns))
}

fn arguments(signature: &Signature) -> String {
    let item = |parameter: &Parameter, variadic: &str| {
        let nullable = if parameter.takes_null { ", Nullable" } else { "" };
        let is_collection = matches!(parameter.ty, Type::List(_) | Type::Set(_) | Type::Map(_));
        let rules = rules(&parameter.validators, &parameter.description, is_collection);
        let text = std::iter::once(parameter.description.clone()).chain(rules).collect::<Vec<_>>().join(" ");
        format!("1. `{}` ({variadic}{}{nullable}) {text}", parameter.name, plain_type(&parameter.ty))
    };
    let variadic = signature.variadic.iter().map(|parameter| item(parameter, "Variadic, "));
    let parameters = signature.parameters.iter().map(|parameter| item(parameter, ""));
    parameters.chain(variadic).collect::<Vec<_>>().join("\n")
}

fn constraint(ty: &Type) -> String {
    match ty {
        Type::Bool => "bool".to_owned(),
        Type::Dynamic => "any".to_owned(),
        Type::List(element) => format!("list({})", constraint(element)),
        Type::Map(element) => format!("map({})", constraint(element)),
        Type::Number => "number".to_owned(),
        Type::Object(_) => "object".to_owned(),
        Type::Set(element) => format!("set({})", constraint(element)),
        Type::String => "string".to_owned(),
        Type::Tuple(_) => "tuple".to_owned(),
    }
}
