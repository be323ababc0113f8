//! The control interface, and the files of a sandbox.

use std::time::Duration;

use damodel_sandbox::{Error, Options, Sandbox};
use rstest::rstest;
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use crate::client::{Site, exchange};

async fn uid_of_a_new_instance(site: &Site) -> String {
    site.create().await.unwrap().json()["result"]["instance_uid"].as_str().unwrap().to_owned()
}

async fn status(site: &Site, uid: &str) -> Value {
    site.ask("GET", &format!("/api/instance/detail?instance_uid={uid}"), None).await.unwrap().json()["result"]["status"]
        .take()
}

#[tokio::test]
async fn another_process_moves_the_clock_arms_faults_and_reads_the_ledger() {
    let site = Site::start(Options { creation: Duration::from_secs(3600), ..Options::default() }).await;
    let uid = uid_of_a_new_instance(&site).await;
    assert_eq!(status(&site, &uid).await, "Creating");
    let before = site.control("GET", "/sandbox/clock", None).await.json()["now_ms"].as_i64().unwrap();
    let after = site.control("POST", "/sandbox/clock", Some(&json!({ "advance_ms": 3_600_000 }))).await.json();
    assert!(after["now_ms"].as_i64().unwrap() - before >= 3_600_000);
    assert_eq!(status(&site, &uid).await, "Running");

    let fault = json!({ "endpoint": "instance_detail", "when": { "next": 1 }, "action": "drop_before" });
    assert_eq!(site.control("POST", "/sandbox/faults", Some(&fault)).await.json(), json!({ "id": 1 }));
    assert!(site.ask("GET", "/api/instance/detail?instance_uid=x", None).await.is_none());
    let armed = site.control("GET", "/sandbox/faults", None).await.json();
    assert_eq!(armed["faults"][0]["strikes"], 1);
    site.control("DELETE", "/sandbox/faults", None).await;
    assert_eq!(site.control("GET", "/sandbox/faults", None).await.json()["faults"], json!([]));

    let mutation = json!({ "set_instance_status": { "uid": uid, "status": "Failed" } });
    assert_eq!(site.control("POST", "/sandbox/mutate", Some(&mutation)).await.status, 200);
    assert_eq!(status(&site, &uid).await, "Failed");

    let form = json!({ "error_status": "matched" });
    assert_eq!(site.control("PUT", "/sandbox/form", Some(&form)).await.json()["error_status"], "matched");
    assert_eq!(site.ask("GET", "/api/spec/list", None).await.unwrap().status, 400);

    let ledger = site.control("GET", "/sandbox/ledger", None).await.json();
    assert_eq!(ledger["instances"]["balance"], json!({ "created": 1, "released": 0, "removed": 0, "live": 1 }));
    assert_eq!(ledger["instances"]["live"], json!([uid]));
    assert_eq!(ledger["private_images"]["live"], json!(["951", "952", "953", "954"]));
    assert_eq!(ledger["requests"].as_array().unwrap().len(), 6, "control requests are not the service's");
}

#[rstest]
#[case("POST", "/sandbox/mutate", json!({ "release_instance": { "uid": "ins-unheard-of" } }), 404)]
#[case("POST", "/sandbox/mutate", json!({ "release_instance": { "uid": "a", "how": "gently" } }), 422)]
#[case("PATCH", "/sandbox/state/specs/103", json!({ "stock": 3 }), 200)]
#[case("PATCH", "/sandbox/state/specs/103", json!({ "colour": "red" }), 422)]
#[case("PATCH", "/sandbox/state/disks/801", json!({ "uid": "disk-other" }), 422)]
#[case("PATCH", "/sandbox/state/specs/999", json!({ "stock": 3 }), 404)]
#[case("POST", "/sandbox/faults", json!({ "endpoint": "*" }), 422)]
#[case("POST", "/sandbox/clock", json!({ "advance_ms": -1 }), 422)]
#[case("PUT", "/sandbox/form", json!({ "colour": "red" }), 422)]
#[tokio::test]
async fn unknown_fields_and_records_are_refused(
    #[case] method: &str,
    #[case] path: &str,
    #[case] body: Value,
    #[case] status: u16,
) {
    let site = Site::start(Options::default()).await;
    assert_eq!(site.control(method, path, Some(&body)).await.status, status);
}

#[tokio::test]
async fn the_control_interface_answers_to_its_own_token_on_loopback_names_only() {
    let site = Site::start(Options::default()).await;
    let base_url = site.running.base_url.as_str();
    let state =
        async |headers: String| exchange(base_url, "GET", "/sandbox/state", &headers, None).await.unwrap().status;
    let accounts = site.running.sandbox.accounts();
    let [own, other] = [0, 1].map(|index| format!("X-Service-Token: {}\r\n", accounts[index].token.expose_secret()));
    assert_eq!(state(format!("Host: attacker.example\r\n{own}")).await, 403);
    assert_eq!((state(String::new()).await, state(other).await, state(own).await), (401, 401, 200));
}

#[tokio::test]
async fn the_state_is_told_without_secrets_unless_asked() {
    let site = Site::start(Options::default()).await;
    uid_of_a_new_instance(&site).await;
    let secrets = site.running.sandbox.state_with_secrets();
    let instance = &secrets["instances"][0];
    let values = [
        &instance["ssh_password"],
        &instance["jupyter_token"],
        &secrets["accounts"][1]["token"],
        &secrets["accounts"][0]["chat_key"],
    ];
    let [open, redacted] = ["/sandbox/state?secrets=true", "/sandbox/state"];
    let open = String::from_utf8(site.control("GET", open, None).await.body).unwrap();
    let redacted = String::from_utf8(site.control("GET", redacted, None).await.body).unwrap();
    for value in values {
        assert!(open.contains(value.as_str().unwrap()));
        assert!(!redacted.contains(value.as_str().unwrap()));
    }
    let debug = format!("{:?}", site.running.sandbox);
    assert!(!debug.contains(site.running.token.expose_secret()));
}

#[tokio::test]
async fn the_ledger_file_has_a_line_for_each_request() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ledger.jsonl");
    let site = Site::start(Options { ledger: Some(file.clone()), ..Options::default() }).await;
    let uid = uid_of_a_new_instance(&site).await;
    status(&site, &uid).await;
    let lines = std::fs::read_to_string(file).unwrap();
    assert_eq!(lines.lines().count(), 2);
}

#[tokio::test]
async fn only_loopback_is_listened_on() {
    let refused = Sandbox::start(Options { listen: ([0, 0, 0, 0], 0).into(), ..Options::default() }).await;
    assert!(matches!(refused, Err(Error::NotLoopback(_))));
    let site = Site::start(Options::default()).await;
    let taken = site.running.base_url.strip_prefix("http://").unwrap().parse().unwrap();
    let refused = Sandbox::start(Options { listen: taken, ..Options::default() }).await;
    assert!(matches!(refused, Err(Error::Listen { .. })));
}
