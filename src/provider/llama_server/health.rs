//! Whether a server serves, between two applies: the same token that the probe asks for, within a short time.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::{machine::Machine, model::LlamaServer, trial::question};
use crate::provider::llama_chat::{self, ChatFailure, Health};

/// How long a refresh waits for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The wait before a second look: one wrong answer decides nothing.
const BETWEEN: Duration = Duration::from_secs(1);

/// What was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    /// It refused, or answered wrongly, twice.
    Dead,
    /// It loads the model.
    Loading,
    /// It answers, as far as anyone without its key can see.
    Serves,
    /// It did not answer in time, or has no room for another request, and what was asked.
    Slow(String),
}

/// Asks a server whose process runs.
pub(super) async fn of(server: &LlamaServer, machine: &Machine) -> Seen {
    let first = once(server, machine).await;
    if first != Seen::Dead {
        return first;
    }
    sleep(BETWEEN).await;
    once(server, machine).await
}

async fn once(server: &LlamaServer, machine: &Machine) -> Seen {
    let (session, port) = (machine.session(), server.listens());
    match timeout(PATIENCE, llama_chat::health(session, port)).await {
        Err(_) => return Seen::Slow("Its health check was not answered within 10 s".to_owned()),
        Ok(Ok(Health::Ok)) => {}
        Ok(Ok(Health::Loading)) => return Seen::Loading,
        Ok(Ok(Health::Refused | Health::Strange)) => return Seen::Dead,
        // The process runs; that its port cannot be asked says nothing about it.
        Ok(Err(error)) => return Seen::Slow(format!("Its health check could not be made: {error}")),
    }
    let (request, key) = (question(None, server.model.as_str().unwrap_or_default()), server.key(server));
    match timeout(PATIENCE, llama_chat::ask(session, port, key.as_ref(), &request)).await {
        Err(_) => Seen::Slow("It is healthy, and did not answer a chat of one token within 10 s".to_owned()),
        Ok(Ok(_)) => Seen::Serves,
        // A write-only key is not here.
        Ok(Err(error)) if error.asks_for_key() => Seen::Serves,
        Ok(Err(error)) if error.is_busy() => {
            Seen::Slow(format!("It is healthy, and has no room for a chat of one token: {error}"))
        }
        Ok(Err(ChatFailure::Ssh(error))) if !is_broken_off(&error) => {
            Seen::Slow(format!("A chat of one token could not be made: {error}"))
        }
        Ok(Err(_)) => Seen::Dead,
    }
}

/// Whether the server ended the connection, rather than the way to it.
fn is_broken_off(error: &crate::ssh::Error) -> bool {
    matches!(error, crate::ssh::Error::Refused { .. } | crate::ssh::Error::BadAnswer { .. })
}
