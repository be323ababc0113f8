//! The requests to a server: those of an apply, which decide whether it serves, and the health check of a refresh.

use std::{future::Future, str::FromStr, time::Duration};

use bigdecimal::BigDecimal;
use jiff::fmt::friendly::SpanPrinter;
use regex::Regex;
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::{
    bootstrap::{FailureKind, JobFailure, JobReport, Verb},
    decide::TrialAnswers,
    options,
    session::{InstanceSession, Silence, Trouble},
};
use crate::{
    api::{ChatAnswer, ChatMessage, ChatRequest},
    chat::{self, ChatFailure, Health},
    ssh,
};

/// The shortest time for the probe, however long the model took to load.
const MIN_PROBE: Duration = Duration::from_secs(60);
/// The shortest time for a health check.
const MIN_HEALTH: Duration = Duration::from_secs(5);
/// How long the name of the model is waited for.
const NAME: Duration = Duration::from_secs(10);
/// The longest part of an answer that an error shows, in characters.
const MAX_SHOWN: usize = 200;

/// The request that decides whether a server serves.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrialProbe<'a> {
    /// What is asked: a chat, unless it is `health`, `embeddings` or `rerank`.
    pub endpoint: Option<&'a str>,
    /// The question.
    pub prompt: Option<&'a str>,
    /// The longest answer, in tokens.
    pub max_tokens: Option<i64>,
    /// A regular expression that the answer matches.
    pub expect: Option<&'a str>,
}

/// The requests of an apply to one server.
#[derive(Clone, Debug)]
pub struct Trial<'a> {
    port: u16,
    /// The API key of the server.
    api_key: Option<SecretString>,
    model: &'a str,
    probe: TrialProbe<'a>,
    /// How long a start may take until the probe is answered.
    ready_timeout: Duration,
    /// Whether the server has a key that is not known here: its refusal to answer without one is enough.
    pub is_key_unknown: bool,
}

/// A server's answers, or why it does not serve. `None` if there is no answer yet.
type Answer = Option<Result<TrialAnswers, JobFailure>>;

impl<'a> Trial<'a> {
    /// The requests to the server on a port, which loads a model until it is ready and has this key.
    pub fn new(
        port: u16,
        model: &'a str,
        probe: TrialProbe<'a>,
        ready_timeout: Duration,
        api_key: Option<SecretString>,
    ) -> Self {
        Self { port, api_key, model, probe, ready_timeout, is_key_unknown: false }
    }

    /// The same for a server that has a key or not, and whose key this one is or not.
    pub fn of_server(self, has_key: bool, is_key_known: bool) -> Self {
        Self { api_key: self.api_key.filter(|_| has_key), is_key_unknown: has_key && !is_key_known, ..self }
    }

    /// A health check and, if it succeeds, the probe. `begun` is when the process was first seen.
    ///
    /// # Errors
    /// The instance cannot be asked; the work goes on.
    pub async fn once(&self, instance: &mut InstanceSession, begun: Instant) -> Result<Answer, Trouble> {
        let by = begun + self.ready_timeout;
        let limit = SpanPrinter::new().unsigned_duration_to_string(&self.ready_timeout).replace(' ', "");
        // A check that begins just before the limit gets its answer, which shows the state of the server.
        let health_by = by.max(Instant::now() + MIN_HEALTH).min(instance.deadline);
        let health = match timeout_at(health_by, chat::health(instance.session(), self.port)).await {
            Err(_) => None,
            Ok(Ok(health)) => Some(health),
            Ok(Err(error)) if error.is_out_of_reach() => {
                instance.reconnect().await?;
                return Ok(None);
            }
            Ok(Err(error)) => return Err(error.into()),
        };
        if health != Some(Health::Ok) {
            return Ok(match health {
                _ if Instant::now() < by => None,
                Some(Health::Loading) => {
                    failed(FailureKind::Slow, format!("the model was still loading after {limit} (ready_timeout)"))
                }
                _ => no_inference(format!("the health check was not answered within {limit} (ready_timeout)")),
            });
        }
        let probe_by = by.max(Instant::now() + MIN_PROBE.min(self.ready_timeout)).min(instance.deadline);
        let asked = tokio::select! {
            () = instance.cancel.cancelled() => return instance.pause(Duration::ZERO).await.map(|()| None),
            asked = timeout_at(probe_by, self.ask(instance)) => asked,
        };
        Ok(match asked {
            Err(_) if Instant::now() >= instance.deadline => None,
            Err(_) => no_inference(format!("the probe was not answered within {limit} (ready_timeout)")),
            Ok(Ok(answer)) => Some(answer),
            Ok(Err(ChatFailure::Ssh(error))) if instance.session().is_lost() => {
                tracing::debug!(%error, "the connection was lost during the probe");
                instance.reconnect().await?;
                None
            }
            Ok(Err(error)) if self.is_key_unknown && error.asks_for_key() => Some(Ok(TrialAnswers::default())),
            Ok(Err(error)) if error.is_unsupported() => {
                failed(FailureKind::WrongEndpoint, format!("the probe failed: {error}"))
            }
            Ok(Err(error)) => no_inference(format!("the probe failed: {error}")),
        })
    }

    /// Asks the probe, and a server that answers it for the name of the model.
    async fn ask(&self, instance: &InstanceSession) -> Result<Result<TrialAnswers, JobFailure>, ChatFailure> {
        Ok(match self.probe(instance).await? {
            Ok(speed) => Ok(TrialAnswers { speed, model_name: self.model_name(instance).await? }),
            Err(failure) => Err(failure),
        })
    }

    /// The name of the model; `None` without an answer, which proves nothing about the server.
    async fn model_name(&self, instance: &InstanceSession) -> Result<Option<String>, ChatFailure> {
        let asking = chat::exchange(instance.session(), self.port, self.api_key.as_ref(), "/v1/models", None);
        match timeout(NAME, asking).await {
            Ok(Err(error @ ChatFailure::Ssh(_))) if instance.session().is_lost() => Err(error),
            Ok(Ok(models)) => Ok(models.pointer("/data/0/id").and_then(Value::as_str).map(str::to_owned)),
            Ok(Err(_)) | Err(_) => Ok(None),
        }
    }

    /// Asks the probe. A server with a key first has to refuse a chat without it.
    async fn probe(&self, instance: &InstanceSession) -> Result<Result<Option<BigDecimal>, JobFailure>, ChatFailure> {
        let (session, key) = (instance.session(), self.api_key.as_ref());
        if let Some(failure) = self.ignores_key(instance).await? {
            return Ok(Err(failure));
        }
        let prompt = self.probe.prompt.unwrap_or(options::DEFAULT_PROMPT);
        let (path, body, pointer) = match self.probe.endpoint {
            Some("health") => return Ok(Ok(None)),
            Some("embeddings") => {
                ("/v1/embeddings", json!({ "model": self.model, "input": prompt }), "/data/0/embedding/0")
            }
            Some("rerank") => (
                "/v1/rerank",
                json!({ "model": self.model, "query": prompt, "documents": [prompt] }),
                "/results/0/relevance_score",
            ),
            _ => {
                let answer = chat::complete_chat(session, self.port, key, &question(self.probe, self.model)).await?;
                return Ok(judge(&answer, self.probe));
            }
        };
        let answer = chat::exchange(session, self.port, key, path, Some(&body)).await?;
        Ok(match answer.pointer(pointer).is_some_and(Value::is_number) {
            true => Ok(None),
            false => Err(JobFailure {
                kind: FailureKind::NoInference,
                text: format!("the answer of {path} to the probe has no {pointer}"),
            }),
        })
    }

    /// The failure of a server that has a key, and answers a chat without it otherwise than with 401 or 403.
    async fn ignores_key(&self, instance: &InstanceSession) -> Result<Option<JobFailure>, ChatFailure> {
        if self.api_key.is_none() && !self.is_key_unknown {
            return Ok(None);
        }
        let (session, empty) = (instance.session(), json!({}));
        let answer = chat::exchange(session, self.port, None, "/v1/chat/completions", Some(&empty)).await;
        let answer = match answer {
            Err(error) if error.asks_for_key() => return Ok(None),
            Err(error @ ChatFailure::Ssh(_)) => return Err(error),
            Err(ChatFailure::Refused { status, .. }) => status.to_string(),
            Ok(_) | Err(ChatFailure::NoAnswer(_)) => "200 OK".to_owned(),
        };
        let text = format!("a chat without the API key was answered with {answer}");
        Ok(Some(JobFailure { kind: FailureKind::KeyIgnored, text }))
    }
}

fn failed(kind: FailureKind, text: String) -> Answer {
    Some(Err(JobFailure { kind, text }))
}

fn no_inference(text: String) -> Answer {
    failed(FailureKind::NoInference, text)
}

/// The chat of the probe.
fn question(probe: TrialProbe<'_>, model: &str) -> ChatRequest {
    let prompt = probe.prompt.unwrap_or(options::DEFAULT_PROMPT);
    let message = ChatMessage { role: "user".to_owned(), content: prompt.to_owned() };
    ChatRequest {
        max_tokens: Some(probe.max_tokens.unwrap_or(1)),
        temperature: Some(0.into()),
        ..ChatRequest::new(model, vec![message])
    }
}

/// Judges the answer to a chat. A model that thinks first may spend all its tokens on that, so its thoughts count too.
fn judge(answer: &ChatAnswer, probe: TrialProbe<'_>) -> Result<Option<BigDecimal>, JobFailure> {
    if let Some(pattern) = probe.expect
        && let Ok(expected) = Regex::new(pattern)
    {
        let thoughts = answer.response.pointer("/choices/0/message/reasoning_content").and_then(Value::as_str);
        if !expected.is_match(&answer.content) && !thoughts.is_some_and(|thoughts| expected.is_match(thoughts)) {
            let shown: String = answer.content.chars().take(MAX_SHOWN).collect();
            let text = format!("the answer to the probe does not match probe.expect ({pattern:?}): {shown:?}");
            return Err(JobFailure { kind: FailureKind::NoInference, text });
        }
    }
    let timings = answer.response.get("timings");
    let timing = |name: &str| timings.and_then(|timings| timings.get(name)).and_then(Value::as_f64);
    // A single token comes with the prompt, and has no time of its own.
    let is_timed = timing("predicted_n").is_none_or(|tokens| tokens > 1.0);
    let speed = timing("predicted_per_second").filter(|speed| is_timed && speed.is_finite() && *speed > 0.0);
    // From its shortest text: the nearest float of 41.67 is a little more.
    Ok(speed.and_then(|speed| BigDecimal::from_str(&((speed * 100.0).round() / 100.0).to_string()).ok()))
}

/// The result of the health check of a server whose process is running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrialLook {
    /// It refused or answered wrongly, twice, or hangs.
    Dead,
    /// It loads the model.
    Loading,
    /// It is healthy.
    Serves,
    /// It did not answer in time; the text says so.
    Slow(String),
}

/// The time for the last look at a server that may hang.
const LAST_LOOK: Duration = Duration::from_secs(10);
/// The wait before the second check of a server that seems dead: one wrong answer decides nothing.
const BETWEEN: Duration = Duration::from_secs(1);

/// Checks the health of the server on a port. `seen` is the report that shows its process.
pub async fn check_health(port: u16, seen: &JobReport, instance: &mut InstanceSession) -> TrialLook {
    let silence = instance.silence;
    for is_last in [false, true] {
        let ask = || async {
            match chat::health(instance.session(), port).await {
                // A channel that does not open is as silent as one that does.
                Err(ssh::Error::TimedOut { .. }) => std::future::pending().await,
                answer => answer,
            }
        };
        let (first, second) = (Box::pin(ask()), Box::pin(ask()));
        let has_time = instance.deadline > Instant::now() + silence.before_second + silence.of_each + LAST_LOOK;
        let looked = match within(silence, first, second, has_time).await {
            Some(Ok(Health::Ok)) => TrialLook::Serves,
            Some(Ok(Health::Loading)) => TrialLook::Loading,
            Some(Ok(Health::Refused | Health::Strange)) if is_last => TrialLook::Dead,
            Some(Ok(Health::Refused | Health::Strange)) => {
                sleep(BETWEEN).await;
                continue;
            }
            // The connection failed, which proves nothing about the server.
            Some(Err(error)) => TrialLook::Slow(format!("The health check failed: {error}")),
            None if has_time && is_idle(seen, instance).await => TrialLook::Dead,
            None => TrialLook::Slow("The health check was not answered in time".to_owned()),
        };
        return looked;
    }
    TrialLook::Dead
}

/// The first answer of two requests, of which the second is sent if the first has no answer for some time. `None` if
/// both are silent, or if there is no time for the second.
async fn within<T>(
    silence: Silence,
    first: impl Future<Output = T>,
    second: impl Future<Output = T>,
    has_time: bool,
) -> Option<T> {
    tokio::pin!(first);
    if let Ok(answer) = timeout(silence.before_second, &mut first).await {
        return Some(answer);
    }
    if !has_time {
        return None;
    }
    let first = timeout(silence.of_each.saturating_sub(silence.before_second), first);
    let second = timeout(silence.of_each, second);
    tokio::pin!(first, second);
    tokio::select! {
        Ok(answer) = &mut first => Some(answer),
        Ok(answer) = &mut second => Some(answer),
        else => None,
    }
}

/// Whether the process that was seen is still there and has used less than 1 % of a processor while it was silent.
async fn is_idle(seen: &JobReport, instance: &mut InstanceSession) -> bool {
    let Ok(now) = instance.run(&Verb::Refresh).await else { return false };
    let process = |report: &JobReport| Some((report.process.as_ref()?.identity.clone(), report.processor_time?));
    // A hundredth of a second for each second.
    let limit = (instance.silence.before_second + instance.silence.of_each).as_secs();
    match (process(seen), process(&now)) {
        (Some((before, first)), Some((after, last))) => before == after && last.saturating_sub(first) < limit,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
        assert_eq!(judge(&answer("", &json!({})), TrialProbe::default()), Ok(None));
        let probe = TrialProbe { expect: Some("(?i)^pong"), ..TrialProbe::default() };
        assert_eq!(judge(&answer("Pong!", &json!({})), probe), Ok(None));
        let reason = judge(&answer("ping", &json!({})), probe).unwrap_err().text;
        assert_eq!(reason, r#"the answer to the probe does not match probe.expect ("(?i)^pong"): "ping""#);
    }

    #[test]
    fn the_speed_is_told_unless_the_answer_is_too_short() {
        let timings = |tokens: i64| json!({"timings": {"predicted_n": tokens, "predicted_per_second": 41.666}});
        let speed = |timings: &Value| judge(&answer("x", timings), TrialProbe::default());
        assert_eq!(speed(&timings(12)), Ok(Some("41.67".parse().unwrap())));
        assert_eq!(speed(&timings(1)), Ok(None));
        assert_eq!(speed(&json!({"timings": {"predicted_per_second": 0.0}})), Ok(None));
    }

    #[test]
    fn a_probe_asks_for_one_token_unless_it_is_configured() {
        assert_eq!(question(TrialProbe::default(), "/m").max_tokens, Some(1));
        let probe = TrialProbe { prompt: Some("Who?"), max_tokens: Some(5), ..TrialProbe::default() };
        let asked = question(probe, "/m");
        assert_eq!((asked.max_tokens, asked.messages[0].content.as_str()), (Some(5), "Who?"));
    }

    /// Two requests, of which each answers after so many seconds or never: which answer counts, and after how long.
    #[tokio::test(start_paused = true)]
    async fn a_silence_of_two_requests_may_be_a_hang() {
        let answers = |name: &'static str, after: Option<u64>| async move {
            match after {
                Some(seconds) => sleep(Duration::from_secs(seconds)).await,
                None => std::future::pending().await,
            }
            name
        };
        for (first, second, has_time, expected, seconds) in [
            (Some(1), None, true, Some("first"), 1),
            (Some(29), None, true, Some("first"), 29),
            (None, Some(2), true, Some("second"), 12),
            (Some(31), Some(29), true, Some("second"), 39),
            (None, None, true, None, 40),
            (None, Some(1), false, None, 10),
        ] {
            let begun = Instant::now();
            let (first, second) = (answers("first", first), answers("second", second));
            let answer = within(Silence::default(), first, second, has_time).await;
            assert_eq!((answer, begun.elapsed().as_secs()), (expected, seconds), "{expected:?} {has_time}");
        }
    }
}
