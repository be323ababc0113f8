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
//! | PATCH | `/sandbox/state/{list}/{key}` | sets fields of a record by its id, uid or name; nested ones are merged |
//! | POST | `/sandbox/mutate` | applies a [`Mutation`](super::Mutation) |
//! | GET | `/sandbox/machines` | the [`MachineView`](super::MachineView)s of the instances that accept logins |
//! | GET, PUT | `/sandbox/form` | the [`Form`](super::Form); replaces it; omitted values are the defaults |
//! | GET, PUT | `/sandbox/files` | the [`FileService`](super::FileService) of `/files/NAME.gguf`, in the same way |
//!
//! The types document the bodies and their effects. The fields of a record are those that the state shows; setting one
//! has no other effect, and an unknown one, an id or a uid is refused with 422. For example:
//!
//! ```text
//! POST /sandbox/faults  {"endpoint": "cloud_disk_create", "when": {"next": 1}, "action": "drop_after"}
//! POST /sandbox/faults  {"endpoint": "chat_completions", "when": "always", "action": {"slow_stream": {"ms": 200}}}
//! POST /sandbox/mutate  {"set_disk_status": {"id": 801, "status": 8}}
//! PATCH /sandbox/state/accounts/main     {"balance": 0}
//! PATCH /sandbox/state/specs/103         {"stock": 3, "prices": {"hourly": 2.5}}
//! PATCH /sandbox/state/instances/ins-…   {"host": {"is_sshd_down": true, "toolkit": ""}}
//! PUT  /sandbox/form    {"resize": "size_first", "chat_error": "envelope"}
//! PUT  /sandbox/files   {"padding": 1000000, "cut_after": 4096, "is_linked": true}
//! POST /sandbox/clock   {"advance_ms": 60000}
//! ```

use std::{net::IpAddr, time::Duration};

use axum::{
    Json, Router,
    extract::{Path, Query, Request, State},
    http::{StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, patch, post},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    fault::Fault,
    files::FileService,
    form::Form,
    handle::Sandbox,
    ledger::LedgerObject,
    mutation::{Mutation, MutationError, StateList},
};

/// The routes, to be nested under `/sandbox`.
pub(super) fn router(sandbox: &Sandbox) -> Router<Sandbox> {
    Router::new()
        .route("/ledger", get(ledger))
        .route("/state", get(state))
        .route("/state/{list}/{key}", patch(set))
        .route("/faults", get(faults).post(arm).delete(disarm))
        .route("/clock", get(clock).post(advance))
        .route("/mutate", post(mutate))
        .route("/machines", get(machines))
        .route("/form", get(form).put(set_form))
        .route("/files", get(files).put(set_files))
        .layer(middleware::from_fn_with_state(sandbox.clone(), require_token))
        .layer(middleware::from_fn(require_loopback))
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
    let [instances, cloud_disks, private_images] =
        [LedgerObject::Instance, LedgerObject::CloudDisk, LedgerObject::PrivateImage].map(|object| {
            json!({ "balance": ledger.balance(object), "live": ledger.live(object),
        "duplicates": ledger.duplicates(object) })
        });
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

async fn advance(State(sandbox): State<Sandbox>, Json(advance): Json<Advance>) -> Json<Value> {
    Json(json!({ "now_ms": sandbox.advance(Duration::from_millis(advance.advance_ms)) }))
}

async fn mutate(State(sandbox): State<Sandbox>, Json(mutation): Json<Mutation>) -> Response {
    changed(sandbox.mutate(mutation))
}

async fn set(
    State(sandbox): State<Sandbox>,
    Path((list, key)): Path<(StateList, String)>,
    Json(fields): Json<Value>,
) -> Response {
    changed(sandbox.set(list, &key, &fields))
}

fn changed(result: Result<(), MutationError>) -> Response {
    match result {
        Ok(()) => Json(json!({ "done": true })).into_response(),
        Err(error @ MutationError::Unknown { .. }) => refused(StatusCode::NOT_FOUND, &error.to_string()),
        Err(error) => refused(StatusCode::UNPROCESSABLE_ENTITY, &error.to_string()),
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

async fn files(State(sandbox): State<Sandbox>) -> Json<FileService> {
    Json(sandbox.files())
}

async fn set_files(State(sandbox): State<Sandbox>, Json(files): Json<FileService>) -> Json<FileService> {
    sandbox.set_files(files);
    Json(sandbox.files())
}

fn refused(status: StatusCode, error: &str) -> Response {
    (status, Json(json!({ "error": error }))).into_response()
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
                "/sandbox/files" => serde_json::from_str::<FileService>(body).is_ok(),
                "/sandbox/form" => serde_json::from_str::<Form>(body).is_ok(),
                "/sandbox/mutate" => serde_json::from_str::<Mutation>(body).is_ok(),
                path => path.starts_with("/sandbox/state/") && serde_json::from_str::<Value>(body).is_ok(),
            };
            assert!(is_understood, "{example}");
            count += 1;
        }
        assert_eq!(count, 9);
    }

    #[rstest]
    #[case("127.0.0.1:8080", true)]
    #[case("localhost:8080", true)]
    #[case("[::1]:8080", true)]
    #[case("example.com:8080", false)]
    #[case("127.0.0.1.example.com", false)]
    fn only_loopback_names_pass(#[case] host: &str, #[case] passes: bool) {
        assert_eq!(is_loopback(host), passes);
    }
}
