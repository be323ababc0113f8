//! The rules of the service that nothing else shows: refusals, forms, and lives of objects; without a socket. The
//! recorded answers are compared over HTTP, and nearly every acceptance test runs on the sandbox.

mod forms;
mod lives;
mod refusals;

use std::time::Duration;

use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};

use super::{
    answer::{Content, HttpAnswer},
    chat::PATH,
    endpoints::{ENDPOINTS, EndpointInput},
    fault::{Fault, FaultAction, When},
    ledger::RequestEntry,
    mutation::{Mutation, StateList},
    options::{LifeClock, Options, SandboxSecret},
    service::{IncomingRequest, RequestTarget, Service},
};

/// 2026-02-02 02:40:00 UTC.
const START: i64 = 1_770_000_000;

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

    /// The answer to a chat of the account that is accepted, with changes.
    fn chat(&mut self, changes: &Value) -> HttpAnswer {
        let key = self.service.world().account(self.account).unwrap().chat_key.clone();
        let body = json!({ "model": "deepseek-r1", "messages": [{ "role": "user", "content": "你好 there" }] });
        self.chat_as(Some(&format!("Bearer {}", key.reveal())), &changed(body, changes))
    }

    /// The data of the events of a streamed chat.
    fn events(&mut self) -> Vec<String> {
        let answer = self.chat(&json!({ "stream": true }));
        assert_eq!((answer.status, answer.content_type), (200, "text/event-stream"));
        let text = String::from_utf8(answer.bytes()).unwrap();
        text.lines().filter_map(|line| line.strip_prefix("data:")).map(|data| data.trim().to_owned()).collect()
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
        self.service.advance(Duration::from_secs(seconds));
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

    fn set(&mut self, list: StateList, key: &str, fields: &Value) {
        self.service.set(list, key, fields).unwrap();
    }

    /// A disk of the list, by its id.
    fn disk(&mut self, id: i64) -> Value {
        let page = self.result("cloud_disk_list", "page=1&page_size=0", "");
        page["data"].as_array().unwrap().iter().find(|disk| disk["id"] == id).unwrap().clone()
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

/// A create that is accepted, with changes.
fn create_body(changes: &Value) -> String {
    let body = json!({
        "region": "cn-east-1",
        "payment_type": "Hourly",
        "spec_id": 103,
        "gpu_num": 1,
        "data_disk_expand_size": 0,
        "image_id": 902,
        "image_type": "public",
        "instance_alias": "trainer",
    });
    changed(body, changes)
}

/// A body with changes; a change to null removes the field.
fn changed(mut body: Value, changes: &Value) -> String {
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            body.as_object_mut().unwrap().remove(name);
        } else {
            body[name] = value.clone();
        }
    }
    body.to_string()
}

fn code(envelope: &Value) -> Option<i64> {
    envelope["response_metadata"]["error"]["code_n"].as_i64()
}

/// The number of records with each filter.
#[rstest]
#[case("spec_list", "region=cn-east-1&capacity_type=spot", 1)]
#[case("spec_list", "region=cn-north-2&gpu_name=nothing&gpu_num=1&lowest_cuda=99", 4)]
#[case("public_image_list", "label=cuda12.4&name=pytorch", 1)]
#[case("public_image_list", "label=cuda12", 0)]
#[case("private_image_list", "page=1&page_size=0&image_status=1&image_name=plain", 1)]
#[case("cloud_disk_list", "page=1&page_size=0&status=2", 2)]
#[case("cloud_disk_list", "page=1&page_size=0&name_or_uid=seedshare&spec_types=2,3", 1)]
#[case("cloud_disk_list", "page=1&page_size=0&cluster_id=77&support_ib_network=1", 1)]
#[case("cloud_disk_spec_list", "support_ib_network=0&spec_types=1,3", 2)]
#[case("cloud_disk_spec_list", "spec_alias=files", 2)]
fn lists_are_filtered(#[case] endpoint: &str, #[case] query: &str, #[case] count: usize) {
    let list = Bench::new().result(endpoint, query, "");
    assert_eq!(list.as_array().or_else(|| list["data"].as_array()).unwrap().len(), count);
}

#[test]
fn instances_are_searched_by_uid_and_name_and_by_status() {
    let mut bench = Bench::new();
    let first = bench.create(&json!({ "instance_alias": "alpha" }));
    bench.advance(1);
    let second = bench.create(&json!({ "instance_alias": "beta" }));
    let mut found = |filter: &str| {
        let page = bench.result("instance_list", &format!("page=1&page_size=0{filter}"), "");
        (page["total"].clone(), page["data"][0]["instance_uid"].clone())
    };
    assert_eq!(found(""), (json!(2), json!(first)));
    assert_eq!(found("&query=alp"), (json!(1), json!(first)));
    assert_eq!(found(&format!("&query={second}")), (json!(1), json!(second)));
    assert_eq!(found("&status=Running"), (json!(1), json!(first)));
    assert_eq!(found("&status=Stopped"), (json!(0), Value::Null));
}
