//! The rules of each endpoint, asked without a socket.

mod forms;
mod instances;
mod lists;
mod refusals;

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    answer::Answer,
    clock::LifeClock,
    endpoints::{ENDPOINTS, Input},
    fault::{Action, Fault, When},
    form::Form,
    ledger::RequestEntry,
    mutation::Mutation,
    options::Options,
    secret::Secret,
    service::{Incoming, Service, Target},
};

/// 2026-02-02 02:40:00 UTC.
const START: i64 = 1_770_000_000;

/// A service that stands still in time, and an account that asks it.
struct Bench {
    service: Service,
    account: &'static str,
}

impl Bench {
    fn new() -> Self {
        Self::with_form("")
    }

    fn with_form(form: &str) -> Self {
        let form: Form = form.parse().unwrap();
        let options = Options { life_clock: LifeClock::Standing(START), form, ..Options::default() };
        Self { service: Service::new(&options).unwrap(), account: "main" }
    }

    /// The raw answer to a request of the account.
    fn ask(&mut self, endpoint: &str, query: &str, body: &str) -> Answer {
        let token =
            self.service.world().accounts.iter().find(|account| account.name == self.account).unwrap().token.clone();
        let now = Timestamp::now().as_second() + self.service.form.clock_skew;
        self.ask_as(Some(&token), Some(&now.to_string()), endpoint, query, body)
    }

    fn ask_as(
        &mut self,
        token: Option<&Secret>,
        timestamp: Option<&str>,
        endpoint: &str,
        query: &str,
        body: &str,
    ) -> Answer {
        let endpoint = ENDPOINTS.into_iter().find(|known| known.name == endpoint).unwrap();
        let input = Input { query, content_type: Some("application/json"), body: body.as_bytes() };
        let token = token.map(Secret::reveal);
        let incoming = Incoming { method: endpoint.method.as_str(), path: endpoint.path, token, timestamp, input };
        self.service.answer(Target::Endpoint(endpoint), &incoming)
    }

    fn envelope(&mut self, endpoint: &str, query: &str, body: &str) -> Value {
        serde_json::from_slice(&self.ask(endpoint, query, body).body).unwrap()
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

    fn arm(&mut self, action: Action) {
        self.service.faults.arm(Fault { endpoint: "*".to_owned(), when: When::Next(1), action });
    }

    fn last_request(&mut self) -> RequestEntry {
        self.service.ledger().requests.pop().unwrap()
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

/// A create that is accepted, with changes; a change to null leaves the field out.
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
