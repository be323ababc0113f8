//! Functions through the protocol, on an unconfigured process.

use terraform_plugin::{
    framework::{Type, Value},
    protocol::{
        codec::decode,
        tfplugin6::{DynamicValue, FunctionError, call_function, get_functions, get_metadata, get_provider_schema},
    },
    testing::dynamic,
};

use crate::protocol::fixture::{Fixture, hostile};

const NAME: &str = "describe";

fn text(text: &str) -> DynamicValue {
    dynamic(&Type::String, &text.into())
}

fn number(value: impl Into<Value>) -> DynamicValue {
    dynamic(&Type::Number, &value.into())
}

/// In OpenTofu's form.
fn null() -> DynamicValue {
    DynamicValue::default()
}

fn unknown() -> DynamicValue {
    dynamic(&Type::String, &Value::Unknown)
}

async fn call(name: &str, arguments: Vec<DynamicValue>) -> Result<Value, FunctionError> {
    let request = call_function::Request { name: name.to_owned(), arguments };
    let response = Fixture::unconfigured().core.client.call_function(request).await.unwrap().into_inner();
    match (response.result, response.error) {
        (Some(result), None) => Ok(decode(&Type::String, &result.msgpack).unwrap()),
        (None, Some(error)) => Err(error),
        both => panic!("{both:?}"),
    }
}

async fn refused(arguments: Vec<DynamicValue>) -> (Option<i64>, String) {
    let error = call(NAME, arguments).await.unwrap_err();
    (error.function_argument, error.text)
}

#[tokio::test]
async fn they_are_named_everywhere() {
    let client = &mut Fixture::unconfigured().core.client;
    let schema = client.get_provider_schema(get_provider_schema::Request {}).await.unwrap().into_inner();
    let functions = client.get_functions(get_functions::Request {}).await.unwrap().into_inner();
    assert_eq!(schema.functions, functions.functions);
    let function = &schema.functions[NAME];
    assert_eq!(function.r#return.as_ref().unwrap().r#type, b"\"string\"");
    let flags: Vec<_> =
        function.parameters.iter().map(|p| (p.name.as_str(), p.allow_null_value, p.allow_unknown_values)).collect();
    assert_eq!(flags, [("word", false, false), ("count", true, false), ("open", false, false)]);
    let metadata = client.get_metadata(get_metadata::Request {}).await.unwrap().into_inner();
    assert_eq!(metadata.functions[0].name, NAME);
}

#[tokio::test]
async fn arguments_arrive_in_their_places() {
    for _ in 0..2 {
        let result = call(NAME, vec![text("a"), number(3), text("b")]).await;
        assert!(result.unwrap() == "a 3 b".into());
    }
    for no_count in [null(), number(Value::Null)] {
        let result = call(NAME, vec![text("a"), no_count, text("b")]).await;
        assert!(result.unwrap() == "a none b".into());
    }
}

#[tokio::test]
async fn null_is_refused_where_it_is_not_taken() {
    for nothing in [null(), dynamic(&Type::String, &Value::Null)] {
        assert_eq!(refused(vec![nothing, null(), text("b")]).await, (Some(0), "must not be null".to_owned()));
    }
}

#[tokio::test]
async fn what_is_unknown_makes_the_result_unknown() {
    let result = call(NAME, vec![unknown(), number(1), text("b")]).await;
    assert!(result.unwrap().is_unknown());
    let result = call(NAME, vec![text("a"), number(1), unknown()]).await;
    assert!(result.unwrap().is_unknown());
    // A violated rule is reported as early as possible.
    let (argument, _) = refused(vec![unknown(), number(10), text("b")]).await;
    assert_eq!(argument, Some(1));
}

#[tokio::test]
async fn a_broken_rule_names_its_argument_and_no_value() {
    for wrong in [number(10), number(Value::Number("1.5".parse().unwrap()))] {
        let said = refused(vec![text("a"), wrong, text("b")]).await;
        assert_eq!(said, (Some(1), "must be a whole number from 0 to 9".to_owned()));
    }
}

#[tokio::test]
async fn an_error_of_the_function_names_its_argument_or_none() {
    assert_eq!(refused(vec![text("refused"), null(), text("b")]).await, (None, "no such word".to_owned()));
    assert_eq!(refused(vec![text("open"), null(), text("b")]).await, (Some(2), "too wide".to_owned()));
}

#[tokio::test]
async fn a_result_may_be_null_or_unknown() {
    assert!(call(NAME, vec![text("null"), null(), text("b")]).await.unwrap().is_null());
    assert!(call(NAME, vec![text("unknown"), null(), text("b")]).await.unwrap().is_unknown());
}

#[tokio::test]
async fn a_call_that_cannot_be_is_an_error() {
    for arguments in [vec![text("a")], vec![text("a"), null(), text("b"), text("c")]] {
        let (argument, said) = refused(arguments).await;
        assert_eq!((argument, said.as_str()), (None, "it takes 3 arguments"));
    }
    let (argument, said) = refused(vec![text("a"), hostile(), text("b")]).await;
    assert_eq!(argument, Some(1));
    assert!(said.starts_with("cannot be read") && !said.contains("pl"), "{said}");
    let (argument, said) = refused(vec![text("panic"), null(), text("b")]).await;
    assert!(argument.is_none() && said.contains("Bug in the provider") && !said.contains("planted"), "{said}");
    assert!(call("nothing", vec![]).await.unwrap_err().text.contains("No such function"));
}
