//! The identity of a resource through the protocol: in every answer, for imports, and from older states.

use terraform_plugin::{
    framework::{Type, Value},
    protocol::{
        codec::decode,
        tfplugin6::{Diagnostic, RawState, get_resource_identity_schemas, upgrade_resource_identity},
    },
};

use crate::{
    echo::{THING, identity},
    protocol::fixture::{Fixture, hostile, only, planned, state, thing},
};

fn identified(thing: impl Into<Value>, size: impl Into<Value>) -> Value {
    Value::object([("thing", thing.into()), ("size", size.into())])
}

#[tokio::test]
async fn its_schema_is_told_apart_from_the_others() {
    let client = &mut Fixture::unconfigured().core.client;
    let response = client.get_resource_identity_schemas(get_resource_identity_schemas::Request {}).await.unwrap();
    let schema = response.into_inner().identity_schemas.remove(THING).unwrap();
    let [thing, size] = schema.identity_attributes.as_slice() else { panic!("two attributes") };
    assert_eq!((schema.version, thing.name.as_str(), thing.r#type.as_slice()), (0, "thing", &b"\"string\""[..]));
    assert!(thing.required_for_import && !thing.optional_for_import);
    assert!(!size.required_for_import && size.optional_for_import);
}

#[tokio::test]
async fn every_answer_of_a_life_has_it() {
    let mut fixture = Fixture::new().await;
    let core = &mut fixture.core;
    let plan = core.plan(&thing("a"), &Value::Null, b"").await;
    assert_eq!(plan.identity, None, "not known yet");
    let made = core.apply(&thing("a"), &Value::Null, &plan.value, &plan.private).await;
    let known = Some(identified("id-a", 20));
    assert_eq!(made.identity, known);
    assert_eq!(core.read(&made.value, &made.private).await.identity, known);
    let plan = core.plan(&thing("a"), &made.value, b"").await;
    assert_eq!(plan.identity, known);
    // The plan of a replacement has the identity of the old object.
    let plan = core.plan(&thing("b"), &made.value, b"").await;
    assert_eq!((plan.replace.len(), plan.identity), (1, known.clone()));
    let plan = core.plan(&Value::Null, &made.value, b"").await;
    assert_eq!(plan.identity, known);
    let gone = core.apply(&Value::Null, &made.value, &Value::Null, b"").await;
    assert_eq!(gone.identity, None);
}

#[tokio::test]
async fn a_failure_keeps_it_and_an_absence_has_none() {
    let mut fixture = Fixture::new().await;
    let core = &mut fixture.core;
    let half = core.apply(&thing("half"), &Value::Null, &planned("half"), b"").await;
    assert!(half.has_errors());
    assert_eq!(half.identity, Some(identified("id-half", 20)));
    let sticky = core.apply(&Value::Null, &state("sticky"), &Value::Null, b"").await;
    assert!(sticky.value.is_null() && sticky.identity.is_none(), "the core keeps its own");
    let panicked = core.apply(&thing("panic"), &Value::Null, &planned("panic"), b"").await;
    assert!(panicked.has_errors() && panicked.identity.is_none());
    let mut gone = state("a");
    gone.set_attribute("id", "gone".into());
    assert_eq!(core.read(&gone, b"").await.identity, None);
    let mut young = state("a");
    young.set_attribute("id", Value::Null);
    assert_eq!(core.read(&young, b"").await.identity, None, "not yet what an import would need");
}

#[tokio::test]
async fn an_import_by_identity_is_one_by_id() {
    let mut fixture = Fixture::new().await;
    let core = &mut fixture.core;
    let by_identity = core.import_by_identity(&identified("id-a", Value::Null)).await;
    let by_id = core.import("id-a").await;
    assert!(by_identity.value == by_id.value && by_identity.diagnostics.is_empty());
    assert_eq!(by_identity.identity, Some(identified("id-a", 20)));
    assert_eq!(by_id.identity, by_identity.identity);
    for (identity, summary) in
        [(identified(Value::Null, 20), "An incomplete identity"), (identified("refused", Value::Null), "Refused")]
    {
        let refused = core.import_by_identity(&identity).await;
        assert_eq!(only(&refused.diagnostics).summary, summary);
        assert!(refused.value.is_null());
    }
}

async fn upgrade(version: i64, json: &[u8]) -> Result<Value, Vec<Diagnostic>> {
    let request = upgrade_resource_identity::Request {
        type_name: THING.to_owned(),
        version,
        raw_identity: Some(RawState { json: json.to_vec(), ..RawState::default() }),
    };
    let response = Fixture::unconfigured().core.client.upgrade_resource_identity(request).await.unwrap().into_inner();
    match response.upgraded_identity {
        Some(data) if response.diagnostics.is_empty() => {
            Ok(decode(&identity().ty(), &data.identity_data.unwrap().msgpack).unwrap())
        }
        _ => Err(response.diagnostics),
    }
}

#[tokio::test]
async fn a_stored_one_is_read() {
    let read = upgrade(0, br#"{"thing": "id-a", "size": 3, "gone": true}"#).await.unwrap();
    assert_eq!(read, identified("id-a", 3));
    // A state without an identity.
    assert_eq!(upgrade(0, b"").await.unwrap(), identified(Value::Null, Value::Null));
    for (version, json, summary) in [
        (7, &b"{}"[..], "The identity is of an unknown version"),
        (0, b"{", "The stored identity cannot be read"),
        (0, br#"{"size": []}"#, "The stored identity cannot be read"),
    ] {
        assert_eq!(only(&upgrade(version, json).await.unwrap_err()).summary, summary);
    }
}

#[tokio::test]
async fn a_hostile_one_is_a_diagnostic() {
    use terraform_plugin::protocol::tfplugin6::{ResourceIdentityData, import_resource_state};
    let mut fixture = Fixture::new().await;
    let request = import_resource_state::Request {
        type_name: THING.to_owned(),
        identity: Some(ResourceIdentityData { identity_data: Some(hostile()) }),
        ..import_resource_state::Request::default()
    };
    let response = fixture.core.client.import_resource_state(request).await.unwrap().into_inner();
    assert_eq!(only(&response.diagnostics).summary, "The identity cannot be read");
    assert!(Type::object([("thing", Type::String), ("size", Type::Number)]) == identity().ty());
}
