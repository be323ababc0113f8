//! The chat call: its own credential, an answer in pieces, and no retry after the first piece.

#[cfg(test)]
mod tests;

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
use tokio::time::{Instant, timeout};

use crate::api::{
    chat::{ChatAnswer, ChatAssembly, ChatRequest, EventError, EventStream, Pushed},
    client::{Client, no_answer, origin},
    context::Context,
    endpoint::Endpoint,
    envelope,
    error::{Cause, Error, Missing, UnreadAnswer},
    retry::{REQUEST, waits},
    transport::{IncomingAnswer, LARGEST_ANSWER, Outgoing},
};

const ENDPOINT: Endpoint = Endpoint::ChatCompletions;

/// The shortest silence after which an answer is abandoned: a model may compute for long, or its request may be queued.
const IDLE_LIMIT: Duration = Duration::from_secs(120);

/// How long to wait for the usage and the end of the stream after a finished answer.
const LAST_WORDS: Duration = Duration::from_secs(5);

impl Client {
    /// Sends a chat request (service API, Chat completions) with the API key of the settings.
    ///
    /// The answer comes in pieces and may take as long as `context` allows; only a silence of two minutes (or of the
    /// request timeout, if that is longer) is a failure. Failures before the first piece are retried like those of
    /// reads; after it no request is repeated. Messages are not logged. Cancel-safe.
    ///
    /// # Errors
    /// [`Missing::ApiKey`]; the service's refusal in any form; an answer that ends without a finish reason; the end of
    /// `context`.
    ///
    /// ```no_run
    /// # use damodel_client::api::{Client, Context, Error};
    /// # async fn example(client: Client, context: Context) -> Result<(), Error> {
    /// use damodel_client::api::{ChatMessage, ChatRequest};
    ///
    /// let question = ChatMessage { role: "user".to_owned(), content: "Are you there?".to_owned() };
    /// let answer = client.chat(&ChatRequest::new("a-model", vec![question]), &context).await?;
    /// println!("{}", answer.content);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn chat(&self, request: &ChatRequest, context: &Context) -> Result<ChatAnswer, Error> {
        context.check().map_err(|ended| ended.error(ENDPOINT))?;
        let chat = self.persist_chat(request, context);
        context.run(chat).await.map_err(|ended| ended.error(ENDPOINT))?
    }

    async fn persist_chat(&self, request: &ChatRequest, context: &Context) -> Result<ChatAnswer, Error> {
        let body = Bytes::from(request.body().to_string());
        let mut waits = waits(REQUEST.with_max_times(self.settings().max_retries), self.random());
        let mut attempt = 1;
        loop {
            let mut assembly = ChatAssembly::default();
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
        let _slot = self.shared.pace.enter_chat().await;
        let start = Instant::now();
        let outcome = self.converse(outgoing, assembly).await.map_err(|error| self.without_secrets(error, None));
        // The error's text is not logged: it may repeat the request.
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
            .map_err(|_| Error::Unsendable { credential: "API key" })?;
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

    async fn converse(&self, outgoing: Outgoing, assembly: &mut ChatAssembly) -> Result<ChatAnswer, Error> {
        let idle = IDLE_LIMIT.max(self.settings().request_timeout);
        let address = origin(&outgoing.url);
        let answering = match timeout(idle, self.shared.transport.stream(outgoing)).await {
            Ok(answering) => answering.map_err(|failure| failure.into_error(ENDPOINT, &address))?,
            Err(_) => return Err(silence()),
        };
        self.was_reached();
        let mut head = IncomingAnswer { status: answering.status, headers: answering.headers, body: Bytes::new() };
        let body = with_idle_limit(answering.body, idle);
        if is_success(&head) && is_event_stream(&head.headers) {
            return self.read_events(&head, body, assembly).await;
        }
        head.body = collect(body).await?;
        self.read_whole(&head, assembly).await
    }

    async fn read_events(
        &self,
        head: &IncomingAnswer,
        body: impl Stream<Item = Result<Bytes, Error>> + Unpin,
        assembly: &mut ChatAssembly,
    ) -> Result<ChatAnswer, Error> {
        let mut events = EventStream::new(body);
        loop {
            let next = if assembly.is_finished() {
                // The answer is complete. Errors at the end of its stream do not matter.
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

    /// An event that is not a piece of an answer: an error in one of its forms, or an unknown document.
    fn read_foreign(&self, head: &IncomingAnswer, data: String) -> Result<(), Error> {
        let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&data).is_ok();
        let alone = IncomingAnswer { body: Bytes::from(data), ..head.clone() };
        match self.open(&alone) {
            Err(Error::Undecodable(_)) if is_json => Ok(()),
            outcome => outcome.map(drop),
        }
    }

    async fn read_whole(&self, incoming: &IncomingAnswer, assembly: &mut ChatAssembly) -> Result<ChatAnswer, Error> {
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

    fn open(&self, incoming: &IncomingAnswer) -> Result<envelope::Answer, Error> {
        envelope::open(ENDPOINT, incoming, self.shared.clock.now().0)
    }
}

fn is_success(incoming: &IncomingAnswer) -> bool {
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

/// Ends a body with an error if no bytes arrive for this long.
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
    no_answer(ENDPOINT, "no data arrived in time")
}
