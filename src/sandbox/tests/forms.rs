//! All forms of an answer have the same content.

use rstest::rstest;
use serde_json::{Value, json};

use super::{Bench, create_body};

/// The detail of one instance, in a form.
fn detail(form: &str) -> Value {
    let mut bench = Bench::with_form(form);
    let created = bench.envelope("instance_create", "", &create_body(&json!({})));
    let uid = created["result"]["instance_uid"].as_str().unwrap().to_owned();
    bench.advance(1);
    bench.envelope("instance_detail", &format!("instance_uid={uid}"), "")["result"].clone()
}

/// A value as a lenient reader understands it: numbers and booleans by their text, empty values as absent.
fn understood(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::Bool(flag) => i64::from(*flag).to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => String::new(),
        Value::Array(_) | Value::Object(_) => return "a structure".to_owned(),
    };
    match text.as_str() {
        "true" => "1".to_owned(),
        "false" => "0".to_owned(),
        _ => text.strip_suffix(".0").unwrap_or(&text).to_owned(),
    }
}

#[rstest]
#[case("empty=null")]
#[case("empty=missing")]
#[case("empty=text")]
#[case("integers=floats")]
#[case("integers=strings")]
#[case("booleans=numbers")]
#[case("booleans=strings")]
#[case("extra_fields")]
#[case("metadata=missing")]
#[case("metadata=without_identifiers")]
#[case("error_status=matched,error_shape=text,order=shuffled,page_cap=1,total_as_string,page_size_as_asked")]
#[case("clock_skew=-86400")]
#[case("empty=null,integers=strings,booleans=strings,extra_fields,total_as_string,metadata=missing")]
fn a_detail_says_the_same_in_every_form(#[case] form: &str) {
    let (plain, formed) = (detail(""), detail(form));
    for (name, value) in plain.as_object().unwrap() {
        let (expected, found) = (understood(value), understood(&formed[name]));
        let is_absent_time =
            ["release_time", "stop_time", "rent_deadline"].contains(&name.as_str()) && found.is_empty();
        assert!(expected == found || (expected == "0" && is_absent_time), "{name}: {expected:?}, {found:?}");
    }
}

/// The records of a mounted disk and of a saved image, in a form.
fn records(form: &str) -> [Value; 2] {
    let mut bench = Bench::with_form(form);
    let exist_disks = json!([{ "id": 801, "uid": "disk-seeddata0001", "release_with_instance": 1 }]);
    let uid = bench.create(&json!({ "exist_disks": exist_disks }));
    bench.advance(1);
    let save = json!({ "instance_uid": uid, "image_name": "toolkit" }).to_string();
    bench.result("image_save", "", &save);
    bench.result("cloud_disk_rename", "", r#"{"id":801,"name":"renamed"}"#);
    [("cloud_disk_list", "name_or_uid=renamed"), ("private_image_list", "image_name=toolkit")].map(|(list, filter)| {
        let page = bench.result(list, &format!("page=1&page_size=50&{filter}"), "");
        page["data"][0].clone()
    })
}

#[rstest]
#[case("empty=null")]
#[case("empty=missing")]
#[case("empty=text")]
#[case("integers=floats")]
#[case("integers=strings")]
#[case("booleans=numbers")]
#[case("booleans=strings")]
#[case("extra_fields")]
#[case("order=descending,page_cap=1")]
#[case("empty=null,integers=strings,booleans=strings,extra_fields,total_as_string,metadata=missing")]
fn disks_and_images_say_the_same_in_every_form(#[case] form: &str) {
    for (plain, formed) in records("").into_iter().zip(records(form)) {
        for (name, value) in plain.as_object().unwrap() {
            assert_eq!(understood(value), understood(&formed[name]), "{name}");
        }
        assert_eq!(formed.get("sandbox_extra").is_some(), form.contains("extra_fields"));
    }
}

#[test]
fn errors_take_the_status_that_fits() {
    for (form, status) in [("", 200), ("error_status=matched", 404)] {
        let answer = Bench::with_form(form).ask("instance_detail", "instance_uid=ins-unheard-of", "");
        assert_eq!(answer.status, status);
    }
}

#[test]
fn totals_can_be_strings_and_pages_capped() {
    let mut bench = Bench::with_form("total_as_string,page_cap=3");
    let page = bench.result("cloud_disk_list", "page=1&page_size=100", "");
    assert_eq!((&page["total"], &page["page_size"], &page["total_page"]), (&json!("4"), &json!(3), &json!(2)));
    assert_eq!(page["data"].as_array().unwrap().len(), 3);
}

#[test]
fn undocumented_statuses_are_shown_and_filtered_by_their_own_word() {
    let mut bench = Bench::with_form("undocumented_statuses");
    let uid = bench.create(&json!({}));
    assert_eq!(bench.detail(&uid)["status"], "Scheduling");
    assert_eq!(bench.result("instance_list", "page=1&page_size=0&status=Creating", "")["total"], 0);
    bench.advance(1);
    assert_eq!(bench.detail(&uid)["status"], "Running");
    bench.release(&uid);
    assert_eq!(bench.detail(&uid)["status"], "Releasing");
    bench.advance(1);
    assert_eq!(bench.detail(&uid)["status"], "Released");
}

#[test]
fn the_same_seed_and_requests_give_the_same_answers() {
    assert_eq!(detail(""), detail(""));
    let bodies = [(); 2].map(|()| Bench::with_form("order=shuffled").ask("public_image_list", "", "").body);
    assert_eq!(bodies[0], bodies[1]);
}

#[rstest]
#[case("", 1, true)]
#[case("released=without_detail", 1, false)]
#[case("released=forgotten", 0, false)]
fn released_instances_are_shown_or_not(#[case] form: &str, #[case] listed: i64, #[case] has_detail: bool) {
    let mut bench = Bench::with_form(form);
    let uid = bench.create(&json!({}));
    bench.release(&uid);
    bench.detail(&uid);
    bench.advance(1);
    let list = bench.result("instance_list", "page=1&page_size=0", "");
    assert_eq!(list["total"], listed);
    let detail = bench.envelope("instance_detail", &format!("instance_uid={uid}"), "");
    assert_eq!(detail["result"].is_object(), has_detail);
}

#[test]
fn an_image_type_is_a_word_or_a_number() {
    assert_eq!(detail("")["image_type"], "public");
    assert_eq!(detail("image_type_as_number")["image_type"], "1");
}

#[test]
fn empty_lists_can_be_null() {
    let mut bench = Bench::with_form("empty=null");
    let page = bench.result("instance_list", "page=1&page_size=0", "");
    assert_eq!((&page["total"], &page["data"]), (&json!(0), &Value::Null));
    assert_eq!(bench.result("spec_list", "region=mars-1", ""), Value::Null);
}

#[test]
fn a_new_instance_can_show_zeros_until_it_runs() {
    let mut bench = Bench::with_form("zeros_while_creating");
    let uid = bench.create(&json!({}));
    let numbers = |bench: &mut Bench| {
        let detail = bench.detail(&uid);
        ["spec_id", "image_id", "gpu_num"].map(|name| detail[name].as_i64().unwrap())
    };
    assert_eq!(numbers(&mut bench), [0, 0, 0]);
    bench.advance(1);
    assert_eq!(numbers(&mut bench), [103, 902, 1]);
}

#[test]
fn mount_paths_can_end_with_a_slash() {
    let [disk, _] = records("trailing_slash");
    assert_eq!(
        (&disk["mount_path"], &disk["binding_instances"][0]["mount_path"]),
        (&json!("/data/datasets/"), &json!("/data/datasets/"))
    );
}

#[test]
fn uids_can_be_beginnings_of_others() {
    let mut bench = Bench::with_form("counted_uids");
    let uids: Vec<String> = (0..10).map(|_| bench.create(&json!({}))).collect();
    assert_eq!((uids[0].as_str(), uids[9].as_str()), ("ins-1", "ins-10"));
    let found = bench.result("instance_list", "page=1&page_size=0&query=ins-1", "");
    assert_eq!(found["total"], 2);
}
