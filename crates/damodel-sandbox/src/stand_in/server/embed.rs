//! Embeddings and rankings, with invented numbers.

use std::sync::Arc;

use axum::{
    Json,
    body::Bytes,
    extract::State,
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use super::routes::{App, error};

/// `POST /v1/embeddings`.
pub(super) async fn embeddings(State(app): State<Arc<App>>, body: Bytes) -> Response {
    if !app.context.settings.embeds {
        let text = "This server does not support embeddings. Start it with `--embeddings`";
        return error(501, "not_supported_error", text);
    }
    if !app.model().is_some_and(|model| model.is_for_embeddings) {
        let text = "Pooling type 'none' is not OAI compatible. Please use a different pooling type";
        return error(400, "invalid_request_error", text);
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let inputs = match body.get("input") {
        Some(Value::Array(inputs)) => inputs.clone(),
        Some(input) => vec![input.clone()],
        None => return error(400, "invalid_request_error", "\"input\" or \"content\" must be provided"),
    };
    let embedding = |index| json!({ "embedding": [0.6, 0.8], "index": index, "object": "embedding" });
    answer(&app, &body, "data", (0..inputs.len()).map(embedding).collect(), &inputs)
}

/// `POST /v1/rerank`.
pub(super) async fn rerank(State(app): State<Arc<App>>, body: Bytes) -> Response {
    if !app.context.settings.ranks {
        let text = "This server does not support reranking. Start it with `--reranking`";
        return error(501, "not_supported_error", text);
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    if !body.get("query").is_some_and(Value::is_string) {
        return error(400, "invalid_request_error", "\"query\" must be provided");
    }
    let Some(documents) = body.get("documents").and_then(Value::as_array).filter(|documents| !documents.is_empty())
    else {
        return error(400, "invalid_request_error", "\"documents\" must be a non-empty string array");
    };
    let result = |index| json!({ "index": index, "relevance_score": 0.5 });
    answer(&app, &body, "results", (0..documents.len()).map(result).collect(), documents)
}

fn answer(app: &App, request: &Value, list: &str, found: Vec<Value>, texts: &[Value]) -> Response {
    let words = |text: &Value| text.as_str().unwrap_or_default().split_whitespace().count();
    let tokens: usize = texts.iter().map(words).sum();
    let name = request.get("model").and_then(Value::as_str).map_or_else(|| app.context.settings.name(), str::to_owned);
    let usage = json!({ "prompt_tokens": tokens, "total_tokens": tokens });
    Json(json!({ "model": name, "object": "list", "usage": usage, list: found })).into_response()
}
