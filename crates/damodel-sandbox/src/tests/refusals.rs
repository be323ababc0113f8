//! Each error code by a rule that gives it, and the rules of the document.

use rstest::rstest;
use serde_json::{Value, json};

use super::{Bench, changed, code, create_body};
use crate::{
    clock::wall_seconds,
    fault::FaultAction,
    mutation::StateList::{self, Accounts, DiskSpecs, Instances, Specs},
    options::{Options, SandboxSecret},
    refusal::Code,
};

const EXISTING: &str = r#"{ "id": 801, "uid": "disk-seeddata0001", "release_with_instance": 0 }"#;

fn disk_body(changes: &Value) -> String {
    changed(json!({ "size_gb": 100, "spec_id": 31, "disk_name": "fresh", "mount_path": "/data/fresh" }), changes)
}

/// A create of an instance that is refused with a code, after fields were set.
#[rstest]
#[case(100_038, json!({}), Some((Accounts, "main", json!({ "balance": 1.0 }))))]
#[case(100_038, json!({ "payment_type": "Monthly", "purchase_duration": 100 }), None)]
#[case(100_049, json!({}), Some((Accounts, "main", json!({ "at_risk": true }))))]
#[case(160_001, json!({ "gpu_num": 4 }), Some((Specs, "103", json!({ "stock": 3 }))))]
#[case(160_004, json!({ "gpu_num": 4 }), Some((Specs, "103", json!({ "node_limit": 3 }))))]
#[case(160_014, json!({ "spec_id": 999 }), None)]
#[case(160_014, json!({ "spec_id": 106, "image_id": 903 }), None)]
#[case(160_014, json!({}), Some((Specs, "103", json!({ "enabled": false }))))]
#[case(160_015, json!({}), Some((Accounts, "main", json!({ "certified": false }))))]
#[case(160_019, json!({ "image_id": 907 }), None)]
#[case(160_019, json!({ "image_id": 952, "image_type": "private" }), None)]
#[case(160_019, json!({ "image_id": 954, "image_type": "2" }), None)]
#[case(160_032, json!({ "image_id": 905 }), None)]
#[case(160_032, json!({ "region": "cn-north-2", "spec_id": 203 }), None)]
#[case(180_007, json!({ "exist_disks": [{ "id": 801, "uid": "disk-wrong", "release_with_instance": 0 }] }), None)]
#[case(180_007, json!({ "exist_disks": [{ "id": 805, "uid": "disk-seedother005", "release_with_instance": 0 }] }),
    None)]
#[case(180_007, json!({ "new_disks": [{ "size_gb": 20, "spec_id": 31, "release_with_instance": 1 }] }),
    Some((DiskSpecs, "31", json!({ "sold_out": true }))))]
#[case(180_008, json!({ "new_disks": vec![json!({ "size_gb": 20, "spec_id": 31, "release_with_instance": 1 }); 9] }),
    None)]
fn a_create_is_refused_with_each_code(
    #[case] expected: i64,
    #[case] changes: Value,
    #[case] set: Option<(StateList, &str, Value)>,
) {
    let mut bench = Bench::new();
    if let Some((list, key, fields)) = set {
        bench.set(list, key, &fields);
    }
    let disks = bench.service.world().disks.len();
    assert_eq!(bench.refusal("instance_create", "", &create_body(&changes)).0, expected);
    let world = bench.service.world();
    assert_eq!((world.instances.len(), world.disks.len()), (0, disks), "a refused create leaves nothing behind");
}

#[rstest]
#[case(100_038, Accounts, "main", json!({ "balance": 0.0 }))]
#[case(100_042, Accounts, "main", json!({ "may_use_disks": false }))]
#[case(180_009, DiskSpecs, "31", json!({ "sold_out": true }))]
fn a_disk_is_refused_with_each_code(
    #[case] expected: i64,
    #[case] list: StateList,
    #[case] key: &str,
    #[case] fields: Value,
) {
    let mut bench = Bench::new();
    bench.set(list, key, &fields);
    assert_eq!(bench.refusal("cloud_disk_create", "", &disk_body(&json!({}))).0, expected);
    assert_eq!(bench.service.world().disks.len(), 5, "a refused create leaves nothing behind");
}

/// Resize and release of a disk in each status; `None` is success.
#[rstest]
#[case(1, Some(100_014), Some(100_014))]
#[case(2, None, None)]
#[case(3, Some(100_014), Some(100_014))]
#[case(4, Some(100_014), Some(100_014))]
#[case(5, Some(100_014), Some(100_014))]
#[case(6, None, Some(100_014))]
#[case(7, Some(100_002), Some(100_002))]
#[case(8, Some(100_014), None)]
fn a_status_of_a_disk_permits_or_forbids(
    #[case] status: i64,
    #[case] resize: Option<i64>,
    #[case] release: Option<i64>,
) {
    let mut bench = Bench::new();
    for id in [801, 804] {
        bench.mutate(json!({ "set_disk_status": { "id": id, "status": status } }));
    }
    assert_eq!(code(&bench.envelope("cloud_disk_resize", "", r#"{"id":801,"size_gb":300}"#)), resize, "resize");
    assert_eq!(code(&bench.envelope("cloud_disk_release", "", r#"{"id":804}"#)), release, "release");
}

#[test]
fn an_instance_is_refused_with_each_code() {
    let mut bench = Bench::new();
    let uid = bench.create(&json!({}));
    let [rename, release] =
        [json!({ "instance_uid": uid, "name": "mine" }), json!({ "instance_uid": uid })].map(|body| body.to_string());
    bench.account = "other";
    assert_eq!(bench.refusal("instance_detail", &format!("instance_uid={uid}"), "").0, 160_003);
    assert_eq!(bench.refusal("instance_rename", "", &rename).0, 160_003);
    assert_eq!(bench.refusal("instance_release", "", &release).0, 160_003);
    bench.account = "main";
    bench.set(Instances, &uid, &json!({ "unreleasable": true }));
    assert_eq!(bench.refusal("instance_release", "", &release).0, 160_012);
    bench.set(Instances, &uid, &json!({ "unreleasable": false }));
    bench.result("instance_release", "", &release);
    assert_eq!(bench.refusal("instance_release", "", &release).0, 160_013);
    bench.advance(2);
    assert_eq!(bench.refusal("instance_rename", "", &rename).0, 160_003);
}

#[test]
fn a_save_of_an_image_is_refused_with_each_code() {
    let mut bench = Bench::with_options(Options {
        daily_saves: 2,
        save_window: std::time::Duration::from_secs(30),
        ..Options::default()
    });
    let uid = bench.create(&json!({}));
    let save = |name: &str| json!({ "instance_uid": uid, "image_name": name }).to_string();
    assert_eq!(bench.refusal("image_save", "", &save("early")).0, 100_002, "it is being created");
    bench.advance(1);
    assert_eq!(bench.refusal("image_save", "", &save("trained-model")).0, 130_001);
    bench.result("image_save", "", &save("one"));
    assert_eq!(bench.refusal("image_save", "", &save("two")).0, 130_002);
    bench.advance(29);
    assert_eq!(bench.refusal("image_save", "", &save("two")).0, 130_003);
    bench.advance(1);
    bench.result("image_save", "", &save("two"));
    bench.advance(31);
    assert_eq!(bench.refusal("image_save", "", &save("three")).0, 130_008);
    // The test begins at 02:40 UTC.
    bench.advance(86_400 - 2 * 3600 - 40 * 60);
    bench.set(Accounts, "main", &json!({ "balance": 0.0 }));
    assert_eq!(bench.refusal("image_save", "", &save("three")).0, 100_038);
}

#[test]
fn a_change_of_an_image_is_refused_with_each_code() {
    let mut bench = Bench::new();
    let rename = |id: i64| json!({ "image_id": id, "image_name": "mine" }).to_string();
    assert_eq!(bench.refusal("image_rename", "", &rename(954)).0, 130_006);
    bench.service.form = "foreign_images_forbidden".parse().unwrap();
    assert_eq!(bench.refusal("image_rename", "", &rename(954)).0, 130_004);
    assert_eq!(bench.refusal("image_delete/999", "", "").0, 130_006);
    bench.create(&json!({ "image_id": 951, "image_type": "private" }));
    assert_eq!(bench.refusal("image_delete/951", "", "").0, 130_005);
    bench.set(Accounts, "main", &json!({ "may_use_images": false }));
    assert_eq!(bench.refusal("image_delete/952", "", "").0, 130_004);
}

/// A body with these changes is refused with 100002, and the message begins with this text.
#[rstest]
#[case(json!({ "region": null }), "region: missing")]
#[case(json!({ "region": "cn-north-2" }), "region: specification 103 is not available")]
#[case(json!({ "payment_type": "hourly" }), "payment_type: \"hourly\"")]
#[case(json!({ "payment_type": "Daily" }), "purchase_duration: missing")]
#[case(json!({ "spec_id": 0, "spec_type": "" }), "spec_id: neither")]
#[case(json!({ "gpu_num": 9 }), "gpu_num: 9 is more than 8")]
#[case(json!({ "gpu_num": 1.5 }), "gpu_num: expected an integer")]
#[case(json!({ "data_disk_expand_size": 1501 }), "data_disk_expand_size: 1501 is more than 1500")]
#[case(json!({ "data_disk_mount_path": "" }), "data_disk_mount_path: must be an absolute path")]
#[case(json!({ "image_type": null }), "image_type: missing beside image_id")]
#[case(json!({ "image_type": "Public" }), "image_type: \"Public\" is not one of")]
#[case(json!({ "image_id": null, "image_type": null, "image": "registry.damodel.test.evil/model_library/a" }),
    "image: ")]
#[case(json!({ "instance_alias": "a\nb" }), "instance_alias: must hold no control")]
#[case(json!({ "instance_alias": "a".repeat(129) }), "instance_alias: must have at most 128")]
#[case(json!({ "instance_hostname": "-a" }), "instance_hostname: must begin")]
#[case(json!({ "login_method": 1, "ssh_pubkey_id": 7 }), "ssh_pubkey_name: missing")]
#[case(json!({ "external_ip": "somewhere" }), "external_ip: \"somewhere\" is no address")]
#[case(json!({ "auto_renew": 1 }), "auto_renew: expected a boolean")]
#[case(json!({ "exist_disks": [{ "uid": "disk-seeddata0001" }] }), "exist_disks[0].id: missing")]
#[case(json!({ "new_disks": [{ "size_gb": 19, "spec_id": 31, "release_with_instance": 1 }] }),
    "new_disks[0].size_gb: 19")]
#[case(json!({ "colour": "red" }), "colour: unknown field")]
fn a_create_is_held_to_the_document(#[case] changes: Value, #[case] message: &str) {
    let (code, text) = Bench::new().refusal("instance_create", "", &create_body(&changes));
    assert_eq!((code, text.starts_with(message)), (100_002, true), "{text}");
}

/// A request is refused with 100002, and the message begins with this text.
#[rstest]
#[case("cloud_disk_create", json!({ "size_gb": 4001, "spec_id": 31 }), "size_gb: 4001 is not within 20 and 4000")]
#[case("cloud_disk_create", json!({ "size_gb": 20, "spec_id": 99 }), "spec_id: 99")]
#[case("cloud_disk_create", json!({ "size_gb": 20, "spec_id": 31, "purchase_duration": 2 }),
    "purchase_duration: 2 is not 1")]
#[case("cloud_disk_rename", json!({ "id": 805, "name": "a" }), "id: cloud disk 805 does not exist")]
#[case("cloud_disk_rename", json!({ "id": 801, "name": "" }), "name: must not be empty")]
#[case("cloud_disk_resize", json!({ "id": 801, "size_gb": 200 }), "size_gb: 200 is not more than 200")]
#[case("cloud_disk_release", json!({ "id": 801, "force": true }), "force: unknown field")]
#[case("instance_rename", json!({ "instance_uid": "ins-1", "name": " a" }), "name: must hold no")]
#[case("instance_release", json!({ "instance_uid": ["ins-1"] }), "instance_uid: expected a string, got an array")]
#[case("image_save", json!({ "instance_uid": "ins-1" }), "image_name: missing")]
#[case("image_rename", json!({ "image_id": "951", "image_name": "a" }), "image_id: expected an integer")]
#[case("image_delete/latest", Value::Null, "image_id: expected an integer, got \"latest\"")]
#[case("image_delete/951", json!({ "image_id": 951 }), "body: none is expected")]
fn changes_are_held_to_the_document(#[case] endpoint: &str, #[case] body: Value, #[case] message: &str) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (code, text) = Bench::new().refusal(endpoint, "", &body);
    assert_eq!((code, text.starts_with(message)), (100_002, true), "{text}");
}

#[rstest]
#[case("instance_list", "page=1&page_size=10&status=Flying", "status: \"Flying\"")]
#[case("instance_detail", "uid=ins-1", "instance_uid: missing")]
#[case("spec_list", "region=cn-east-1&page=1", "page: unknown parameter")]
#[case("public_image_list", "label=a,b", "label: one label only")]
#[case("private_image_list", "page=1&page_size=0&image_status=2", "image_status: 2")]
#[case("cloud_disk_list", "page=1&page_size=0&spec_types=1,4", "spec_types: \"4\"")]
#[case("cloud_disk_spec_list", "page=-1", "page: -1 is negative")]
fn queries_are_held_to_the_document(#[case] endpoint: &str, #[case] query: &str, #[case] message: &str) {
    let (code, text) = Bench::new().refusal(endpoint, query, "");
    assert_eq!((code, text.starts_with(message)), (100_002, true), "{text}");
}

#[rstest]
#[case(None, "0", true)]
#[case(Some("wrong"), "0", true)]
#[case(Some("right"), "301", true)]
#[case(Some("right"), "-301", true)]
#[case(Some("right"), "yesterday", true)]
#[case(Some("right"), "290", false)]
fn token_and_timestamp_are_checked(#[case] token: Option<&str>, #[case] off: &str, #[case] is_refused: bool) {
    let mut bench = Bench::new();
    let right = bench.service.world().accounts.first().unwrap().token.clone();
    let token = token.map(|token| if token == "right" { right } else { SandboxSecret::new(token) });
    let timestamp = off.parse().map_or_else(|_| off.to_owned(), |off: i64| (wall_seconds(0) + off).to_string());
    let answer = bench.ask_as(token.as_ref(), Some(&timestamp), "spec_list", "region=cn-east-1", "");
    assert_eq!(code(&answer.json()) == Some(100_006), is_refused);
}

#[test]
fn every_code_can_be_injected() {
    let mut bench = Bench::new();
    for code in Code::ALL {
        bench.arm(FaultAction::Error { code_n: code, processed: false });
        assert_eq!(bench.refusal("instance_create", "", &create_body(&json!({}))).0, code.number());
        assert_eq!(bench.last_request().code_n, Some(code.number()));
    }
    assert_eq!(bench.service.world().instances.len(), 0);
    bench.arm(FaultAction::Error { code_n: Code::InternalError, processed: true });
    bench.refusal("instance_create", "", &create_body(&json!({})));
    assert_eq!(bench.service.world().instances.len(), 1);
}

/// A chat that is refused, by changes of its body.
#[rstest]
#[case(json!({ "model": null }), 400, "model: missing")]
#[case(json!({ "model": "gpt-retired" }), 404, "model: \"gpt-retired\" does not exist or is not enabled")]
#[case(json!({ "messages": [] }), 400, "messages: at least one")]
#[case(json!({ "messages": [{ "role": "pirate", "content": "a" }] }), 400, "messages[0].role: \"pirate\"")]
#[case(json!({ "temperature": 2.1 }), 400, "temperature: is not within")]
#[case(json!({ "max_tokens": 0 }), 400, "max_tokens: 0 is less than 1")]
#[case(json!({ "stream_options": { "include_usage": true } }), 400, "stream_options: is for streams only")]
#[case(json!({ "colour": "red" }), 400, "colour: unknown field")]
fn a_chat_is_held_to_the_document(#[case] changes: Value, #[case] status: u16, #[case] message: &str) {
    let answer = Bench::new().chat(&changes);
    let error = answer.json()["error"].take();
    assert_eq!((answer.status, &error["type"]), (status, &json!("invalid_request_error")));
    assert!(error["message"].as_str().unwrap().starts_with(message), "{error}");
}

#[test]
fn a_chat_needs_a_key_and_a_balance() {
    let mut bench = Bench::new();
    let account = bench.service.world().account("main").unwrap().clone();
    let (key, token) = (account.chat_key.reveal(), account.token.reveal());
    for authorization in [None, Some(key), Some(&format!("Bearer {token}")), Some(&format!("Basic {key}"))] {
        let answer = bench.chat_as(authorization, "{}");
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (401, &json!("invalid_api_key")));
    }
    bench.set(Accounts, "main", &json!({ "balance": -1.0 }));
    let answer = bench.chat(&json!({}));
    assert_eq!((answer.status, &answer.json()["error"]["type"]), (402, &json!("insufficient_quota")));
}

#[test]
fn a_mounted_disk_is_refused_to_another_instance() {
    let mut bench = Bench::new();
    let disk: Value = serde_json::from_str(EXISTING).unwrap();
    let body = create_body(&json!({ "exist_disks": [disk] }));
    bench.result("instance_create", "", &body);
    assert_eq!(bench.refusal("instance_create", "", &body).0, 180_007);
}
