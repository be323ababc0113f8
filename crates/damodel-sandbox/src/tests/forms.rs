//! All forms of an answer have the same content.

use rstest::rstest;
use serde_json::{Value, json};

use super::{Bench, code, create_body};
use crate::{clock::wall_seconds, fault::FaultAction};

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

/// The records of an instance, its disk and its saved image, in a form.
fn records(form: &str) -> [Value; 3] {
    let mut bench = Bench::with_form(form);
    let exist_disks = json!([{ "id": 801, "uid": "disk-seeddata0001", "release_with_instance": 1 }]);
    let uid = bench.create(&json!({ "exist_disks": exist_disks }));
    bench.advance(1);
    let save = json!({ "instance_uid": uid, "image_name": "toolkit" }).to_string();
    bench.result("image_save", "", &save);
    bench.result("cloud_disk_rename", "", r#"{"id":801,"name":"renamed"}"#);
    let instance = bench.detail(&uid);
    let lists = [("cloud_disk_list", "name_or_uid=renamed"), ("private_image_list", "image_name=toolkit")];
    let [disk, image] = lists.map(|(list, filter)| {
        let page = bench.result(list, &format!("page=1&page_size=50&{filter}"), "");
        page["data"][0].clone()
    });
    [instance, disk, image]
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
#[case("order=descending,page_cap=1")]
#[case("error_status=matched,error_shape=text,order=shuffled,page_cap=1,total_as_string,page_size_as_asked")]
#[case("clock_skew=-86400")]
#[case("empty=null,integers=strings,booleans=strings,extra_fields,total_as_string,metadata=missing")]
fn a_record_says_the_same_in_every_form(#[case] form: &str) {
    for (index, (plain, formed)) in records("").into_iter().zip(records(form)).enumerate() {
        for (name, value) in plain.as_object().unwrap() {
            let (expected, found) = (understood(value), understood(&formed[name]));
            let is_time = index == 0 && ["release_time", "stop_time", "rent_deadline"].contains(&name.as_str());
            let is_absent = is_time && expected == "0" && found.is_empty();
            assert!(expected == found || is_absent, "{name}: {expected:?}, {found:?}");
        }
        assert_eq!(formed.get("sandbox_extra").is_some(), form.contains("extra_fields"));
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
    let [_, disk, _] = records("trailing_slash");
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

#[rstest]
#[case("", 1, 200)]
#[case("resize=size_first", 1, 300)]
#[case("resize=unchanged", 2, 200)]
#[case("undocumented_statuses", 9, 200)]
fn a_growing_disk_is_shown_in_a_form(#[case] form: &str, #[case] status: i64, #[case] size_gb: i64) {
    let mut bench = Bench::with_form(form);
    bench.result("cloud_disk_resize", "", r#"{"id":801,"size_gb":300}"#);
    let disk = bench.disk(801);
    assert_eq!((&disk["status"], &disk["size_gb"]), (&json!(status), &json!(size_gb)));
    bench.advance(1);
    assert_eq!((&bench.disk(801)["status"], &bench.disk(801)["size_gb"]), (&json!(2), &json!(300)));
}

#[rstest]
#[case("", 4, 4)]
#[case("released_disks=lingering", 4, 3)]
#[case("released_disks=forgotten", 3, 3)]
fn released_disks_are_shown_or_not(#[case] form: &str, #[case] at_first: usize, #[case] later: usize) {
    let mut bench = Bench::with_form(form);
    bench.result("cloud_disk_release", "", r#"{"id":804}"#);
    for count in [at_first, later] {
        bench.advance(1);
        assert_eq!(bench.result("cloud_disk_list", "page=1&page_size=0", "")["total"], count);
    }
}

#[rstest]
#[case("", None)]
#[case("creating_unreleasable", Some(160_012))]
#[case("failed_unreleasable", None)]
fn a_status_can_forbid_release(#[case] form: &str, #[case] refused: Option<i64>) {
    let mut bench = Bench::with_form(form);
    let uid = bench.create(&json!({}));
    assert_eq!(code(&bench.release(&uid)), refused);
}

#[rstest]
#[case("", None)]
#[case("uploading=per_account", Some(130_002))]
fn images_are_created_one_at_a_time(#[case] form: &str, #[case] refused: Option<i64>) {
    let mut bench = Bench::with_form(form);
    let uids = [(); 2].map(|()| bench.create(&json!({})));
    bench.advance(1);
    let [first, second] = uids.map(|uid| {
        let save = json!({ "instance_uid": uid, "image_name": uid }).to_string();
        code(&bench.envelope("image_save", "", &save))
    });
    assert_eq!((first, second), (None, refused));
}

#[test]
fn a_mounted_disk_is_refused_in_a_form() {
    let mut bench = Bench::with_form("disk_refusal=invalid_parameter");
    assert_eq!(code(&bench.envelope("cloud_disk_release", "", r#"{"id":802}"#)), Some(100_002));
}

#[test]
fn a_skewed_clock_expects_skewed_timestamps_and_shows_its_date() {
    let mut bench = Bench::with_form("clock_skew=3600");
    let token = bench.service.world().accounts.first().unwrap().token.clone();
    let now = wall_seconds(0);
    let answer = bench.ask_as(Some(&token), Some(&now.to_string()), "spec_list", "region=cn-east-1", "");
    assert!((3599..=3660).contains(&(answer.date - now)));
    assert_eq!(code(&answer.json()), Some(100_006));
    bench.result("spec_list", "region=cn-east-1", "");
}

#[rstest]
#[case("")]
#[case("chat_stream=comments")]
#[case("chat_stream=crlf")]
#[case("chat_stream=pieces")]
#[case("extra_fields")]
fn a_stream_says_the_same_in_every_form(#[case] form: &str) {
    let events = Bench::with_form(form).events();
    let chunks: Vec<Value> = events[..6].iter().map(|event| serde_json::from_str(event).unwrap()).collect();
    let said: String = chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!((said.as_str(), events[6].as_str(), events.len()), ("You said: 你好 there", "[DONE]", 7));
    assert_eq!(chunks[0].get("sandbox_extra").is_some(), form == "extra_fields");
}

#[test]
fn a_stream_is_cut_ends_with_an_error_or_is_not_sent() {
    let whole = Bench::with_form("chat_stream=whole").chat(&json!({ "stream": true }));
    assert_eq!(whole.json()["object"], "chat.completion");
    let mut bench = Bench::new();
    bench.arm(FaultAction::CutStream { events: 3 });
    assert_eq!(bench.events().len(), 3);
    bench.arm(FaultAction::StreamError { events: 2 });
    let last: Value = serde_json::from_str(&bench.events()[2]).unwrap();
    assert_eq!(last["error"]["type"], "server_error");
}

#[rstest]
#[case("", 401, "application/json", "/error/message")]
#[case("chat_error=openai_200", 200, "application/json", "/error/message")]
#[case("chat_error=envelope", 200, "application/json", "/response_metadata/error/message")]
#[case("chat_error=text", 401, "text/plain", "")]
fn errors_of_a_chat_take_each_form(
    #[case] form: &str,
    #[case] status: u16,
    #[case] content_type: &str,
    #[case] pointer: &str,
) {
    let answer = Bench::with_form(form).chat_as(None, "{}");
    assert_eq!((answer.status, answer.content_type), (status, content_type));
    let message = "Authorization: invalid API key";
    if pointer.is_empty() {
        assert_eq!(answer.bytes(), format!("{message}\n").into_bytes());
    } else {
        assert_eq!(answer.json().pointer(pointer), Some(&json!(message)));
    }
}
