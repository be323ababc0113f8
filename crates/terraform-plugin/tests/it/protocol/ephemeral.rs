//! Ephemeral resources through the protocol: opened and closed; held, deferred and refused.

use terraform_plugin::{
    framework::{Type, Value},
    protocol::{
        codec::decode,
        tfplugin6::{
            ClientCapabilities, Diagnostic, close_ephemeral_resource, get_metadata, get_provider_schema,
            open_ephemeral_resource, renew_ephemeral_resource, validate_ephemeral_resource_config,
        },
    },
    testing::{DEADLINE, dynamic},
};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::Request;

use crate::{
    echo::loan::LOAN,
    protocol::fixture::{Fixture, hostile, only, path},
};

fn ty() -> Type {
    Type::object([("name", Type::String), ("size", Type::Number), ("secret", Type::String)])
}

fn loan(name: impl Into<Value>) -> Value {
    Value::object([("name", name.into()), ("size", Value::Null), ("secret", Value::Null)])
}

async fn open(fixture: &mut Fixture, name: &str) -> open_ephemeral_resource::Response {
    let request = open_ephemeral_resource::Request {
        type_name: LOAN.to_owned(),
        config: Some(dynamic(&ty(), &loan(name))),
        ..open_ephemeral_resource::Request::default()
    };
    fixture.core.client.open_ephemeral_resource(request).await.unwrap().into_inner()
}

async fn renew(fixture: &mut Fixture, private: Option<Vec<u8>>) -> renew_ephemeral_resource::Response {
    let request = renew_ephemeral_resource::Request { type_name: LOAN.to_owned(), private };
    fixture.core.client.renew_ephemeral_resource(request).await.unwrap().into_inner()
}

async fn close(fixture: &mut Fixture, private: Option<Vec<u8>>) -> Vec<Diagnostic> {
    let request = close_ephemeral_resource::Request { type_name: LOAN.to_owned(), private };
    fixture.core.client.close_ephemeral_resource(request).await.unwrap().into_inner().diagnostics
}

fn held(fixture: &Fixture) -> usize {
    fixture.signals.loans.count()
}

#[tokio::test]
async fn the_schema_and_the_metadata_name_them() {
    let client = &mut Fixture::unconfigured().core.client;
    let schema = client.get_provider_schema(get_provider_schema::Request {}).await.unwrap().into_inner();
    let block = schema.ephemeral_resource_schemas[LOAN].block.as_ref().unwrap();
    assert!(block.attributes.iter().any(|attribute| attribute.name == "secret" && attribute.sensitive));
    let metadata = client.get_metadata(get_metadata::Request {}).await.unwrap().into_inner();
    assert_eq!(metadata.ephemeral_resources[0].type_name, LOAN);
}

#[tokio::test]
async fn what_is_held_lives_from_open_to_close() {
    let mut fixture = Fixture::new().await;
    let opened = open(&mut fixture, "long").await;
    let result = decode(&ty(), &opened.result.unwrap().msgpack).unwrap();
    let expected = [("name", "long".into()), ("size", 20.into()), ("secret", "planted-long".into())];
    assert!(result == Value::object(expected) && opened.diagnostics.is_empty());
    assert!(opened.renew_at.is_none(), "nothing is to be renewed");
    let private = String::from_utf8(opened.private.clone().unwrap()).unwrap();
    assert!(!private.contains("planted"), "{private}");
    assert_eq!(held(&fixture), 1);

    let renewed = renew(&mut fixture, opened.private).await;
    assert!(renewed.diagnostics.is_empty() && renewed.renew_at.is_none());
    assert_eq!(held(&fixture), 1);
    // A second close, or one in another process, has no effect.
    for private in [renewed.private.clone(), renewed.private, None, Some(b"\xff".to_vec())] {
        assert!(close(&mut fixture, private).await.is_empty());
        assert_eq!(held(&fixture), 0);
    }
}

#[tokio::test]
async fn each_open_holds_its_own() {
    let mut fixture = Fixture::new().await;
    let (one, two) = (open(&mut fixture, "a").await, open(&mut fixture, "a").await);
    assert_eq!(held(&fixture), 2);
    close(&mut fixture, one.private).await;
    assert_eq!(held(&fixture), 1);
    close(&mut fixture, two.private).await;
    assert_eq!(held(&fixture), 0);
}

#[tokio::test]
async fn what_the_configuration_says_comes_back_as_it_is() {
    let mut fixture = Fixture::new().await;
    let opened = open(&mut fixture, "changed").await;
    let result = decode(&ty(), &opened.result.unwrap().msgpack).unwrap();
    let expected = [("name", "changed".into()), ("size", 20.into()), ("secret", Value::Null)];
    assert!(result == Value::object(expected));
}

#[tokio::test]
async fn what_fails_to_open_holds_nothing() {
    let mut fixture = Fixture::new().await;
    for (name, summary) in [("refused", "Refused"), ("half", "Half done"), ("panic", "Bug in the provider")] {
        let opened = open(&mut fixture, name).await;
        assert_eq!(only(&opened.diagnostics).summary, summary);
        let result = opened.result.map(|result| decode(&ty(), &result.msgpack).unwrap());
        assert!(result.unwrap_or_default().is_null());
        assert_eq!(held(&fixture), 0, "{name}");
    }
}

/// One process may serve several callers, and a caller that has disconnected closes nothing.
#[tokio::test]
async fn what_nobody_hears_of_is_not_held() {
    let mut fixture = Fixture::new().await;
    let request = open_ephemeral_resource::Request {
        type_name: LOAN.to_owned(),
        config: Some(dynamic(&ty(), &loan("unheard"))),
        ..open_ephemeral_resource::Request::default()
    };
    let mut client = fixture.core.client.clone();
    let call = tokio::spawn(async move { client.open_ephemeral_resource(request).await });
    fixture.signals.started.notified().await;
    assert_eq!(held(&fixture), 1);
    call.abort();
    fixture.signals.finished.notified().await;
    timeout(DEADLINE, fixture.signals.loans.returned()).await.unwrap();
    // Another caller continues.
    let opened = open(&mut fixture, "a").await;
    assert_eq!(held(&fixture), 1);
    close(&mut fixture, opened.private).await;
}

/// One process may serve several callers, in debug mode.
#[tokio::test]
async fn what_is_open_ends_with_its_caller_and_not_with_its_call() {
    let mut fixture = Fixture::new().await;
    let (caller_gone, other) = (CancellationToken::new(), CancellationToken::new());
    for token in [&caller_gone, &other] {
        let mut request = Request::new(open_ephemeral_resource::Request {
            type_name: LOAN.to_owned(),
            config: Some(dynamic(&ty(), &loan("told"))),
            ..open_ephemeral_resource::Request::default()
        });
        request.extensions_mut().insert(token.clone());
        let opened = fixture.core.client.open_ephemeral_resource(request).await.unwrap().into_inner();
        assert!(opened.diagnostics.is_empty());
    }
    assert_eq!(held(&fixture), 2);
    let told: Vec<_> = fixture.signals.callers.lock().unwrap().clone();
    assert!(told.iter().all(|gone| !gone.is_cancelled()), "an answer that was heard ended its caller");
    caller_gone.cancel();
    timeout(DEADLINE, fixture.signals.loans.down_to(1)).await.unwrap();
    assert!(told[0].is_cancelled() && !told[1].is_cancelled());
    other.cancel();
    timeout(DEADLINE, fixture.signals.loans.returned()).await.unwrap();
}

#[tokio::test]
async fn without_a_configuration_it_is_put_off_or_refused() {
    let mut fixture = Fixture::unconfigured();
    assert_eq!(only(&open(&mut fixture, "a").await.diagnostics).summary, "The provider is not configured");
    let unknown = Value::object([("region", Value::Unknown)]);
    assert!(fixture.core.configure(&unknown).await.is_empty());
    let refused = open(&mut fixture, "a").await;
    assert!(only(&refused.diagnostics).detail.contains("region"));
    let request = open_ephemeral_resource::Request {
        type_name: LOAN.to_owned(),
        config: Some(dynamic(&ty(), &loan("a"))),
        client_capabilities: Some(ClientCapabilities { deferral_allowed: true, ..ClientCapabilities::default() }),
    };
    let put_off = fixture.core.client.open_ephemeral_resource(request).await.unwrap().into_inner();
    assert_eq!((put_off.deferred.unwrap().reason, put_off.diagnostics.len()), (2, 0));
    let result = decode(&ty(), &put_off.result.unwrap().msgpack).unwrap();
    let expected = [("name", "a".into()), ("size", 20.into()), ("secret", Value::Unknown)];
    assert!(result == Value::object(expected));
    assert_eq!(held(&fixture), 0);
}

#[tokio::test]
async fn its_configuration_is_checked() {
    let mut fixture = Fixture::unconfigured();
    let mut validate = async |config| {
        let request = validate_ephemeral_resource_config::Request { type_name: LOAN.to_owned(), config: Some(config) };
        let response = fixture.core.client.validate_ephemeral_resource_config(request).await.unwrap();
        response.into_inner().diagnostics
    };
    for name in ["a".into(), Value::Unknown] {
        assert!(validate(dynamic(&ty(), &loan(name))).await.is_empty());
    }
    assert_eq!(only(&validate(dynamic(&ty(), &loan(""))).await).summary, "No name");
    let mut wrong = loan("a");
    wrong.set_attribute("secret", "mine".into());
    assert_eq!(path(only(&validate(dynamic(&ty(), &wrong)).await)).len(), 1);
    assert_eq!(only(&validate(hostile()).await).summary, "The configuration cannot be read");
}

#[tokio::test]
async fn one_that_is_not_there_is_an_error() {
    let mut fixture = Fixture::new().await;
    let client = &mut fixture.core.client;
    let type_name = "echo_nothing".to_owned();
    let request = open_ephemeral_resource::Request { type_name, ..Default::default() };
    let opened = client.open_ephemeral_resource(request).await.unwrap().into_inner();
    assert_eq!(only(&opened.diagnostics).summary, "No such ephemeral resource");
}
