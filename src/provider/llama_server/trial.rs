//! One try at a server that was started: its health check, and the probe that decides.

use std::time::Duration;

use regex::Regex;
use secrecy::SecretString;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::{
    machine::{InstanceSession, Trouble},
    model::{LlamaServer, Probe},
    options,
};
use crate::{
    api::{ChatAnswer, ChatMessage, ChatRequest},
    framework::{timeouts::print_duration, value::Number},
    provider::llama_chat::{self, ChatFailure, Health},
};

/// What the probe is given at least, however long the model took to load.
const PROBE: Duration = Duration::from_secs(60);
/// What a health check is given at least.
const HEALTH: Duration = Duration::from_secs(5);
/// The longest part of an answer that an error shows, in characters.
const SHOWN: usize = 200;

/// How a server is tried.
pub(super) struct Trial<'a> {
    pub(super) port: u16,
    /// The key that it asks of its clients.
    pub(super) api_key: Option<SecretString>,
    /// The chat that decides: [`question`].
    pub(super) request: ChatRequest,
    /// What its answer has to be.
    pub(super) probe: Option<&'a Probe>,
    /// How long a start may take until the probe is answered.
    pub(super) ready_timeout: Duration,
    /// Whether it asks for a key that is not known here: then its refusal to answer without is all that can be seen.
    pub(super) is_key_unknown: bool,
}

impl Trial<'_> {
    /// One health check, and the probe where it says yes. `begun` is when the process was first seen.
    ///
    /// # Errors
    /// Why nobody could ask; the work goes on.
    pub(super) async fn once(&self, machine: &mut InstanceSession, begun: Instant) -> Result<TrialResult, Trouble> {
        let port = self.port;
        let by = begun + self.ready_timeout;
        // One that begins just before the limit still gets its answer, which says what the server was doing.
        let health_by = by.max(Instant::now() + HEALTH).min(machine.deadline);
        let health = match timeout_at(health_by, llama_chat::health(machine.session(), port)).await {
            Err(_) => None,
            Ok(Ok(health)) => Some(health),
            Ok(Err(error)) if error.is_out_of_reach() => {
                machine.reconnect().await?;
                return Ok(TrialResult::Loading);
            }
            Ok(Err(error)) => return Err(error.into()),
        };
        if health != Some(Health::Ok) {
            let limit = print_duration(self.ready_timeout);
            return Ok(match health {
                _ if Instant::now() < by => TrialResult::Loading,
                Some(Health::Loading) => {
                    TrialResult::Failed(format!("it was still loading the model after {limit} (ready_timeout)"))
                }
                _ => TrialResult::Failed(format!("its health check was not answered within {limit} (ready_timeout)")),
            });
        }
        let probe_by = by.max(Instant::now() + PROBE.min(self.ready_timeout)).min(machine.deadline);
        let asked = llama_chat::ask(machine.session(), port, self.api_key.as_ref(), &self.request);
        let answer = tokio::select! {
            () = machine.cancel.cancelled() => {
                return machine.pause(Duration::ZERO).await.map(|()| TrialResult::Loading);
            }
            answer = timeout_at(probe_by, asked) => answer,
        };
        match answer {
            Err(_) if Instant::now() >= machine.deadline => Ok(TrialResult::Loading),
            Err(_) => {
                let limit = print_duration(self.ready_timeout);
                Ok(TrialResult::Failed(format!("the probe was not answered within {limit} (ready_timeout)")))
            }
            Ok(Ok(answer)) => Ok(judge(&answer, self.probe)),
            Ok(Err(ChatFailure::Ssh(error))) if machine.session().is_lost() => {
                tracing::debug!(%error, "the connection was lost during the probe");
                machine.reconnect().await?;
                Ok(TrialResult::Loading)
            }
            Ok(Err(error)) if self.is_key_unknown && error.asks_for_key() => Ok(TrialResult::Served(None)),
            Ok(Err(error)) => Ok(TrialResult::Failed(format!("the probe failed: {error}"))),
        }
    }
}

/// What one try came to.
#[derive(Debug, PartialEq)]
pub(super) enum TrialResult {
    /// It does not infer, and why.
    Failed(String),
    /// Not yet.
    Loading,
    /// It serves, and how fast.
    Served(Option<Number>),
}

/// The chat that decides.
pub(super) fn question(probe: Option<&Probe>, model: &str) -> ChatRequest {
    let prompt = probe.and_then(|probe| probe.prompt.as_str()).unwrap_or(options::PROMPT);
    let message = ChatMessage { role: "user".to_owned(), content: prompt.to_owned() };
    ChatRequest {
        max_tokens: Some(probe.and_then(|probe| probe.max_tokens.known().copied()).unwrap_or(1)),
        temperature: Some(0.into()),
        ..ChatRequest::new(model, vec![message])
    }
}

/// Whether an answer is what is expected. A model that thinks first may spend all its tokens on that, so the thoughts
/// count too.
fn judge(answer: &ChatAnswer, probe: Option<&Probe>) -> TrialResult {
    if let Some(pattern) = probe.and_then(|probe| probe.expect.as_str())
        && let Ok(expected) = Regex::new(pattern)
    {
        let thoughts = answer.response.pointer("/choices/0/message/reasoning_content").and_then(Value::as_str);
        if !expected.is_match(&answer.content) && !thoughts.is_some_and(|thoughts| expected.is_match(thoughts)) {
            let shown: String = answer.content.chars().take(SHOWN).collect();
            return TrialResult::Failed(format!(
                "the answer to the probe does not match probe.expect ({pattern:?}): {shown:?}"
            ));
        }
    }
    let timings = answer.response.get("timings");
    let timing = |name: &str| timings.and_then(|timings| timings.get(name)).and_then(Value::as_f64);
    // The time of a single token is none: it comes with the prompt.
    let is_telling = timing("predicted_n").is_none_or(|tokens| tokens > 1.0);
    let speed = timing("predicted_per_second").filter(|speed| is_telling && speed.is_finite() && *speed > 0.0);
    TrialResult::Served(speed.and_then(|speed| Number::try_from((speed * 100.0).round() / 100.0).ok()))
}

/// How long a refresh waits for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The wait before a second look: one wrong answer decides nothing.
const BETWEEN: Duration = Duration::from_secs(1);

/// What was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TrialLook {
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
pub(super) async fn of(server: &LlamaServer, machine: &InstanceSession) -> TrialLook {
    let first = once(server, machine).await;
    if first != TrialLook::Dead {
        return first;
    }
    sleep(BETWEEN).await;
    once(server, machine).await
}

async fn once(server: &LlamaServer, machine: &InstanceSession) -> TrialLook {
    let (session, port) = (machine.session(), server.listens());
    match timeout(PATIENCE, llama_chat::health(session, port)).await {
        Err(_) => return TrialLook::Slow("Its health check was not answered within 10 s".to_owned()),
        Ok(Ok(Health::Ok)) => {}
        Ok(Ok(Health::Loading)) => return TrialLook::Loading,
        Ok(Ok(Health::Refused | Health::Strange)) => return TrialLook::Dead,
        // The process runs; that its port cannot be asked says nothing about it.
        Ok(Err(error)) => return TrialLook::Slow(format!("Its health check could not be made: {error}")),
    }
    let (request, key) = (question(None, server.model.as_str().unwrap_or_default()), server.key(server));
    match timeout(PATIENCE, llama_chat::ask(session, port, key.as_ref(), &request)).await {
        Err(_) => TrialLook::Slow("It is healthy, but did not answer a chat of one token within 10 s".to_owned()),
        Ok(Ok(_)) => TrialLook::Serves,
        // A write-only key is not here.
        Ok(Err(error)) if error.asks_for_key() => TrialLook::Serves,
        Ok(Err(error)) if error.is_busy() => {
            TrialLook::Slow(format!("It is healthy, but accepts no further chat: {error}"))
        }
        Ok(Err(ChatFailure::Ssh(error))) if !is_broken_off(&error) => {
            TrialLook::Slow(format!("A chat of one token could not be made: {error}"))
        }
        Ok(Err(_)) => TrialLook::Dead,
    }
}

/// Whether the server ended the connection, rather than the way to it.
fn is_broken_off(error: &crate::ssh::Error) -> bool {
    matches!(error, crate::ssh::Error::Refused { .. } | crate::ssh::Error::BadAnswer { .. })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::framework::Attr;

    fn answer(content: &str, more: &Value) -> ChatAnswer {
        let mut whole =
            json!({"choices": [{"message": {"role": "assistant", "content": content}, "finish_reason": "stop"}]});
        for (name, value) in more.as_object().into_iter().flatten() {
            whole[name] = value.clone();
        }
        ChatAnswer::from_json(whole.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn any_answer_serves_unless_one_is_expected() {
        assert_eq!(judge(&answer("", &json!({})), None), TrialResult::Served(None));
        let probe = Probe { expect: "(?i)^pong".into(), ..Probe::default() };
        assert_eq!(judge(&answer("Pong!", &json!({})), Some(&probe)), TrialResult::Served(None));
        let TrialResult::Failed(reason) = judge(&answer("ping", &json!({})), Some(&probe)) else { panic!() };
        assert_eq!(reason, r#"the answer to the probe does not match probe.expect ("(?i)^pong"): "ping""#);
    }

    #[test]
    fn the_speed_is_told_unless_the_answer_is_too_short() {
        let timings = |tokens: i64| json!({"timings": {"predicted_n": tokens, "predicted_per_second": 41.666}});
        assert_eq!(judge(&answer("x", &timings(12)), None), TrialResult::Served(Some("41.67".parse().unwrap())));
        assert_eq!(judge(&answer("x", &timings(1)), None), TrialResult::Served(None));
        assert_eq!(
            judge(&answer("x", &json!({"timings": {"predicted_per_second": 0.0}})), None),
            TrialResult::Served(None)
        );
    }

    #[test]
    fn a_probe_asks_for_one_token_unless_it_is_configured() {
        assert_eq!(question(None, "/m").max_tokens, Some(1));
        let probe = Probe { prompt: "Who?".into(), max_tokens: Attr::Known(5), ..Probe::default() };
        let asked = question(Some(&probe), "/m");
        assert_eq!((asked.max_tokens, asked.messages[0].content.as_str()), (Some(5), "Who?"));
    }
}
