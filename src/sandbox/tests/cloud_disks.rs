//! The life of a cloud disk, its rules, and how the forms show it.

use std::time::Duration;

use rstest::rstest;
use serde_json::{Value, json};

use super::{Bench, START, create_body};
use crate::sandbox::{
    fault::FaultAction,
    ledger::{Balance, LedgerObject, LifeKind},
    options::Options,
};

/// A create that is accepted, with changes; a change to null removes the field.
fn body(changes: &Value) -> String {
    let mut body = json!({ "size_gb": 100, "spec_id": 31, "disk_name": "fresh", "mount_path": "/data/fresh",
        "purchase_duration": 1 });
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            body.as_object_mut().unwrap().remove(name);
        } else {
            body[name] = value.clone();
        }
    }
    body.to_string()
}

impl Bench {
    /// Creates a disk and returns its id from the list.
    fn create_disk(&mut self, changes: &Value) -> i64 {
        assert_eq!(self.result("cloud_disk_create", "", &body(changes)), Value::Null);
        let disks = self.disks("");
        disks.last().unwrap()["id"].as_i64().unwrap()
    }

    fn disks(&mut self, filter: &str) -> Vec<Value> {
        let page = self.result("cloud_disk_list", &format!("page=1&page_size=0{filter}"), "");
        page["data"].as_array().unwrap().clone()
    }

    fn status_and_size(&mut self, id: i64) -> (Value, Value) {
        let disk = self.disk(id);
        (disk["status"].clone(), disk["size_gb"].clone())
    }

    fn resize(&mut self, id: i64, size_gb: i64) -> Value {
        self.envelope("cloud_disk_resize", "", &json!({ "id": id, "size_gb": size_gb }).to_string())
    }

    fn release_disk(&mut self, id: i64) -> Value {
        self.envelope("cloud_disk_release", "", &json!({ "id": id }).to_string())
    }

    /// An instance that has the disk 801.
    fn mount(&mut self) -> String {
        let exist_disks = json!([{ "id": 801, "uid": "disk-seeddata0001", "release_with_instance": 0 }]);
        self.create(&json!({ "exist_disks": exist_disks }))
    }
}

fn code(envelope: &Value) -> &Value {
    &envelope["response_metadata"]["error"]["code_n"]
}

#[test]
fn a_disk_is_created_renamed_grown_and_released() {
    let mut bench = Bench::new();
    let id = bench.create_disk(&json!({}));
    let disk = bench.disk(id);
    let uid = disk["uid"].as_str().unwrap().to_owned();
    assert_eq!(
        disk,
        json!({
            "id": id, "uid": uid, "name": "fresh", "size_gb": 100, "status": 1, "spec_id": 31, "spec_type": "ssd-block",
            "storage_class_type": 1, "multiple_mounting": false, "mount_path": "/data/fresh", "binding_instances": [],
            "binding_clusters": [], "release_with_instance": false, "release_with_cluster": false,
            "create_time": START, "stop_time": 0,
        })
    );
    bench.advance(1);
    assert_eq!(bench.disk(id)["status"], 2);

    bench.result("cloud_disk_rename", "", &json!({ "id": id, "name": "kept" }).to_string());
    assert_eq!(bench.disk(id)["name"], "kept");

    bench.result("cloud_disk_resize", "", &json!({ "id": id, "size_gb": 150 }).to_string());
    assert_eq!(bench.status_and_size(id), (json!(1), json!(100)));
    bench.advance(1);
    assert_eq!(bench.status_and_size(id), (json!(2), json!(150)));

    bench.result("cloud_disk_release", "", &json!({ "id": id }).to_string());
    assert_eq!(bench.last_request().released, std::slice::from_ref(&uid));
    assert_eq!(bench.disk(id)["status"], 5);
    bench.advance(1);
    let disk = bench.disk(id);
    assert_eq!((&disk["status"], &disk["stop_time"]), (&json!(7), &json!(START + 3)));

    let ledger = bench.service.ledger();
    let kinds: Vec<LifeKind> = ledger.life.iter().filter(|event| event.uid == uid).map(|event| event.kind).collect();
    assert_eq!(kinds, [LifeKind::Created, LifeKind::Renamed, LifeKind::Released]);
    assert_eq!(ledger.balance(LedgerObject::CloudDisk), Balance { created: 6, released: 1, removed: 0, live: 5 });
}

#[test]
fn what_is_not_given_has_a_default() {
    let mut bench = Bench::new();
    let changes = json!({ "disk_name": null, "mount_path": null, "purchase_duration": null });
    let id = bench.create_disk(&changes);
    let disk = bench.disk(id);
    let uid = disk["uid"].as_str().unwrap();
    assert_eq!((&disk["name"], &disk["mount_path"]), (&json!(uid), &json!(format!("/data/{uid}"))));
    assert_eq!(bench.service.ledger().requests_to("cloud_disk_create").next().unwrap().created, [uid]);
}

#[test]
fn names_may_repeat_and_the_ledger_tells() {
    let mut bench = Bench::new();
    bench.create_disk(&json!({}));
    bench.create_disk(&json!({}));
    assert_eq!(bench.service.ledger().duplicates(LedgerObject::CloudDisk).len(), 1);
}

#[rstest]
#[case(json!({ "size_gb": 20 }))]
#[case(json!({ "size_gb": 4000 }))]
#[case(json!({ "size_gb": 8000, "spec_id": 32 }))]
#[case(json!({ "mount_path": "/root/data" }))]
#[case(json!({ "mount_path": "/mnt/data" }))]
#[case(json!({ "mount_path": "/var/data" }))]
#[case(json!({ "mount_path": "/tmpfiles" }))]
fn what_is_within_the_limits_is_accepted(#[case] changes: Value) {
    Bench::new().result("cloud_disk_create", "", &body(&changes));
}

#[rstest]
#[case(json!({ "size_gb": null }), "size_gb: missing")]
#[case(json!({ "size_gb": "100" }), "size_gb: expected an integer")]
#[case(json!({ "size_gb": 19 }), "size_gb: 19 is not within 20 and 4000")]
#[case(json!({ "size_gb": 4001 }), "size_gb: 4001")]
#[case(json!({ "spec_id": null }), "spec_id: missing")]
#[case(json!({ "spec_id": 99 }), "spec_id: 99")]
#[case(json!({ "disk_name": "a\tb" }), "disk_name: must hold no")]
#[case(json!({ "disk_name": "a".repeat(129) }), "disk_name: must have at most")]
#[case(json!({ "disk_name": 7 }), "disk_name: expected a string")]
#[case(json!({ "purchase_duration": 0 }), "purchase_duration: 0 is not 1")]
#[case(json!({ "purchase_duration": 2 }), "purchase_duration: 2 is not 1")]
#[case(json!({ "mount_path": "data" }), "mount_path: must be an absolute path")]
#[case(json!({ "mount_path": "/" }), "mount_path: is one of the forbidden")]
#[case(json!({ "mount_path": "/root" }), "mount_path: is one of the forbidden")]
#[case(json!({ "mount_path": "/mnt/" }), "mount_path: is one of the forbidden")]
#[case(json!({ "mount_path": "/var" }), "mount_path: is one of the forbidden")]
#[case(json!({ "mount_path": "/tmp" }), "mount_path: is one of the forbidden")]
#[case(json!({ "mount_path": "/dev/shm" }), "mount_path: is one of the forbidden")]
#[case(json!({ "mount_path": "/proc/a" }), "mount_path: is one of the forbidden")]
#[case(json!({ "mount_path": "/sys/a" }), "mount_path: is one of the forbidden")]
#[case(json!({ "mount_path": "/etc/a/b" }), "mount_path: is one of the forbidden")]
#[case(json!({ "mount_path": "/usr" }), "mount_path: is one of the forbidden")]
#[case(json!({ "mount_path": "/boot/a" }), "mount_path: is one of the forbidden")]
#[case(json!({ "name": "fresh" }), "name: unknown field")]
fn a_create_is_held_to_the_document(#[case] changes: Value, #[case] message: &str) {
    let mut bench = Bench::new();
    let (code, text) = bench.refusal("cloud_disk_create", "", &body(&changes));
    assert_eq!(code, 100_002, "{text}");
    assert!(text.starts_with(message), "{text}");
    assert_eq!(bench.disks("").len(), 4);
}

#[rstest]
#[case(100_038, json!({ "set_account": { "account": "main", "balance": 0.0 } }))]
#[case(180_009, json!({ "set_disk_spec": { "id": 31, "sold_out": true } }))]
#[case(100_002, json!({ "set_disk_spec": { "id": 31, "max_size_g": 99 } }))]
#[case(100_042, json!({ "set_account": { "account": "main", "may_use_disks": false } }))]
fn a_create_is_refused_by_state(#[case] code: i64, #[case] mutation: Value) {
    let mut bench = Bench::new();
    bench.mutate(mutation);
    assert_eq!(bench.refusal("cloud_disk_create", "", &body(&json!({}))).0, code);
    assert_eq!(bench.service.world().disks.len(), 5, "a refused create leaves nothing behind");
}

#[test]
fn a_sold_out_specification_cannot_be_had_with_an_instance_either() {
    let mut bench = Bench::new();
    bench.mutate(json!({ "set_disk_spec": { "id": 31, "sold_out": true } }));
    let with_disk = json!({ "new_disks": [{ "size_gb": 20, "spec_id": 31, "release_with_instance": 1 }] });
    assert_eq!(bench.refusal("instance_create", "", &create_body(&with_disk)).0, 180_007);
}

#[rstest]
#[case("cloud_disk_create", "", &body(&json!({})))]
#[case("cloud_disk_rename", "", r#"{"id":801,"name":"a"}"#)]
#[case("cloud_disk_resize", "", r#"{"id":801,"size_gb":300}"#)]
#[case("cloud_disk_release", "", r#"{"id":801}"#)]
#[case("cloud_disk_list", "page=1&page_size=0", "")]
#[case("cloud_disk_spec_list", "", "")]
fn every_disk_endpoint_needs_the_permission(#[case] endpoint: &str, #[case] query: &str, #[case] body: &str) {
    let mut bench = Bench::new();
    bench.account = "restricted";
    assert_eq!(bench.refusal(endpoint, query, body).0, 100_042);
    bench.mutate(json!({ "set_account": { "account": "restricted", "may_use_disks": true } }));
    assert_ne!(code(&bench.envelope(endpoint, query, body)), 100_042);
}

#[rstest]
#[case("cloud_disk_rename", json!({ "name": "a" }), "id: missing")]
#[case("cloud_disk_rename", json!({ "id": "disk-seeddata0001", "name": "a" }), "id: expected an integer")]
#[case("cloud_disk_rename", json!({ "id": 801 }), "name: missing")]
#[case("cloud_disk_rename", json!({ "id": 801, "name": "" }), "name: must not be empty")]
#[case("cloud_disk_rename", json!({ "id": 801, "name": "a", "uid": "b" }), "uid: unknown field")]
#[case("cloud_disk_rename", json!({ "id": 999, "name": "a" }), "id: there is no cloud disk 999")]
#[case("cloud_disk_rename", json!({ "id": 805, "name": "a" }), "id: there is no cloud disk 805")]
#[case("cloud_disk_resize", json!({ "size_gb": 300 }), "id: missing")]
#[case("cloud_disk_resize", json!({ "id": 801 }), "size_gb: missing")]
#[case("cloud_disk_resize", json!({ "id": 801, "size_gb": 200 }), "size_gb: 200 is not more than 200")]
#[case("cloud_disk_resize", json!({ "id": 801, "size_gb": 199 }), "size_gb: 199 is not more than 200")]
#[case("cloud_disk_resize", json!({ "id": 801, "size_gb": 4001 }), "size_gb: 4001 is not within 20 and 4000")]
#[case("cloud_disk_resize", json!({ "id": 805, "size_gb": 300 }), "id: there is no cloud disk 805")]
#[case("cloud_disk_release", json!({}), "id: missing")]
#[case("cloud_disk_release", json!({ "id": 801, "force": true }), "force: unknown field")]
#[case("cloud_disk_release", json!({ "id": 805 }), "id: there is no cloud disk 805")]
fn changes_are_held_to_the_document(#[case] endpoint: &str, #[case] body: Value, #[case] message: &str) {
    let (code, text) = Bench::new().refusal(endpoint, "", &body.to_string());
    assert_eq!(code, 100_002, "{text}");
    assert!(text.starts_with(message), "{text}");
}

/// The refusals of each status; `None` is success.
#[rstest]
#[case(1, Some(100_014), Some(100_014))]
#[case(2, None, None)]
#[case(3, Some(100_014), Some(100_014))]
#[case(4, Some(100_014), Some(100_014))]
#[case(5, Some(100_014), Some(100_014))]
#[case(6, None, Some(100_014))]
#[case(7, Some(100_002), Some(100_002))]
#[case(8, Some(100_014), None)]
fn a_status_permits_or_forbids(#[case] status: i64, #[case] resize: Option<i64>, #[case] release: Option<i64>) {
    let mut bench = Bench::new();
    bench.mutate(json!({ "set_disk_status": { "id": 801, "status": status } }));
    assert_eq!(code(&bench.resize(801, 300)).as_i64(), resize, "resize");
    bench.mutate(json!({ "set_disk_status": { "id": 804, "status": status } }));
    assert_eq!(code(&bench.release_disk(804)).as_i64(), release, "release");
    let renamed = bench.envelope("cloud_disk_rename", "", r#"{"id":804,"name":"a"}"#);
    assert_eq!(code(&renamed).is_null(), status != 7, "rename");
}

#[rstest]
#[case("", 100_014)]
#[case("disk_refusal=invalid_parameter", 100_002)]
fn a_mounted_disk_grows_but_is_not_released(#[case] form: &str, #[case] refused: i64) {
    let mut bench = Bench::with_form(form);
    let uid = bench.mount();
    assert_eq!(*code(&bench.release_disk(801)), refused, "it is being mounted");
    bench.advance(1);
    assert_eq!(*code(&bench.release_disk(801)), refused, "it is mounted");
    bench.resize(801, 300);
    assert_eq!(bench.status_and_size(801), (json!(1), json!(200)));
    bench.advance(1);
    assert_eq!(bench.status_and_size(801), (json!(6), json!(300)));
    bench.release(&uid);
    assert_eq!(*code(&bench.release_disk(801)), refused, "it is being unmounted");
    bench.advance(1);
    assert_eq!(code(&bench.release_disk(801)), &Value::Null);
    assert_eq!(*code(&bench.release_disk(801)), refused, "it is being released");
    assert_eq!(*code(&bench.release_disk(802)), refused, "a cluster has it, and an instance elsewhere");
}

#[test]
fn a_growing_disk_takes_no_other_change() {
    let mut bench = Bench::new();
    bench.resize(801, 300);
    assert_eq!(*code(&bench.resize(801, 400)), 100_014);
    assert_eq!(*code(&bench.release_disk(801)), 100_014);
    let exist_disks = json!([{ "id": 801, "uid": "disk-seeddata0001", "release_with_instance": 0 }]);
    let with_disk = create_body(&json!({ "exist_disks": exist_disks }));
    assert_eq!(bench.refusal("instance_create", "", &with_disk).0, 180_007);
    bench.advance(1);
    bench.result("instance_create", "", &with_disk);
}

#[rstest]
#[case("", 1, 200)]
#[case("resize=size_first", 1, 300)]
#[case("resize=unchanged", 2, 200)]
#[case("undocumented_statuses", 9, 200)]
fn a_growing_disk_is_shown_in_a_form(#[case] form: &str, #[case] status: i64, #[case] size_gb: i64) {
    let mut bench = Bench::with_form(form);
    bench.resize(801, 300);
    assert_eq!(bench.status_and_size(801), (json!(status), json!(size_gb)));
    assert_eq!(bench.disks("&status=2").iter().any(|disk| disk["id"] == 801), status == 2);
    bench.advance(1);
    assert_eq!(bench.status_and_size(801), (json!(2), json!(300)));
}

#[rstest]
#[case("", true, true)]
#[case("released_disks=lingering", true, false)]
#[case("released_disks=forgotten", false, false)]
fn released_disks_are_shown_or_not(#[case] form: &str, #[case] at_first: bool, #[case] later: bool) {
    let mut bench = Bench::with_form(form);
    bench.release_disk(804);
    assert_eq!(bench.disk(804)["status"], 5);
    for is_shown in [at_first, later] {
        bench.advance(1);
        assert_eq!(bench.disks("").iter().any(|disk| disk["id"] == 804), is_shown);
    }
}

#[test]
fn the_times_are_the_options() {
    let seconds = Duration::from_secs;
    let mut bench = Bench::with_options(Options { disk_change: seconds(7), release: seconds(5), ..Options::default() });
    let id = bench.create_disk(&json!({}));
    bench.advance(6);
    assert_eq!(bench.disk(id)["status"], 1);
    bench.advance(1);
    assert_eq!(bench.disk(id)["status"], 2);
    bench.resize(id, 101);
    bench.advance(6);
    assert_eq!(bench.disk(id)["size_gb"], 100);
    bench.advance(1);
    assert_eq!(bench.disk(id)["size_gb"], 101);
    bench.release_disk(id);
    bench.advance(4);
    assert_eq!(bench.disk(id)["status"], 5);
    bench.advance(1);
    assert_eq!(bench.disk(id)["status"], 7);
}

#[rstest]
#[case(FaultAction::FailCreation, 7)]
#[case(FaultAction::StickCreation, 1)]
fn a_creation_fails_or_sticks(#[case] action: FaultAction, #[case] status: i64) {
    let mut bench = Bench::new();
    bench.arm(action);
    let id = bench.create_disk(&json!({}));
    bench.advance(1000);
    assert_eq!(bench.disk(id)["status"], status);
}

#[test]
fn disks_show_up_late_alone_or_with_an_instance() {
    for with_instance in [false, true] {
        let mut bench = Bench::new();
        bench.arm(FaultAction::LateVisibility { ms: 3000, reads: 2 });
        if with_instance {
            bench.create(&json!({ "new_disks": [{ "size_gb": 20, "spec_id": 31, "release_with_instance": 1 }] }));
        } else {
            bench.result("cloud_disk_create", "", &body(&json!({})));
        }
        bench.advance(3);
        // A read that would not have shown it does not count.
        assert_eq!(bench.disks("&name_or_uid=seedshare").len(), 1);
        let counts = [(); 3].map(|()| bench.disks("").len());
        assert_eq!(counts, [4, 4, 5], "with an instance: {with_instance}");
    }
}

#[test]
fn what_happens_to_a_disk_behind_the_clients_back_is_seen() {
    let mut bench = Bench::new();
    let uid = bench.mount();
    bench.advance(1);
    bench.mutate(json!({ "rename_disk": { "id": 804, "name": "by hand" } }));
    bench.mutate(json!({ "resize_disk": { "id": 804, "size_gb": 77 } }));
    assert_eq!((&bench.disk(804)["name"], &bench.disk(804)["size_gb"]), (&json!("by hand"), &json!(77)));
    bench.mutate(json!({ "release_disk": { "id": 801 } }));
    assert_eq!((&bench.disk(801)["status"], &bench.disk(801)["binding_instances"]), (&json!(7), &json!([])));
    assert_eq!(bench.detail(&uid)["cloud_disks"], json!([]));
    bench.release(&uid);
    bench.advance(1);
    assert_eq!(bench.disk(801)["status"], 7, "it is not brought back");
    bench.mutate(json!({ "set_disk_status": { "id": 803, "status": 7 } }));
    assert_eq!(bench.service.ledger().balance(LedgerObject::CloudDisk).released, 2);
    bench.resize(804, 90);
    bench.mutate(json!({ "set_disk_status": { "id": 804, "status": 8 } }));
    bench.advance(5);
    assert_eq!(bench.status_and_size(804), (json!(8), json!(77)), "a status set by hand stays");
}

#[rstest]
#[case(100_014, true)]
#[case(180_009, false)]
fn a_fault_refuses_a_create_that_may_have_been_processed(#[case] code: i64, #[case] processed: bool) {
    let mut bench = Bench::new();
    let code_n = serde_json::from_value(json!(code)).unwrap();
    bench.arm(FaultAction::Error { code_n, processed });
    assert_eq!(bench.refusal("cloud_disk_create", "", &body(&json!({}))).0, code);
    assert_eq!(bench.disks("").len(), if processed { 5 } else { 4 });
}
