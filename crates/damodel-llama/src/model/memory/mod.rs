//! The memory that a llama-server needs for a model.
//!
//! The rules are those of llama.cpp, measured on builds of 2026 for the CPU and for an NVIDIA H200: weights and cache
//! follow exactly from the header, compute buffers from a formula fitted to the output of the server.

mod options;
#[cfg(test)]
mod tests;

use super::GgufModel;

pub use self::options::{CacheType, InvalidOption, ServerOptions};

/// What the driver and the libraries took of an H200, at most.
const LIBRARIES: u64 = 614 << 20;
/// The same with cuBLAS.
const LIBRARIES_WITH_CUBLAS: u64 = 714 << 20;
/// What two measured runs needed beyond the formula for compute buffers: 36 MiB with experts, 38 MiB with some of the
/// layers on the card. The allowance has room for it, because two runs are too few for a rule.
const UNEXPLAINED: u64 = 38 << 20;

/// Bytes by purpose. A part that is unknown is `None`, and `notes` has the reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Weights on the card.
    pub weights: Option<u64>,
    /// Those of them in layers that only predict further tokens: some builds of the server skip these layers.
    pub predicting: u64,
    /// Keys and values on the card.
    pub cache: Option<u64>,
    /// Intermediate results on the card.
    pub compute: Option<u64>,
    /// The allowance for the driver.
    pub overhead: Option<u64>,
    /// The sum of the above.
    pub total: Option<u64>,
    /// Weights, keys and values in the host's memory.
    pub host: Option<u64>,
    /// How each part was computed, or why it is unknown.
    pub notes: Vec<String>,
}

/// The parts of a model on the card: the output first, then the layers from the last one backwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Offload {
    /// The first layer on the card.
    first: u64,
    has_output: bool,
}

impl Offload {
    /// The output counts as the last layer (llama.cpp, load_tensors).
    fn of(options: &ServerOptions, blocks: u64) -> Self {
        Self { first: (blocks + 1).saturating_sub(options.gpu_layers), has_output: options.gpu_layers > 0 }
    }

    fn has(self, layer: usize) -> bool {
        layer as u64 >= self.first
    }
}

/// Computes the memory that a model needs.
#[must_use]
pub fn memory(model: &GgufModel, options: &ServerOptions) -> Memory {
    let mut memory = Memory::default();
    let offload = Offload::of(options, model.layer_bytes.len() as u64);
    let weights = weights(model, offload, &mut memory.notes);
    let cache = match Cache::of(model, options) {
        Ok(cache) => {
            memory.notes.push(cache.note(options));
            Some(cache)
        }
        Err(reason) => {
            memory.notes.push(format!("cache: unknown, because {reason}"));
            memory.notes.push("compute: unknown, because it depends on the cache".to_owned());
            memory.notes.push("host: unknown, because it depends on the cache".to_owned());
            None
        }
    };
    let (on_card, on_host) = match &cache {
        Some(cache) => {
            let (card, host): (Vec<_>, Vec<_>) =
                cache.layers.iter().enumerate().partition(|(layer, _)| offload.has(*layer));
            let sum =
                |layers: Vec<(usize, &Layer)>| layers.iter().map(|(_, layer)| layer.bytes).fold(0, u64::saturating_add);
            (Some(sum(card)), Some(sum(host)))
        }
        None => (None, None),
    };
    memory.weights = Some(weights.card);
    memory.predicting = weights.predicting;
    memory.cache = on_card;
    if let Some(cache) = &cache {
        let (bytes, note) = match compute(model, cache, offload, options) {
            Ok(bytes) => {
                let (batch, cells) = (cache.micro_batch, cache.cells);
                let note = format!(
                    "an estimate for {batch} tokens at a time, from the widths of the layers and {cells} cells"
                );
                (Some(bytes), note)
            }
            Err(reason) => (None, format!("unknown, because {reason}")),
        };
        memory.compute = bytes;
        memory.notes.push(format!("compute: {note}"));
        memory
            .notes
            .push("host: the token embeddings, and the layers that are not on the card with their cache".to_owned());
    }
    let overhead = overhead(model, options);
    memory.overhead = Some(overhead);
    memory.notes.push(format!(
        "overhead: {} MiB, an allowance for each card's driver and libraries, measured on an NVIDIA H200",
        overhead >> 20
    ));
    memory.host = on_host.map(|cache| cache.saturating_add(weights.host));
    let parts = [memory.weights, memory.cache, memory.compute, memory.overhead];
    memory.total = parts.into_iter().try_fold(0_u64, |sum, part| sum.checked_add(part?));
    let total = if memory.total.is_some() {
        "the sum of weights, cache, compute and overhead"
    } else {
        "unknown, because a part of it is unknown"
    };
    memory.notes.push(format!("total: {total}"));
    memory
}

/// The options with which a server of this model exits: a head must be a whole number of blocks of the cache's type.
pub fn refused_options<'a>(model: &'a GgufModel, options: &'a ServerOptions) -> impl Iterator<Item = InvalidOption> {
    let architecture = Architecture::of(&model.architecture);
    let values = model.value_length.filter(|_| architecture != Some(Architecture::Latent));
    let sides = [
        ("cache_type_k", "keys", model.key_length, options.cache_type_k),
        ("cache_type_v", "values", values, options.cache_type_v),
    ];
    sides.into_iter().filter(move |_| architecture.is_some()).filter_map(|(name, what, width, ty)| {
        let width = width.filter(|width| !width.is_multiple_of(ty.block()))?;
        Some(InvalidOption::Width { name, what, width, ty: ty.name() })
    })
}

/// The largest context, in tokens, for which `needed` is at most `most` bytes; `None` if no context fits or a part is
/// unknown. It is a multiple of 256 for each slot, as the server rounds it.
#[must_use]
pub fn largest_context(
    model: &GgufModel,
    options: &ServerOptions,
    needed: impl Fn(&Memory) -> Option<u64>,
    most: u64,
) -> Option<u64> {
    const STEP: u64 = 256;
    const MOST_STEPS: u64 = i32::MAX as u64 / STEP;
    let step = STEP * options.slots();
    let (mut fitting, mut beyond) = (0, MOST_STEPS / options.slots() + 1);
    while beyond - fitting > 1 {
        let middle = fitting.midpoint(beyond);
        let options = ServerOptions { context_size: middle * step, ..options.clone() };
        let fits = needed(&memory(model, &options)).is_some_and(|bytes| bytes <= most);
        if fits { fitting = middle } else { beyond = middle }
    }
    (fitting > 0).then_some(fitting * step)
}

/// An allowance for each card. The measured runs without cuBLAS are those of dense models with heads 128 wide and flash
/// attention.
fn overhead(model: &GgufModel, options: &ServerOptions) -> u64 {
    let is_without_cublas = options.flash_attention && model.expert_count == 0 && model.key_length == Some(128);
    let libraries = if is_without_cublas { LIBRARIES } else { LIBRARIES_WITH_CUBLAS };
    libraries + UNEXPLAINED
}

struct Weights {
    card: u64,
    /// Those of the card in layers that only predict further tokens.
    predicting: u64,
    host: u64,
}

/// The token embeddings stay on the host, with all else that the input looks up; if they are also the output, the card
/// has a copy.
fn weights(model: &GgufModel, offload: Offload, notes: &mut Vec<String>) -> Weights {
    let others = model.layer_bytes.iter().copied().fold(model.output_bytes, u64::saturating_add);
    let input = model.tensor_bytes.saturating_sub(others).max(model.embedding_bytes);
    let mut weights = Weights { card: 0, predicting: 0, host: input };
    for (layer, bytes) in model.layer_bytes.iter().enumerate() {
        let part = if offload.has(layer) { &mut weights.card } else { &mut weights.host };
        *part = part.saturating_add(*bytes);
        if offload.has(layer) && model.layers.is_some_and(|layers| layer as u64 >= layers) {
            weights.predicting = weights.predicting.saturating_add(*bytes);
        }
    }
    let tied = if model.tied_output && offload.has_output { model.embedding_bytes } else { 0 };
    let part = if offload.has_output { &mut weights.card } else { &mut weights.host };
    *part = part.saturating_add(model.output_bytes).saturating_add(tied);
    let blocks = model.layer_bytes.len() as u64;
    let layers = blocks - offload.first.min(blocks);
    let output = match (offload.has_output, tied) {
        (false, _) => "without the output",
        (true, 0) => "and the output",
        (true, _) => "and the output, a copy of the token embeddings",
    };
    notes.push(format!(
        "weights: the tensors of {layers} of {blocks} layers {output}; the token embeddings stay on the host"
    ));
    weights
}

/// The assumed largest number of experts used for a token. The model description does not contain it, and no common
/// model uses more.
const MOST_EXPERTS: u64 = 8;

/// The memory of the largest step of a batch, plus the mask of its tokens. The steps were fitted to the output of a
/// server.
fn compute(model: &GgufModel, cache: &Cache, offload: Offload, options: &ServerOptions) -> Result<u64, &'static str> {
    if Architecture::of(&model.architecture) == Some(Architecture::Latent) {
        return Err("multi-latent attention was not measured");
    }
    let widths = (model.embedding_length, model.feed_forward_length, model.head_count, model.key_length);
    let (Some(width), Some(wide), Some(heads), Some(key_length)) = widths else {
        return Err("the file does not name the widths of its layers");
    };
    batch_bytes(model, cache, offload, options, [width, wide, heads, key_length]).ok_or("it is too large")
}

/// The sum; `None` if it overflows.
fn batch_bytes(
    model: &GgufModel,
    cache: &Cache,
    offload: Offload,
    options: &ServerOptions,
    [width, wide, heads, key_length]: [u64; 4],
) -> Option<u64> {
    let batch = cache.micro_batch;
    let cells = cache.cells.checked_add(cache.windowed.unwrap_or_default())?;
    let sum = |parts: &[(u64, u64)]| {
        parts.iter().try_fold(0_u64, |sum, (count, size)| sum.checked_add(count.checked_mul(*size)?))
    };
    let feed_forward = sum(&[(3, wide), (4, width)])?;
    let experts = match model.expert_count.min(MOST_EXPERTS) {
        0 => 0,
        used => sum(&[(1, wide), (2 * used + 3, width)])?,
    };
    let (mask, scores) = if options.flash_attention {
        (2, 0)
    } else {
        let keys = model.head_count_kv.iter().max().copied().unwrap_or_default();
        let projections = sum(&[(3, width), (key_length.checked_mul(2)?, heads), (key_length.checked_mul(2)?, keys)])?;
        (4, sum(&[(heads, cache.cells), (1, projections)])?)
    };
    let step = feed_forward.max(experts).max(scores).checked_mul(4)?.checked_mul(batch)?;
    // Flash attention on a card computes with 16-bit floats, and copies keys and values of other types (llama.cpp,
    // ggml_cuda_flash_attn_ext_get_f16_extra_data). A CPU makes no copies.
    let on_card = cache.layers.iter().enumerate().filter(|(layer, _)| offload.has(*layer));
    let attention = match on_card.map(|(_, layer)| layer.copies).max() {
        Some(copies) if options.flash_attention => sum(&[(1, copies), (width.checked_mul(5 * 4)?, batch)])?,
        _ => 0,
    };
    sum(&[(cells.checked_mul(mask)?, batch), (1, step.max(attention))])
}

/// The reason why an architecture is not supported.
fn unknown(model: &GgufModel) -> String {
    let name = &model.architecture;
    if is_recurrent(name) {
        format!("the architecture {name:?} keeps a recurrent state")
    } else {
        format!("the architecture {name:?} is unknown")
    }
}

/// The number of cells is rounded up to a multiple of this (llama.cpp, llama_context).
const PADDING: u64 = 256;

/// The keys and values of a context.
#[derive(Debug)]
struct Cache {
    layers: Vec<Layer>,
    /// The number of tokens computed at once.
    micro_batch: u64,
    /// The cells of a layer with the whole context, in one stream.
    cells: u64,
    streams: u64,
    /// The cells of a layer with a window.
    windowed: Option<u64>,
}

/// The keys and values of a layer.
#[derive(Debug)]
struct Layer {
    bytes: u64,
    /// The bytes of those that are not 16-bit floats, as 16-bit floats.
    copies: u64,
}

/// The widths of keys and values in a layer.
struct Rows<'a> {
    options: &'a ServerOptions,
    key_length: u64,
    /// `None` if the cache has no values.
    value_length: Option<u64>,
    /// The largest number of heads in a layer: a transposed value cache is padded to it.
    most_heads: u64,
}

impl Cache {
    /// Computes the cache; the error is the reason why it is unknown.
    fn of(model: &GgufModel, options: &ServerOptions) -> Result<Self, String> {
        let architecture = Architecture::of(&model.architecture).ok_or_else(|| unknown(model))?;
        let layers = model.layers.ok_or("the file does not describe its layers")?;
        if layers != model.layer_bytes.len() as u64 || layers != model.head_count_kv.len() as u64 {
            return Err("some layers only predict further tokens".to_owned());
        }
        let (Some(key_length), Some(value_length)) = (model.key_length, model.value_length) else {
            return Err("the file does not name the widths of keys and values".to_owned());
        };
        if let Some(refused) = refused_options(model, options).next() {
            return Err(refused.to_string());
        }
        let asked = if options.context_size == 0 { model.context_length } else { Some(options.context_size) };
        let asked = asked.ok_or("the file does not name the context it was trained for")?;
        let slots = options.slots();
        let streams = if options.is_unified() { 1 } else { slots };
        let padded = asked.checked_next_multiple_of(PADDING).ok_or("the context is too large")?;
        let cells =
            (padded / streams).checked_next_multiple_of(PADDING).ok_or("the context is too large")?.max(PADDING);
        let micro_batch = options.ubatch.min(options.batch).min(asked);
        let windows = windows(architecture, model)?;
        let windowed = windows.map(|(window, _)| {
            let shared = if options.is_unified() { slots } else { 1 };
            let window = window.saturating_mul(shared).saturating_add(micro_batch);
            cells.min(window).next_multiple_of(PADDING)
        });
        let is_latent = architecture == Architecture::Latent && model.head_count_kv.iter().all(|heads| *heads == 1);
        if architecture == Architecture::Latent && !is_latent {
            return Err("the file was made before multi-latent attention was supported".to_owned());
        }
        let rows = Rows {
            options,
            key_length,
            value_length: (!is_latent).then_some(value_length),
            most_heads: model.head_count_kv.iter().max().copied().unwrap_or_default(),
        };
        let layers = model.head_count_kv.iter().zip(0_u64..).map(|(heads, layer)| {
            let has_window = windows.is_some_and(|(_, period)| layer % period != period - 1);
            let cells = if has_window { windowed.unwrap_or(cells) } else { cells }.checked_mul(streams)?;
            let (bytes, copies) = (rows.bytes(*heads)?, rows.copies(*heads)?);
            Some(Layer { bytes: bytes.checked_mul(cells)?, copies: copies.checked_mul(cells)? })
        });
        let layers: Option<Vec<Layer>> = layers.collect();
        let layers = layers.ok_or("it is too large")?;
        Ok(Self { layers, micro_batch, cells, streams, windowed })
    }

    /// A note about the computation.
    fn note(&self, options: &ServerOptions) -> String {
        let Self { cells, streams, layers, .. } = self;
        let windowed = self.windowed.map(|cells| format!(", and {cells} in layers with a window")).unwrap_or_default();
        let (k, v) = (options.cache_type_k.name(), options.cache_type_v.name());
        format!("cache: {streams} × {cells} cells in each of {} layers{windowed}; keys {k}, values {v}", layers.len())
    }
}

impl Rows<'_> {
    /// The bytes of one cell of a layer.
    fn bytes(&self, heads: u64) -> Option<u64> {
        let keys = self.options.cache_type_k.row(self.key_length, heads)?;
        let Some(length) = self.value_length else { return Some(keys) };
        // Without flash attention, values are transposed, and all layers are as wide as the widest one.
        let heads = if self.options.flash_attention { heads } else { self.most_heads };
        keys.checked_add(self.options.cache_type_v.row(length, heads)?)
    }

    /// The bytes of one cell's keys and values that are not 16-bit floats, as 16-bit floats.
    fn copies(&self, heads: u64) -> Option<u64> {
        let sides =
            [(self.options.cache_type_k, Some(self.key_length)), (self.options.cache_type_v, self.value_length)];
        let copied = sides.into_iter().filter(|(ty, _)| *ty != CacheType::F16).filter_map(|(_, length)| length);
        copied.map(|length| CacheType::F16.row(length, heads)).try_fold(0_u64, |sum, row| sum.checked_add(row?))
    }
}

/// The window and its period, if some layers have one.
fn windows(architecture: Architecture, model: &GgufModel) -> Result<Option<(u64, u64)>, String> {
    if architecture.windows().is_none() {
        return Ok(None);
    }
    match (model.sliding_window, model.sliding_window_pattern) {
        (None, _) | (_, Some(1)) => Ok(None),
        (Some(window), Some(period)) if period > 0 => Ok(Some((window, period))),
        (Some(_), _) => Err("it is unknown which layers have a sliding window".to_owned()),
    }
}

/// The attention of an architecture's layers to earlier tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Architecture {
    /// One compressed key for all heads, and no value.
    Latent,
    /// Every layer attends to the whole context.
    Plain,
    /// Some layers attend to a window only.
    Windowed(Windows),
}

/// The default windows of an architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Windows {
    /// The number of tokens in a window; `None` if only the file has it.
    pub(super) length: Option<u64>,
    /// One layer in each period has the whole context.
    pub(super) period: u64,
}

/// Architectures that keep only keys and values, of each token in every layer.
const PLAIN: &[&str] = &[
    "arcee",
    "baichuan",
    "command-r",
    "deepseek",
    "dots1",
    "ernie4_5",
    "ernie4_5-moe",
    "exaone",
    "falcon",
    "gemma",
    "glm4",
    "granite",
    "granitemoe",
    "hunyuan-dense",
    "hunyuan-moe",
    "internlm2",
    "llama",
    "minicpm",
    "minimax-m2",
    "mistral3",
    "nemotron",
    "olmo",
    "olmoe",
    "phi2",
    "phi3",
    "qwen2",
    "qwen2moe",
    "qwen3",
    "qwen3moe",
    "seed_oss",
    "smollm3",
    "stablelm",
    "starcoder2",
];

impl Architecture {
    /// The architecture with this name; `None` if it is not supported.
    pub(super) fn of(name: &str) -> Option<Self> {
        let windowed = |length, period| Some(Self::Windowed(Windows { length, period }));
        match name {
            "cohere2" => windowed(None, 4),
            "deepseek2" => Some(Self::Latent),
            "gemma2" => windowed(Some(4096), 2),
            "gemma3" => windowed(None, 6),
            "gpt-oss" => windowed(None, 2),
            _ => PLAIN.contains(&name).then_some(Self::Plain),
        }
    }

    pub(super) fn windows(self) -> Option<Windows> {
        match self {
            Self::Windowed(windows) => Some(windows),
            Self::Latent | Self::Plain => None,
        }
    }
}

/// Whether an architecture keeps a recurrent state instead of, or besides, keys and values.
pub(super) fn is_recurrent(name: &str) -> bool {
    const RECURRENT: &[&str] = &[
        "arwkv7",
        "falcon-h1",
        "granitehybrid",
        "jamba",
        "kimi-linear",
        "lfm2",
        "lfm2moe",
        "mamba",
        "mamba2",
        "nemotron_h",
        "nemotron_h_moe",
        "plamo2",
        "qwen35",
        "qwen35moe",
        "qwen3next",
        "rwkv6",
        "rwkv6qwen2",
        "rwkv7",
    ];
    RECURRENT.contains(&name)
}
