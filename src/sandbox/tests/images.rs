//! The life of a private image, its rules and limits.

use std::time::Duration;

use rstest::rstest;
use serde_json::{Value, json};

use super::{Bench, START, create_body};
use crate::sandbox::{
    fault::FaultAction,
    ledger::{Balance, LedgerObject},
    options::Options,
};

impl Bench {
    /// A Running instance.
    fn running(&mut self) -> String {
        let uid = self.create(&json!({}));
        self.advance(1);
        uid
    }

    fn save(&mut self, uid: &str, name: &str) -> Value {
        self.envelope("image_save", "", &json!({ "instance_uid": uid, "image_name": name }).to_string())
    }

    /// Saves an image and returns its id.
    fn saved(&mut self, uid: &str, name: &str) -> i64 {
        let envelope = self.save(uid, name);
        envelope["result"]["image_id"].as_i64().unwrap_or_else(|| panic!("{envelope}"))
    }

    fn images(&mut self, filter: &str) -> Vec<Value> {
        let page = self.result("private_image_list", &format!("page=1&page_size=0{filter}"), "");
        page["data"].as_array().unwrap().clone()
    }

    fn image(&mut self, id: i64) -> Value {
        self.images("").into_iter().find(|image| image["image_id"] == id).unwrap()
    }

    fn rename_image(&mut self, id: i64, name: &str) -> Value {
        self.envelope("image_rename", "", &json!({ "image_id": id, "image_name": name }).to_string())
    }

    fn delete_image(&mut self, id: i64) -> Value {
        self.envelope(&format!("image_delete/{id}"), "", "")
    }
}

fn code(envelope: &Value) -> &Value {
    &envelope["response_metadata"]["error"]["code_n"]
}

#[test]
fn an_image_is_saved_pushed_renamed_used_and_deleted() {
    let mut bench = Bench::with_options(Options { image_push: Duration::from_secs(4), ..Options::default() });
    let uid = bench.running();
    let saved = bench.result("image_save", "", &json!({ "instance_uid": uid, "image_name": "My Tools" }).to_string());
    let id = saved["image_id"].as_i64().unwrap();
    assert_eq!(bench.last_request().created, [id.to_string()]);
    let tag = format!("registry.damodel.test/user_private/main/my-tools:v{id}");
    let image = json!({
        "image_id": id, "image_uuid": format!("6f1d2c3b-0000-4000-8000-{id:012}"), "image_name": "My Tools",
        "image_tag": tag, "image_status": 0, "push_progress": 0, "image_size": 0.0,
        "original_image": "registry.damodel.test/model_library/pytorch:2.5.1-cuda12.4", "region": "cn-east-1",
        "create_time": START + 1, "updated_at": START + 1, "upperdir_files": 0, "upperdir_bytes": 0,
    });
    assert_eq!((&saved["image_tag"], bench.image(id)), (&json!(tag), image));
    let by_id = json!({ "image_id": id, "image_type": "private" });
    assert_eq!(bench.refusal("instance_create", "", &create_body(&by_id)).0, 160_019);

    let progress = [(); 3].map(|()| {
        bench.advance(1);
        bench.image(id)["push_progress"].as_i64().unwrap()
    });
    assert_eq!(progress, [25, 50, 75]);
    assert_eq!(bench.images("&image_status=0").len(), 2);
    bench.advance(1);
    let image = bench.image(id);
    assert_eq!((&image["image_status"], &image["push_progress"]), (&json!(1), &json!(100)));
    assert_eq!(image["updated_at"], START + 5);
    assert!(image["image_size"].as_f64().unwrap() > 0.0 && image["upperdir_files"].as_i64().unwrap() > 0);
    assert!(image["upperdir_bytes"].as_i64().unwrap() > 0);

    assert_eq!(code(&bench.rename_image(id, "tools")), &Value::Null);
    assert_eq!((&bench.image(id)["image_name"], &bench.image(id)["image_tag"]), (&json!("tools"), &json!(tag)));

    let user = bench.create(&by_id);
    assert_eq!(bench.detail(&user)["image_name"], "tools");
    assert_eq!(code(&bench.delete_image(id)), 130_005);
    bench.advance(1);
    assert_eq!(code(&bench.delete_image(id)), &Value::Null);
    assert_eq!(bench.last_request().released, [id.to_string()]);
    assert!(bench.images("").iter().all(|image| image["image_id"] != id));
    assert_eq!(code(&bench.delete_image(id)), 130_006);
    let by_address = json!({ "image_id": null, "image_type": null, "image": tag });
    assert_eq!(bench.refusal("instance_create", "", &create_body(&by_address)).0, 160_019);
    let balance = bench.service.ledger().balance(LedgerObject::PrivateImage);
    assert_eq!(balance, Balance { created: 5, released: 1, removed: 0, live: 4 });
}

#[test]
fn an_image_carries_the_cuda_version_of_its_origin() {
    let mut bench = Bench::new();
    let uid = bench.running();
    let id = bench.saved(&uid, "cuda 12.4");
    bench.advance(1);
    let on_an_old_gpu = json!({ "spec_id": 105, "image_id": id, "image_type": "2" });
    assert_eq!(bench.refusal("instance_create", "", &create_body(&on_an_old_gpu)).0, 160_032);
}

#[rstest]
#[case(json!({ "image_name": "a" }), "instance_uid: missing")]
#[case(json!({ "instance_uid": "ins-1" }), "image_name: missing")]
#[case(json!({ "instance_uid": "ins-1", "image_name": "" }), "image_name: must not be empty")]
#[case(json!({ "instance_uid": "ins-1", "image_name": "a ".to_owned() }), "image_name: must hold no")]
#[case(json!({ "instance_uid": "ins-1", "image_name": "a", "force": true }), "force: unknown field")]
fn a_save_is_held_to_the_document(#[case] body: Value, #[case] message: &str) {
    let (code, text) = Bench::new().refusal("image_save", "", &body.to_string());
    assert_eq!(code, 100_002, "{text}");
    assert!(text.starts_with(message), "{text}");
}

#[test]
fn only_an_own_instance_that_runs_is_saved() {
    let mut bench = Bench::new();
    let uid = bench.create(&json!({}));
    assert_eq!(code(&bench.save(&uid, "early")), 100_002, "it is being created");
    bench.advance(1);
    assert_eq!(code(&bench.save("ins-unheard-of", "nowhere")), 160_003);
    bench.account = "other";
    assert_eq!(code(&bench.save(&uid, "foreign")), 160_003);
    bench.account = "main";
    bench.release(&uid);
    assert_eq!(code(&bench.save(&uid, "late")), 100_002, "it is being released");
    bench.advance(1);
    assert_eq!(code(&bench.save(&uid, "too late")), 160_003);
    assert_eq!(bench.images("").len(), 3);
}

#[test]
fn names_are_unique_in_the_account() {
    let mut bench = Bench::new();
    let uid = bench.running();
    for name in ["trained-model", "half-pushed"] {
        assert_eq!(code(&bench.save(&uid, name)), 130_001);
    }
    let id = bench.saved(&uid, "not-yours");
    assert_eq!(code(&bench.rename_image(id, "trained-model")), 130_001);
    assert_eq!(code(&bench.rename_image(id, "not-yours")), &Value::Null, "its own name is no other's");
    bench.delete_image(951);
    assert_eq!(code(&bench.rename_image(id, "trained-model")), &Value::Null);
}

#[rstest]
#[case("", false)]
#[case("uploading=per_account", true)]
fn one_image_is_created_at_a_time(#[case] form: &str, #[case] per_account: bool) {
    let mut bench = Bench::with_form(form);
    let [first, second] = [bench.running(), bench.running()];
    bench.saved(&first, "one");
    assert_eq!(code(&bench.save(&first, "two")), 130_002);
    let other = bench.save(&second, "three");
    assert_eq!(*code(&other) == 130_002, per_account, "{other}");
    bench.advance(1);
    bench.saved(&first, "two");
}

#[test]
fn saves_that_come_too_often_are_refused() {
    let options = Options { save_window: Duration::from_secs(30), ..Options::default() };
    let mut bench = Bench::with_options(options);
    let uid = bench.running();
    bench.saved(&uid, "one");
    bench.advance(29);
    assert_eq!(code(&bench.save(&uid, "two")), 130_003);
    bench.advance(1);
    bench.saved(&uid, "two");
}

#[test]
fn a_day_has_so_many_saves() {
    let mut bench = Bench::with_options(Options { daily_saves: 2, ..Options::default() });
    let uid = bench.running();
    for name in ["one", "two"] {
        let id = bench.saved(&uid, name);
        bench.advance(1);
        bench.delete_image(id);
    }
    assert_eq!(code(&bench.save(&uid, "three")), 130_008, "what was deleted counts");
    // The test begins at 02:40 UTC.
    bench.advance(86_400 - 2 * 3600 - 40 * 60);
    bench.saved(&uid, "three");
}

#[test]
fn a_save_needs_a_balance() {
    let mut bench = Bench::new();
    let uid = bench.running();
    bench.set_balance("main", 0.0);
    assert_eq!(code(&bench.save(&uid, "a")), 100_038);
    bench.set_balance("main", 0.01);
    bench.saved(&uid, "a");
}

#[rstest]
#[case("image_rename", json!({ "image_name": "a" }), "image_id: missing")]
#[case("image_rename", json!({ "image_id": "951", "image_name": "a" }), "image_id: expected an integer")]
#[case("image_rename", json!({ "image_id": 951 }), "image_name: missing")]
#[case("image_rename", json!({ "image_id": 951, "image_name": "\n" }), "image_name: must hold no")]
#[case("image_rename", json!({ "image_id": 951, "image_name": "a", "name": "b" }), "name: unknown field")]
#[case("image_delete/latest", Value::Null, "image_id: expected an integer, got \"latest\"")]
#[case("image_delete/951", json!({ "image_id": 951 }), "body: none is expected")]
fn changes_are_held_to_the_document(#[case] endpoint: &str, #[case] body: Value, #[case] message: &str) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (code, text) = Bench::new().refusal(endpoint, "", &body);
    assert_eq!(code, 100_002, "{text}");
    assert!(text.starts_with(message), "{text}");
}

#[rstest]
#[case("", 999, 130_006)]
#[case("", 954, 130_006)]
#[case("foreign_images_forbidden", 999, 130_006)]
#[case("foreign_images_forbidden", 954, 130_004)]
fn unknown_and_foreign_images_are_refused(#[case] form: &str, #[case] id: i64, #[case] expected: i64) {
    let mut bench = Bench::with_form(form);
    assert_eq!(*code(&bench.rename_image(id, "mine")), expected);
    assert_eq!(*code(&bench.delete_image(id)), expected);
}

#[test]
fn changes_need_the_permission() {
    let mut bench = Bench::new();
    bench.mutate(json!({ "set_account": { "account": "main", "may_use_images": false } }));
    assert_eq!(code(&bench.rename_image(951, "mine")), 130_004);
    assert_eq!(code(&bench.delete_image(951)), 130_004);
    assert_eq!(bench.images("").len(), 3);
}

#[test]
fn an_image_that_is_being_created_can_be_deleted() {
    let mut bench = Bench::new();
    let uid = bench.running();
    let id = bench.saved(&uid, "regretted");
    assert_eq!(code(&bench.delete_image(id)), &Value::Null);
    bench.advance(5);
    assert_eq!(bench.images("").len(), 3);
    bench.saved(&uid, "regretted");
}

#[test]
fn a_push_fails_sticks_or_shows_up_late() {
    let mut bench = Bench::new();
    let uid = bench.running();
    bench.arm(FaultAction::FailCreation);
    let id = bench.saved(&uid, "failed");
    assert_eq!(bench.image(id)["image_status"], 0);
    bench.advance(1);
    assert_eq!(bench.images("").len(), 3);

    bench.arm(FaultAction::LateVisibility { ms: 0, reads: 1 });
    bench.saved(&uid, "late");
    assert_eq!([bench.images("").len(), bench.images("").len()], [3, 4]);
    bench.advance(1);

    bench.arm(FaultAction::StickCreation);
    let id = bench.saved(&uid, "stuck");
    bench.advance(1_000_000);
    assert_eq!((&bench.image(id)["image_status"], &bench.image(id)["push_progress"]), (&json!(0), &json!(0)));
    assert_eq!(code(&bench.save(&uid, "next")), 130_002);
    bench.mutate(json!({ "set_private_image": { "id": id, "ready": true, "push_progress": 100 } }));
    bench.saved(&uid, "next");
}

#[test]
fn what_happens_to_an_image_behind_the_clients_back_is_seen() {
    let mut bench = Bench::new();
    bench.mutate(json!({ "rename_image": { "id": 951, "name": "by hand" } }));
    assert_eq!(bench.image(951)["image_name"], "by hand");
    bench.mutate(json!({ "remove_image": { "id": 951 } }));
    assert_eq!(bench.images("").len(), 2);
    let balance = bench.service.ledger().balance(LedgerObject::PrivateImage);
    assert_eq!(balance, Balance { created: 4, released: 0, removed: 1, live: 3 });
}
