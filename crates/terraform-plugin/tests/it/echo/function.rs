//! A function that returns its arguments as text.

use serde::Deserialize;
use terraform_plugin::framework::{Attr, Function, FunctionError, Parameter, Signature, Type, schema::Validator};

#[derive(Debug)]
pub(super) struct Describe;

#[derive(Debug, Deserialize)]
pub(crate) struct Arguments {
    word: String,
    count: Attr<i64>,
    open: String,
}

impl Function for Describe {
    type Arguments = Arguments;
    type Output = Attr<String>;

    fn name(&self) -> &'static str {
        "describe"
    }

    fn signature(&self) -> Signature {
        let parameter = |name: &str, ty| Parameter::new(name, ty, "Any.");
        Signature {
            summary: "Tells".to_owned(),
            description: "Tells what it was called with.".to_owned(),
            parameters: vec![
                parameter("word", Type::String),
                parameter("count", Type::Number).takes_null().validate(Validator::between(0..=9)),
                parameter("open", Type::String),
            ],
            returns: Type::String,
        }
    }

    fn call(&self, arguments: Arguments) -> Result<Attr<String>, FunctionError> {
        match arguments.word.as_str() {
            "panic" => panic!("planted"),
            "null" => return Ok(Attr::Null),
            "unknown" => return Ok(Attr::Unknown),
            "refused" => return Err(FunctionError::whole("no such word")),
            "open" => return Err(FunctionError::on("open", "too wide")),
            _ => {}
        }
        let count = arguments.count.known().map_or_else(|| "none".to_owned(), ToString::to_string);
        Ok(Attr::Known(format!("{} {count} {}", arguments.word, arguments.open)))
    }
}
