//! How objects change with time, by faults, and without a client.

use serde_json::{Value, json};

use super::{Bench, START, code};
use crate::{
    fault::FaultAction,
    ledger::{Balance, LedgerObject},
    mutation::{
        MutationError,
        StateList::{Accounts, Disks, Instances, Models, PrivateImages, Specs},
    },
};

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

impl Bench {
    /// The statuses of all disks: 801 datasets, 802 shared, 803 unpaid, 804 scratch, then created ones.
    fn statuses(&mut self) -> Vec<i64> {
        let page = self.result("cloud_disk_list", "page=1&page_size=0", "");
        page["data"].as_array().unwrap().iter().map(|disk| disk["status"].as_i64().unwrap()).collect()
    }

    fn total(&mut self, list: &str) -> i64 {
        self.result(list, "page=1&page_size=0", "")["total"].as_i64().unwrap()
    }
}

#[test]
fn an_instance_and_its_disks_run_and_are_released() {
    let mut bench = Bench::new();
    let uid = bench.create(&with_disks());
    assert_eq!(bench.last_request().created.len(), 3);
    assert_eq!((bench.detail(&uid)["status"].take(), bench.statuses()), (json!("Creating"), vec![3, 6, 8, 3, 1, 1]));
    bench.advance(1);
    let detail = bench.detail(&uid);
    assert_eq!((&detail["status"], &detail["start_time"]), (&json!("Running"), &json!(START + 1)));
    assert_eq!(bench.statuses(), [6, 6, 8, 6, 6, 6]);
    assert_eq!(bench.disk(804)["binding_instances"], json!([{ "instance_uid": uid, "mount_path": "/scratch" }]));
    bench.release(&uid);
    assert_eq!((bench.detail(&uid)["status"].take(), bench.statuses()), (json!("Running"), vec![4, 6, 8, 5, 5, 4]));
    bench.advance(1);
    let detail = bench.detail(&uid);
    assert_eq!((&detail["status"], &detail["release_time"]), (&json!("Released"), &json!(START + 2)));
    assert_eq!(bench.statuses(), [2, 6, 8, 7, 7, 2]);
    let ledger = bench.service.ledger();
    assert_eq!(ledger.balance(LedgerObject::Instance), Balance { created: 1, released: 1, removed: 0, live: 0 });
    assert_eq!(ledger.balance(LedgerObject::CloudDisk), Balance { created: 7, released: 2, removed: 0, live: 5 });
}

#[test]
fn a_prepaid_instance_is_renewed_or_released_after_its_term() {
    let mut bench = Bench::new();
    let [renewed, ended] = [true, false].map(|auto_renew| {
        bench.create(&json!({ "payment_type": "Daily", "purchase_duration": 1, "auto_renew": auto_renew }))
    });
    bench.advance(10);
    assert_eq!(code(&bench.release(&ended)), Some(160_012));
    bench.advance(86_400);
    let detail = bench.detail(&renewed);
    assert_eq!((&detail["status"], &detail["rent_deadline"]), (&json!("Running"), &json!(START + 86_400 * 2)));
    assert_eq!(bench.detail(&ended)["status"], "Stopped");
    assert_eq!(code(&bench.release(&ended)), None);
}

#[test]
fn a_creation_fails_sticks_or_shows_up_late() {
    let mut bench = Bench::new();
    bench.arm(FaultAction::FailCreation);
    let failed = bench.create(&with_disks());
    assert_eq!(bench.service.world().spec(103).unwrap().stock, 63);
    bench.advance(1);
    assert_eq!((bench.detail(&failed)["status"].take(), bench.statuses()), (json!("Failed"), vec![2, 6, 8, 2, 7, 7]));
    assert_eq!(bench.service.world().spec(103).unwrap().stock, 64);

    bench.arm(FaultAction::StickCreation);
    let stuck = bench.create(&json!({}));
    bench.advance(1_000_000);
    assert_eq!(bench.detail(&stuck)["status"], "Creating");

    bench.arm(FaultAction::LateVisibility { ms: 5000, reads: 2 });
    bench.create(&json!({}));
    bench.advance(10);
    assert_eq!([(); 3].map(|()| bench.total("instance_list")), [2, 2, 3]);
}

#[test]
fn a_change_without_a_client_is_seen() {
    let mut bench = Bench::new();
    let [released, removed, odd] = [(); 3].map(|()| bench.create(&json!({})));
    bench.advance(1);
    bench.mutate(json!({ "release_instance": { "uid": released } }));
    bench.mutate(json!({ "remove_instance": { "uid": removed } }));
    bench.mutate(json!({ "set_instance_status": { "uid": odd, "status": "Hibernating" } }));
    bench.mutate(json!({ "release_disk": { "id": 801 } }));
    bench.mutate(json!({ "remove_disk": { "id": 804 } }));
    bench.mutate(json!({ "remove_image": { "id": 951 } }));
    assert_eq!(bench.detail(&released)["status"], "Released");
    assert_eq!(bench.refusal("instance_detail", &format!("instance_uid={removed}"), "").0, 160_003);
    assert_eq!((bench.detail(&odd)["status"].take(), bench.statuses()), (json!("Hibernating"), vec![7, 6, 8]));
    let ledger = bench.service.ledger();
    assert_eq!(ledger.balance(LedgerObject::Instance), Balance { created: 3, released: 1, removed: 1, live: 1 });
    assert_eq!(ledger.balance(LedgerObject::PrivateImage), Balance { created: 4, released: 0, removed: 1, live: 3 });
    for (list, uid) in
        [("instance_list", odd.as_str()), ("cloud_disk_list", "disk-seedarrear03"), ("private_image_list", "953")]
    {
        let shown = bench.total(list);
        bench.mutate(json!({ "hide": { "uid": uid, "reads": 1 } }));
        assert_eq!([(); 2].map(|()| bench.total(list)), [shown - 1, shown]);
    }
}

#[test]
fn fields_of_a_record_are_set_and_merged() {
    let mut bench = Bench::new();
    let uid = bench.create(&json!({}));
    bench.set(Specs, "103", &json!({ "prices": { "hourly": 2.5 } }));
    bench.set(Instances, &uid, &json!({ "alias": "by hand" }));
    bench.set(Disks, "804", &json!({ "size_gb": 77 }));
    bench.set(PrivateImages, "952", &json!({ "ready": true, "push_progress": 100 }));
    bench.set(Models, "gpt-retired", &json!({ "enabled": true }));
    let prices = bench.service.world().spec(103).unwrap().prices;
    assert_eq!((prices.hourly, prices.daily), (2.5, 44.55));
    let detail = bench.detail(&uid);
    assert_eq!((&detail["instance_alias"], &detail["gpu_price"]), (&json!("by hand"), &json!(1.98)));
    assert_eq!(bench.disk(804)["size_gb"], 77);
    assert_eq!(bench.chat(&json!({ "model": "gpt-retired" })).status, 200);
    for (list, key, fields) in [
        (Specs, "103", json!({ "colour": "red" })),
        (Specs, "103", json!({ "prices": { "yearly": 1.0 } })),
        (Specs, "103", json!({ "stock": "many" })),
        (Specs, "103", json!({ "id": 104 })),
        (Instances, &uid, json!({ "uid": "ins-other" })),
        (Instances, &uid, json!({ "spec": { "id": 104 } })),
        (PrivateImages, "952", json!({ "uuid": "other" })),
        (Accounts, "main", json!({ "name": "other" })),
        (Accounts, "main", json!([])),
    ] {
        let refused = bench.service.set(list, key, &fields);
        assert!(matches!(refused, Err(MutationError::Field(_))), "{fields}: {refused:?}");
    }
    assert!(matches!(bench.service.set(Specs, "999", &json!({})), Err(MutationError::Unknown { .. })));
}
