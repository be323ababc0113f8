//! Actions through the protocol: any number of lines, and one end.

use terraform_plugin::{
    framework::{Type, Value},
    protocol::tfplugin6::{
        ClientCapabilities, Diagnostic, get_metadata, get_provider_schema,
        invoke_action::{self, event::Type as Event},
        plan_action, stop_provider, validate_action_config,
    },
    testing::dynamic,
};
use tokio_stream::StreamExt as _;

use crate::{
    echo::shout::SHOUT,
    protocol::fixture::{Fixture, hostile, only, path},
};

fn ty() -> Type {
    Type::object([("text", Type::String), ("times", Type::Number)])
}

fn words(text: impl Into<Value>) -> Value {
    Value::object([("text", text.into()), ("times", Value::Null)])
}

fn request(text: impl Into<Value>) -> invoke_action::Request {
    invoke_action::Request {
        action_type: SHOUT.to_owned(),
        config: Some(dynamic(&ty(), &words(text))),
        ..invoke_action::Request::default()
    }
}

/// The progress and the diagnostics, checked like in Terraform: one completed event, and nothing after it.
async fn told(stream: tonic::Streaming<invoke_action::Event>) -> (Vec<String>, Vec<Diagnostic>) {
    let mut events: Vec<_> = stream.map(|event| event.unwrap().r#type.expect("an event is something")).collect().await;
    let Some(Event::Completed(completed)) = events.pop() else { panic!("not completed") };
    let lines = events.into_iter().map(|event| match event {
        Event::Progress(progress) => progress.message,
        Event::Completed(_) => panic!("completed twice"),
    });
    (lines.collect(), completed.diagnostics)
}

async fn invoke(fixture: &mut Fixture, request: invoke_action::Request) -> (Vec<String>, Vec<Diagnostic>) {
    told(fixture.core.client.invoke_action(request).await.unwrap().into_inner()).await
}

#[tokio::test]
async fn the_schema_and_the_metadata_name_them() {
    let client = &mut Fixture::unconfigured().core.client;
    let schema = client.get_provider_schema(get_provider_schema::Request {}).await.unwrap().into_inner();
    // Terraform crashes on an action without its schema.
    assert_eq!(schema.action_schemas[SHOUT].schema.as_ref().unwrap().block.as_ref().unwrap().attributes.len(), 2);
    let metadata = client.get_metadata(get_metadata::Request {}).await.unwrap().into_inner();
    assert_eq!(metadata.actions[0].type_name, SHOUT);
}

#[tokio::test]
async fn lines_come_before_the_end() {
    let mut fixture = Fixture::new().await;
    let (lines, said) = invoke(&mut fixture, request("hey")).await;
    assert_eq!(lines, ["hey 1", "hey 2"]);
    assert!(said.is_empty());
    let (lines, said) = invoke(&mut fixture, request("fail")).await;
    assert_eq!((lines.len(), only(&said).summary.as_str(), path(only(&said)).len()), (2, "Hoarse", 1));
}

#[tokio::test]
async fn every_failure_is_an_end() {
    let mut fixture = Fixture::new().await;
    let (lines, said) = invoke(&mut fixture, request("panic")).await;
    assert_eq!(only(&said).summary, "Bug in the provider");
    assert!(lines.len() <= 2 && !only(&said).detail.contains("planted"));
    let broken = invoke_action::Request { config: Some(hostile()), ..request("hey") };
    assert_eq!(only(&invoke(&mut fixture, broken).await.1).summary, "The configuration cannot be read");
    let nothing = invoke_action::Request { action_type: "echo_nothing".to_owned(), ..Default::default() };
    assert_eq!(only(&invoke(&mut fixture, nothing).await.1).summary, "No such action");
    let (_, said) = invoke(&mut Fixture::unconfigured(), request("hey")).await;
    assert_eq!(only(&said).summary, "The provider is not configured");
}

#[tokio::test]
async fn lines_come_while_it_goes_on_and_a_stop_ends_it() {
    let mut fixture = Fixture::new().await;
    let mut stream = fixture.core.client.invoke_action(request("until-stopped")).await.unwrap().into_inner();
    for _ in 0..2 {
        assert!(matches!(stream.message().await.unwrap().unwrap().r#type, Some(Event::Progress(_))));
    }
    fixture.signals.started.notified().await;
    fixture.core.client.stop_provider(stop_provider::Request {}).await.unwrap();
    let (lines, said) = told(stream).await;
    assert_eq!((lines.len(), only(&said).summary.as_str()), (0, "Stopped"));
}

#[tokio::test]
async fn it_goes_on_when_nobody_listens() {
    let mut fixture = Fixture::new().await;
    let stream = fixture.core.client.invoke_action(request("wait")).await.unwrap();
    fixture.signals.started.notified().await;
    drop(stream);
    fixture.signals.go_on.notify_one();
    fixture.signals.finished.notified().await;
}

#[tokio::test]
async fn it_is_planned_with_what_is_known() {
    let mut fixture = Fixture::unconfigured();
    let request = |text, deferral_allowed| plan_action::Request {
        action_type: SHOUT.to_owned(),
        config: Some(dynamic(&ty(), &words(text))),
        client_capabilities: Some(ClientCapabilities { deferral_allowed, ..ClientCapabilities::default() }),
    };
    let unknown = Value::object([("region", Value::Unknown)]);
    assert!(fixture.core.configure(&unknown).await.is_empty());
    let client = &mut fixture.core.client;
    let planned = client.plan_action(request(Value::Unknown, false)).await.unwrap().into_inner();
    assert_eq!(only(&planned.diagnostics).detail, "what is not known yet, with no client");
    assert!(planned.deferred.is_none());
    let planned = client.plan_action(request("hey".into(), true)).await.unwrap().into_inner();
    assert_eq!((planned.deferred.unwrap().reason, planned.diagnostics.len()), (2, 0));
    let client = &mut Fixture::new().await.core.client;
    let planned = client.plan_action(request("hey".into(), true)).await.unwrap().into_inner();
    assert_eq!(only(&planned.diagnostics).detail, "hey, with a client");
    assert!(planned.deferred.is_none());
}

#[tokio::test]
async fn its_configuration_is_checked() {
    let mut fixture = Fixture::unconfigured();
    let mut validate = async |text: Value| {
        let config = Some(dynamic(&ty(), &words(text)));
        let request = validate_action_config::Request { type_name: SHOUT.to_owned(), config };
        fixture.core.client.validate_action_config(request).await.unwrap().into_inner().diagnostics
    };
    assert!(validate("hey".into()).await.is_empty());
    assert!(validate(Value::Unknown).await.is_empty());
    for wrong in ["".into(), Value::Null] {
        assert_eq!(path(only(&validate(wrong).await)).len(), 1);
    }
}
