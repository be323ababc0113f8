//! The handle of a sandbox, for tests and for the control interface.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use secrecy::SecretString;
use serde_json::{Value, json};

use super::{
    fault::{ArmedFault, Fault},
    files::{FileRequest, FileService},
    form::Form,
    ledger::Ledger,
    machines::MachineView,
    mutation::{Mutation, MutationError, StateList},
    service::Service,
};

/// A handle of the simulated service. Clones share the service.
#[derive(Clone, Debug)]
pub struct Sandbox {
    service: Arc<Mutex<Service>>,
}

/// An account of the sandbox, with the values that configure a client.
#[derive(Clone, Debug)]
pub struct SandboxAccount {
    /// Its name: `main`, `other` or `restricted`.
    pub name: String,
    /// X-Service-Token.
    pub token: SecretString,
    /// The bearer key of the chat endpoint.
    pub chat_key: SecretString,
}

impl Sandbox {
    pub(super) fn new(service: Service) -> Self {
        Self { service: Arc::new(Mutex::new(service)) }
    }

    /// All accounts; the first is the main one.
    #[must_use]
    pub fn accounts(&self) -> Vec<SandboxAccount> {
        self.lock()
            .world()
            .accounts
            .iter()
            .map(|account| SandboxAccount {
                name: account.name.clone(),
                token: account.token.to_secret_string(),
                chat_key: account.chat_key.to_secret_string(),
            })
            .collect()
    }

    /// The world as JSON without secrets.
    #[must_use]
    pub fn state(&self) -> Value {
        redacted(self.state_with_secrets())
    }

    /// The world as JSON, with passwords and tokens in clear.
    #[must_use]
    pub fn state_with_secrets(&self) -> Value {
        // A world holds strings, numbers and lists only, which always have a JSON form.
        serde_json::to_value(self.lock().world()).unwrap_or_default()
    }

    /// All requests, and all events of objects.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        self.lock().ledger()
    }

    /// The machines of the instances that accept logins.
    #[must_use]
    pub fn machines(&self) -> Vec<MachineView> {
        self.lock().machines()
    }

    /// Applies a mutation to the world.
    ///
    /// # Errors
    ///
    /// When it names something that does not exist.
    pub fn mutate(&self, mutation: Mutation) -> Result<(), MutationError> {
        self.lock().mutate(mutation)
    }

    /// Sets fields of the record that has this id, uid or name in a list; nested records are merged.
    ///
    /// # Errors
    ///
    /// When there is no such record or field, or the field identifies the record.
    pub fn set(&self, list: StateList, key: &str, fields: &Value) -> Result<(), MutationError> {
        self.lock().set(list, key, fields)
    }

    /// Arms a fault and returns its number.
    pub fn arm(&self, fault: Fault) -> u64 {
        self.lock().faults.arm(fault)
    }

    /// All armed faults, with their counters.
    #[must_use]
    pub fn faults(&self) -> Vec<ArmedFault> {
        self.lock().faults.armed().to_vec()
    }

    /// Disarms all faults.
    pub fn clear_faults(&self) {
        self.lock().faults.clear();
    }

    /// The forms in use.
    #[must_use]
    pub fn form(&self) -> Form {
        self.lock().form.clone()
    }

    /// Changes the forms for the requests that follow.
    pub fn set_form(&self, form: Form) {
        self.lock().form = form;
    }

    /// How model files are served.
    #[must_use]
    pub fn files(&self) -> FileService {
        self.lock().files.clone()
    }

    /// Changes how they are served. Answers that stall end.
    pub fn set_files(&self, files: FileService) {
        self.lock().files = files;
    }

    /// The requests for them, since the last time that they were taken.
    pub fn take_file_requests(&self) -> Vec<FileRequest> {
        std::mem::take(&mut self.lock().file_requests)
    }

    /// The life clock in Unix milliseconds.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.lock().bring_up_to_date()
    }

    /// Advances the life clock and returns it in Unix milliseconds.
    pub fn advance(&self, by: Duration) -> i64 {
        self.lock().advance(by)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Service> {
        // A panic while the lock was held is a failed test already; other tests continue.
        self.service.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The keys of secrets in the serialized world.
const SECRETS: [&str; 5] = ["chat_key", "further_tokens", "jupyter_token", "ssh_password", "token"];

/// A JSON document without the values of secrets.
fn redacted(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(redacted).collect(),
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .map(|(name, value)| {
                    let value = if SECRETS.contains(&name.as_str()) { json!("[redacted]") } else { redacted(value) };
                    (name, value)
                })
                .collect(),
        ),
        Value::Bool(_) | Value::Null | Value::Number(_) | Value::String(_) => value,
    }
}
