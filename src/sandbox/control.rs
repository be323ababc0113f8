//! The control interface under `/sandbox/`, for tests in other processes. It is not part of the service. It requires a
//! token of the main account (`X-Service-Token`), and requests must name a loopback host, so that a web page cannot
//! reach it through a host name of its own.
//!
//! | | | |
//! |---|---|---|
//! | GET | `/sandbox/ledger` | [`Ledger`](super::Ledger) with balances and duplicates |
//! | GET | `/sandbox/state` | the world without secrets; `?secrets=true` with them |
//! | GET, POST, DELETE | `/sandbox/faults` | [`ArmedFault`](super::ArmedFault)s; arms a [`Fault`](super::Fault); disarms all |
//! | GET, POST | `/sandbox/clock` | `{"now_ms": …}`; advances by `{"advance_ms": …}` |
//! | POST | `/sandbox/mutate` | applies a [`Mutation`](super::Mutation) |
//! | GET | `/sandbox/machines` | the [`MachineView`](super::MachineView)s of the instances that accept logins |
//! | GET, PUT | `/sandbox/form` | the [`Form`](super::Form); replaces it; omitted values are the defaults |
//!
//! The types document the bodies and their effects. For example:
//!
//! ```text
//! POST /sandbox/faults  {"endpoint": "cloud_disk_create", "when": {"next": 1}, "action": "drop_after"}
//! POST /sandbox/faults  {"endpoint": "chat_completions", "when": "always", "action": {"slow_stream": {"ms": 200}}}
//! POST /sandbox/mutate  {"set_disk_status": {"id": 801, "status": 8}}
//! POST /sandbox/mutate  {"set_account": {"account": "main", "balance": 0}}
//! POST /sandbox/mutate  {"set_sshd": {"uid": "ins-…", "up": false}}
//! POST /sandbox/mutate  {"set_machine": {"uid": "ins-…", "toolkit": ""}}
//! PUT  /sandbox/form    {"resize": "size_first", "chat_error": "envelope"}
//! POST /sandbox/clock   {"advance_ms": 60000}
//! ```

use std::{net::IpAddr, time::Duration};

use axum::{
    Json, Router,
    extract::{Query, Request, State},
    http::{StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{fault::Fault, form::Form, ledger::LedgerObject, running::Sandbox};

/// The keys of secrets in the serialized world.
const SECRETS: [&str; 5] = ["chat_key", "further_tokens", "jupyter_token", "ssh_password", "token"];

/// The routes, to be nested under `/sandbox`.
pub(super) fn router(sandbox: &Sandbox) -> Router<Sandbox> {
    Router::new()
        .route("/ledger", get(ledger))
        .route("/state", get(state))
        .route("/faults", get(faults).post(arm).delete(disarm))
        .route("/clock", get(clock).post(advance))
        .route("/mutate", post(mutate))
        .route("/machines", get(machines))
        .route("/form", get(form).put(set_form))
        .layer(middleware::from_fn_with_state(sandbox.clone(), require_token))
        .layer(middleware::from_fn(require_loopback))
}

/// A JSON document without the values of secrets.
pub(super) fn redacted(value: Value) -> Value {
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

async fn require_loopback(request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if is_loopback(host) {
        next.run(request).await
    } else {
        refused(StatusCode::FORBIDDEN, "the host is not a loopback name")
    }
}

async fn require_token(State(sandbox): State<Sandbox>, request: Request, next: Next) -> Response {
    let token = request.headers().get("X-Service-Token").and_then(|token| token.to_str().ok()).unwrap_or_default();
    let is_known = sandbox.lock().world().accounts.first().is_some_and(|account| account.accepts(token));
    if is_known {
        next.run(request).await
    } else {
        refused(StatusCode::UNAUTHORIZED, "X-Service-Token is not a token of the main account")
    }
}

fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        Some(_) | None => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost" || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

async fn ledger(State(sandbox): State<Sandbox>) -> Json<Value> {
    let ledger = sandbox.ledger();
    let account = |object| {
        json!({ "balance": ledger.balance(object), "live": ledger.live(object),
        "duplicates": ledger.duplicates(object) })
    };
    let [instances, cloud_disks, private_images] =
        [LedgerObject::Instance, LedgerObject::CloudDisk, LedgerObject::PrivateImage].map(account);
    Json(json!({ "requests": ledger.requests, "life": ledger.life, "instances": instances, "cloud_disks": cloud_disks,
            "private_images": private_images }))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StateQuery {
    #[serde(default)]
    secrets: bool,
}

async fn state(State(sandbox): State<Sandbox>, Query(query): Query<StateQuery>) -> Json<Value> {
    Json(if query.secrets { sandbox.state_with_secrets() } else { sandbox.state() })
}

async fn faults(State(sandbox): State<Sandbox>) -> Json<Value> {
    Json(json!({ "faults": sandbox.faults() }))
}

async fn arm(State(sandbox): State<Sandbox>, Json(fault): Json<Fault>) -> Json<Value> {
    Json(json!({ "id": sandbox.arm(fault) }))
}

async fn disarm(State(sandbox): State<Sandbox>) -> Json<Value> {
    sandbox.clear_faults();
    Json(json!({ "faults": [] }))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Advance {
    advance_ms: u64,
}

async fn clock(State(sandbox): State<Sandbox>) -> Json<Value> {
    Json(json!({ "now_ms": sandbox.now_ms() }))
}

async fn advance(State(sandbox): State<Sandbox>, Json(advance): Json<Advance>) -> Response {
    match sandbox.advance(Duration::from_millis(advance.advance_ms)) {
        Ok(now_ms) => Json(json!({ "now_ms": now_ms })).into_response(),
        Err(error) => refused(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

async fn mutate(State(sandbox): State<Sandbox>, Json(mutation): Json<Mutation>) -> Response {
    match sandbox.mutate(mutation) {
        Ok(()) => Json(json!({ "done": true })).into_response(),
        Err(error) => refused(StatusCode::NOT_FOUND, &error.to_string()),
    }
}

async fn machines(State(sandbox): State<Sandbox>) -> Json<Value> {
    Json(json!({ "machines": sandbox.machines() }))
}

async fn form(State(sandbox): State<Sandbox>) -> Json<Form> {
    Json(sandbox.form())
}

async fn set_form(State(sandbox): State<Sandbox>, Json(form): Json<Form>) -> Json<Form> {
    sandbox.set_form(form);
    Json(sandbox.form())
}

fn refused(status: StatusCode, error: &str) -> Response {
    (status, Json(json!({ "error": error }))).into_response()
}

/// A change that no client made. As JSON (`POST /sandbox/mutate`): `{"release_instance": {"uid": "ins-…"}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Mutation {
    /// An instance's sshd shows another host key from now on. Open sessions stay.
    ChangeHostKey {
        /// Its uid.
        uid: String,
    },
    /// An instance's sshd listens this long after the instance is Running, or after its next reboot.
    DelaySshd {
        /// Its uid.
        uid: String,
        /// The milliseconds.
        ms: u32,
    },
    /// Lists and details hide an existing instance, cloud disk or private image for a number of reads, like a replica
    /// that lags.
    Hide {
        /// The uid, or the image_id of a private image.
        uid: String,
        /// The number of reads that would have shown it.
        reads: u32,
    },
    /// An account gets a further token; its other tokens stay valid.
    IssueToken {
        /// Its name, such as `main`.
        account: String,
        /// The token.
        token: String,
    },
    /// An instance's machine reboots: all its processes end, all sessions are cut, and its sshd listens again after its
    /// delay.
    RebootInstance {
        /// Its uid.
        uid: String,
    },
    /// A cloud disk is Released at once, mounted or not.
    ReleaseDisk {
        /// Its database id.
        id: i64,
    },
    /// An instance is Released at once, with the disks that are released with it.
    ReleaseInstance {
        /// Its uid.
        uid: String,
    },
    /// A cloud disk disappears, from lists too.
    RemoveDisk {
        /// Its database id.
        id: i64,
    },
    /// An instance disappears, from lists too. Its disks stay.
    RemoveInstance {
        /// Its uid.
        uid: String,
    },
    /// A private image disappears.
    RemoveImage {
        /// Its image_id.
        id: i64,
    },
    /// A cloud disk gets another name.
    RenameDisk {
        /// Its database id.
        id: i64,
        /// The name.
        name: String,
    },
    /// A private image gets another name, which need not be unique.
    RenameImage {
        /// Its image_id.
        id: i64,
        /// The name.
        name: String,
    },
    /// An instance gets another name.
    RenameInstance {
        /// Its uid.
        uid: String,
        /// The name.
        name: String,
    },
    /// A cloud disk gets another capacity at once, smaller or larger.
    ResizeDisk {
        /// Its database id.
        id: i64,
        /// The capacity in GB.
        size_gb: i64,
    },
    /// A token becomes invalid. The last token of an account cannot be revoked.
    RevokeToken {
        /// The account's name.
        account: String,
        /// The token.
        token: String,
    },
    /// Properties of an account change; omitted ones stay.
    SetAccount {
        /// Its name, such as `main`.
        account: String,
        /// The balance.
        balance: Option<f64>,
        /// Whether it is certified.
        certified: Option<bool>,
        /// Whether its risk state forbids creating instances.
        at_risk: Option<bool>,
        /// Whether cloud disks are permitted.
        may_use_disks: Option<bool>,
        /// Whether private images may be renamed and deleted.
        may_use_images: Option<bool>,
    },
    /// A cloud disk specification changes; omitted values stay.
    SetDiskSpec {
        /// Its id.
        id: i64,
        /// The largest capacity of one disk.
        max_size_g: Option<i64>,
        /// Whether it is sold out: creates are refused.
        sold_out: Option<bool>,
    },
    /// A cloud disk gets another status, and its pending changes are dropped. 7 has its usual effects.
    SetDiskStatus {
        /// Its database id.
        id: i64,
        /// The service's number, 1 … 8.
        status: i64,
    },
    /// An instance gets another status, and its pending changes are dropped. `Failed` and `Released` have their
    /// usual effects; any other word is set as it is, documented or not.
    SetInstanceStatus {
        /// Its uid.
        uid: String,
        /// The word.
        status: String,
    },
    /// An instance's machine changes; omitted values stay. Running programs get no notice.
    SetMachine {
        /// Its uid.
        uid: String,
        /// The version of its CUDA toolkit, such as `13.0`; an empty text removes it.
        toolkit: Option<String>,
        /// Whether its driver finds the GPU.
        driver: Option<bool>,
    },
    /// An instance's sshd listens, or refuses connections. Open sessions stay.
    SetSshd {
        /// Its uid.
        uid: String,
        /// Whether it listens.
        up: bool,
    },
    /// An instance refuses its release with 160012, or accepts it again.
    SetUnreleasable {
        /// Its uid.
        uid: String,
        /// Whether it refuses.
        unreleasable: bool,
    },
    /// A hosted model is enabled or disabled; an unknown name is added.
    SetModel {
        /// Its name.
        name: String,
        /// Whether it is enabled.
        enabled: bool,
    },
    /// A private image becomes ready, or not ready; its push ends.
    SetPrivateImage {
        /// Its id.
        id: i64,
        /// Whether it is ready.
        ready: bool,
        /// Its push_progress, 0 … 100.
        push_progress: i64,
    },
    /// A public image changes; omitted values stay.
    SetPublicImage {
        /// Its id.
        id: i64,
        /// Whether it is enabled.
        enabled: Option<bool>,
        /// The labels.
        labels: Option<Vec<String>>,
        /// The preinstalled software.
        softwares: Option<Vec<String>>,
        /// The CUDA version that a create checks; an empty text removes it.
        cuda: Option<String>,
    },
    /// A specification changes; omitted values stay.
    SetSpec {
        /// Its spec_id.
        spec_id: i64,
        /// The price of an hour.
        hourly_price: Option<f64>,
        /// The price of a day.
        daily_price: Option<f64>,
        /// The price of a month.
        monthly_price: Option<f64>,
        /// The number of free GPUs in all.
        stock: Option<i64>,
        /// The number of free GPUs on the node that has most.
        node_limit: Option<i64>,
        /// The highest CUDA version.
        highest_cuda: Option<String>,
        /// Whether it is enabled.
        enabled: Option<bool>,
    },
}

/// Why a mutation cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MutationError {
    /// No object has this name or number.
    #[error("find the {kind} {name:?}")]
    Unknown {
        /// The kind of object.
        kind: &'static str,
        /// Its name or number.
        name: String,
    },
    /// The token is not one of the account's, or is its last.
    #[error("revoke that token of the account {0:?}")]
    Token(String),
    /// The number is not a cloud disk status.
    #[error("understand the cloud disk status {0}")]
    DiskStatus(i64),
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn the_examples_of_the_documentation_are_understood() {
        let examples = include_str!("control.rs").lines().filter_map(|line| line.strip_prefix("//! P"));
        let mut count = 0;
        for example in examples {
            let body = example.find('{').map(|start| &example[start..]).unwrap();
            let is_understood = match example.split_whitespace().nth(1).unwrap() {
                "/sandbox/clock" => serde_json::from_str::<Advance>(body).is_ok(),
                "/sandbox/faults" => serde_json::from_str::<Fault>(body).is_ok(),
                "/sandbox/form" => serde_json::from_str::<Form>(body).is_ok(),
                "/sandbox/mutate" => serde_json::from_str::<Mutation>(body).is_ok(),
                _ => false,
            };
            assert!(is_understood, "{example}");
            count += 1;
        }
        assert_eq!(count, 8);
    }

    #[rstest]
    #[case("127.0.0.1:8080", true)]
    #[case("127.0.0.1", true)]
    #[case("localhost:8080", true)]
    #[case("[::1]:8080", true)]
    #[case("example.com:8080", false)]
    #[case("127.0.0.1.example.com", false)]
    #[case("10.0.0.1:8080", false)]
    #[case("", false)]
    fn only_loopback_names_pass(#[case] host: &str, #[case] passes: bool) {
        assert_eq!(is_loopback(host), passes);
    }
}
