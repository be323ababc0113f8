//! The chat call: its own credential, an answer in pieces, and no second question once a piece came.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{
    Stream, StreamExt,
    future::ready,
    stream::{self, BoxStream},
};
use reqwest::{
    Method,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT},
};
use secrecy::ExposeSecret;
use tokio::{
    sync::mpsc::UnboundedSender,
    time::{Instant, timeout},
};

use crate::api::{
    chat::{ChatAnswer, ChatAssembly, ChatRequest, EventError, EventStream, Pushed},
    client::{Client, no_answer, origin},
    context::Context,
    endpoint::Endpoint,
    envelope,
    error::{Cause, Error, Missing, UnreadAnswer},
    retry,
    token::TokenError,
    transport::{Incoming, LARGEST_ANSWER, Outgoing},
};

/// What is asked here.
const ENDPOINT: Endpoint = Endpoint::ChatCompletions;

/// The least time without a byte after which an answer is given up: a model may think, or wait for its turn.
const IDLE_LIMIT: Duration = Duration::from_secs(120);

/// How long a finished answer may take to tell its usage, and its end.
const LAST_WORDS: Duration = Duration::from_secs(5);

impl Client {
    /// Asks a model (service API, Chat completions), with the API key of the settings.
    ///
    /// The answer comes in pieces, and may go on for as long as `context` does: only a silence of two minutes
    /// (or of the request timeout, where that is longer) counts as none. Before its first piece failures are
    /// asked again as those of reads are; after it no question is repeated. No message is logged. Cancel-safe.
    ///
    /// # Errors
    /// [`Missing::ApiKey`]; the service's refusal, in whichever form it comes; an answer that ends before the
    /// model said why; the end of `context`.
    ///
    /// ```no_run
    /// # use damodel::api::{Client, Context, Error};
    /// # async fn example(client: Client, context: Context) -> Result<(), Error> {
    /// use damodel::api::{ChatMessage, ChatRequest};
    ///
    /// let question = ChatMessage { role: "user".to_owned(), content: "Are you there?".to_owned() };
    /// let answer = client.chat(&ChatRequest::new("a-model", vec![question]), &context).await?;
    /// println!("{}", answer.content);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn chat(&self, request: &ChatRequest, context: &Context) -> Result<ChatAnswer, Error> {
        context.check().map_err(|ended| ended.error(ENDPOINT))?;
        let chat = self.persist_chat(request, None, context);
        context.run(chat).await.map_err(|ended| ended.error(ENDPOINT))?
    }

    /// The same, telling the pieces of the answer's text as they come. An answer that comes whole comes in no pieces.
    ///
    /// # Errors
    /// Those of [`Self::chat`]; what was told until then is part of no answer.
    pub async fn chat_in_pieces(
        &self,
        request: &ChatRequest,
        pieces: UnboundedSender<String>,
        context: &Context,
    ) -> Result<ChatAnswer, Error> {
        context.check().map_err(|ended| ended.error(ENDPOINT))?;
        let chat = self.persist_chat(request, Some(pieces), context);
        context.run(chat).await.map_err(|ended| ended.error(ENDPOINT))?
    }

    async fn persist_chat(
        &self,
        request: &ChatRequest,
        pieces: Option<UnboundedSender<String>>,
        context: &Context,
    ) -> Result<ChatAnswer, Error> {
        let body = Bytes::from(request.body().to_string());
        let mut waits = retry::schedule(self.settings().max_retries, self.random());
        let mut attempt = 1;
        loop {
            let mut assembly = pieces.clone().map_or_else(ChatAssembly::default, ChatAssembly::heard_by);
            let error = match self.attempt_chat(body.clone(), attempt, &mut assembly).await {
                Ok(answer) => return Ok(answer),
                Err(error) if assembly.has_content() || !error.is_retryable() => return Err(error),
                Err(error) => error,
            };
            if !self.pause(context, &mut waits, &error).await {
                return Err(error);
            }
            attempt += 1;
        }
    }

    async fn attempt_chat(&self, body: Bytes, attempt: u32, assembly: &mut ChatAssembly) -> Result<ChatAnswer, Error> {
        let outgoing = self.outgoing_chat(body)?;
        let _slot = self.shared.pace.enter().await;
        let start = Instant::now();
        let outcome = self.converse(outgoing, assembly).await.map_err(|error| self.without_secrets(error, None));
        // Not the error's text: a service may repeat in it what it was asked.
        tracing::debug!(
            endpoint = %ENDPOINT,
            attempt,
            duration_ms = start.elapsed().as_millis(),
            code = outcome.as_ref().err().and_then(Error::code).map(tracing::field::display),
            request_id = outcome.as_ref().err().and_then(|error| error.request_ids().request_id),
            answered = outcome.is_ok(),
            "chat"
        );
        outcome
    }

    fn outgoing_chat(&self, body: Bytes) -> Result<Outgoing, Error> {
        let base = self.settings().base_url.as_ref().ok_or(Error::Missing(Missing::BaseUrl))?;
        let key = self.settings().api_key.as_ref().ok_or(Error::Missing(Missing::ApiKey))?;
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", key.expose_secret()))
            .map_err(|_| Error::Token(TokenError::Unsendable))?;
        bearer.set_sensitive(true);
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, bearer);
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Ok(agent) = HeaderValue::from_str(&self.settings().user_agent.to_string()) {
            headers.insert(USER_AGENT, agent);
        }
        let url = base.join(ENDPOINT.path());
        Ok(Outgoing { endpoint: ENDPOINT, method: Method::POST, url, headers, body: Some(body) })
    }

    /// One question and its answer.
    async fn converse(&self, outgoing: Outgoing, assembly: &mut ChatAssembly) -> Result<ChatAnswer, Error> {
        let idle = IDLE_LIMIT.max(self.settings().request_timeout);
        let address = origin(&outgoing.url);
        let answering = match timeout(idle, self.shared.transport.stream(outgoing)).await {
            Ok(answering) => answering.map_err(|failure| failure.into_error(ENDPOINT, &address))?,
            Err(_) => return Err(silence()),
        };
        self.was_reached();
        let mut head = Incoming { status: answering.status, headers: answering.headers, body: Bytes::new() };
        let body = with_idle_limit(answering.body, idle);
        if is_success(&head) && is_event_stream(&head.headers) {
            return self.read_events(&head, body, assembly).await;
        }
        head.body = collect(body).await?;
        self.read_whole(&head, assembly).await
    }

    async fn read_events(
        &self,
        head: &Incoming,
        body: impl Stream<Item = Result<Bytes, Error>> + Unpin,
        assembly: &mut ChatAssembly,
    ) -> Result<ChatAnswer, Error> {
        let mut events = EventStream::new(body);
        loop {
            let next = if assembly.is_finished() {
                // The answer is there. What ends its stream, or does not, cannot make it worse.
                timeout(LAST_WORDS, events.next()).await.ok().flatten().and_then(Result::ok).map(Ok)
            } else {
                events.next().await
            };
            let event = match next {
                Some(Ok(event)) => event,
                Some(Err(EventError::Broken(error))) => return Err(error),
                Some(Err(EventError::TooLarge)) => return Err(no_answer(ENDPOINT, "an event is larger than 16 MiB")),
                None if assembly.is_finished() => break,
                None => return Err(no_answer(ENDPOINT, "the stream ended before the answer did")),
            };
            match assembly.push(&event.data) {
                Pushed::Done => break,
                Pushed::Taken => {}
                Pushed::Foreign => self.read_foreign(head, event.data)?,
            }
        }
        std::mem::take(assembly).into_answer().ok_or_else(|| no_answer(ENDPOINT, "the stream ended without an answer"))
    }

    /// An event that is no piece of an answer: an error in one of its forms, or something new.
    fn read_foreign(&self, head: &Incoming, data: String) -> Result<(), Error> {
        let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&data).is_ok();
        let alone = Incoming { body: Bytes::from(data), ..head.clone() };
        match self.open(&alone) {
            Err(Error::Undecodable(_)) if is_json => Ok(()),
            outcome => outcome.map(drop),
        }
    }

    async fn read_whole(&self, incoming: &Incoming, assembly: &mut ChatAssembly) -> Result<ChatAnswer, Error> {
        if is_success(incoming) {
            if let Some(answer) = ChatAnswer::from_json(&incoming.body) {
                return Ok(answer);
            }
            if looks_like_events(&incoming.body) {
                let body = stream::once(ready(Ok(incoming.body.clone())));
                return self.read_events(incoming, body, assembly).await;
            }
        }
        let answer = self.open(incoming)?;
        Err(Error::Undecodable(Box::new(UnreadAnswer {
            endpoint: ENDPOINT,
            status: incoming.status,
            reason: "JSON without choices".to_owned(),
            ids: answer.ids,
            retry_after: None,
        })))
    }

    fn open(&self, incoming: &Incoming) -> Result<envelope::Answer, Error> {
        envelope::open(ENDPOINT, incoming, self.shared.clock.now().0)
    }
}

fn is_success(incoming: &Incoming) -> bool {
    (200..300).contains(&incoming.status)
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream")
}

/// Whether a body is an event stream under another name.
fn looks_like_events(body: &[u8]) -> bool {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body).trim_ascii_start();
    ["data:", "event:", "id:", "retry:", ":"].iter().any(|field| body.starts_with(field.as_bytes()))
}

async fn collect(mut body: BoxStream<'static, Result<Bytes, Error>>) -> Result<Bytes, Error> {
    let mut whole = BytesMut::new();
    while let Some(chunk) = body.next().await {
        let chunk = chunk?;
        if whole.len() + chunk.len() > LARGEST_ANSWER {
            return Err(no_answer(ENDPOINT, "the answer is larger than 64 MiB"));
        }
        whole.extend_from_slice(&chunk);
    }
    Ok(whole.freeze())
}

/// Ends a body with an error when nothing comes for this long.
fn with_idle_limit(
    body: BoxStream<'static, Result<Bytes, Cause>>,
    limit: Duration,
) -> BoxStream<'static, Result<Bytes, Error>> {
    stream::unfold(Some(body), move |body| async move {
        let mut body = body?;
        match timeout(limit, body.next()).await {
            Ok(chunk) => match chunk? {
                Ok(chunk) => Some((Ok(chunk), Some(body))),
                Err(cause) => Some((Err(Error::NoAnswer { endpoint: ENDPOINT, cause }), None)),
            },
            Err(_) => Some((Err(silence()), None)),
        }
    })
    .boxed()
}

fn silence() -> Error {
    no_answer(ENDPOINT, "nothing came for too long")
}

#[cfg(test)]
mod tests {
    use std::{
        collections::VecDeque,
        sync::{Arc, Mutex},
    };

    use async_trait::async_trait;
    use rstest::rstest;
    use serde_json::json;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::api::{
        ChatMessage, Code, SendFailure, Settings, Transport,
        testing::{self, context, lost, never_sent, raw, refusal},
        transport::Answering,
    };

    const KEY: &str = "planted-key-5520";
    const QUESTION: &str = "planted question";

    /// What happens on the way of one answer.
    #[derive(Debug, Clone)]
    enum Step {
        Break,
        Chunk(&'static str),
        /// Seconds of silence.
        Silence(u64),
    }

    type Script = Result<(u16, &'static str, Vec<Step>), SendFailure>;

    /// A service that plays one script a question; the last one again and again.
    struct Scripted {
        scripts: Mutex<VecDeque<Script>>,
        asked: Mutex<Vec<Outgoing>>,
    }

    #[async_trait]
    impl Transport for Scripted {
        async fn send(&self, _: Outgoing) -> Result<Incoming, SendFailure> {
            panic!("a chat is streamed");
        }

        async fn stream(&self, request: Outgoing) -> Result<Answering, SendFailure> {
            self.asked.lock().unwrap().push(request);
            let mut scripts = self.scripts.lock().unwrap();
            let script = scripts.pop_front().unwrap();
            if scripts.is_empty() {
                scripts.push_back(script.clone());
            }
            let (status, kind, steps) = script?;
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))]);
            let body = stream::iter(steps).filter_map(|step| async move {
                match step {
                    Step::Break => Some(Err(Cause::new("connection reset"))),
                    Step::Chunk(text) => Some(Ok(Bytes::from_static(text.as_bytes()))),
                    Step::Silence(seconds) => {
                        tokio::time::sleep(Duration::from_secs(seconds)).await;
                        None
                    }
                }
            });
            Ok(Answering { status, headers, body: body.boxed() })
        }
    }

    fn client(scripts: impl IntoIterator<Item = Script>) -> (Client, Arc<Scripted>) {
        let settings = Settings { api_key: Some(KEY.into()), token: None, ..testing::settings() };
        let service =
            Arc::new(Scripted { scripts: Mutex::new(scripts.into_iter().collect()), asked: Mutex::default() });
        (Client::with_transport(settings, Arc::<Scripted>::clone(&service)), service)
    }

    fn request() -> ChatRequest {
        ChatRequest::new("m", vec![ChatMessage { role: "user".to_owned(), content: QUESTION.to_owned() }])
    }

    /// What one question came to, and how often it was asked.
    async fn chat(scripts: impl IntoIterator<Item = Script>) -> (Result<ChatAnswer, Error>, usize) {
        let (client, service) = client(scripts);
        let outcome = client.chat(&request(), &context(3600)).await;
        let asked = service.asked.lock().unwrap().len();
        (outcome, asked)
    }

    fn events(steps: impl IntoIterator<Item = Step>) -> Script {
        Ok((200, "text/event-stream; charset=utf-8", steps.into_iter().collect()))
    }

    fn whole(status: u16, kind: &'static str, text: &'static str) -> Script {
        Ok((status, kind, vec![Step::Chunk(text)]))
    }

    const HI: Step = Step::Chunk("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\n");
    const STOP: Step = Step::Chunk("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n");
    const USAGE: Step = Step::Chunk("data: {\"choices\":[],\"usage\":{\"total_tokens\":5}}\n\n");
    const DONE: Step = Step::Chunk("data: [DONE]\n\n");

    #[tokio::test(start_paused = true)]
    async fn the_question_carries_the_key_and_only_what_is_set() {
        let (client, service) = client([events([HI, STOP, DONE])]);
        client.chat(&request(), &context(60)).await.unwrap();
        let asked = service.asked.lock().unwrap().remove(0);
        assert_eq!((asked.method.as_str(), asked.url.path()), ("POST", "/chat/completions"));
        assert_eq!(asked.headers["authorization"], format!("Bearer {KEY}"));
        assert!(asked.headers["authorization"].is_sensitive());
        assert!(!asked.headers.contains_key("x-service-token"));
        let body: serde_json::Value = serde_json::from_slice(&asked.body.unwrap()).unwrap();
        assert_eq!(body, json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": QUESTION}]}));
    }

    #[rstest]
    #[case::as_promised(events([HI, STOP, USAGE, DONE]), Some(5))]
    #[case::nothing_after_done(events([HI, STOP, USAGE, DONE, Step::Silence(10_000)]), Some(5))]
    #[case::done_is_missing(events([HI, STOP, USAGE]), Some(5))]
    #[case::end_is_missing(events([HI, STOP, Step::Silence(10_000)]), None)]
    #[case::broken_after_the_end(events([HI, STOP, Step::Break]), None)]
    #[case::slow(events([Step::Silence(119), HI, Step::Silence(119), Step::Chunk(": ping\n\n"), Step::Silence(119),
        STOP, DONE]), None)]
    #[case::something_new(events([Step::Chunk("data: {\"ping\":1}\n\n"), HI, STOP, DONE]), None)]
    #[case::cut_anywhere(
        events([Step::Chunk("da"), Step::Chunk("ta: {\"choices\":[{\"delta\":{\"content\":\"h"),
            Step::Chunk("i\"},\"finish_reason\":\"stop\"}]}\r"), Step::Chunk("\n\r\n")]), None)]
    #[case::under_another_name(
        whole(
            200,
            "text/plain",
            "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n"
        ),
        None
    )]
    #[case::whole(
        whole(
            200,
            "application/json",
            "{\"choices\":[{\"message\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}],\"usage\":{\"total_tokens\":5}}"
        ),
        Some(5)
    )]
    #[tokio::test(start_paused = true)]
    async fn answers_in_every_form(#[case] script: Script, #[case] tokens: Option<i64>) {
        let (outcome, asked) = chat([script]).await;
        let answer = outcome.unwrap();
        assert_eq!((answer.content.as_str(), answer.finish_reason.as_deref()), ("hi", Some("stop")));
        assert_eq!(answer.usage.and_then(|usage| usage.total_tokens), tokens);
        assert_eq!(asked, 1);
    }

    #[rstest]
    #[case::chat_server(
        whole(
            404,
            "application/json",
            r#"{"error":{"message":"no such model","type":"invalid_request_error","code":"model_not_found"}}"#
        ),
        "model_not_found"
    )]
    #[case::without_a_code(
        whole(400, "application/json", r#"{"error":{"message":"no","type":"invalid_request_error","code":null}}"#),
        "invalid_request_error"
    )]
    #[case::envelope(
        whole(
            200,
            "application/json",
            r#"{"result":null,"response_metadata":{"request_id":"r","error":{"code_n":100042,"code":"PermissionDenied"}}}"#
        ),
        "PermissionDenied"
    )]
    #[case::envelope_refused(
        whole(403, "application/json", r#"{"result":null,"response_metadata":{"error":{"code_n":100006}}}"#),
        "InvalidToken"
    )]
    #[case::in_the_stream(events([Step::Chunk("data: {\"error\":{\"message\":\"no\",\"code\":\"model_not_found\"}}\n\n")]), "model_not_found")]
    #[case::envelope_in_the_stream(events([Step::Chunk("data: {\"result\":null,\"response_metadata\":{\"error\":{\"code_n\":100042}}}\n\n")]), "PermissionDenied")]
    #[tokio::test(start_paused = true)]
    async fn refusals_in_every_form(#[case] script: Script, #[case] name: &str) {
        let (outcome, asked) = chat([script]).await;
        let error = outcome.unwrap_err();
        assert_eq!(error.service().unwrap().code_name(), name, "{error}");
        assert_eq!(asked, 1);
    }

    #[rstest]
    #[case::text(whole(401, "text/plain", "who are you"), false)]
    #[case::empty_object(whole(200, "application/json", "{\"result\":null,\"response_metadata\":{}}"), true)]
    #[tokio::test(start_paused = true)]
    async fn texts_are_no_answers(#[case] script: Script, #[case] decodable: bool) {
        let error = chat([script]).await.0.unwrap_err();
        assert_eq!(matches!(error, Error::Undecodable(_)), decodable, "{error}");
        assert!(!error.to_string().contains("who are you"));
    }

    fn failed(reply: testing::Reply) -> Script {
        match reply {
            Ok(incoming) => {
                let text = String::from_utf8(incoming.body.to_vec()).unwrap();
                Ok((incoming.status, "application/json", vec![Step::Chunk(text.leak())]))
            }
            Err(failure) => Err(failure),
        }
    }

    #[rstest]
    #[case::limited(failed(raw(429, &[], "{\"error\":{\"message\":\"slow down\"}}")))]
    #[case::gateway(failed(raw(502, &[], "<html>")))]
    #[case::internal(failed(refusal(100_014)))]
    #[case::never_sent(failed(never_sent()))]
    #[case::lost(failed(lost()))]
    #[case::broken_before_content(events([Step::Chunk("data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"), Step::Break]))]
    #[case::ended_before_content(events([Step::Chunk(": ping\n\n")]))]
    #[case::silent(events([Step::Silence(10_000)]))]
    #[tokio::test(start_paused = true)]
    async fn before_the_first_piece_it_is_asked_again(#[case] first: Script) {
        let (outcome, asked) = chat([first, events([HI, STOP, DONE])]).await;
        assert_eq!(outcome.unwrap().content, "hi");
        assert_eq!(asked, 2);
    }

    #[rstest]
    #[case::broken(events([HI, Step::Break]))]
    #[case::ended(events([HI]))]
    #[case::silent(events([HI, Step::Silence(10_000)]))]
    #[case::refused(events([HI, Step::Chunk("data: {\"error\":{\"code_n\":100014}}\n\n")]))]
    #[case::no_json(events([HI, Step::Chunk("data: overloaded\n\n")]))]
    #[tokio::test(start_paused = true)]
    async fn after_the_first_piece_it_is_not(#[case] first: Script) {
        let (outcome, asked) = chat([first, events([HI, STOP, DONE])]).await;
        outcome.unwrap_err();
        assert_eq!(asked, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_silence_is_long_and_a_stream_has_no_total_time() {
        let settings = Settings { api_key: Some(KEY.into()), max_retries: 0, ..testing::settings() };
        let scripts = Mutex::new(VecDeque::from([events([HI, Step::Silence(10_000)])]));
        let client = Client::with_transport(settings, Arc::new(Scripted { scripts, asked: Mutex::default() }));
        let start = Instant::now();
        client.chat(&request(), &context(3600)).await.unwrap_err();
        assert_eq!(start.elapsed(), IDLE_LIMIT);
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_the_operation_ends_it_at_once() {
        let (client, _) = client([events([HI, Step::Silence(10_000)])]);
        let error = client.chat(&request(), &context(7)).await.unwrap_err();
        assert!(matches!(error, Error::DeadlinePassed { .. }), "{error}");
        let cancel = CancellationToken::new();
        cancel.cancel();
        let error = client.chat(&request(), &Context::within(Duration::from_secs(60), &cancel)).await.unwrap_err();
        assert!(matches!(error, Error::Cancelled { .. }), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_key_nothing_is_asked() {
        let (client, ledger) = testing::serve(|_| async { lost() });
        let error = client.chat(&request(), &context(60)).await.unwrap_err();
        assert!(matches!(error, Error::Missing(Missing::ApiKey)), "{error}");
        assert!(ledger.all().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_the_service_repeats_is_cut_out() {
        let text = r#"{"error":{"message":"Incorrect API key provided: planted-key-5520","code":"invalid_api_key"}}"#;
        let error = chat([whole(401, "application/json", text)]).await.0.unwrap_err();
        assert_eq!(error.code(), Some(Code::Other(0)));
        assert!(error.to_string().contains("Incorrect API key") && !error.to_string().contains(KEY), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn no_message_and_no_key_is_logged() {
        let log = testing::Log::begin();
        let echo = whole(400, "application/json", r#"{"error":{"code_n":100014,"message":"planted question"}}"#);
        let answer = Step::Chunk("data: {\"choices\":[{\"delta\":{\"content\":\"planted answer\"}}]}\n\n");
        let (outcome, _) = chat([echo, events([answer, STOP, DONE])]).await;
        outcome.unwrap();
        let logged = log.end();
        assert!(logged.contains("/chat/completions") && logged.contains("InternalError"), "{logged}");
        assert!(!logged.contains("planted"), "{logged}");
    }
}
