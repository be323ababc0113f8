//! Each call of the protocol, with right and wrong use, in process: the whole service without a socket.

mod actions;
mod descriptor;
mod ephemeral;
pub(crate) mod fixture;
mod functions;
mod identity;
mod life;
mod list;
mod log;
mod unoffered;

use terraform_plugin::{
    framework::{Type, Value},
    protocol::tfplugin6::{
        ClientCapabilities, DynamicValue, apply_resource_change, attribute_path::step::Selector, configure_provider,
        get_metadata, get_provider_schema, plan_resource_change, read_data_source, read_resource,
        upgrade_resource_state, validate_data_resource_config, validate_provider_config, validate_resource_config,
    },
    testing::dynamic,
};

use crate::{
    echo::THING,
    protocol::fixture::{Fixture, hostile, only, path, planned, provider_type, region, state, thing},
};

#[tokio::test]
async fn the_schema_is_told_without_a_configuration() {
    let mut fixture = Fixture::unconfigured();
    for _ in 0..2 {
        let response = fixture.core.client.get_provider_schema(get_provider_schema::Request {});
        let response = response.await.unwrap().into_inner();
        let block = response.resource_schemas[THING].block.as_ref().unwrap();
        assert_eq!(response.resource_schemas[THING].version, 1);
        assert_eq!(block.attributes.len(), 7);
        assert_eq!(block.block_types[0].type_name, "timeouts");
        assert!(response.data_source_schemas["echo_look"].block.is_some());
        assert!(response.provider.unwrap().block.is_some());
        let capabilities = response.server_capabilities.unwrap();
        assert!(capabilities.plan_destroy && capabilities.get_provider_schema_optional);
        assert!(response.diagnostics.is_empty() && response.provider_meta.is_none());
    }
}

#[tokio::test]
async fn metadata_lists_every_type() {
    let mut fixture = Fixture::unconfigured();
    let client = &mut fixture.core.client;
    let metadata = client.get_metadata(get_metadata::Request {}).await.unwrap().into_inner();
    assert_eq!(metadata.resources[0].type_name, THING);
    assert_eq!(metadata.data_sources[0].type_name, "echo_look");
    assert!(metadata.server_capabilities.unwrap().plan_destroy);
}

#[tokio::test]
async fn the_providers_configuration_is_checked() {
    let mut fixture = Fixture::unconfigured();
    let mut validate = async |config: Option<DynamicValue>| {
        let request = validate_provider_config::Request { config };
        let response = fixture.core.client.validate_provider_config(request).await.unwrap();
        response.into_inner().diagnostics
    };
    let config = |name| Some(dynamic(&provider_type(), &region(name)));
    assert!(validate(config("here")).await.is_empty());
    assert_eq!(only(&validate(config("nowhere")).await).summary, "No such region");
    let said = validate(Some(hostile())).await;
    assert_eq!(only(&said).summary, "The provider's configuration cannot be read");
}

#[tokio::test]
async fn a_refused_configuration_is_a_diagnostic() {
    let mut fixture = Fixture::unconfigured();
    let said = fixture.core.configure(&region("refused")).await;
    assert_eq!((only(&said).summary.as_str(), only(&said).detail.as_str()), ("Refused", "1.13.0"));
    let request = configure_provider::Request { config: Some(hostile()), ..configure_provider::Request::default() };
    let response = fixture.core.client.configure_provider(request).await.unwrap();
    assert_eq!(response.into_inner().diagnostics.len(), 1);
    let answer = fixture.core.apply(&thing("a"), &Value::Null, &planned("a"), b"").await;
    assert_eq!(only(&answer.diagnostics).summary, "The provider is not configured");
}

#[tokio::test]
async fn a_resources_configuration_is_checked() {
    let mut fixture = Fixture::unconfigured();
    assert!(fixture.core.validate(&thing("a")).await.is_empty());
    let said = fixture.core.validate(&thing("")).await;
    assert_eq!(only(&said).summary, "No name");
    let mut wrong = thing("a");
    wrong.set_attribute("id", "mine".into());
    let said = fixture.core.validate(&wrong).await;
    assert_eq!(path(only(&said)), [Selector::AttributeName("id".into())]);
}

#[tokio::test]
async fn write_only_values_need_a_core_that_knows_them() {
    let mut fixture = Fixture::unconfigured();
    let mut config = thing("a");
    config.set_attribute("password", "planted".into());
    assert!(fixture.core.validate(&config).await.is_empty());
    let request = validate_resource_config::Request {
        type_name: THING.to_owned(),
        config: Some(fixture.core.dynamic(&config)),
        client_capabilities: None,
    };
    let response = fixture.core.client.validate_resource_config(request).await.unwrap();
    let said = response.into_inner().diagnostics;
    assert!(!only(&said).detail.contains("planted"));
}

#[tokio::test]
async fn large_messages_pass() {
    let mut fixture = Fixture::new().await;
    let mut config = thing("a");
    let long = "x".repeat(8 << 20);
    config.set_attribute("labels", Value::Map([("k".into(), long.into())].into()));
    assert!(fixture.core.validate(&config).await.is_empty());
    let plan = fixture.core.plan(&config, &Value::Null, b"").await;
    assert!(plan.value.attribute("labels") == config.attribute("labels"));
}

#[tokio::test]
async fn hostile_values_are_diagnostics_and_change_nothing() {
    let mut fixture = Fixture::new().await;
    let prior = fixture.core.dynamic(&state("a"));
    let client = &mut fixture.core.client;
    let type_name = THING.to_owned();
    let request = apply_resource_change::Request {
        type_name: type_name.clone(),
        prior_state: Some(prior.clone()),
        planned_state: Some(hostile()),
        config: Some(prior.clone()),
        planned_private: b"kept".to_vec(),
        ..apply_resource_change::Request::default()
    };
    let response = client.apply_resource_change(request).await.unwrap().into_inner();
    assert_eq!(only(&response.diagnostics).summary, "The planned state cannot be read");
    assert!(!only(&response.diagnostics).detail.contains("pl\""));
    let null = fixture.core.dynamic(&Value::Null);
    assert_eq!((response.new_state, response.private), (Some(null), Vec::new()), "the core keeps what it has");

    let client = &mut fixture.core.client;
    let request = plan_resource_change::Request {
        type_name: type_name.clone(),
        prior_state: Some(hostile()),
        proposed_new_state: Some(prior.clone()),
        config: Some(prior.clone()),
        ..plan_resource_change::Request::default()
    };
    let response = client.plan_resource_change(request).await.unwrap().into_inner();
    assert_eq!(only(&response.diagnostics).summary, "The prior state cannot be read");
    assert_eq!(response.planned_state, Some(prior));

    let request = read_resource::Request {
        type_name,
        current_state: Some(hostile()),
        private: b"kept".to_vec(),
        ..read_resource::Request::default()
    };
    let response = client.read_resource(request).await.unwrap().into_inner();
    assert_eq!(only(&response.diagnostics).summary, "The state cannot be read");
    assert_eq!((response.new_state, response.private), (Some(hostile()), b"kept".to_vec()));
}

#[tokio::test]
async fn an_unreadable_attribute_is_pointed_at() {
    let mut fixture = Fixture::new().await;
    let request = validate_resource_config::Request {
        type_name: THING.to_owned(),
        config: Some(DynamicValue {
            msgpack: Vec::new(),
            json: br#"{"name": "a", "disks": [{"size": "planted"}]}"#.to_vec(),
        }),
        client_capabilities: None,
    };
    let response = fixture.core.client.validate_resource_config(request).await.unwrap();
    let said = response.into_inner().diagnostics;
    // Not every core can show an attribute in an element of a list: such a one looks at the last two steps.
    let element = [Selector::AttributeName("disks".into()), Selector::ElementKeyInt(0)];
    let whole = [&element[..], &[Selector::AttributeName("size".into())]].concat();
    assert_eq!(path(only(&said)), [whole, element.to_vec()].concat());
    assert!(only(&said).detail.contains("disks[0].size"));
    assert!(!only(&said).detail.contains("planted"));
}

#[tokio::test]
async fn a_data_source_is_read_or_put_off() {
    let mut fixture = Fixture::unconfigured();
    let ty = Type::object([("name", Type::String), ("length", Type::Number)]);
    let config = Value::object([("name", "abc".into()), ("length", Value::Null)]);
    let read = read_data_source::Request {
        type_name: "echo_look".to_owned(),
        config: Some(dynamic(&ty, &config)),
        ..read_data_source::Request::default()
    };
    let validate =
        validate_data_resource_config::Request { type_name: read.type_name.clone(), config: read.config.clone() };
    let response = fixture.core.client.validate_data_resource_config(validate).await.unwrap();
    assert!(response.into_inner().diagnostics.is_empty());

    let unknown = Value::object([("region", Value::Unknown)]);
    assert!(fixture.core.configure(&unknown).await.is_empty());
    let response = fixture.core.client.read_data_source(read.clone()).await.unwrap().into_inner();
    assert!(response.deferred.is_none());
    assert_eq!(response.diagnostics.len(), 1);
    let mut deferrable = read.clone();
    deferrable.client_capabilities =
        Some(ClientCapabilities { deferral_allowed: true, ..ClientCapabilities::default() });
    let response = fixture.core.client.read_data_source(deferrable).await.unwrap().into_inner();
    assert_eq!(response.deferred.unwrap().reason, 2);
    assert!(response.diagnostics.is_empty());

    assert!(fixture.core.configure(&region("here")).await.is_empty());
    let response = fixture.core.client.read_data_source(read.clone()).await.unwrap().into_inner();
    let expected = Value::object([("name", "abc".into()), ("length", Value::from(3))]);
    assert_eq!(response.state, Some(dynamic(&ty, &expected)));

    let without_result = Value::object([("name", "".into()), ("length", Value::Null)]);
    let read = read_data_source::Request { config: Some(dynamic(&ty, &without_result)), ..read };
    let response = fixture.core.client.read_data_source(read).await.unwrap().into_inner();
    assert_eq!(only(&response.diagnostics).summary, "The data source has no result");
}

#[tokio::test]
async fn unknown_types_are_diagnostics() {
    let mut fixture = Fixture::new().await;
    let client = &mut fixture.core.client;
    let type_name = "echo_nothing".to_owned();
    let resource =
        upgrade_resource_state::Request { type_name: type_name.clone(), ..upgrade_resource_state::Request::default() };
    let response = client.upgrade_resource_state(resource).await.unwrap().into_inner();
    assert_eq!(only(&response.diagnostics).summary, "No such resource");
    let source = read_data_source::Request { type_name, ..read_data_source::Request::default() };
    let response = client.read_data_source(source).await.unwrap().into_inner();
    assert_eq!(only(&response.diagnostics).summary, "No such data source");
}
