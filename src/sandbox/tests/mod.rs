//! The rules of each endpoint, asked without a socket.

mod chat;
mod cloud_disks;
mod endpoints;
mod forms;
mod images;
mod instances;
mod lists;
mod refusals;

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    answer::{Answer, Content},
    chat::PATH,
    clock::LifeClock,
    endpoints::{ENDPOINTS, Input},
    fault::{Action, Fault, When},
    ledger::RequestEntry,
    mutation::Mutation,
    options::{Options, Secret},
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
        Self::with_options(Options { form: form.parse().unwrap(), ..Options::default() })
    }

    fn with_options(options: Options) -> Self {
        let options = Options { life_clock: LifeClock::Standing(START), ..options };
        Self { service: Service::new(&options).unwrap(), account: "main" }
    }

    /// The raw answer to a request of the account. An id that is part of the path follows the endpoint's name:
    /// `image_delete/951`.
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
        let (name, id) = endpoint.split_once('/').unwrap_or((endpoint, ""));
        let endpoint = ENDPOINTS.into_iter().find(|known| known.name == name).unwrap();
        let path = endpoint.path.replace("{image_id}", id);
        let input = Input { path: &path, query, content_type: Some("application/json"), body: body.as_bytes() };
        let token = token.map(Secret::reveal);
        let incoming = Incoming { method: endpoint.method.as_str(), token, timestamp, authorization: None, input };
        self.service.answer(Target::Endpoint(endpoint), &incoming)
    }

    /// The raw answer to a chat request with this Authorization header.
    fn chat_as(&mut self, authorization: Option<&str>, body: &str) -> Answer {
        let input = Input { path: PATH, query: "", content_type: Some("application/json"), body: body.as_bytes() };
        let incoming = Incoming { method: "POST", token: None, timestamp: None, authorization, input };
        self.service.answer(Target::Chat, &incoming)
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

    fn arm(&mut self, action: Action) {
        self.service.faults.arm(Fault { endpoint: "*".to_owned(), when: When::Next(1), action });
    }

    fn last_request(&mut self) -> RequestEntry {
        self.service.ledger().requests.pop().unwrap()
    }

    /// Lets this account have this balance.
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

impl Answer {
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
