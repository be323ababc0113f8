//! The documents that tell what a server is.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::routes::App;

/// `/v1/models`.
pub(super) fn models(app: &App) -> Value {
    let Some(model) = app.model() else {
        return json!({ "object": "list", "data": [] });
    };
    let name = app.context.settings.name();
    let mut meta = json!({
        "vocab_type": 1,
        "n_vocab": 32_000,
        "n_ctx_train": model.trained_context,
        "n_embd": 16,
        "n_params": 16,
        "size": model.size,
    });
    if !app.context.build.is_old() {
        meta["n_ctx"] = json!(model.context);
        meta["ftype"] = json!("all F32");
    }
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
pub(super) fn props(app: &App) -> Value {
    let settings = &app.context.settings;
    let model = app.model();
    let mut props = json!({
        "default_generation_settings": { "n_ctx": model.map_or(0, |model| model.context) },
        "total_slots": settings.slot_count(),
        "model_path": settings.model.as_deref().map(|path| path.display().to_string()).unwrap_or_default(),
        "chat_template": model.map(|model| model.template.as_str()).unwrap_or_default(),
        "build_info": app.context.build.info(),
    });
    if !app.context.build.is_old() {
        props["model_alias"] = json!(settings.name());
        props["modalities"] = json!({ "vision": false, "audio": false });
        props["endpoint_slots"] = json!(settings.slots);
        props["endpoint_props"] = json!(settings.props);
        props["endpoint_metrics"] = json!(settings.metrics);
        props["is_sleeping"] = json!(false);
    }
    props
}

/// `/slots`.
pub(super) fn slots(app: &App) -> Value {
    let context = app.model().map_or(0, |model| model.context);
    let busy = app.context.settings.slot_count() - app.slots.available_permits();
    let slot = |id| json!({ "id": id, "n_ctx": context, "is_processing": id < busy });
    (0..app.context.settings.slot_count()).map(slot).collect()
}
