//! The life cycle of a resource through the protocol: creates, failures and interruptions.

use std::time::Duration;

use terraform_plugin::{
    framework::{Value, value::Number},
    protocol::tfplugin6::{RawState, stop_provider},
};

use crate::protocol::fixture::{Fixture, only, planned, state, thing};

#[tokio::test]
async fn a_thing_lives_from_plan_to_destroy() {
    let mut fixture = Fixture::new().await;
    let core = &mut fixture.core;
    let mut config = thing("a");
    config.set_attribute("password", "planted".into());
    let plan = core.plan(&config, &Value::Null, b"").await;
    assert!(plan.value == planned("a") && plan.diagnostics.is_empty());
    let made = core.apply(&config, &Value::Null, &plan.value, &plan.private).await;
    assert!(made.value == state("a") && made.diagnostics.is_empty());
    assert_eq!(made.private, br#"{"made":"a"}"#);
    let read = core.read(&made.value, &made.private).await;
    assert!(read.value == made.value && read.private == made.private);

    let plan = core.plan(&thing("b"), &made.value, &made.private).await;
    assert_eq!(plan.replace, ["name"]);
    let plan = core.plan(&Value::Null, &made.value, &made.private).await;
    assert!(plan.value.is_null() && plan.diagnostics.is_empty());
    let gone = core.apply(&Value::Null, &made.value, &Value::Null, &made.private).await;
    assert!(gone.value.is_null() && gone.diagnostics.is_empty());
}

#[tokio::test]
async fn what_half_came_about_is_in_the_answer() {
    let mut fixture = Fixture::new().await;
    let config = thing("half");
    let answer = fixture.core.apply(&config, &Value::Null, &planned("half"), b"").await;
    assert_eq!(only(&answer.diagnostics).summary, "Half done");
    assert!(answer.value == state("half"));
}

/// The core keeps what it has stored.
#[tokio::test]
async fn a_refusal_that_changed_nothing_answers_no_state() {
    let mut fixture = Fixture::new().await;
    let core = &mut fixture.core;
    let answer = core.apply(&Value::Null, &state("sticky"), &Value::Null, b"{}").await;
    assert_eq!(only(&answer.diagnostics).summary, "Sticky");
    assert!(answer.value.is_null() && answer.private.is_empty() && answer.identity.is_none());
    let (before, mut planned) = (state("stubborn"), state("stubborn"));
    planned.set_attribute("size", 30.into());
    let answer = core.apply(&planned, &before, &planned, br#"{"n":1}"#).await;
    assert_eq!(only(&answer.diagnostics).summary, "Stubborn");
    assert!(answer.value.is_null() && answer.private.is_empty() && answer.identity.is_none());
    // Something changed: at least the private data.
    planned.set_attribute("size", 31.into());
    let answer = core.apply(&planned, &before, &planned, br#"{"n":1}"#).await;
    assert_eq!(only(&answer.diagnostics).summary, "Stubborn");
    assert!(answer.value == before && answer.private == br#"{"n":1,"tried":31}"# && answer.identity.is_some());
}

/// Another core than Terraform keeps floats, and compares them by all of their bits.
#[tokio::test]
async fn a_number_goes_back_as_it_came() {
    let mut fixture = Fixture::new().await;
    let core = &mut fixture.core;
    let float = Value::Number(Number::of_float(1.98).unwrap());
    let mut before = state("a");
    let disk = Value::object([("size", float), ("path", "/dev/0".into())]);
    before.set_attribute("disks", Value::List(vec![disk]));
    let read = core.read(&before, b"").await;
    assert_eq!(core.dynamic(&read.value), core.dynamic(&before));
    let plan = core.plan(&config_of(&before), &before, b"").await;
    assert_eq!(core.dynamic(&plan.value), core.dynamic(&before));
    let done = core.apply(&config_of(&before), &before, &plan.value, b"").await;
    assert_eq!(core.dynamic(&done.value), core.dynamic(&before));
}

/// The configuration of a state, without what the provider computes.
fn config_of(state: &Value) -> Value {
    let mut config = state.clone();
    config.set_attribute("id", Value::Null);
    if let Value::List(disks) = state.attribute("disks") {
        let mut disk = disks[0].clone();
        disk.set_attribute("path", Value::Null);
        config.set_attribute("disks", Value::List(vec![disk]));
    }
    config
}

#[tokio::test]
async fn a_thing_that_is_gone_reads_as_null() {
    let mut fixture = Fixture::new().await;
    let mut gone = state("a");
    gone.set_attribute("id", "gone".into());
    let answer = fixture.core.read(&gone, b"").await;
    assert!(answer.value.is_null() && answer.diagnostics.is_empty());
}

#[tokio::test]
async fn a_panic_harms_no_other_call() {
    let mut fixture = Fixture::new().await;
    let mut other = fixture.core.clone();
    let waiting = tokio::spawn(async move { other.apply(&thing("wait"), &Value::Null, &planned("wait"), b"").await });
    fixture.signals.started.notified().await;

    let core = &mut fixture.core;
    let answer = core.apply(&thing("panic"), &Value::Null, &planned("panic"), b"kept").await;
    let bug = only(&answer.diagnostics);
    assert_eq!(bug.summary, "Bug in the provider");
    let id = bug.detail.split("with the id ").nth(1).unwrap();
    let id = id.split(';').next().unwrap();
    assert!(id.len() == 16 && id.chars().all(|c| c.is_ascii_hexdigit()), "{id}");
    assert!(!bug.detail.contains("planted"));
    assert!(answer.value.is_null());
    assert!(answer.private.is_empty());

    let mut broken = state("a");
    broken.set_attribute("id", "panic".into());
    let answer = core.read(&broken, b"kept").await;
    assert_eq!(only(&answer.diagnostics).summary, "Bug in the provider");
    assert!(answer.value == broken && answer.private == b"kept");
    let said = core.validate(&thing("panic-early")).await;
    assert_eq!(only(&said).summary, "Bug in the provider");

    fixture.signals.go_on.notify_one();
    let answer = waiting.await.unwrap();
    assert!(answer.value == state("wait") && answer.diagnostics.is_empty());
}

#[tokio::test]
async fn an_apply_goes_on_when_the_client_goes_away() {
    let fixture = Fixture::new().await;
    let mut core = fixture.core.clone();
    let call = tokio::spawn(async move { core.apply(&thing("wait"), &Value::Null, &planned("wait"), b"").await });
    fixture.signals.started.notified().await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    fixture.signals.go_on.notify_one();
    fixture.signals.finished.notified().await;
}

#[tokio::test]
async fn a_stop_ends_waits_and_touches_no_later_call() {
    let mut fixture = Fixture::new().await;
    let mut core = fixture.core.clone();
    let waiting = tokio::spawn(async move {
        let name = "until-stopped";
        core.apply(&thing(name), &Value::Null, &planned(name), b"").await
    });
    fixture.signals.started.notified().await;
    let stop = fixture.core.client.stop_provider(stop_provider::Request {}).await.unwrap();
    assert!(stop.into_inner().error.is_empty());
    assert!(waiting.await.unwrap().value == state("until-stopped"));

    let mut core = fixture.core.clone();
    let later = tokio::spawn(async move {
        let name = "until-stopped";
        core.apply(&thing(name), &Value::Null, &planned(name), b"").await
    });
    fixture.signals.started.notified().await;
    tokio::task::yield_now().await;
    assert!(!later.is_finished());
    fixture.core.client.stop_provider(stop_provider::Request {}).await.unwrap();
    assert!(later.await.unwrap().diagnostics.is_empty());
}

#[tokio::test]
async fn stored_states_are_brought_up_to_date() {
    let mut fixture = Fixture::unconfigured();
    let json = |text: &str| RawState { json: text.as_bytes().to_vec(), ..RawState::default() };
    let core = &mut fixture.core;
    let old = r#"{"id": "id-a", "title": "a", "size": 20, "gone": [], "password": "planted"}"#;
    let answer = core.upgrade(0, json(old)).await;
    assert!(answer.value == state("a"), "{:?}", answer.diagnostics);
    let answer = core.upgrade(1, json(r#"{"id": "id-a", "name": "a", "size": 20}"#)).await;
    assert!(answer.value == state("a"), "{:?}", answer.diagnostics);

    let flatmap = RawState { flatmap: [("id".to_owned(), "id-a".to_owned())].into(), ..RawState::default() };
    let answer = core.upgrade(0, flatmap).await;
    assert_eq!(only(&answer.diagnostics).summary, "The state is too old");
    for raw in [json(""), json("{"), json(r#"{"size": {}}"#)] {
        let answer = core.upgrade(1, raw).await;
        assert!(answer.has_errors() && answer.value.is_null());
    }
    assert!(core.upgrade(-1, json("{}")).await.has_errors());
}

#[tokio::test]
async fn an_import_has_the_defaults() {
    let mut fixture = Fixture::new().await;
    let answer = fixture.core.import("id-a").await;
    assert!(answer.diagnostics.is_empty());
    assert!(answer.value.attribute("size") == &Value::from(20));
    assert!(answer.value.attribute("id") == &Value::from("id-a"));
    let answer = fixture.core.import("missing").await;
    assert_eq!(only(&answer.diagnostics).summary, "The object to import does not exist");
}

#[tokio::test(start_paused = true)]
async fn the_state_of_a_stopped_wait_comes_without_delay() {
    let fixture = Fixture::new().await;
    let mut core = fixture.core.clone();
    let started = tokio::time::Instant::now();
    let waiting = tokio::spawn(async move {
        let name = "until-stopped";
        core.apply(&thing(name), &Value::Null, &planned(name), b"").await
    });
    fixture.signals.started.notified().await;
    let mut client = fixture.core.client.clone();
    client.stop_provider(stop_provider::Request {}).await.unwrap();
    assert!(waiting.await.unwrap().diagnostics.is_empty());
    assert!(started.elapsed() < Duration::from_millis(1));
}
