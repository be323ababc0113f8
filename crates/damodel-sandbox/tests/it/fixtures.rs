//! The sandbox's answers compared with those that were written from the document.

use std::{path::Path, time::Duration};

use damodel_sandbox::{LifeClock, Options};
use serde_json::{Value, json};

use crate::client::Site;

/// The fields of an instance in lists; a detail has more.
const INSTANCE: &str = "instance_id instance_uid instance_alias status region capacity_type gpu_name gpu_num spec_id \
                        spec_type payment_type image_id image_name image_type ssh_host ssh_port login_method \
                        ssh_pubkey_name ssh_password external_ip internal_ip jupyter_url jupyter_token start_time \
                        stop_time release_time";

/// The fields of each record of each answer (service API, Resources and fields).
const RECORDS: [(&str, &str, &str); 10] = [
    ("instance_create", "/result", "instance_id instance_uid payment_type release_time"),
    ("instance_list", "/result/data/0", INSTANCE),
    (
        "instance_detail",
        "/result",
        "cpu_core memory_size gpu_memory sys_disk_size data_disk_size cloud_disks gpu_price data_disk_price \
         rent_deadline services support_power_type shutdown_status shutdown_stage shutdown_push_progress",
    ),
    (
        "public_image_list",
        "/result/0",
        "id name image_url description softwares labels size document_url icon create_time update_time",
    ),
    (
        "private_image_list",
        "/result/data/0",
        "image_id image_uuid image_name image_tag image_status push_progress image_size original_image region \
         create_time updated_at upperdir_files upperdir_bytes",
    ),
    ("image_save", "/result", "image_id image_tag"),
    (
        "private_image_creating",
        "/result/data/0",
        "image_id image_uuid image_name image_tag image_status push_progress image_size original_image region \
         create_time updated_at upperdir_files upperdir_bytes",
    ),
    (
        "spec_list",
        "/result/0",
        "spec_id spec_type capacity_type gpu_name gpu_mem max_gpu_count cpu_per_gpu mem_per_gpu sys_disk_size \
         data_disk_size data_disk_expand_quota highest_cuda support_ib_network hourly_price daily_price monthly_price \
         hourly_data_disk_price daily_data_disk_price monthly_data_disk_price hourly_discount daily_discount \
         monthly_discount hourly_discount_status daily_discount_status monthly_discount_status rush_sale_status",
    ),
    (
        "cloud_disk_list",
        "/result/data/0",
        "id uid name size_gb status spec_id spec_type storage_class_type multiple_mounting mount_path \
         binding_instances binding_clusters release_with_instance release_with_cluster create_time stop_time",
    ),
    ("cloud_disk_spec_list", "/result/data/0", "id spec_alias multiple_mounting max_size_g storage_class_type"),
];

/// Fields with random values: both must be texts, and not empty. (Only chat answers have an `id` that is a text.)
const RANDOM: [&str; 9] = [
    "id",
    "instance_uid",
    "jupyter_token",
    "jupyter_url",
    "password",
    "request_id",
    "ssh_password",
    "token",
    "trace_id",
];

fn fixture(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/service").join(format!("{name}.json"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Ports are random: both must be ports.
const PORTS: [&str; 2] = ["port", "ssh_port"];

/// A value with the random texts and the ports replaced. Uids of the seed are not random, and stay.
fn redacted(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(redacted).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| {
                let is_random = RANDOM.contains(&name.as_str()) || (name == "url" && value.is_string());
                let is_text = value.as_str().is_some_and(|text| !text.is_empty());
                let is_port = PORTS.contains(&name.as_str()) && value.as_u64().is_some_and(|port| port > 1024);
                let value = if (is_random && is_text) || is_port { json!("[random]") } else { redacted(value) };
                (name, value)
            })
            .collect(),
        other => other,
    }
}

#[test]
fn the_fixtures_have_the_documents_fields() {
    for (name, pointer, fields) in RECORDS {
        let fixture = fixture(name);
        let mut found: Vec<&str> =
            fixture.pointer(pointer).unwrap().as_object().unwrap().keys().map(String::as_str).collect();
        let more = if name == "instance_detail" { INSTANCE } else { "" };
        let mut expected: Vec<&str> = fields.split(' ').chain(more.split_whitespace()).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{name}");
    }
}

#[tokio::test]
async fn the_sandbox_answers_as_the_fixtures_say() {
    let options = Options { image_push: Duration::from_secs(2), ..Options::default() };
    let site = Site::start(Options { life_clock: LifeClock::Standing(1_770_000_000), ..options }).await;
    let agrees = async |name: &str, method: &str, path: &str, body: Option<Value>| -> Value {
        let answer = site.ask(method, path, body.as_ref()).await.unwrap().json();
        assert_eq!(redacted(answer.clone()), redacted(fixture(name)), "{name}");
        answer
    };
    agrees("spec_list", "GET", "/api/spec/list?region=cn-north-2&capacity_type=spot", None).await;
    agrees("public_image_list", "GET", "/api/image/publics_v2?label=inference", None).await;
    agrees("private_image_list", "GET", "/api/image/privates?page=1&page_size=2", None).await;
    agrees("cloud_disk_list", "GET", "/api/storage/cloud_disk/list?page=1&page_size=0&name_or_uid=seedshare", None)
        .await;
    agrees("cloud_disk_spec_list", "GET", "/api/storage/cloud_disk/spec?spec_types=2", None).await;
    agrees("error_instance_not_exist", "GET", "/api/instance/detail?instance_uid=ins-unheard-of", None).await;

    let create = json!({
        "region": "cn-east-1",
        "payment_type": "Hourly",
        "spec_id": 101,
        "gpu_num": 2,
        "data_disk_expand_size": 10,
        "image_id": 902,
        "image_type": "public",
        "instance_alias": "trainer",
        "external_ip": "203.0.113.7",
        "exist_disks": [{ "id": 801, "uid": "disk-seeddata0001", "release_with_instance": 0 }],
    });
    let created = agrees("instance_create", "POST", "/api/instance/create", Some(create)).await;
    let uid = created["result"]["instance_uid"].clone();
    site.running.sandbox.advance(Duration::from_secs(1));
    let rename = json!({ "instance_uid": uid, "name": "trainer-1a2b3c4d" });
    agrees("instance_rename", "POST", "/api/instance/rename", Some(rename)).await;
    agrees("instance_list", "GET", "/api/instance/list?page=1&page_size=50", None).await;
    let detail = format!("/api/instance/detail?instance_uid={}", uid.as_str().unwrap());
    agrees("instance_detail", "GET", &detail, None).await;

    let save = json!({ "instance_uid": uid, "image_name": "toolkit" });
    agrees("image_save", "POST", "/api/instance/save_image_v2", Some(save.clone())).await;
    agrees("error_image_name_existed", "POST", "/api/instance/save_image_v2", Some(save)).await;
    site.running.sandbox.advance(Duration::from_secs(1));
    agrees("private_image_creating", "GET", "/api/image/privates?page=1&page_size=0&image_name=toolkit", None).await;
    let rename = json!({ "image_id": 5002, "image_name": "more-tools" });
    agrees("image_rename", "PUT", "/api/image/update", Some(rename)).await;
    agrees("image_delete", "DELETE", "/api/image/delete/5002", None).await;

    let disk = json!({ "size_gb": 20, "spec_id": 31, "disk_name": "fresh" });
    agrees("cloud_disk_create", "POST", "/api/storage/cloud_disk/create", Some(disk)).await;
    let disk = json!({ "id": 804, "name": "kept" });
    agrees("cloud_disk_rename", "POST", "/api/storage/cloud_disk/rename", Some(disk)).await;
    let disk = json!({ "id": 804, "size_gb": 61 });
    agrees("cloud_disk_resize", "POST", "/api/storage/cloud_disk/resize", Some(disk)).await;
    site.running.sandbox.advance(Duration::from_secs(1));
    agrees("cloud_disk_release", "POST", "/api/storage/cloud_disk/release", Some(json!({ "id": 804 }))).await;
    agrees("error_cloud_disk_mounted", "POST", "/api/storage/cloud_disk/release", Some(json!({ "id": 801 }))).await;
    agrees("instance_release", "POST", "/api/instance/release", Some(json!({ "instance_uid": uid }))).await;
}

#[tokio::test]
async fn the_sandbox_chats_as_the_fixtures_say() {
    let site = Site::start(Options { life_clock: LifeClock::Standing(1_770_000_003), ..Options::default() }).await;
    let messages = json!([{ "role": "user", "content": "你好" }]);
    let whole = json!({ "model": "deepseek-r1", "messages": messages });
    let answer = site.chat("/chat/completions", &whole).await.unwrap();
    assert_eq!(redacted(answer.json()), redacted(fixture("chat_completions")));

    let unknown = json!({ "model": "gpt-unheard-of", "messages": messages });
    let answer = site.chat("/v1/chat/completions", &unknown).await.unwrap();
    assert_eq!((answer.status, answer.json()), (404, fixture("error_chat_model")));

    let stream = json!({ "model": "deepseek-r1", "messages": messages, "stream": true,
        "stream_options": { "include_usage": true } });
    let answer = site.chat("/v1/chat/completions", &stream).await.unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/service/chat_completions_stream.txt");
    let expected = std::fs::read_to_string(path).unwrap();
    assert_eq!(events(&String::from_utf8(answer.unchunked()).unwrap()), events(&expected));
}

/// The redacted events of a stream; the final mark is a text.
fn events(text: &str) -> Vec<Value> {
    let event = |event: &str| {
        let data = event.strip_prefix("data: ").unwrap();
        serde_json::from_str(data).map_or_else(|_| json!(data), redacted)
    };
    text.strip_suffix("\n\n").unwrap().split("\n\n").map(event).collect()
}
