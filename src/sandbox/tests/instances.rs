//! The life cycle of an instance and of its disks.

use rstest::rstest;
use serde_json::{Value, json};

use super::{Bench, START, create_body};
use crate::sandbox::{
    fault::FaultAction,
    ledger::{Balance, LedgerObject},
};

#[test]
fn an_instance_runs_is_renamed_and_is_released() {
    let mut bench = Bench::new();
    let accepted =
        bench.result("instance_create", "", &create_body(&json!({ "gpu_num": 2, "data_disk_expand_size": 10 })));
    let uid = accepted["instance_uid"].as_str().unwrap().to_owned();
    assert_eq!((&accepted["payment_type"], &accepted["release_time"]), (&json!("Hourly"), &json!(0)));
    let detail = bench.detail(&uid);
    assert_eq!(
        (&detail["status"], &detail["start_time"], &detail["ssh_host"]),
        (&json!("Creating"), &json!(0), &json!(""))
    );

    bench.advance(1);
    let detail = bench.detail(&uid);
    assert_eq!((&detail["status"], &detail["start_time"]), (&json!("Running"), &json!(START + 1)));
    assert_eq!(
        (&detail["cpu_core"], &detail["memory_size"], &detail["gpu_memory"]),
        (&json!(32), &json!(124), &json!(49_128))
    );
    assert_eq!((&detail["sys_disk_size"], &detail["data_disk_size"]), (&json!(40), &json!(60)));
    assert_eq!((&detail["gpu_price"], &detail["data_disk_price"]), (&json!(1.98), &json!(0.0006)));
    let token = detail["jupyter_token"].as_str().unwrap();
    assert!(detail["jupyter_url"].as_str().unwrap().ends_with(&format!("?token={token}")));

    bench.result("instance_rename", "", &json!({ "instance_uid": uid, "name": "renamed" }).to_string());
    assert_eq!(bench.detail(&uid)["instance_alias"], "renamed");

    bench.result("instance_release", "", &json!({ "instance_uid": uid }).to_string());
    assert_eq!(bench.detail(&uid)["status"], "Running");
    bench.advance(1);
    let detail = bench.detail(&uid);
    assert_eq!((&detail["status"], &detail["release_time"]), (&json!("Released"), &json!(START + 2)));
    let released = bench.result("instance_list", "page=1&page_size=0&status=Released", "");
    assert_eq!(released["data"][0]["instance_uid"], uid.as_str());
    let balance = bench.service.ledger().balance(LedgerObject::Instance);
    assert_eq!(balance, Balance { created: 1, released: 1, removed: 0, live: 0 });
}

#[rstest]
#[case(json!({ "spec_id": 103, "spec_type": "gpu.unheard-of" }), "spec_id", json!(103))]
#[case(json!({ "spec_id": null, "spec_type": "gpu.rtx4090.spot" }), "spec_id", json!(104))]
#[case(json!({ "region": "cn-north-2", "spec_id": 0, "spec_type": "gpu.a100-80g.1" }), "spec_id", json!(201))]
#[case(json!({ "image": "registry.damodel.test/model_library/ubuntu:22.04" }), "image_id", json!(902))]
#[case(json!({ "image_id": null, "image": "registry.damodel.test/model_library/ubuntu:22.04" }), "image_id",
    json!(901))]
#[case(json!({ "image_id": null, "image_type": null,
    "image": "registry.damodel.test/user_private/main/trained-model:v951" }), "image_name", json!("trained-model"))]
#[case(json!({ "image_id": 951, "image_type": "2" }), "image_type", json!("private"))]
#[case(json!({ "image_id": 901, "image_type": "1" }), "image_type", json!("public"))]
#[case(json!({ "gpu_name": "ignored", "gpu_mem": 1, "cpu_per_gpu": 1, "memory_per_gpu": 1, "sys_disk_size": 1,
    "data_disk_size": 1, "highest_cuda": "1" }), "gpu_name", json!("NVIDIA-GeForce-RTX-4090"))]
#[case(json!({ "login_method": 1, "ssh_pubkey_id": 7, "ssh_pubkey_name": "laptop" }), "ssh_pubkey_name",
    json!("laptop"))]
#[case(json!({ "login_method": 1, "ssh_pubkey_id": 7, "ssh_pubkey_name": "laptop" }), "ssh_password", json!(""))]
#[case(json!({}), "login_method", json!(2))]
#[case(json!({ "external_ip": "203.0.113.7" }), "external_ip", json!("203.0.113.7"))]
#[case(json!({ "instance_hostname": "a".repeat(42) }), "status", json!("Running"))]
#[case(json!({ "object_mounts": [{ "bucket": "b" }], "auto_renew": true, "purchase_duration": 1 }), "status",
    json!("Running"))]
#[case(json!({ "payment_type": "Weekly", "purchase_duration": 1 }), "gpu_price", json!(311.85))]
#[case(json!({ "payment_type": "Monthly", "purchase_duration": 1 }), "gpu_price", json!(1188.0))]
#[case(json!({ "payment_type": "Monthly", "purchase_duration": 1 }), "rent_deadline", json!(START + 2_592_000))]
fn a_create_resolves_what_it_names(#[case] changes: Value, #[case] field: &str, #[case] expected: Value) {
    let mut bench = Bench::new();
    let uid = bench.create(&changes);
    bench.advance(1);
    assert_eq!(bench.detail(&uid)[field], expected);
}

#[test]
fn a_name_that_is_not_given_is_the_uid() {
    let mut bench = Bench::new();
    let uid = bench.create(&json!({ "instance_alias": null }));
    assert_eq!(bench.detail(&uid)["instance_alias"], uid.as_str());
}

#[test]
fn stock_is_taken_by_creates_and_given_back_by_releases() {
    let mut bench = Bench::new();
    bench.mutate(json!({ "set_spec": { "spec_id": 103, "stock": 5 } }));
    let uid = bench.create(&json!({ "gpu_num": 4 }));
    assert_eq!(bench.purchasable("cn-east-1", 103), 1);
    assert_eq!(bench.refusal("instance_create", "", &create_body(&json!({ "gpu_num": 2 }))).0, 160_001);
    bench.create(&json!({}));
    assert_eq!(bench.purchasable("cn-east-1", 103), 0);
    assert_eq!(bench.refusal("instance_create", "", &create_body(&json!({}))).0, 160_014);
    bench.release(&uid);
    bench.advance(5);
    assert_eq!(bench.purchasable("cn-east-1", 103), 4);
}

#[test]
fn a_failed_creation_gives_everything_back() {
    let mut bench = Bench::new();
    bench.arm(FaultAction::FailCreation);
    let uid = bench.create(&with_disks());
    assert_eq!(bench.disk(801)["status"], 3);
    assert_eq!(bench.service.world().spec(103).unwrap().stock, 63);
    bench.advance(1);
    assert_eq!(bench.detail(&uid)["status"], "Failed");
    assert_eq!(bench.disk(801)["status"], 2);
    let disks = bench.result("cloud_disk_list", "page=1&page_size=0&status=7", "");
    assert_eq!(disks["total"], 2);
    bench.result("instance_release", "", &json!({ "instance_uid": uid }).to_string());
    bench.advance(1);
    assert_eq!(bench.detail(&uid)["status"], "Released");
    assert_eq!(bench.service.world().spec(103).unwrap().stock, 64);
}

#[test]
fn a_stuck_creation_stays_creating() {
    let mut bench = Bench::new();
    bench.arm(FaultAction::StickCreation);
    let uid = bench.create(&json!({}));
    bench.advance(1_000_000);
    assert_eq!(bench.detail(&uid)["status"], "Creating");
}

fn with_disks() -> Value {
    json!({
        "exist_disks": [
            { "id": 801, "uid": "disk-seeddata0001", "release_with_instance": 0 },
            { "id": 804, "uid": "disk-seedscratch4", "release_with_instance": 1, "mount_path": "/scratch" },
        ],
        "new_disks": [
            { "size_gb": 20, "spec_id": 31, "release_with_instance": 1, "mount_path": "/fresh" },
            { "size_gb": 8000, "spec_id": 32, "release_with_instance": 0 },
        ],
    })
}

#[test]
fn disks_follow_their_instance() {
    let mut bench = Bench::new();
    let uid = bench.create(&with_disks());
    let statuses = |bench: &mut Bench| -> Vec<i64> {
        let page = bench.result("cloud_disk_list", "page=1&page_size=0", "");
        page["data"].as_array().unwrap().iter().map(|disk| disk["status"].as_i64().unwrap()).collect()
    };
    // 801 datasets, 802 shared, 803 unpaid, 804 scratch, then the two new ones.
    assert_eq!(statuses(&mut bench), [3, 6, 8, 3, 1, 1]);
    bench.advance(1);
    assert_eq!(statuses(&mut bench), [6, 6, 8, 6, 6, 6]);
    let detail = bench.detail(&uid);
    let paths: Vec<&str> =
        detail["cloud_disks"].as_array().unwrap().iter().map(|disk| disk["mount_path"].as_str().unwrap()).collect();
    assert_eq!(paths[..3], ["/data/datasets", "/scratch", "/fresh"]);
    assert_eq!(bench.disk(804)["binding_instances"], json!([{ "instance_uid": uid, "mount_path": "/scratch" }]));
    let mounted_twice =
        json!({ "exist_disks": [{ "id": 801, "uid": "disk-seeddata0001", "release_with_instance": 0 }] });
    assert_eq!(bench.refusal("instance_create", "", &create_body(&mounted_twice)).0, 180_007);

    bench.release(&uid);
    assert_eq!(statuses(&mut bench), [4, 6, 8, 5, 5, 4]);
    bench.advance(1);
    assert_eq!(statuses(&mut bench), [2, 6, 8, 7, 7, 2]);
    let balance = bench.service.ledger().balance(LedgerObject::CloudDisk);
    assert_eq!(balance, Balance { created: 7, released: 2, removed: 0, live: 5 });
}

#[test]
fn a_shared_disk_is_mounted_by_several() {
    let mut bench = Bench::new();
    let shared = json!({ "exist_disks": [{ "id": 802, "uid": "disk-seedshare002", "release_with_instance": 0,
        "mount_path": "/data/all" }] });
    let uid = bench.create(&shared);
    bench.create(&shared);
    bench.advance(1);
    assert_eq!(bench.disk(802)["binding_instances"].as_array().unwrap().len(), 3);
    bench.release(&uid);
    bench.advance(1);
    assert_eq!(
        (bench.disk(802)["status"].clone(), bench.disk(802)["binding_instances"].as_array().unwrap().len()),
        (json!(6), 2)
    );
}

#[test]
fn a_prepaid_instance_is_renewed() {
    let mut bench = Bench::new();
    let uid = bench.create(&json!({ "payment_type": "Daily", "purchase_duration": 1, "auto_renew": true }));
    bench.advance(86_400 * 2 + 10);
    let detail = bench.detail(&uid);
    assert_eq!((&detail["status"], &detail["rent_deadline"]), (&json!("Running"), &json!(START + 86_400 * 3)));
}

#[test]
fn late_visibility_hides_by_time_and_by_reads() {
    let mut bench = Bench::new();
    bench.arm(FaultAction::LateVisibility { ms: 5000, reads: 2 });
    let uid = bench.create(&json!({}));
    let seen = |bench: &mut Bench| {
        let list = bench.result("instance_list", "page=1&page_size=0", "");
        list["total"].as_i64().unwrap() == 1
    };
    bench.advance(10);
    assert_eq!(bench.refusal("instance_detail", &format!("instance_uid={uid}"), "").0, 160_003);
    assert!(!seen(&mut bench));
    assert!(seen(&mut bench));

    bench.arm(FaultAction::LateVisibility { ms: 5000, reads: 0 });
    let uid = bench.create(&json!({}));
    assert_eq!(bench.refusal("instance_detail", &format!("instance_uid={uid}"), "").0, 160_003);
    bench.advance(5);
    bench.detail(&uid);
}

#[test]
fn what_happens_behind_the_clients_back_is_seen() {
    let mut bench = Bench::new();
    let [released, renamed, removed, odd] = [(); 4].map(|()| bench.create(&json!({})));
    bench.advance(1);
    bench.mutate(json!({ "release_instance": { "uid": released } }));
    bench.mutate(json!({ "rename_instance": { "uid": renamed, "name": "by hand" } }));
    bench.mutate(json!({ "remove_instance": { "uid": removed } }));
    bench.mutate(json!({ "set_instance_status": { "uid": odd, "status": "Hibernating" } }));
    bench.mutate(json!({ "remove_disk": { "id": 801 } }));
    bench.mutate(json!({ "set_spec": { "spec_id": 103, "hourly_price": 2.5 } }));
    assert_eq!(bench.detail(&released)["status"], "Released");
    assert_eq!(bench.detail(&renamed)["instance_alias"], "by hand");
    assert_eq!(bench.refusal("instance_detail", &format!("instance_uid={removed}"), "").0, 160_003);
    assert_eq!(bench.detail(&odd)["status"], "Hibernating");
    assert_eq!(bench.detail(&odd)["gpu_price"], 1.98, "the price is that of the creation");
    let ledger = bench.service.ledger();
    assert_eq!(ledger.balance(LedgerObject::Instance), Balance { created: 4, released: 1, removed: 1, live: 2 });
    assert_eq!(ledger.duplicates(LedgerObject::Instance).len(), 1);
    assert_eq!(bench.service.world().spec(103).unwrap().stock, 62);
}

#[test]
fn the_ledger_tells_what_each_request_did() {
    let mut bench = Bench::new();
    let uid = bench.create(&json!({}));
    let entry = bench.last_request();
    assert_eq!((entry.endpoint.as_deref(), entry.status, entry.code_n), (Some("instance_create"), Some(200), None));
    assert_eq!((entry.account.as_deref(), &entry.created), (Some("main"), &vec![uid.clone()]));
    bench.release(&uid);
    assert_eq!(bench.last_request().released, [uid]);
    bench.arm(FaultAction::DropBefore);
    bench.ask("instance_create", "", &create_body(&json!({})));
    let entry = bench.last_request();
    assert_eq!((entry.processed, entry.status, entry.faults), (false, None, vec!["drop_before".to_owned()]));
    bench.arm(FaultAction::DropAfter);
    bench.ask("instance_create", "", &create_body(&json!({})));
    let entry = bench.last_request();
    assert_eq!((entry.processed, entry.status, entry.created.len()), (true, None, 1));
}

#[test]
fn a_replica_that_lags_hides_what_was_seen() {
    let mut bench = Bench::new();
    let uid = bench.create(&json!({}));
    bench.detail(&uid);
    bench.mutate(json!({ "hide": { "uid": uid, "reads": 2 } }));
    assert_eq!(bench.refusal("instance_detail", &format!("instance_uid={uid}"), "").0, 160_003);
    assert_eq!(bench.result("instance_list", "page=1&page_size=0", "")["total"], 0);
    bench.detail(&uid);
    for (list, shown, hidden) in [("cloud_disk_list", 4, "disk-seeddata0001"), ("private_image_list", 3, "951")] {
        bench.mutate(json!({ "hide": { "uid": hidden, "reads": 1 } }));
        let totals = [(); 2].map(|()| bench.result(list, "page=1&page_size=0", "")["total"].as_i64().unwrap());
        assert_eq!(totals, [shown - 1, shown]);
    }
}
