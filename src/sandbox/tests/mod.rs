//! The rules of each endpoint, tested without a socket.

mod chat;
mod cloud_disks;
mod forms;
mod images;
mod instances;
mod refusals;

use std::time::Duration;

use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};

use super::{
    answer::{Content, HttpAnswer},
    chat::PATH,
    clock::LifeClock,
    control::Mutation,
    endpoints::{ENDPOINTS, EndpointInput},
    fault::{Fault, FaultAction, When},
    ledger::RequestEntry,
    options::{Options, SandboxSecret},
    service::{IncomingRequest, RequestTarget, Service},
};

/// 2026-02-02 02:40:00 UTC.
const START: i64 = 1_770_000_000;

/// The endpoints of the document: name, method and path (service API, Endpoints).
const DOCUMENTED: [(&str, &str, &str); 17] = [
    ("cloud_disk_create", "POST", "/api/storage/cloud_disk/create"),
    ("cloud_disk_list", "GET", "/api/storage/cloud_disk/list"),
    ("cloud_disk_release", "POST", "/api/storage/cloud_disk/release"),
    ("cloud_disk_rename", "POST", "/api/storage/cloud_disk/rename"),
    ("cloud_disk_resize", "POST", "/api/storage/cloud_disk/resize"),
    ("cloud_disk_spec_list", "GET", "/api/storage/cloud_disk/spec"),
    ("image_delete", "DELETE", "/api/image/delete/{image_id}"),
    ("image_rename", "PUT", "/api/image/update"),
    ("image_save", "POST", "/api/instance/save_image_v2"),
    ("instance_create", "POST", "/api/instance/create"),
    ("instance_detail", "GET", "/api/instance/detail"),
    ("instance_list", "GET", "/api/instance/list"),
    ("instance_release", "POST", "/api/instance/release"),
    ("instance_rename", "POST", "/api/instance/rename"),
    ("private_image_list", "GET", "/api/image/privates"),
    ("public_image_list", "GET", "/api/image/publics_v2"),
    ("spec_list", "GET", "/api/spec/list"),
];

/// A service whose clocks stand still, and an account that sends requests to it.
struct Bench {
    service: Service,
    account: &'static str,
}

impl Bench {
    fn new() -> Self {
        Self::with_form("")
    }

    fn with_form(form: &str) -> Self {
        Self::with_options(Options { form: form.parse().unwrap(), ..Options::default() })
    }

    fn with_options(options: Options) -> Self {
        let options = Options { life_clock: LifeClock::Standing(START), ..options };
        Self { service: Service::new(&options).unwrap(), account: "main" }
    }

    /// The raw answer to a request of the account. An id that is part of the path follows the endpoint's name:
    /// `image_delete/951`.
    fn ask(&mut self, endpoint: &str, query: &str, body: &str) -> HttpAnswer {
        let token =
            self.service.world().accounts.iter().find(|account| account.name == self.account).unwrap().token.clone();
        let now = Timestamp::now().as_second() + self.service.form.clock_skew;
        self.ask_as(Some(&token), Some(&now.to_string()), endpoint, query, body)
    }

    fn ask_as(
        &mut self,
        token: Option<&SandboxSecret>,
        timestamp: Option<&str>,
        endpoint: &str,
        query: &str,
        body: &str,
    ) -> HttpAnswer {
        let (name, id) = endpoint.split_once('/').unwrap_or((endpoint, ""));
        let endpoint = ENDPOINTS.into_iter().find(|known| known.name == name).unwrap();
        let path = endpoint.path.replace("{image_id}", id);
        let input = EndpointInput { path: &path, query, content_type: Some("application/json"), body: body.as_bytes() };
        let token = token.map(SandboxSecret::reveal);
        let incoming =
            IncomingRequest { method: endpoint.method.as_str(), token, timestamp, authorization: None, input };
        self.service.answer(RequestTarget::Endpoint(endpoint), &incoming)
    }

    /// The raw answer to a chat request with this Authorization header.
    fn chat_as(&mut self, authorization: Option<&str>, body: &str) -> HttpAnswer {
        let input =
            EndpointInput { path: PATH, query: "", content_type: Some("application/json"), body: body.as_bytes() };
        let incoming = IncomingRequest { method: "POST", token: None, timestamp: None, authorization, input };
        self.service.answer(RequestTarget::Chat, &incoming)
    }

    fn envelope(&mut self, endpoint: &str, query: &str, body: &str) -> Value {
        self.ask(endpoint, query, body).json()
    }

    /// The result of a request that must succeed.
    fn result(&mut self, endpoint: &str, query: &str, body: &str) -> Value {
        let mut envelope = self.envelope(endpoint, query, body);
        assert_eq!(envelope["response_metadata"]["error"], Value::Null, "{endpoint} {query} {body}");
        envelope["result"].take()
    }

    /// Code and message of a request that must be refused.
    fn refusal(&mut self, endpoint: &str, query: &str, body: &str) -> (i64, String) {
        let envelope = self.envelope(endpoint, query, body);
        let error = &envelope["response_metadata"]["error"];
        assert!(error.is_object(), "{endpoint} {query} {body}: {envelope}");
        (error["code_n"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned())
    }

    /// Creates an instance and returns its uid.
    fn create(&mut self, changes: &Value) -> String {
        let result = self.result("instance_create", "", &create_body(changes));
        result["instance_uid"].as_str().unwrap().to_owned()
    }

    fn detail(&mut self, uid: &str) -> Value {
        self.result("instance_detail", &format!("instance_uid={uid}"), "")
    }

    fn release(&mut self, uid: &str) -> Value {
        self.envelope("instance_release", "", &json!({ "instance_uid": uid }).to_string())
    }

    fn advance(&mut self, seconds: u64) {
        self.service.advance(Duration::from_secs(seconds)).unwrap();
    }

    fn mutate(&mut self, mutation: Value) {
        let mutation: Mutation = serde_json::from_value(mutation).unwrap();
        self.service.mutate(mutation).unwrap();
    }

    fn arm(&mut self, action: FaultAction) {
        self.service.faults.arm(Fault { endpoint: "*".to_owned(), when: When::Next(1), action });
    }

    fn last_request(&mut self) -> RequestEntry {
        self.service.ledger().requests.pop().unwrap()
    }

    /// Sets an account's balance.
    fn set_balance(&mut self, account: &str, balance: f64) {
        self.mutate(json!({ "set_account": { "account": account, "balance": balance } }));
    }

    /// A disk of the list, by its id.
    fn disk(&mut self, id: i64) -> Value {
        let page = self.result("cloud_disk_list", "page=1&page_size=0", "");
        page["data"].as_array().unwrap().iter().find(|disk| disk["id"] == id).unwrap().clone()
    }

    /// The largest purchasable number of a specification.
    fn purchasable(&mut self, region: &str, spec_id: i64) -> i64 {
        let specs = self.result("spec_list", &format!("region={region}"), "");
        let spec = specs.as_array().unwrap().iter().find(|spec| spec["spec_id"] == spec_id).unwrap();
        spec["max_gpu_count"].as_i64().unwrap()
    }
}

impl HttpAnswer {
    /// The bytes of a content, streamed or not.
    fn bytes(&self) -> Vec<u8> {
        match &self.body {
            Content::Stream { pieces, .. } => pieces.concat(),
            Content::Whole(bytes) => bytes.clone(),
        }
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes()).unwrap()
    }
}

/// A create that is accepted, with changes; a change to null removes the field.
fn create_body(changes: &Value) -> String {
    let mut body = json!({
        "region": "cn-east-1",
        "payment_type": "Hourly",
        "spec_id": 103,
        "gpu_num": 1,
        "data_disk_expand_size": 0,
        "image_id": 902,
        "image_type": "public",
        "instance_alias": "trainer",
    });
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            body.as_object_mut().unwrap().remove(name);
        } else {
            body[name] = value.clone();
        }
    }
    body.to_string()
}

fn numbers(records: &Value, field: &str) -> Vec<i64> {
    records.as_array().unwrap().iter().map(|record| record[field].as_i64().unwrap()).collect()
}

#[rstest]
#[case("region=cn-east-1", &[101, 102, 103, 104, 105, 106])]
#[case("region=cn-east-1&capacity_type=spot", &[104])]
#[case("region=cn-north-2&capacity_type=ondemand", &[201, 203, 204])]
#[case("region=cn-north-2&gpu_name=nothing&gpu_num=1&lowest_cuda=99", &[201, 202, 203, 204])]
#[case("region=mars-1", &[])]
fn specs_are_filtered(#[case] query: &str, #[case] ids: &[i64]) {
    assert_eq!(numbers(&Bench::new().result("spec_list", query, ""), "spec_id"), ids);
}

#[rstest]
#[case("", &[901, 902, 903, 904, 905, 906])]
#[case("label=pytorch", &[902, 903])]
#[case("label=cuda12.4", &[902, 906])]
#[case("label=cuda12", &[])]
#[case("name=pytorch", &[902, 903])]
#[case("name=3.12", &[905])]
#[case("name=tensorflow&label=inference", &[])]
fn public_images_are_filtered(#[case] query: &str, #[case] ids: &[i64]) {
    assert_eq!(numbers(&Bench::new().result("public_image_list", query, ""), "id"), ids);
}

#[rstest]
#[case("private_image_list", "", "image_id", &[951, 952, 953])]
#[case("private_image_list", "&image_status=0", "image_id", &[952])]
#[case("private_image_list", "&image_status=1&image_name=plain", "image_id", &[953])]
#[case("cloud_disk_list", "", "id", &[801, 802, 803, 804])]
#[case("cloud_disk_list", "&status=2", "id", &[801, 804])]
#[case("cloud_disk_list", "&name_or_uid=seedshare", "id", &[802])]
#[case("cloud_disk_list", "&name_or_uid=unpaid", "id", &[803])]
#[case("cloud_disk_list", "&spec_types=2,3", "id", &[802])]
#[case("cloud_disk_list", "&cluster_id=77&support_ib_network=1", "id", &[802])]
#[case("cloud_disk_spec_list", "", "id", &[31, 32, 33, 34])]
#[case("cloud_disk_spec_list", "&support_ib_network=0", "id", &[31, 32, 33])]
#[case("cloud_disk_spec_list", "&spec_types=1,3", "id", &[31, 33])]
#[case("cloud_disk_spec_list", "&spec_alias=files", "id", &[32, 34])]
fn paged_lists_are_filtered(#[case] endpoint: &str, #[case] filter: &str, #[case] field: &str, #[case] ids: &[i64]) {
    let page = Bench::new().result(endpoint, &format!("page=1&page_size=50{filter}"), "");
    assert_eq!(numbers(&page["data"], field), ids);
    assert_eq!((&page["total"], &page["page"], &page["page_size"]), (&json!(ids.len()), &json!(1), &json!(50)));
}

#[test]
fn cloud_disk_specs_come_whole_without_paging() {
    let page = Bench::new().result("cloud_disk_spec_list", "", "");
    assert_eq!(page["data"].as_array().unwrap().len(), 4);
}

#[test]
fn instances_are_searched_by_uid_and_name_and_by_status() {
    let mut bench = Bench::new();
    let first = bench.create(&json!({ "instance_alias": "alpha" }));
    bench.advance(1);
    let second = bench.create(&json!({ "instance_alias": "beta" }));
    let mut found = |filter: &str| -> Vec<String> {
        let page = bench.result("instance_list", &format!("page=1&page_size=0{filter}"), "");
        page["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|record| record["instance_uid"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(found(""), [first.clone(), second.clone()]);
    assert_eq!(found("&query=alp"), std::slice::from_ref(&first));
    assert_eq!(found(&format!("&query={second}")), std::slice::from_ref(&second));
    assert_eq!(found("&status=Running"), [first]);
    assert_eq!(found("&status=Creating&query="), [second]);
    assert_eq!(found("&status=Stopped"), Vec::<String>::new());
}

#[test]
fn the_endpoints_are_the_documents() {
    let mut endpoints = ENDPOINTS.map(|endpoint| (endpoint.name, endpoint.method.as_str(), endpoint.path));
    endpoints.sort_unstable();
    assert_eq!(endpoints, DOCUMENTED);
}
