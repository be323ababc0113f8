//! A sandbox for tests that are not asynchronous.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use damodel::sandbox::{
    Action, Balance, Fault, Ledger, Mutation, Options, RequestEntry, Running, Sandbox, Thing, When,
};
use secrecy::ExposeSecret;
use tokio::runtime::Runtime;

/// How long a test waits for what must come.
const DEADLINE: Duration = Duration::from_secs(30);

/// A running sandbox whose machines, disks and images are made, changed and released in a moment.
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

    pub(crate) fn ledger(&self) -> Ledger {
        self.sandbox().ledger()
    }

    /// What became of the instances that were made.
    pub(crate) fn balance(&self) -> Balance {
        self.ledger().balance(Thing::Instance)
    }

    /// What became of the things of a kind that were made.
    pub(crate) fn balance_of(&self, thing: Thing) -> Balance {
        self.ledger().balance(thing)
    }

    /// The uids of the instances that exist, oldest first.
    pub(crate) fn live(&self) -> Vec<String> {
        self.ledger().live(Thing::Instance)
    }

    /// How many requests came to an endpoint.
    pub(crate) fn requests(&self, endpoint: &str) -> usize {
        self.ledger().requests_to(endpoint).count()
    }

    /// How many requests came that ask for a change.
    pub(crate) fn changes(&self) -> usize {
        self.ledger().requests.iter().filter(|request| request.method != "GET").count()
    }

    /// The same without the chats, which change nothing.
    pub(crate) fn changes_but_chats(&self) -> usize {
        self.changes() - self.requests("chat_completions")
    }

    pub(crate) fn arm(&self, endpoint: &str, when: When, action: Action) {
        self.sandbox().arm(Fault { endpoint: endpoint.to_owned(), when, action });
    }

    pub(crate) fn mutate(&self, mutation: Mutation) {
        self.sandbox().mutate(mutation).unwrap();
    }

    /// Waits until the ledger shows what is looked for.
    pub(crate) fn await_ledger(&self, what: &str, found: impl Fn(&Ledger) -> bool) {
        let begun = Instant::now();
        while !found(&self.ledger()) {
            assert!(begun.elapsed() < DEADLINE, "never came: {what}");
            std::thread::yield_now();
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// The request that an error names.
    pub(crate) fn request(&self, request_id: &str) -> Option<RequestEntry> {
        self.ledger().requests.into_iter().find(|request| request.request_id == request_id)
    }

    /// Passwords and tokens of every account and machine, as the sandbox made them.
    pub(crate) fn secrets(&self) -> BTreeSet<String> {
        fn collect(value: &serde_json::Value, secrets: &mut BTreeSet<String>) {
            match value {
                serde_json::Value::Object(fields) => {
                    for (name, value) in fields {
                        match value.as_str().filter(|text| !text.is_empty()) {
                            Some(text) if ["token", "chat_key", "ssh_password", "jupyter_token"].contains(&&**name) => {
                                secrets.insert(text.to_owned());
                            }
                            _ => collect(value, secrets),
                        }
                    }
                }
                serde_json::Value::Array(elements) => elements.iter().for_each(|element| collect(element, secrets)),
                _ => {}
            }
        }
        let mut secrets = BTreeSet::new();
        collect(&self.sandbox().state_with_secrets(), &mut secrets);
        secrets
    }
}
