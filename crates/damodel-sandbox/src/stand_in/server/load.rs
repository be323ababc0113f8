//! Loading a model: its failures, and the behaviour of the loaded model.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::{context::ServerContext, options::FlashAttention};
use crate::stand_in::gguf::{BAD_TEMPLATE, LOAD_MS, ModelKeys, ON_CHAT, ON_LOAD, POOLING, TEMPLATE, TOKEN_MS};

/// Architectures that a server supports.
const ARCHITECTURES: [&str; 12] = [
    "llama",
    "deepseek2",
    "falcon",
    "gemma",
    "gemma2",
    "gemma3",
    "mixtral",
    "phi3",
    "qwen2",
    "qwen3",
    "qwen3moe",
    "starcoder2",
];

/// The time of a token on the GPU, and on the CPU.
const TOKEN: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(20));

/// What happens at a chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnChat {
    Answer,
    Busy,
    Crash,
    Empty,
    Error,
    Hang,
    Killed,
}

/// A loaded model.
#[derive(Clone, Debug)]
pub(super) struct LoadedModel {
    /// The context that a request may fill, in tokens.
    pub(super) context: u64,
    pub(super) trained_context: u64,
    pub(super) size: u64,
    pub(super) template: String,
    pub(super) token: Duration,
    pub(super) on_chat: OnChat,
    /// Whether it is a model for embeddings, which generates no tokens.
    pub(super) is_for_embeddings: bool,
    /// How many chats are answered before `on_chat` happens.
    pub(super) answered: u64,
}

/// A failed load, with its log lines.
#[derive(Debug)]
pub(super) struct LoadFailure {
    pub(super) lines: Vec<String>,
    pub(super) ending: LoadEnding,
}

/// How a server ends after a failed load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoadEnding {
    Aborted,
    /// It prints an error and exits by itself.
    Exits,
    Killed,
}

/// The content of the file's header, before the data is loaded.
#[derive(Debug)]
pub(super) struct ModelFile {
    file: ModelKeys,
    path: PathBuf,
    size: u64,
}

impl ModelFile {
    /// How long the data takes to load.
    pub(super) fn duration(&self) -> Duration {
        Duration::from_millis(u64::from(self.file.number(LOAD_MS).unwrap_or(50)))
    }

    /// Whether a file beside the model keeps the server from finishing.
    pub(super) fn is_held(&self) -> bool {
        let mut hold = self.path.clone().into_os_string();
        hold.push(".hold");
        Path::new(&hold).exists()
    }
}

/// Opens the file and reads its header.
pub(super) fn find(path: PathBuf) -> Result<ModelFile, LoadFailure> {
    let file = ModelKeys::read(&path).map_err(|line| refused(&path, vec![line]))?;
    let size = std::fs::metadata(&path).map(|data| data.len()).unwrap_or_default();
    let architecture = file.text("general.architecture").unwrap_or_default();
    if !ARCHITECTURES.contains(&architecture) {
        let line = format!("llama_model_load: error loading model: unknown model architecture: '{architecture}'");
        return Err(refused(&path, vec![line]));
    }
    let key = format!("{architecture}.context_length");
    if file.number(&key).is_none() {
        let line = format!(
            "llama_model_load: error loading model: error loading model hyperparameters: key not found in model: {key}"
        );
        return Err(refused(&path, vec![line]));
    }
    Ok(ModelFile { file, path, size })
}

/// Loads the data, after the loading time.
pub(super) fn load(context: &ServerContext, found: &ModelFile) -> Result<LoadedModel, LoadFailure> {
    let ModelFile { file, path, size } = found;
    let ended = |line: &str, ending| LoadFailure { lines: vec![line.to_owned()], ending };
    match file.text(ON_LOAD) {
        Some("crash") => {
            let line = "/build/ggml/src/ggml.c:4242: GGML_ASSERT(tensor->data != NULL) failed";
            return Err(ended(line, LoadEnding::Aborted));
        }
        Some("killed") => return Err(LoadFailure { lines: Vec::new(), ending: LoadEnding::Killed }),
        Some("no_memory") => return Err(refused(path, no_memory(context))),
        _ => {}
    }
    let is_quantized = !["bf16", "f16", "f32"].contains(&context.settings.cache_v.as_str());
    if is_quantized && context.settings.flash_attention == FlashAttention::Off {
        let line = "llama_init_from_model: quantized V cache requires flash_attn to be enabled";
        let context_failed = "common_init_from_params: failed to create context with model".to_owned();
        return Err(refused(path, vec![line.to_owned(), context_failed]));
    }
    let template = file.text(TEMPLATE).unwrap_or_default().to_owned();
    if template == BAD_TEMPLATE && context.settings.jinja {
        let lines = vec![
            "init: chat template parsing error: Expected identifier".to_owned(),
            "init: please consider disabling jinja via --no-jinja, or use a custom chat template via --chat-template"
                .to_owned(),
        ];
        return Err(LoadFailure { lines, ending: LoadEnding::Exits });
    }
    let architecture = file.text("general.architecture").unwrap_or_default();
    let trained_context = u64::from(file.number(&format!("{architecture}.context_length")).unwrap_or(4096));
    let on_chat = file.text(ON_CHAT).unwrap_or_default();
    let (on_chat, answered) = on_chat.strip_suffix("_second").map_or((on_chat, 0), |word| (word, 1));
    let token = file.number(TOKEN_MS).map(|ms| Duration::from_millis(u64::from(ms)));
    Ok(LoadedModel {
        context: slot_context(context, trained_context),
        trained_context,
        size: *size,
        template,
        token: token.unwrap_or_else(|| if context.is_on_gpu() { TOKEN.0 } else { TOKEN.1 }),
        on_chat: match on_chat {
            "busy" => OnChat::Busy,
            "crash" => OnChat::Crash,
            "empty" => OnChat::Empty,
            "error" => OnChat::Error,
            "hang" => OnChat::Hang,
            "killed" => OnChat::Killed,
            _ => OnChat::Answer,
        },
        is_for_embeddings: file.number(POOLING).is_some(),
        answered,
    })
}

/// The context of one request, at most the trained context.
fn slot_context(context: &ServerContext, trained: u64) -> u64 {
    let asked = if context.settings.context == 0 { trained } else { context.settings.context };
    let shares = u64::try_from(context.settings.parallel).unwrap_or(1).max(1);
    let each = asked / shares;
    if each > trained {
        context.log.warn(&format!(
            "srv    load_model: the slot context ({each}) exceeds the training context of the model ({trained}) - \
             capping"
        ));
        return trained;
    }
    each
}

fn no_memory(context: &ServerContext) -> Vec<String> {
    let buffer = "llama_kv_cache_init: failed to allocate buffer for kv cache".to_owned();
    let first = if context.is_on_gpu() {
        "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 39782.02 MiB on device 0: cudaMalloc failed: out of \
         memory"
    } else {
        "ggml_aligned_malloc: insufficient memory (attempted to allocate 39782.02 MB)"
    };
    vec![first.to_owned(), buffer, "llama_init_from_model: failed to initialize the context".to_owned()]
}

/// A failure with the lines that end each failure.
fn refused(path: &Path, mut lines: Vec<String>) -> LoadFailure {
    let path = path.display();
    lines.push("llama_model_load_from_file_impl: failed to load model".to_owned());
    lines.push(format!("srv    load_model: failed to load model, '{path}'"));
    lines.push("srv  llama_server: exiting due to model loading error".to_owned());
    LoadFailure { lines, ending: LoadEnding::Exits }
}
