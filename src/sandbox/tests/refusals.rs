//! Every error code of every endpoint.

use rstest::rstest;
use serde_json::{Value, json};

use super::{Bench, START, create_body};
use crate::sandbox::{fault::FaultAction, render::Code};

fn long_name(character: char) -> String {
    character.to_string().repeat(129)
}

/// A create with these changes is refused with 100002, and the message begins with this text.
#[rstest]
#[case(json!({ "region": null }), "region: missing")]
#[case(json!({ "region": 7 }), "region: expected a string")]
#[case(json!({ "region": "mars-1" }), "region: \"mars-1\" is no region")]
#[case(json!({ "region": "cn-north-2" }), "region: specification 103 is not available")]
#[case(json!({ "payment_type": null }), "payment_type: missing")]
#[case(json!({ "payment_type": "Yearly" }), "payment_type: \"Yearly\" is not Hourly")]
#[case(json!({ "payment_type": "hourly" }), "payment_type: \"hourly\"")]
#[case(json!({ "payment_type": "Daily" }), "purchase_duration: missing")]
#[case(json!({ "payment_type": "Daily", "purchase_duration": 0 }), "purchase_duration: 0")]
#[case(json!({ "purchase_duration": -1 }), "purchase_duration: -1")]
#[case(json!({ "spec_id": null }), "spec_id: neither")]
#[case(json!({ "spec_id": 0 }), "spec_id: neither")]
#[case(json!({ "spec_id": 0, "spec_type": "" }), "spec_id: neither")]
#[case(json!({ "spec_id": "103" }), "spec_id: expected an integer")]
#[case(json!({ "gpu_num": null }), "gpu_num: missing")]
#[case(json!({ "gpu_num": 0 }), "gpu_num: 0 is less than 1")]
#[case(json!({ "gpu_num": 9 }), "gpu_num: 9 is more than 8")]
#[case(json!({ "gpu_num": 1.5 }), "gpu_num: expected an integer")]
#[case(json!({ "gpu_name": 7 }), "gpu_name: expected a string")]
#[case(json!({ "gpu_mem": "24GB" }), "gpu_mem: expected an integer")]
#[case(json!({ "data_disk_expand_size": null }), "data_disk_expand_size: missing")]
#[case(json!({ "data_disk_expand_size": -1 }), "data_disk_expand_size: -1 is less than 0")]
#[case(json!({ "data_disk_expand_size": 1501 }), "data_disk_expand_size: 1501 is more than 1500")]
#[case(json!({ "data_disk_mount_path": "data" }), "data_disk_mount_path: must be an absolute path")]
#[case(json!({ "data_disk_mount_path": "" }), "data_disk_mount_path: must be an absolute path")]
#[case(json!({ "image_id": null }), "image_id: missing beside image_type")]
#[case(json!({ "image_type": null }), "image_type: missing beside image_id")]
#[case(json!({ "image_id": null, "image_type": null }), "image: neither")]
#[case(json!({ "image_type": "Public" }), "image_type: \"Public\" is not one of")]
#[case(json!({ "image_type": "3" }), "image_type: \"3\" is not one of")]
#[case(json!({ "image_type": 1 }), "image_type: expected a string")]
#[case(json!({ "image_id": null, "image_type": null, "image": "docker.io/model_library/ubuntu:22.04" }),
    "image: \"docker.io")]
#[case(json!({ "image_id": null, "image_type": null, "image": "registry.damodel.test.evil/model_library/a" }),
    "image: ")]
#[case(json!({ "image_id": null, "image_type": null, "image": "registry.damodel.test/library/a:1" }), "image: ")]
#[case(json!({ "image_id": null, "image_type": null,
    "image": "registry.damodel.test/model_library/user_private/a:1" }), "image: ")]
#[case(json!({ "instance_alias": "a\nb" }), "instance_alias: must hold no control")]
#[case(json!({ "instance_alias": long_name('a') }), "instance_alias: must have at most 128")]
#[case(json!({ "instance_hostname": "a".repeat(43) }), "instance_hostname: has more than 42")]
#[case(json!({ "instance_hostname": "a_b" }), "instance_hostname: may hold")]
#[case(json!({ "instance_hostname": "-a" }), "instance_hostname: must begin")]
#[case(json!({ "instance_hostname": "a-" }), "instance_hostname: must begin")]
#[case(json!({ "instance_hostname": "" }), "instance_hostname: must begin")]
#[case(json!({ "login_method": 3 }), "login_method: 3")]
#[case(json!({ "login_method": "password" }), "login_method: expected an integer")]
#[case(json!({ "login_method": 1, "ssh_pubkey_name": "laptop" }), "ssh_pubkey_id: missing")]
#[case(json!({ "login_method": 1, "ssh_pubkey_id": 7 }), "ssh_pubkey_name: missing")]
#[case(json!({ "external_ip": "somewhere" }), "external_ip: \"somewhere\" is no address")]
#[case(json!({ "auto_renew": 1 }), "auto_renew: expected a boolean")]
#[case(json!({ "exist_disks": {} }), "exist_disks: expected an array")]
#[case(json!({ "exist_disks": [7] }), "exist_disks[0]: expected an object")]
#[case(json!({ "exist_disks": [{ "uid": "disk-seeddata0001", "release_with_instance": 0 }] }), "exist_disks[0].id: \
    missing")]
#[case(json!({ "exist_disks": [{ "id": 801, "release_with_instance": 0 }] }), "exist_disks[0].uid: missing")]
#[case(json!({ "exist_disks": [{ "id": 801, "uid": "disk-seeddata0001" }] }), "exist_disks[0].release_with_instance: \
    missing")]
#[case(json!({ "exist_disks": [{ "id": 801, "uid": "disk-seeddata0001", "release_with_instance": true }] }),
    "exist_disks[0].release_with_instance: expected an integer")]
#[case(json!({ "exist_disks": [{ "id": 801, "uid": "disk-seeddata0001", "release_with_instance": 0,
    "mount_path": "/etc/x" }] }), "exist_disks[0].mount_path: ")]
#[case(json!({ "exist_disks": [{ "id": 801, "uid": "disk-seeddata0001", "release_with_instance": 0, "size_gb": 5 }] }),
    "exist_disks[0].size_gb: unknown field")]
#[case(json!({ "new_disks": [{ "spec_id": 31, "release_with_instance": 1 }] }), "new_disks[0].size_gb: missing")]
#[case(json!({ "new_disks": [{ "size_gb": 20, "release_with_instance": 1 }] }), "new_disks[0].spec_id: missing")]
#[case(json!({ "new_disks": [{ "size_gb": 20, "spec_id": 31 }] }), "new_disks[0].release_with_instance: missing")]
#[case(json!({ "new_disks": [{ "size_gb": 20, "spec_id": 31, "release_with_instance": 2 }] }),
    "new_disks[0].release_with_instance: 2 is neither")]
#[case(json!({ "new_disks": [{ "size_gb": 19, "spec_id": 31, "release_with_instance": 1 }] }), "new_disks[0].size_gb: \
    19")]
#[case(json!({ "new_disks": [{ "size_gb": 4001, "spec_id": 31, "release_with_instance": 1 }] }),
    "new_disks[0].size_gb: 4001")]
#[case(json!({ "new_disks": [{ "size_gb": 20, "spec_id": 99, "release_with_instance": 1 }] }), "new_disks[0].spec_id: \
    99")]
#[case(json!({ "object_mounts": "bucket" }), "object_mounts: expected an array")]
#[case(json!({ "colour": "red" }), "colour: unknown field")]
fn a_create_is_held_to_the_document(#[case] changes: Value, #[case] message: &str) {
    let mut bench = Bench::new();
    let (code, text) = bench.refusal("instance_create", "", &create_body(&changes));
    assert_eq!(code, 100_002, "{text}");
    assert!(text.starts_with(message), "{text}");
    assert_eq!(bench.service.world().instances.len(), 0);
}

/// A create with these changes, after this mutation, is refused with this code.
#[rstest]
#[case(160_014, json!({ "spec_id": 999 }), Value::Null)]
#[case(160_014, json!({ "spec_id": null, "spec_type": "gpu.unheard-of" }), Value::Null)]
#[case(160_014, json!({ "spec_id": 106, "image_id": 903 }), Value::Null)]
#[case(160_014, json!({ "spec_id": 107 }), Value::Null)]
#[case(160_014, json!({}), json!({ "set_spec": { "spec_id": 103, "enabled": false } }))]
#[case(160_001, json!({ "gpu_num": 4 }), json!({ "set_spec": { "spec_id": 103, "stock": 3 } }))]
#[case(160_004, json!({ "gpu_num": 4 }), json!({ "set_spec": { "spec_id": 103, "node_limit": 3 } }))]
#[case(160_019, json!({ "image_id": 999 }), Value::Null)]
#[case(160_019, json!({ "image_id": 907 }), Value::Null)]
#[case(160_019, json!({ "image_id": 952, "image_type": "private" }), Value::Null)]
#[case(160_019, json!({ "image_id": 954, "image_type": "2" }), Value::Null)]
#[case(160_019, json!({ "image_id": 951, "image_type": "1" }), Value::Null)]
#[case(160_019, json!({ "image_id": null, "image_type": null,
    "image": "registry.damodel.test/model_library/ubuntu:24.04" }), Value::Null)]
#[case(160_019, json!({ "image_id": null, "image_type": null,
    "image": "registry.damodel.test/user_private/main/half-pushed:v952" }), Value::Null)]
#[case(160_032, json!({ "image_id": 905 }), Value::Null)]
#[case(160_032, json!({ "spec_id": 105, "image_id": 951, "image_type": "private" }), Value::Null)]
#[case(160_032, json!({ "region": "cn-north-2", "spec_id": 203 }), Value::Null)]
#[case(160_015, json!({}), json!({ "set_account": { "account": "main", "certified": false } }))]
#[case(100_049, json!({}), json!({ "set_account": { "account": "main", "at_risk": true } }))]
#[case(100_038, json!({}), json!({ "set_account": { "account": "main", "balance": 1.0 } }))]
#[case(100_038, json!({ "payment_type": "Monthly", "purchase_duration": 100 }), Value::Null)]
#[case(180_007, json!({ "exist_disks": [{ "id": 999, "uid": "disk-seeddata0001", "release_with_instance": 0 }] }),
    Value::Null)]
#[case(180_007, json!({ "exist_disks": [{ "id": 801, "uid": "disk-wrong", "release_with_instance": 0 }] }),
    Value::Null)]
#[case(180_007, json!({ "exist_disks": [{ "id": 803, "uid": "disk-seedarrear03", "release_with_instance": 0 }] }),
    Value::Null)]
#[case(180_007, json!({ "exist_disks": [{ "id": 805, "uid": "disk-seedother005", "release_with_instance": 0 }] }),
    Value::Null)]
#[case(180_007, json!({ "exist_disks": [
    { "id": 801, "uid": "disk-seeddata0001", "release_with_instance": 0 },
    { "id": 801, "uid": "disk-seeddata0001", "release_with_instance": 0 },
] }), Value::Null)]
#[case(180_008, json!({ "new_disks": vec![json!({ "size_gb": 20, "spec_id": 31, "release_with_instance": 1 }); 9] }),
    Value::Null)]
#[case(180_008, json!({
    "exist_disks": [{ "id": 801, "uid": "disk-seeddata0001", "release_with_instance": 0 }],
    "new_disks": vec![json!({ "size_gb": 20, "spec_id": 31, "release_with_instance": 1 }); 8],
}), Value::Null)]
fn a_create_is_refused_by_state(#[case] code: i64, #[case] changes: Value, #[case] mutation: Value) {
    let mut bench = Bench::new();
    if !mutation.is_null() {
        bench.mutate(mutation);
    }
    let disks = bench.service.world().disks.len();
    assert_eq!(bench.refusal("instance_create", "", &create_body(&changes)).0, code);
    let world = bench.service.world();
    assert_eq!((world.instances.len(), world.disks.len()), (0, disks), "a refused create leaves nothing behind");
}

#[rstest]
#[case("instance_rename", json!({ "name": "a" }), "instance_uid: missing")]
#[case("instance_rename", json!({ "instance_uid": "ins-1" }), "name: missing")]
#[case("instance_rename", json!({ "instance_uid": "ins-1", "name": "" }), "name: must not be empty")]
#[case("instance_rename", json!({ "instance_uid": "ins-1", "name": " a" }), "name: must hold no")]
#[case("instance_rename", json!({ "instance_uid": "ins-1", "name": 7 }), "name: expected a string")]
#[case("instance_rename", json!({ "instance_uid": "ins-1", "name": "a", "alias": "b" }), "alias: unknown field")]
#[case("instance_release", json!({}), "instance_uid: missing")]
#[case("instance_release", json!({ "instance_uid": "" }), "instance_uid: must not be empty")]
#[case("instance_release", json!({ "instance_uid": ["ins-1"] }), "instance_uid: expected a string, got an array")]
#[case("instance_release", json!({ "instance_uid": "ins-1", "force": true }), "force: unknown field")]
fn rename_and_release_are_held_to_the_document(#[case] endpoint: &str, #[case] body: Value, #[case] message: &str) {
    let (code, text) = Bench::new().refusal(endpoint, "", &body.to_string());
    assert_eq!(code, 100_002, "{text}");
    assert!(text.starts_with(message), "{text}");
}

#[rstest]
#[case("instance_list", "page=1", "page_size: missing")]
#[case("instance_list", "page=1&page_size=10&status=Flying", "status: \"Flying\"")]
#[case("instance_list", "page=1&page_size=10&region=cn-east-1", "region: unknown parameter")]
#[case("instance_detail", "", "instance_uid: missing")]
#[case("instance_detail", "uid=ins-1", "instance_uid: missing")]
#[case("instance_detail", "instance_uid=ins-1&verbose=1", "verbose: unknown parameter")]
#[case("spec_list", "", "region: missing")]
#[case("spec_list", "region=", "region: missing")]
#[case("spec_list", "region=cn-east-1&capacity_type=reserved", "capacity_type: \"reserved\"")]
#[case("spec_list", "region=cn-east-1&page=1", "page: unknown parameter")]
#[case("public_image_list", "label=a,b", "label: one label only")]
#[case("public_image_list", "page=1", "page: unknown parameter")]
#[case("private_image_list", "page_size=0", "page: missing")]
#[case("private_image_list", "page=1&page_size=0&image_status=2", "image_status: 2")]
#[case("cloud_disk_list", "page=1", "page_size: missing")]
#[case("cloud_disk_list", "page=1&page_size=0&status=9", "status: 9")]
#[case("cloud_disk_list", "page=1&page_size=0&spec_types=1,4", "spec_types: \"4\"")]
#[case("cloud_disk_spec_list", "spec_types=RBD", "spec_types: \"RBD\"")]
#[case("cloud_disk_spec_list", "support_ib_network=2", "support_ib_network: 2")]
#[case("cloud_disk_spec_list", "page=-1", "page: -1 is negative")]
fn queries_are_held_to_the_document(#[case] endpoint: &str, #[case] query: &str, #[case] message: &str) {
    let (code, text) = Bench::new().refusal(endpoint, query, "");
    assert_eq!(code, 100_002, "{text}");
    assert!(text.starts_with(message), "{text}");
}

#[test]
fn unknown_and_foreign_instances_are_160003() {
    let mut bench = Bench::new();
    let uid = bench.create(&json!({}));
    bench.account = "other";
    for uid in [uid.as_str(), "ins-unheard-of"] {
        assert_eq!(bench.refusal("instance_detail", &format!("instance_uid={uid}"), "").0, 160_003);
        let rename = json!({ "instance_uid": uid, "name": "mine" }).to_string();
        assert_eq!(bench.refusal("instance_rename", "", &rename).0, 160_003);
        let release = json!({ "instance_uid": uid }).to_string();
        assert_eq!(bench.refusal("instance_release", "", &release).0, 160_003);
    }
    assert_eq!(bench.result("instance_list", "page=1&page_size=0", "")["total"], 0);
}

#[test]
fn a_second_release_is_160013_and_a_released_one_cannot_be_renamed() {
    let mut bench = Bench::new();
    let uid = bench.create(&json!({}));
    let release = json!({ "instance_uid": uid }).to_string();
    bench.result("instance_release", "", &release);
    assert_eq!(bench.refusal("instance_release", "", &release).0, 160_013);
    bench.advance(2);
    assert_eq!(bench.refusal("instance_release", "", &release).0, 160_013);
    let rename = json!({ "instance_uid": uid, "name": "late" }).to_string();
    assert_eq!(bench.refusal("instance_rename", "", &rename).0, 160_003);
}

#[test]
fn a_prepaid_instance_is_released_after_its_term_only() {
    let mut bench = Bench::new();
    let uid = bench.create(&json!({ "payment_type": "Daily", "purchase_duration": 2 }));
    bench.advance(10);
    let release = json!({ "instance_uid": uid }).to_string();
    assert_eq!(bench.refusal("instance_release", "", &release).0, 160_012);
    let detail = bench.detail(&uid);
    assert_eq!((&detail["rent_deadline"], &detail["release_time"]), (&json!(START + 172_800), &json!(START + 172_800)));
    bench.advance(172_800);
    assert_eq!(bench.detail(&uid)["status"], "Stopped");
    bench.result("instance_release", "", &release);
}

#[rstest]
#[case("", "Creating", false)]
#[case("creating_unreleasable", "Creating", true)]
#[case("failed_unreleasable", "Creating", false)]
#[case("", "Failed", false)]
#[case("failed_unreleasable", "Failed", true)]
fn a_status_can_forbid_release(#[case] form: &str, #[case] status: &str, #[case] is_forbidden: bool) {
    let mut bench = Bench::with_form(form);
    let uid = bench.create(&json!({}));
    bench.mutate(json!({ "set_instance_status": { "uid": uid, "status": status } }));
    let error = bench.release(&uid)["response_metadata"]["error"].clone();
    assert_eq!(error["code_n"] == 160_012, is_forbidden, "{error}");
}

#[test]
fn an_unreleasable_instance_refuses_until_it_is_not() {
    let mut bench = Bench::new();
    let uid = bench.create(&json!({}));
    bench.mutate(json!({ "set_unreleasable": { "uid": uid, "unreleasable": true } }));
    assert_eq!(bench.release(&uid)["response_metadata"]["error"]["code_n"], 160_012);
    bench.mutate(json!({ "set_unreleasable": { "uid": uid, "unreleasable": false } }));
    assert_eq!(bench.release(&uid)["response_metadata"]["error"], Value::Null);
}

#[test]
fn disks_need_a_permission() {
    let mut bench = Bench::new();
    bench.account = "restricted";
    assert_eq!(bench.refusal("cloud_disk_list", "page=1&page_size=0", "").0, 100_042);
    assert_eq!(bench.refusal("cloud_disk_spec_list", "", "").0, 100_042);
    bench.result("spec_list", "region=cn-east-1", "");
}

#[rstest]
#[case(None, 0, true)]
#[case(Some("wrong"), 0, true)]
#[case(Some("right"), 301, true)]
#[case(Some("right"), -301, true)]
#[case(Some("right"), 290, false)]
#[case(Some("right"), -290, false)]
fn token_and_timestamp_are_checked(#[case] token: Option<&str>, #[case] seconds_off: i64, #[case] is_refused: bool) {
    use crate::sandbox::{clock::wall_seconds, options::SandboxSecret};

    let mut bench = Bench::new();
    let right = bench.service.world().accounts.first().unwrap().token.clone();
    let token = token.map(|token| if token == "right" { right } else { SandboxSecret::new(token) });
    let timestamp = (wall_seconds(0) + seconds_off).to_string();
    let answer = bench.ask_as(token.as_ref(), Some(&timestamp), "spec_list", "region=cn-east-1", "");
    let envelope = answer.json();
    assert_eq!(envelope["response_metadata"]["error"]["code_n"] == 100_006, is_refused, "{envelope}");
}

#[rstest]
#[case(None)]
#[case(Some("yesterday"))]
#[case(Some(""))]
#[case(Some("-9223372036854775808"))]
fn a_timestamp_that_is_none_is_refused(#[case] timestamp: Option<&str>) {
    let mut bench = Bench::new();
    let token = bench.service.world().accounts.first().unwrap().token.clone();
    let answer = bench.ask_as(Some(&token), timestamp, "spec_list", "region=cn-east-1", "");
    let envelope = answer.json();
    assert_eq!(envelope["response_metadata"]["error"]["code_n"], 100_006);
    assert_eq!(bench.last_request().account, None);
}

#[test]
fn a_skewed_clock_wants_skewed_timestamps_and_shows_its_date() {
    let mut bench = Bench::with_form("clock_skew=3600");
    let token = bench.service.world().accounts.first().unwrap().token.clone();
    let now = crate::sandbox::clock::wall_seconds(0);
    let answer = bench.ask_as(Some(&token), Some(&now.to_string()), "spec_list", "region=cn-east-1", "");
    assert!((3599..=3660).contains(&(answer.date - now)));
    assert_eq!(bench.last_request().code_n, Some(100_006));
    bench.result("spec_list", "region=cn-east-1", "");
}

#[test]
fn every_documented_code_can_be_injected() {
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

#[test]
fn an_account_can_have_several_tokens() {
    use crate::sandbox::{clock::wall_seconds, options::SandboxSecret};

    let mut bench = Bench::new();
    let first = bench.service.world().accounts.first().unwrap().token.clone();
    let second = SandboxSecret::new("second");
    let account = |bench: &mut Bench, token: &SandboxSecret| {
        bench.ask_as(Some(token), Some(&wall_seconds(0).to_string()), "spec_list", "region=cn-east-1", "");
        bench.last_request().account
    };
    assert_eq!(account(&mut bench, &second), None);
    bench.mutate(json!({ "issue_token": { "account": "main", "token": "second" } }));
    assert_eq!(
        [&first, &second].map(|token| account(&mut bench, token)),
        [Some("main".to_owned()), Some("main".to_owned())]
    );
    bench.mutate(json!({ "revoke_token": { "account": "main", "token": first.reveal() } }));
    assert_eq!([&first, &second].map(|token| account(&mut bench, token)), [None, Some("main".to_owned())]);
}

#[test]
fn a_result_can_have_a_shape_that_nobody_knows() {
    let known = Bench::new().result("cloud_disk_list", "page=1&page_size=0", "");
    for (shape, expected) in [
        ("empty", json!({})),
        ("number", json!(0)),
        ("text", json!("moved to another place")),
        ("renamed", json!({ "total": 4, "page": 1, "page_size": 0, "total_page": 1, "items": known["data"] })),
    ] {
        let mut bench = Bench::new();
        bench.arm(serde_json::from_value(json!({ "misshapen": { "shape": shape } })).unwrap());
        assert_eq!(bench.result("cloud_disk_list", "page=1&page_size=0", ""), expected);
        assert_eq!(bench.last_request().faults, ["misshapen"]);
    }
}
