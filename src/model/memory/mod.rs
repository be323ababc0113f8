//! How much memory a llama-server needs for a model.
//!
//! The rules are those of llama.cpp as measured on a build of 2026: weights and cache follow from the header to the
//! byte, compute buffers from a formula that was fitted to what the server prints.

mod cache;
mod options;

#[cfg(test)]
mod tests;

use self::cache::Cache;
pub use self::options::{CacheType, InvalidOption, Options};
use super::{
    Model,
    architecture::{self, Architecture},
};

/// What each card loses to the driver, the libraries and fragmentation. An allowance and no measurement.
const OVERHEAD: u64 = 512 << 20;

/// Bytes by what they are for. A part that is not known is none, and the notes say why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Weights on the card.
    pub weights: Option<u64>,
    /// Keys and values on the card.
    pub cache: Option<u64>,
    /// Intermediate results on the card.
    pub compute: Option<u64>,
    /// The allowance for the driver.
    pub overhead: Option<u64>,
    /// All of them.
    pub total: Option<u64>,
    /// Weights, keys and values in the host's memory.
    pub host: Option<u64>,
    /// How each part was computed, and why one is not known.
    pub notes: Vec<String>,
}

/// Which parts of a model are on the card: the last layers first, and the output before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Offload {
    /// The first layer on the card.
    first: u64,
    has_output: bool,
}

impl Offload {
    /// The output counts as one layer, the last (llama.cpp, load_tensors).
    fn of(options: &Options, blocks: u64) -> Self {
        Self { first: (blocks + 1).saturating_sub(options.gpu_layers), has_output: options.gpu_layers > 0 }
    }

    fn has(self, layer: usize) -> bool {
        layer as u64 >= self.first
    }
}

/// Computes how much memory a model needs.
#[must_use]
pub fn memory(model: &Model, options: &Options) -> Memory {
    let mut memory = Memory::default();
    let offload = Offload::of(options, model.layer_bytes.len() as u64);
    let weights = weights(model, offload, &mut memory.notes);
    let cache = match Cache::of(model, options) {
        Ok(cache) => {
            memory.notes.push(cache.note(options));
            Some(cache)
        }
        Err(reason) => {
            memory.notes.push(format!("cache: not known, because {reason}"));
            None
        }
    };
    let (on_card, on_host) = match &cache {
        Some(cache) => {
            let (card, host): (Vec<_>, Vec<_>) =
                cache.layers.iter().enumerate().partition(|(layer, _)| offload.has(*layer));
            let sum = |layers: Vec<(usize, &u64)>| layers.iter().map(|(_, bytes)| **bytes).fold(0, u64::saturating_add);
            (Some(sum(card)), Some(sum(host)))
        }
        None => (None, None),
    };
    memory.weights = Some(weights.card);
    memory.cache = on_card;
    memory.compute = cache.as_ref().and_then(|cache| compute(model, cache, options, &mut memory.notes));
    memory.overhead = Some(OVERHEAD);
    memory.notes.push(format!(
        "overhead: {} MiB, an allowance for each card's driver and libraries; it is not measured",
        OVERHEAD >> 20
    ));
    memory.host = on_host.map(|cache| cache.saturating_add(weights.host));
    let parts = [memory.weights, memory.cache, memory.compute, memory.overhead];
    memory.total = parts.into_iter().try_fold(0_u64, |sum, part| sum.checked_add(part?));
    memory
}

/// The largest context, in tokens, with which `needed` is at most `most` bytes; none when no context fits or a part is
/// not known. It is a multiple of 256 for each slot, as the server rounds it.
#[must_use]
pub fn largest_context(
    model: &Model,
    options: &Options,
    needed: impl Fn(&Memory) -> Option<u64>,
    most: u64,
) -> Option<u64> {
    const STEP: u64 = 256;
    const MOST_STEPS: u64 = i32::MAX as u64 / STEP;
    let step = STEP * options.slots();
    let fits = |steps: u64| {
        let options = Options { context_size: steps * step, ..options.clone() };
        needed(&memory(model, &options)).is_some_and(|bytes| bytes <= most)
    };
    let (mut fitting, mut beyond) = (0, MOST_STEPS / options.slots() + 1);
    while beyond - fitting > 1 {
        let middle = fitting.midpoint(beyond);
        if fits(middle) { fitting = middle } else { beyond = middle }
    }
    (fitting > 0).then_some(fitting * step)
}

struct Weights {
    card: u64,
    host: u64,
}

/// The token embeddings stay on the host; where they are the output, too, the card has a copy.
fn weights(model: &Model, offload: Offload, notes: &mut Vec<String>) -> Weights {
    let mut weights = Weights { card: 0, host: model.embedding_bytes };
    for (layer, bytes) in model.layer_bytes.iter().enumerate() {
        let part = if offload.has(layer) { &mut weights.card } else { &mut weights.host };
        *part = part.saturating_add(*bytes);
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

/// Experts that are used for a token are not known here; no common model uses more.
const MOST_EXPERTS: u64 = 8;

/// What the largest step of a batch needs, beside the mask of its tokens. The steps were fitted to what a server
/// prints.
fn compute(model: &Model, cache: &Cache, options: &Options, notes: &mut Vec<String>) -> Option<u64> {
    if Architecture::of(&model.architecture) == Some(Architecture::Latent) {
        notes.push("compute: not known, because multi-latent attention was not measured".to_owned());
        return None;
    }
    let widths = (model.embedding_length, model.feed_forward_length, model.head_count, model.key_length);
    let (Some(width), Some(wide), Some(heads), Some(key_length)) = widths else {
        notes.push("compute: not known, because the file does not name the widths of its layers".to_owned());
        return None;
    };
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
    notes.push(format!(
        "compute: an estimate for {batch} tokens at a time, from the widths of the layers and {} cells",
        cache.cells
    ));
    sum(&[(cells.checked_mul(mask)?, batch), (feed_forward.max(experts).max(scores).checked_mul(4)?, batch)])
}

/// Why an architecture is not known.
fn unknown(model: &Model) -> String {
    let name = &model.architecture;
    if architecture::is_recurrent(name) {
        format!("the architecture {name:?} keeps a recurrent state")
    } else {
        format!("the architecture {name:?} is not known")
    }
}
