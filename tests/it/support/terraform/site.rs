//! A sandbox for tests that are not asynchronous.

use std::{collections::BTreeSet, time::Duration};

use damodel::sandbox::{
    Balance, Fault, FaultAction, Ledger, LedgerObject, LifeKind, Mutation, Options, RequestEntry, Running, Sandbox,
    StateList, When,
};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::wait::wait_until;

/// A running sandbox whose instances, disks and images are created, changed and released at once.
pub(crate) struct Site {
    running: Running,
    _runtime: Runtime,
}

impl Site {
    pub(crate) fn start() -> Self {
        Self::with(Self::options())
    }

    /// The options of [`Self::start`].
    pub(crate) fn options() -> Options {
        Options {
            creation: Duration::from_millis(100),
            release: Duration::from_millis(50),
            disk_change: Duration::from_millis(100),
            image_push: Duration::from_millis(100),
            ..Options::default()
        }
    }

    pub(crate) fn with(options: Options) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let running = runtime.block_on(Sandbox::start(options)).unwrap();
        Self { running, _runtime: runtime }
    }

    pub(crate) fn sandbox(&self) -> &Sandbox {
        &self.running.sandbox
    }

    pub(crate) fn base_url(&self) -> &str {
        &self.running.base_url
    }

    pub(crate) fn registry_host(&self) -> &str {
        &self.running.registry_host
    }

    /// The main account's token.
    pub(crate) fn token(&self) -> &str {
        self.running.token.expose_secret()
    }

    /// The main account's key of the chat endpoint.
    pub(crate) fn chat_key(&self) -> &str {
        self.running.chat_key.expose_secret()
    }

    /// The token of an account.
    pub(crate) fn token_of(&self, account: &str) -> String {
        let account = self.sandbox().accounts().into_iter().find(|known| known.name == account).unwrap();
        account.token.expose_secret().to_owned()
    }

    /// A further token of the main account.
    pub(crate) fn rotated_token(&self) -> String {
        let state = self.sandbox().state_with_secrets();
        let number = state["accounts"][0]["further_tokens"].as_array().unwrap().len();
        let token = format!("token-main-rotated-{number}-{}", self.token().len());
        self.mutate(Mutation::IssueToken { account: "main".to_owned(), token: token.clone() });
        token
    }

    pub(crate) fn ledger(&self) -> Ledger {
        self.sandbox().ledger()
    }

    /// The counts of the instances.
    pub(crate) fn balance(&self) -> Balance {
        self.ledger().balance(LedgerObject::Instance)
    }

    /// The counts of the objects of a kind.
    pub(crate) fn balance_of(&self, object: LedgerObject) -> Balance {
        self.ledger().balance(object)
    }

    /// The uids of the instances that exist, oldest first.
    pub(crate) fn live(&self) -> Vec<String> {
        self.ledger().live(LedgerObject::Instance)
    }

    /// The number of requests to an endpoint.
    pub(crate) fn requests(&self, endpoint: &str) -> usize {
        self.ledger().requests_to(endpoint).count()
    }

    /// The number of requests for a change.
    pub(crate) fn changes(&self) -> usize {
        self.ledger().requests.iter().filter(|request| request.method != "GET").count()
    }

    /// The same without chats, which change nothing.
    pub(crate) fn changes_but_chats(&self) -> usize {
        self.changes() - self.requests("chat_completions")
    }

    /// Sets the hourly price of a specification and its free GPUs, if given.
    pub(crate) fn set_spec(&self, spec_id: i64, hourly_price: Option<f64>, stock: Option<i64>) {
        let mut fields = json!({});
        if let Some(hourly) = hourly_price {
            fields["prices"] = json!({ "hourly": hourly });
        }
        if let Some(stock) = stock {
            fields["stock"] = json!(stock);
        }
        self.set(StateList::Specs, spec_id, &fields);
    }

    /// Sets fields of a record of the sandbox's state.
    pub(crate) fn set(&self, list: StateList, key: impl ToString, fields: &Value) {
        self.sandbox().set(list, &key.to_string(), fields).unwrap();
    }

    /// Makes an instance older: it started this many hours ago, by the service's clock and the computer's.
    pub(crate) fn started_hours_ago(&self, uid: &str, hours: i64) {
        let start = jiff::Timestamp::now().as_millisecond() - hours * 3_600_000;
        self.set(StateList::Instances, uid, &json!({ "start_ms": start }));
    }

    /// Takes a specification out of the lists.
    pub(crate) fn withdraw_spec(&self, spec_id: i64) {
        self.set(StateList::Specs, spec_id, &json!({ "enabled": false }));
    }

    pub(crate) fn arm(&self, endpoint: &str, when: When, action: FaultAction) {
        self.sandbox().arm(Fault { endpoint: endpoint.to_owned(), when, action });
    }

    pub(crate) fn mutate(&self, mutation: Mutation) {
        self.sandbox().mutate(mutation).unwrap();
    }

    /// Finishes all stuck creates.
    pub(crate) fn unstick(&self) {
        let state = self.sandbox().state();
        let of = |list: &str| state[list].as_array().unwrap().clone();
        for instance in of("instances").iter().filter(|it| it["status"] == "Creating" && it["next"].is_null()) {
            let uid = instance["uid"].as_str().unwrap().to_owned();
            self.mutate(Mutation::SetInstanceStatus { uid, status: "Running".to_owned() });
        }
        for disk in of("disks").iter().filter(|it| it["status"] == "starting" && it["next"].is_null()) {
            self.mutate(Mutation::SetDiskStatus { id: disk["id"].as_i64().unwrap(), status: 2 });
        }
        for image in of("private_images").iter().filter(|it| it["ready"] == false && it["push"].is_null()) {
            let id = &image["id"];
            self.set(StateList::PrivateImages, id, &json!({ "ready": true, "push_progress": 100 }));
        }
    }

    /// Makes all further creates stuck.
    pub(crate) fn stick(&self) {
        for endpoint in ["instance_create", "cloud_disk_create", "image_save"] {
            self.arm(endpoint, When::Always, FaultAction::StickCreation);
        }
    }

    /// The uids of a kind that were created in an account, oldest first.
    pub(crate) fn created_in(&self, account: &str, object: LedgerObject) -> Vec<String> {
        let life = self.ledger().life.into_iter();
        let births = life.filter(|event| event.kind == LifeKind::Created && event.object == object);
        births.filter(|event| event.account == account).map(|event| event.uid).collect()
    }

    /// Waits until the ledger meets a condition.
    pub(crate) fn await_ledger(&self, what: &str, found: impl Fn(&Ledger) -> bool) {
        wait_until(what, || found(&self.ledger()));
    }

    /// The request with the id of an error.
    pub(crate) fn request(&self, request_id: &str) -> Option<RequestEntry> {
        self.ledger().requests.into_iter().find(|request| request.request_id == request_id)
    }

    /// The passwords and tokens of every account and instance.
    pub(crate) fn secrets(&self) -> BTreeSet<String> {
        fn collect(value: &Value, secrets: &mut BTreeSet<String>) {
            match value {
                Value::Object(fields) => {
                    for (name, value) in fields {
                        match value.as_str().filter(|text| !text.is_empty()) {
                            Some(text) if ["token", "chat_key", "ssh_password", "jupyter_token"].contains(&&**name) => {
                                secrets.insert(text.to_owned());
                            }
                            _ if name == "further_tokens" => {
                                secrets.extend(
                                    value.as_array().unwrap().iter().filter_map(|it| it.as_str()).map(str::to_owned),
                                );
                            }
                            _ => collect(value, secrets),
                        }
                    }
                }
                Value::Array(elements) => elements.iter().for_each(|element| collect(element, secrets)),
                _ => {}
            }
        }
        let mut secrets = BTreeSet::new();
        collect(&self.sandbox().state_with_secrets(), &mut secrets);
        secrets
    }
}
