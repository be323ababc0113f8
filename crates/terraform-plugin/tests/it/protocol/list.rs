//! Lists through the protocol: event by event, to the limit, to an error, or until the caller disconnects.

use terraform_plugin::{
    framework::{Type, Value},
    protocol::{
        codec::decode,
        tfplugin6::{get_metadata, get_provider_schema, list_resource, validate_list_resource_config},
    },
    testing::{DEADLINE, dynamic},
};
use tokio::time::timeout;
use tokio_stream::StreamExt as _;

use crate::{
    echo::{THING, identity},
    protocol::fixture::{Fixture, hostile, only, schema},
};

fn ty() -> Type {
    Type::object([("count_of", Type::Number), ("then", Type::String)])
}

fn config(count: i64, then: impl Into<Value>) -> Value {
    Value::object([("count_of", count.into()), ("then", then.into())])
}

fn request(config: &Value, limit: i64) -> list_resource::Request {
    list_resource::Request {
        type_name: THING.to_owned(),
        config: Some(dynamic(&ty(), config)),
        include_resource_object: false,
        limit,
    }
}

/// All events, each checked like in Terraform.
async fn events(fixture: &mut Fixture, request: list_resource::Request) -> Vec<list_resource::Event> {
    let (limit, wants_state) = (request.limit, request.include_resource_object);
    let stream = fixture.core.client.list_resource(request).await.unwrap().into_inner();
    let events: Vec<_> = stream.map(Result::unwrap).collect().await;
    for (position, event) in events.iter().enumerate() {
        let has_errors = event.diagnostic.iter().any(|said| said.severity == 1);
        assert!(!has_errors || position + 1 == events.len(), "an error ends the list");
        match &event.identity {
            Some(data) => {
                let value = decode(&identity().ty(), &data.identity_data.as_ref().unwrap().msgpack).unwrap();
                assert!(value.is_wholly_known() && !event.display_name.is_empty());
            }
            None => assert!(!event.diagnostic.is_empty(), "an event without an identity says something"),
        }
        assert!(event.resource_object.is_none() || wants_state);
    }
    let things = events.iter().filter(|event| event.identity.is_some()).count();
    assert!(limit == 0 || things <= usize::try_from(limit).unwrap(), "more than were wanted");
    events
}

fn names(events: &[list_resource::Event]) -> Vec<&str> {
    events.iter().filter(|event| event.identity.is_some()).map(|event| event.display_name.as_str()).collect()
}

#[tokio::test]
async fn the_schema_and_the_metadata_name_them() {
    let client = &mut Fixture::unconfigured().core.client;
    let schema = client.get_provider_schema(get_provider_schema::Request {}).await.unwrap().into_inner();
    // Each is of a managed resource.
    assert!(schema.list_resource_schemas.keys().all(|name| schema.resource_schemas.contains_key(name)));
    assert_eq!(schema.list_resource_schemas[THING].block.as_ref().unwrap().attributes.len(), 2);
    let metadata = client.get_metadata(get_metadata::Request {}).await.unwrap().into_inner();
    assert_eq!(metadata.list_resources[0].type_name, THING);
}

#[tokio::test]
async fn every_thing_has_its_identity_and_name() {
    let mut fixture = Fixture::new().await;
    let nulls = Value::object([("count_of", Value::Null), ("then", Value::Null)]);
    let events = events(&mut fixture, request(&nulls, 100)).await;
    assert_eq!(names(&events), ["Thing 0", "Thing 1", "Thing 2"], "the default of count_of");
    let identities: Vec<_> = events
        .iter()
        .map(|event| event.identity.as_ref().unwrap().identity_data.as_ref().unwrap())
        .map(|data| decode(&identity().ty(), &data.msgpack).unwrap())
        .collect();
    assert_eq!(identities[1], Value::object([("thing", "id-1".into()), ("size", Value::Null)]));
}

#[tokio::test]
async fn states_come_when_they_are_asked_for_and_hold_no_secret() {
    let mut fixture = Fixture::new().await;
    let request = list_resource::Request { include_resource_object: true, ..request(&config(2, Value::Null), 2) };
    let events = events(&mut fixture, request).await;
    let states: Vec<_> = events
        .iter()
        .map(|event| decode(&schema().ty(), &event.resource_object.as_ref().unwrap().msgpack).unwrap())
        .collect();
    assert_eq!(states[0].attribute("name"), &"2 wanted".into());
    assert_eq!(states[1].attribute("name"), &"1 wanted".into());
    for state in states {
        assert!(state.is_wholly_known() && state.attribute("password").is_null());
        assert_eq!(state.attribute("size"), &20.into(), "with defaults, as an import has them");
    }
}

#[tokio::test]
async fn the_limit_is_kept() {
    let mut fixture = Fixture::new().await;
    for (limit, expected) in [(1, 1), (2, 2), (3, 3), (9, 3), (0, 3)] {
        let events = events(&mut fixture, request(&config(3, Value::Null), limit)).await;
        assert_eq!(events.len(), expected, "limit {limit}");
    }
}

#[tokio::test]
async fn what_is_said_comes_last() {
    let mut fixture = Fixture::new().await;
    for (then, summary) in [("fail", "Failed"), ("warn", "Not all")] {
        let events = events(&mut fixture, request(&config(1, then), 9)).await;
        assert_eq!(names(&events), ["Thing 0"]);
        assert_eq!(only(&events[1].diagnostic).summary, summary);
        assert_eq!(events.len(), 2);
    }
    let broken = events(&mut fixture, request(&config(1, "panic"), 9)).await;
    assert_eq!(only(&broken.last().unwrap().diagnostic).summary, "Bug in the provider");
}

#[tokio::test]
async fn a_list_that_cannot_be_is_one_error() {
    let one = |events: Vec<list_resource::Event>| {
        let [event] = events.as_slice() else { panic!("{events:?}") };
        only(&event.diagnostic).summary.clone()
    };
    let listed = events(&mut Fixture::unconfigured(), request(&config(1, Value::Null), 9)).await;
    assert_eq!(one(listed), "The provider is not configured");
    let mut fixture = Fixture::new().await;
    let broken = list_resource::Request { config: Some(hostile()), ..request(&config(1, Value::Null), 9) };
    assert_eq!(one(events(&mut fixture, broken).await), "The configuration cannot be read");
    let unknown = list_resource::Request { type_name: "echo_nothing".to_owned(), ..Default::default() };
    assert_eq!(one(events(&mut fixture, unknown).await), "No such list resource");
}

#[tokio::test]
async fn a_core_that_has_heard_enough_ends_the_list() {
    let mut fixture = Fixture::new().await;
    for (count, then) in [(1, "wait".into()), (1_000_000, Value::Null)] {
        let request = request(&config(count, then), 2_000_000);
        let mut stream = fixture.core.client.list_resource(request).await.unwrap().into_inner();
        assert_eq!(stream.message().await.unwrap().unwrap().display_name, "Thing 0");
        assert_eq!(fixture.signals.loans.count(), 1);
        drop(stream);
        timeout(DEADLINE, fixture.signals.loans.returned()).await.unwrap();
    }
}

#[tokio::test]
async fn its_configuration_is_checked() {
    let mut fixture = Fixture::unconfigured();
    let mut validate = async |config: Value| {
        let request = validate_list_resource_config::Request {
            type_name: THING.to_owned(),
            config: Some(dynamic(&ty(), &config)),
            ..Default::default()
        };
        let response = fixture.core.client.validate_list_resource_config(request).await.unwrap();
        response.into_inner().diagnostics
    };
    assert!(validate(config(1, Value::Unknown)).await.is_empty());
    assert_eq!(only(&validate(config(1, "")).await).summary, "Nothing then");
}
