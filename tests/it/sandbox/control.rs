//! The control interface, and the files of a sandbox.

use std::time::Duration;

use damodel::sandbox::{Error, Fault, FaultAction, LedgerObject, LifeClock, Mutation, Options, Sandbox, When};
use rstest::rstest;
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use crate::sandbox::client::{Site, exchange};

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
#[case("POST", "/sandbox/mutate", json!({ "explode": {} }), 422)]
#[case("POST", "/sandbox/mutate", json!({ "release_instance": { "uid": "a", "how": "gently" } }), 422)]
#[case("POST", "/sandbox/faults", json!({ "endpoint": "*" }), 422)]
#[case("POST", "/sandbox/clock", json!({ "advance_ms": -1 }), 422)]
#[case("PUT", "/sandbox/form", json!({ "colour": "red" }), 422)]
#[tokio::test]
async fn what_the_control_interface_does_not_know_is_refused(
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
async fn a_restart_goes_on_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let options = |seed| Options {
        state: Some(folder.path().join("state.json")),
        ledger: Some(folder.path().join("ledger.jsonl")),
        life_clock: LifeClock::Standing(1_770_000_000),
        seed,
        ..Options::default()
    };
    let site = Site::start(options(1)).await;
    let uid = uid_of_a_new_instance(&site).await;
    site.running.sandbox.mutate(Mutation::RenameInstance { uid: uid.clone(), name: "by hand".to_owned() }).unwrap();
    site.running.sandbox.advance(Duration::from_secs(1)).unwrap();
    let (before, token) = (site.running.sandbox.state_with_secrets(), site.running.token.clone());
    site.running.stop().await;

    let site = Site::start(options(2)).await;
    assert_eq!(site.running.sandbox.state_with_secrets(), before);
    assert_eq!(site.running.token.expose_secret(), token.expose_secret());
    assert_eq!(status(&site, &uid).await, "Running");
    let other = uid_of_a_new_instance(&site).await;
    assert_ne!(uid, other);
    let lines = std::fs::read_to_string(folder.path().join("ledger.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 3);
}

#[tokio::test]
async fn what_is_due_while_nobody_runs_is_done_after_the_restart() {
    let folder = tempfile::tempdir().unwrap();
    let options = |start| Options {
        state: Some(folder.path().join("state.json")),
        life_clock: LifeClock::Standing(start),
        ..Options::default()
    };
    let site = Site::start(options(1_770_000_000)).await;
    let uid = uid_of_a_new_instance(&site).await;
    site.running.sandbox.advance(Duration::from_secs(1)).unwrap();
    for (path, body) in [
        ("/api/storage/cloud_disk/create", json!({ "size_gb": 20, "spec_id": 31, "disk_name": "fresh" })),
        ("/api/storage/cloud_disk/resize", json!({ "id": 801, "size_gb": 300 })),
        ("/api/instance/save_image_v2", json!({ "instance_uid": uid, "image_name": "toolkit" })),
    ] {
        assert!(site.ask("POST", path, Some(&body)).await.unwrap().json()["response_metadata"]["error"].is_null());
    }
    let other = uid_of_a_new_instance(&site).await;
    site.running.stop().await;
    let site = Site::start(options(1_770_000_500)).await;
    assert_eq!((status(&site, &uid).await, status(&site, &other).await), (json!("Running"), json!("Running")));
    let state = site.running.sandbox.state();
    let named = |list: &str, name: &str| -> Value {
        state[list].as_array().unwrap().iter().find(|record| record["name"] == name).unwrap().clone()
    };
    assert_eq!(named("disks", "fresh")["status"], "available");
    assert_eq!(named("disks", "datasets")["size_gb"], 300);
    assert_eq!(named("private_images", "toolkit")["ready"], true);
    assert_eq!(site.running.sandbox.state()["instances"][0]["start_ms"], 1_770_000_001_000_i64);
}

#[tokio::test]
async fn instances_disks_and_images_are_generated_for_load() {
    let site =
        Site::start(Options { generate_instances: 120, generate_disks: 80, generate_images: 50, ..Options::default() })
            .await;
    assert_eq!(site.total().await, 120);
    let disks = site.ask("GET", "/api/storage/cloud_disk/list?page=9&page_size=10", None).await.unwrap().json();
    assert_eq!((&disks["result"]["total"], &disks["result"]["total_page"]), (&json!(84), &json!(9)));
    assert_eq!(disks["result"]["data"].as_array().unwrap().len(), 4);
    let images = site.ask("GET", "/api/image/privates?page=1&page_size=0&image_status=1", None).await.unwrap().json();
    assert_eq!(images["result"]["total"], 52);
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

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn creates_at_once_and_random_drops_still_add_up() {
    let site = Site::start(Options { creation: Duration::ZERO, ..Options::default() }).await;
    let sandbox = &site.running.sandbox;
    for action in [FaultAction::DropBefore, FaultAction::DropAfter] {
        sandbox.arm(Fault { endpoint: "instance_create".to_owned(), when: When::Probability(0.3), action });
    }
    let answered = futures_util::future::join_all((0..60).map(|_| site.create())).await.into_iter().flatten().count();
    let ledger = sandbox.ledger();
    let (processed, lost): (Vec<_>, Vec<_>) =
        ledger.requests_to("instance_create").partition(|request| request.processed);
    assert_eq!(processed.len() + lost.len(), 60);
    let accepted: Vec<&String> = processed.iter().flat_map(|request| &request.created).collect();
    let balance = ledger.balance(LedgerObject::Instance);
    assert_eq!((balance.created, balance.live), (accepted.len(), accepted.len()));
    assert!(answered < processed.len() && !lost.is_empty(), "both faults struck");
}
