//! Chats: the request, and the answer, whole or streamed.

use std::{
    fmt,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use axum::{
    body::{Body, Bytes},
    extract::State,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use futures_util::{StreamExt as _, stream};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::sleep};
use tokio_stream::wrappers::ReceiverStream;

use super::{
    context::{abort, killed},
    load::{LoadedModel, OnChat},
    routes::{App, error, raw},
};
use crate::openai::{ChatFrame, ChatReply, ReceivedChat, ReceivedMessage};

/// The tokens that the chat template adds to each message.
const TEMPLATE_TOKENS: usize = 4;

/// Marks a stream that breaks off: its connection is closed.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("break off")]
struct Cut;

/// `POST /v1/chat/completions`.
pub(super) async fn complete(State(app): State<Arc<App>>, body: Bytes) -> Response {
    let request = match read(&body) {
        Ok(request) => request,
        Err(refused) => return *refused,
    };
    let Some(model) = app.model().cloned() else {
        return error(400, "invalid_request_error", "model name is missing from the request");
    };
    if model.is_for_embeddings {
        let text = "the current context does not support logits computation. skipping";
        return error(500, "server_error", text);
    }
    let prompt_tokens = request.prompt_tokens(TEMPLATE_TOKENS);
    if prompt_tokens as u64 > model.context {
        return too_long(prompt_tokens, &model);
    }
    let number = app.chats.fetch_add(1, Ordering::Relaxed);
    let mut reply = request.reply();
    match happens(&app, &model, number) {
        OnChat::Busy => return error(503, "unavailable_error", "no slot available"),
        OnChat::Error => return error(500, "server_error", "Compute error."),
        OnChat::Hang => return std::future::pending().await,
        OnChat::Empty => reply.words.clear(),
        OnChat::Answer | OnChat::Crash | OnChat::Killed => {}
    }
    let further = json!({ "system_fingerprint": app.context.build.info() });
    let frame = ChatFrame {
        id: format!("chatcmpl-{:032x}", rand::random::<u128>()),
        created: Timestamp::now().as_second(),
        model: app.context.settings.name(),
        prompt_tokens,
        include_usage: request.include_usage,
        opening: Value::Null,
        further: further.as_object().cloned().unwrap_or_default(),
    };
    if request.stream { streamed(app, frame, &model, reply) } else { whole(app, frame, &model, reply).await }
}

fn read(body: &[u8]) -> Result<ReceivedChat, Box<Response>> {
    let body: Value = serde_json::from_slice(body).map_err(|_| {
        let text = "[json.exception.parse_error.101] parse error at line 1, column 1: syntax error while parsing \
                    value - invalid literal";
        Box::new(error(500, "server_error", text))
    })?;
    let Some(messages) = body.get("messages") else {
        return Err(Box::new(error(400, "invalid_request_error", "Missing required parameter: messages")));
    };
    let Some(messages) = messages.as_array() else {
        return Err(Box::new(error(400, "invalid_request_error", "Expected 'messages' to be an array")));
    };
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let is_set = |pointer: &str| body.pointer(pointer).and_then(Value::as_bool).unwrap_or(false);
    let limit = ["max_tokens", "max_completion_tokens", "n_predict"].iter().find_map(|name| body.get(*name)?.as_i64());
    Ok(ReceivedChat {
        messages: messages
            .iter()
            .map(|value| ReceivedMessage {
                role: text(value, "role").unwrap_or_default(),
                content: text(value, "content").unwrap_or_default(),
            })
            .collect(),
        stream: is_set("/stream"),
        include_usage: is_set("/stream_options/include_usage"),
        max_tokens: limit.and_then(|limit| usize::try_from(limit).ok()),
    })
}

fn too_long(tokens: usize, model: &LoadedModel) -> Response {
    let context = model.context;
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
        abort();
    }
    if number < model.answered {
        return OnChat::Answer;
    }
    if model.on_chat == OnChat::Crash {
        log.raw("/build/src/llama-context.cpp:1042: GGML_ASSERT(n_outputs_prev + n_outputs <= n_outputs_all) failed");
        abort();
    }
    if model.on_chat == OnChat::Killed {
        killed();
    }
    model.on_chat
}

async fn whole(app: Arc<App>, frame: ChatFrame, model: &LoadedModel, reply: ChatReply) -> Response {
    let (finish, begun) = (reply.finish, Instant::now());
    let words: Vec<String> = generate(reply.words, app.clone(), model, frame.prompt_tokens).collect().await;
    if app.stopping.is_cancelled() {
        // As measured: a server that shuts down leaves the request unanswered until the client disconnects.
        return std::future::pending().await;
    }
    let predicted = words.len();
    let mut body = frame.whole(&ChatReply { words, finish });
    body["timings"] = timings(frame.prompt_tokens, predicted, begun.elapsed());
    app.context
        .log
        .info(&format!("srv  log_server_r: request: POST /v1/chat/completions 127.0.0.1 200, {predicted} tokens"));
    raw(200, body.to_string())
}

fn streamed(app: Arc<App>, frame: ChatFrame, model: &LoadedModel, reply: ChatReply) -> Response {
    let (begun, predicted) = (Instant::now(), reply.words.len());
    let words = generate(reply.words, app.clone(), model, frame.prompt_tokens);
    let (first, of_word) = (frame.first(), frame.clone());
    let chunks = stream::iter([first]).chain(words.map(move |word| of_word.word(&word)));
    let end = async move {
        if app.stopping.is_cancelled() {
            return vec![Err(Cut)];
        }
        let mut last = frame.last(reply.finish, predicted);
        if let Some(end) = last.first_mut() {
            end["timings"] = timings(frame.prompt_tokens, predicted, begun.elapsed());
        }
        last.iter().map(event).chain([event("[DONE]")]).collect()
    };
    let events = chunks.map(event).chain(stream::once(end).flat_map(stream::iter));
    ([(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"))], Body::from_stream(events)).into_response()
}

fn event(data: impl fmt::Display) -> Result<Bytes, Cut> {
    Ok(Bytes::from(format!("data: {data}\n\n")))
}

/// Generates the words when a slot is free. It ends early when the server shuts down or the receiver is dropped.
fn generate(words: Vec<String>, app: Arc<App>, model: &LoadedModel, prompt_tokens: usize) -> ReceiverStream<String> {
    let (sender, receiver) = mpsc::channel(1);
    let token = model.token;
    tokio::spawn(async move {
        let say = async {
            app.metrics.wait(1);
            let slot = app.slots.acquire().await;
            app.metrics.wait(-1);
            app.metrics.process(1);
            app.metrics.prompt(prompt_tokens as u64);
            for word in words {
                sleep(token).await;
                app.metrics.token(token);
                if sender.send(word).await.is_err() {
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
    ReceiverStream::new(receiver)
}

/// The speeds in an answer. A single token has no speed.
fn timings(prompt: usize, predicted: usize, took: Duration) -> Value {
    let ms = took.as_secs_f64() * 1000.0;
    let count = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    let each = |number: usize| if number == 0 { 0.0 } else { ms / count(number) };
    let speed = if predicted > 1 && ms > 0.0 { count(predicted) * 1000.0 / ms } else { 0.0 };
    json!({
        "prompt_n": prompt,
        "prompt_ms": ms / 10.0,
        "prompt_per_token_ms": each(prompt) / 10.0,
        "prompt_per_second": speed * 10.0,
        "predicted_n": predicted,
        "predicted_ms": ms,
        "predicted_per_token_ms": each(predicted),
        "predicted_per_second": speed,
    })
}
