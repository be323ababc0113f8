//! The routes of a server: access and readiness, and the documents that describe it.

use std::{
    fmt::Write,
    sync::{Arc, Mutex, OnceLock, PoisonError, atomic::AtomicU64},
    time::Duration,
};

use axum::{
    Json, Router,
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::{chat, context::ServerContext, embed, load::LoadedModel};

/// The state of a server.
#[derive(Debug)]
pub(super) struct App {
    pub(super) context: ServerContext,
    /// Set when the model is loaded; `Some(None)` for a server that chooses models by request.
    model: OnceLock<Option<LoadedModel>>,
    pub(super) metrics: Metrics,
    pub(super) chats: AtomicU64,
    pub(super) slots: Semaphore,
    /// Cancelled by SIGINT or SIGTERM.
    pub(super) stopping: CancellationToken,
}

impl App {
    pub(super) fn new(context: ServerContext) -> Self {
        let slots = Semaphore::new(context.settings.slot_count());
        Self {
            context,
            model: OnceLock::new(),
            metrics: Metrics::default(),
            chats: AtomicU64::new(0),
            slots,
            stopping: CancellationToken::new(),
        }
    }

    pub(super) fn is_loaded(&self, model: Option<LoadedModel>) {
        // It is loaded once.
        let _ = self.model.set(model);
    }

    pub(super) fn model(&self) -> Option<&LoadedModel> {
        self.model.get()?.as_ref()
    }
}

pub(super) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/health", get(health))
        .route("/v1/health", get(health))
        .route("/v1/models", get(models))
        .route("/props", get(props))
        .route("/metrics", get(metrics))
        .route("/chat/completions", post(chat::complete))
        .route("/v1/chat/completions", post(chat::complete))
        .route("/v1/embeddings", post(embed::embeddings))
        .route("/v1/rerank", post(embed::rerank))
        .method_not_allowed_fallback(not_found)
        .fallback(not_found)
        .layer(middleware::from_fn_with_state(app.clone(), guard))
        .with_state(app)
}

/// The checks before every answer: the key, then whether the model is loaded.
async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_health = path == "/health" || path == "/v1/health";
    if !is_health && !has_key(&app, request.headers()) {
        return error(401, "authentication_error", "Invalid API Key");
    }
    if app.model.get().is_none() {
        return match path {
            "/" => not_found().await,
            _ => error(503, "unavailable_error", "Loading model"),
        };
    }
    next.run(request).await
}

fn has_key(app: &App, headers: &HeaderMap) -> bool {
    let keys = &app.context.settings.keys;
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let bearer = text(header::AUTHORIZATION.as_str()).strip_prefix("Bearer ").unwrap_or_default();
    let own = if bearer.is_empty() { text("x-api-key") } else { bearer };
    keys.is_empty() || keys.iter().any(|key| key == own)
}

/// An error.
pub(super) fn error(code: u16, kind: &str, message: &str) -> Response {
    let message = json!(message);
    raw(code, format!(r#"{{"error":{{"message":{message},"type":"{kind}","code":{code}}}}}"#))
}

pub(super) fn raw(code: u16, text: String) -> Response {
    let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(header::CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8"))], text)
        .into_response()
}

async fn health() -> Response {
    raw(200, r#"{"status":"ok"}"#.to_owned())
}

async fn models(State(app): State<Arc<App>>) -> Json<Value> {
    Json(models_document(&app))
}

async fn props(State(app): State<Arc<App>>) -> Json<Value> {
    Json(props_document(&app))
}

async fn metrics(State(app): State<Arc<App>>) -> Response {
    if !app.context.settings.metrics {
        let text = "This server does not support metrics endpoint. Start it with `--metrics`";
        return error(501, "not_supported_error", text);
    }
    let mut response = app.metrics.text().into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; version=0.0.4"));
    headers.insert("Process-Start-Time-Unix", HeaderValue::from(app.metrics.started_us()));
    response
}

async fn not_found() -> Response {
    error(404, "not_found_error", "File Not Found")
}

/// The counters of a server.
#[derive(Debug)]
pub(super) struct Metrics {
    started_us: i64,
    counts: Mutex<Counts>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    prompt_tokens: u64,
    predicted_tokens: u64,
    predicted: Duration,
    processing: i64,
    deferred: i64,
    decodes: u64,
}

impl Default for Metrics {
    fn default() -> Self {
        Self { started_us: Timestamp::now().as_microsecond(), counts: Mutex::default() }
    }
}

impl Metrics {
    pub(super) fn started_us(&self) -> i64 {
        self.started_us
    }

    /// A request begins to wait (1), or ends (-1).
    pub(super) fn wait(&self, by: i64) {
        self.change(|counts| counts.deferred += by);
    }

    /// The processing of a request begins (1), or ends (-1).
    pub(super) fn process(&self, by: i64) {
        self.change(|counts| counts.processing += by);
    }

    pub(super) fn prompt(&self, tokens: u64) {
        self.change(|counts| counts.prompt_tokens += tokens);
    }

    pub(super) fn token(&self, took: Duration) {
        self.change(|counts| {
            counts.predicted_tokens += 1;
            counts.decodes += 1;
            counts.predicted += took;
        });
    }

    /// The format of Prometheus.
    pub(super) fn text(&self) -> String {
        let counts = *self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let seconds = counts.predicted.as_secs_f64();
        let speed = if seconds > 0.0 {
            f64::from(u32::try_from(counts.predicted_tokens).unwrap_or(u32::MAX)) / seconds
        } else {
            0.0
        };
        let mut text = String::new();
        let mut write = |kind: &str, name: &str, about: &str, value: String| {
            let _ = write!(
                text,
                "# HELP llamacpp:{name} {about}\n# TYPE llamacpp:{name} {kind}\nllamacpp:{name} {value}\n"
            );
        };
        write("counter", "prompt_tokens_total", "Number of prompt tokens processed.", counts.prompt_tokens.to_string());
        write(
            "counter",
            "tokens_predicted_total",
            "Number of generation tokens processed.",
            counts.predicted_tokens.to_string(),
        );
        write("counter", "n_decode_total", "Total number of llama_decode() calls", counts.decodes.to_string());
        write(
            "counter",
            "n_busy_slots_per_decode",
            "Average number of busy slots per llama_decode() call",
            "1".to_owned(),
        );
        write(
            "gauge",
            "prompt_tokens_seconds",
            "Average prompt throughput in tokens/s.",
            format!("{:.3}", speed * 10.0),
        );
        write("gauge", "predicted_tokens_seconds", "Average generation throughput in tokens/s.", format!("{speed:.3}"));
        write("gauge", "requests_processing", "Number of requests processing.", counts.processing.to_string());
        write("gauge", "requests_deferred", "Number of requests deferred.", counts.deferred.to_string());
        text
    }

    fn change(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// `/v1/models`.
pub(super) fn models_document(app: &App) -> Value {
    let Some(model) = app.model() else {
        return json!({ "object": "list", "data": [] });
    };
    let name = app.context.settings.name();
    let meta = json!({
        "vocab_type": 1,
        "n_vocab": 32_000,
        "n_ctx_train": model.trained_context,
        "n_embd": 16,
        "n_params": 16,
        "size": model.size,
        "n_ctx": model.context,
        "ftype": "all F32",
    });
    let own = json!({
        "id": name,
        "object": "model",
        "created": Timestamp::now().as_second(),
        "owned_by": "llamacpp",
        "meta": meta,
    });
    json!({ "object": "list", "data": [own] })
}

/// `/props`.
pub(super) fn props_document(app: &App) -> Value {
    let settings = &app.context.settings;
    let model = app.model();
    json!({
        "default_generation_settings": { "n_ctx": model.map_or(0, |model| model.context) },
        "total_slots": settings.slot_count(),
        "model_path": settings.model.as_deref().map(|path| path.display().to_string()).unwrap_or_default(),
        "chat_template": model.map(|model| model.template.as_str()).unwrap_or_default(),
        "build_info": app.context.build.info(),
        "model_alias": settings.name(),
        "modalities": { "vision": false, "audio": false },
        "endpoint_metrics": settings.metrics,
        "is_sleeping": false,
    })
}
