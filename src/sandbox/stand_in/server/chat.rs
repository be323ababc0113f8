//! Chats: the request, and the answer, whole or streamed.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use axum::{
    body::{Body, Bytes},
    extract::State,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::sleep};
use tokio_stream::wrappers::ReceiverStream;

use super::{
    load::{LoadedModel, OnChat},
    routes::{App, error, raw},
};

/// Marks a stream that breaks off: its connection is closed.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("break off")]
struct Cut;

/// The fields of a chat request that are needed here.
#[derive(Debug)]
struct Request {
    model: Option<String>,
    prompt: String,
    prompt_tokens: u64,
    max_tokens: Option<usize>,
    is_stream: bool,
    has_usage: bool,
}

/// `POST /v1/chat/completions`.
pub(super) async fn complete(State(app): State<Arc<App>>, body: Bytes) -> Response {
    let request = match read(&app, &body) {
        Ok(request) => request,
        Err(refused) => return *refused,
    };
    let Some(model) = app.model().cloned() else {
        return error(&app, 400, "invalid_request_error", "model name is missing from the request");
    };
    if request.prompt_tokens > model.context {
        return too_long(&request, &model);
    }
    let number = app.chats.fetch_add(1, Ordering::Relaxed);
    match happens(&app, &model, number) {
        OnChat::Busy => return error(&app, 503, "unavailable_error", "no slot available"),
        OnChat::Error => return error(&app, 500, "server_error", "Compute error."),
        OnChat::Hang => return std::future::pending().await,
        OnChat::Empty => return whole(app, request, model, ChatReply::empty()).await,
        OnChat::Answer | OnChat::Crash | OnChat::Killed => {}
    }
    let answer = ChatReply::to(&request.prompt, request.max_tokens);
    if request.is_stream { streamed(app, request, model, answer) } else { whole(app, request, model, answer).await }
}

fn read(app: &App, body: &[u8]) -> Result<Request, Box<Response>> {
    let body: Value = serde_json::from_slice(body).map_err(|_| {
        let text = "[json.exception.parse_error.101] parse error at line 1, column 1: syntax error while parsing \
                    value - invalid literal";
        Box::new(error(app, 500, "server_error", text))
    })?;
    let Some(messages) = body.get("messages") else {
        return Err(Box::new(error(app, 400, "invalid_request_error", "Missing required parameter: messages")));
    };
    let Some(messages) = messages.as_array() else {
        return Err(Box::new(error(app, 400, "invalid_request_error", "Expected 'messages' to be an array")));
    };
    let text = |message: &Value| message.get("content").and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_user = |message: &&Value| message.get("role").and_then(Value::as_str) == Some("user");
    let limit = ["max_tokens", "max_completion_tokens", "n_predict"].iter().find_map(|name| body.get(*name)?.as_i64());
    let words: usize = messages.iter().map(|message| text(message).split_whitespace().count() + 4).sum();
    Ok(Request {
        model: body.get("model").and_then(Value::as_str).map(str::to_owned),
        prompt: messages.iter().rfind(is_user).map(text).unwrap_or_default(),
        prompt_tokens: words as u64,
        max_tokens: limit.and_then(|limit| usize::try_from(limit).ok()),
        is_stream: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
        has_usage: body.pointer("/stream_options/include_usage").and_then(Value::as_bool).unwrap_or(false),
    })
}

fn too_long(request: &Request, model: &LoadedModel) -> Response {
    let (tokens, context) = (request.prompt_tokens, model.context);
    let message =
        format!("request ({tokens} tokens) exceeds the available context size ({context} tokens), try increasing it");
    let error = json!({
        "code": 400,
        "message": message,
        "type": "exceed_context_size_error",
        "n_prompt_tokens": tokens,
        "n_ctx": context,
    });
    raw(400, json!({ "error": error }).to_string())
}

/// What happens at this chat; the process may end here.
fn happens(app: &App, model: &LoadedModel, number: u64) -> OnChat {
    let context = &app.context;
    let log = &context.log;
    let lacks_kernels =
        context.is_on_gpu() && context.machine.usable_gpu().is_some_and(|gpu| !context.build.runs_on(gpu.architecture));
    if lacks_kernels {
        log.raw("/build/ggml/src/ggml-cuda/ggml-cuda.cu:88: CUDA error");
        log.raw("CUDA error: no kernel image is available for execution on the device");
        log.raw(
            "  current device: 0, in function ggml_cuda_compute_forward at /build/ggml/src/ggml-cuda/ggml-cuda.cu:2366",
        );
        log.raw("  err");
        super::abort();
    }
    if number < model.answered {
        return OnChat::Answer;
    }
    if model.on_chat == OnChat::Crash {
        log.raw("/build/src/llama-context.cpp:1042: GGML_ASSERT(n_outputs_prev + n_outputs <= n_outputs_all) failed");
        super::abort();
    }
    if model.on_chat == OnChat::Killed {
        super::killed();
    }
    model.on_chat
}

/// The name in the answer: the new generation's own; with the old one, the requested name.
fn name(app: &App, request: &Request) -> String {
    match &request.model {
        Some(asked) if app.context.build.is_old() => asked.clone(),
        _ => app.context.settings.name(),
    }
}

fn usage(request: &Request, predicted: u64) -> Value {
    let prompt = request.prompt_tokens;
    json!({ "completion_tokens": predicted, "prompt_tokens": prompt, "total_tokens": prompt + predicted })
}

fn identifier() -> String {
    format!("chatcmpl-{:032x}", rand::random::<u128>())
}

async fn whole(app: Arc<App>, request: Request, model: LoadedModel, answer: ChatReply) -> Response {
    let finish = answer.finish;
    let (mut text, begun) = (String::new(), Instant::now());
    let mut predicted = 0;
    let mut pieces = answer.generate(app.clone(), &model, request.prompt_tokens);
    while let Some(piece) = pieces.recv().await {
        text.push_str(&piece);
        predicted += 1;
    }
    if app.stopping.is_cancelled() {
        // As measured: a server that shuts down leaves the request unanswered until the client disconnects.
        return std::future::pending().await;
    }
    let timings = Timings { prompt: request.prompt_tokens, predicted, took: begun.elapsed() };
    let body = json!({
        "choices": [{ "finish_reason": finish, "index": 0, "message": { "role": "assistant", "content": text } }],
        "created": Timestamp::now().as_second(),
        "model": name(&app, &request),
        "system_fingerprint": app.context.build.info(),
        "object": "chat.completion",
        "usage": usage(&request, predicted),
        "id": identifier(),
        "timings": timings.json(),
    });
    app.context
        .log
        .info(&format!("srv  log_server_r: request: POST /v1/chat/completions 127.0.0.1 200, {predicted} tokens"));
    raw(200, body.to_string())
}

fn streamed(app: Arc<App>, request: Request, model: LoadedModel, answer: ChatReply) -> Response {
    let (sender, receiver) = mpsc::channel(4);
    let finish = answer.finish;
    let (id, name) = (identifier(), name(&app, &request));
    let fingerprint = app.context.build.info();
    let chunk = move |choices: Value| {
        json!({
            "choices": choices,
            "created": Timestamp::now().as_second(),
            "id": id,
            "model": name,
            "system_fingerprint": fingerprint,
            "object": "chat.completion.chunk",
        })
    };
    let choice = |delta: Value, finish: Value| json!([{ "finish_reason": finish, "index": 0, "delta": delta }]);
    tokio::spawn(async move {
        let event = |value: &Value| Ok(Bytes::from(format!("data: {value}\n\n")));
        let begun = Instant::now();
        let mut predicted = 0;
        let first = chunk(choice(json!({ "role": "assistant", "content": null }), Value::Null));
        // A client that has disconnected gets no more.
        if sender.send(event(&first)).await.is_err() {
            return;
        }
        let mut pieces = answer.generate(app.clone(), &model, request.prompt_tokens);
        while let Some(piece) = pieces.recv().await {
            predicted += 1;
            if sender.send(event(&chunk(choice(json!({ "content": piece }), Value::Null)))).await.is_err() {
                return;
            }
        }
        if app.stopping.is_cancelled() {
            let _ = sender.send(Err(Cut)).await;
            return;
        }
        let timings = Timings { prompt: request.prompt_tokens, predicted, took: begun.elapsed() };
        let mut last = chunk(choice(json!({}), json!(finish)));
        last["timings"] = timings.json();
        let mut events = vec![event(&last)];
        if request.has_usage {
            let mut extra = chunk(json!([]));
            extra["usage"] = usage(&request, predicted);
            events.push(event(&extra));
        }
        events.push(Ok(Bytes::from_static(b"data: [DONE]\n\n")));
        for event in events {
            if sender.send(event).await.is_err() {
                return;
            }
        }
    });
    let body = Body::from_stream(ReceiverStream::new(receiver));
    ([(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"))], body).into_response()
}

/// The reply to a prompt.
#[derive(Debug)]
pub(super) struct ChatReply {
    pieces: Vec<String>,
    /// `stop` or `length`.
    pub(super) finish: &'static str,
}

impl ChatReply {
    /// The reply to a prompt, cut after this many tokens.
    pub(super) fn to(prompt: &str, max_tokens: Option<usize>) -> Self {
        let text = format!("You said: {prompt}");
        let words = text.split_whitespace().enumerate();
        let mut pieces: Vec<String> =
            words.map(|(at, word)| if at == 0 { word.to_owned() } else { format!(" {word}") }).collect();
        let is_cut = max_tokens.is_some_and(|most| most < pieces.len());
        if let Some(most) = max_tokens {
            pieces.truncate(most);
        }
        Self { pieces, finish: if is_cut { "length" } else { "stop" } }
    }

    pub(super) fn empty() -> Self {
        Self { pieces: Vec::new(), finish: "stop" }
    }

    /// Generates the reply when a slot is free. It ends early when the server shuts down or the receiver is dropped.
    pub(super) fn generate(self, app: Arc<App>, model: &LoadedModel, prompt_tokens: u64) -> mpsc::Receiver<String> {
        let (sender, receiver) = mpsc::channel(1);
        let token = model.token;
        tokio::spawn(async move {
            let say = async {
                app.metrics.wait(1);
                let slot = app.slots.acquire().await;
                app.metrics.wait(-1);
                app.metrics.process(1);
                app.metrics.prompt(prompt_tokens);
                for piece in self.pieces {
                    sleep(token).await;
                    app.metrics.token(token);
                    if sender.send(piece).await.is_err() {
                        break;
                    }
                }
                app.metrics.process(-1);
                drop(slot);
            };
            tokio::select! {
                () = app.stopping.cancelled() => {}
                () = say => {}
            }
        });
        receiver
    }
}

/// The tokens and the duration of a reply.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timings {
    pub(super) prompt: u64,
    pub(super) predicted: u64,
    pub(super) took: Duration,
}

impl Timings {
    /// As in answers. A single token has no speed.
    pub(super) fn json(self) -> Value {
        let ms = self.took.as_secs_f64() * 1000.0;
        let count = |number: u64| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
        let each = |number: u64| if number == 0 { 0.0 } else { ms / count(number) };
        let speed = if self.predicted > 1 && ms > 0.0 { count(self.predicted) * 1000.0 / ms } else { 0.0 };
        json!({
            "prompt_n": self.prompt,
            "prompt_ms": ms / 10.0,
            "prompt_per_token_ms": each(self.prompt) / 10.0,
            "prompt_per_second": speed * 10.0,
            "predicted_n": self.predicted,
            "predicted_ms": ms,
            "predicted_per_token_ms": each(self.predicted),
            "predicted_per_second": speed,
        })
    }
}
