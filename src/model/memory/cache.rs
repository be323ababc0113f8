//! Keys and values of a context.

use super::{
    super::{Model, architecture::Architecture},
    CacheType, Options, unknown,
};

/// The cells of a cache come in steps of this many (llama.cpp, llama_context).
const PADDING: u64 = 256;

/// Keys and values of a context.
#[derive(Debug)]
pub(super) struct Cache {
    /// Bytes of each layer.
    pub(super) layers: Vec<u64>,
    /// How many tokens are computed at once.
    pub(super) micro_batch: u64,
    /// The cells of a layer with the whole context, in one stream.
    pub(super) cells: u64,
    streams: u64,
    /// The cells of a layer with a window.
    pub(super) windowed: Option<u64>,
}

/// What layers of one kind need.
struct Rows<'a> {
    options: &'a Options,
    key_length: u64,
    /// None where there are no values.
    value_length: Option<u64>,
    /// The most heads of any layer: what a transposed value cache is padded to.
    most_heads: u64,
}

impl Cache {
    /// Computes it, or says why not.
    pub(super) fn of(model: &Model, options: &Options) -> Result<Self, String> {
        let architecture = Architecture::of(&model.architecture).ok_or_else(|| unknown(model))?;
        let layers = model.layers.ok_or("the file does not name its layers")?;
        if layers != model.layer_bytes.len() as u64 || layers != model.head_count_kv.len() as u64 {
            return Err("some layers only predict further tokens".to_owned());
        }
        let (Some(key_length), Some(value_length)) = (model.key_length, model.value_length) else {
            return Err("the file does not name the widths of keys and values".to_owned());
        };
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
        let bytes = model.head_count_kv.iter().zip(0_u64..).map(|(heads, layer)| {
            let has_window = windows.is_some_and(|(_, period)| layer % period != period - 1);
            let cells = if has_window { windowed.unwrap_or(cells) } else { cells };
            rows.bytes(*heads)?.checked_mul(cells)?.checked_mul(streams)
        });
        let layers: Option<Vec<u64>> = bytes.collect();
        let layers = layers.ok_or_else(|| rows.refusal())?;
        Ok(Self { layers, micro_batch, cells, streams, windowed })
    }

    /// How it was computed.
    pub(super) fn note(&self, options: &Options) -> String {
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
        // Without flash attention values are transposed, and all layers are as wide as the widest.
        let heads = if self.options.flash_attention { heads } else { self.most_heads };
        keys.checked_add(self.options.cache_type_v.row(length, heads)?)
    }

    /// Why there is no number.
    fn refusal(&self) -> String {
        let fits = |ty: CacheType, length: u64| length.is_multiple_of(ty.block());
        let (k, v) = (self.options.cache_type_k, self.options.cache_type_v);
        if !fits(k, self.key_length) {
            return format!("keys of width {} cannot have the type {}", self.key_length, k.name());
        }
        match self.value_length.filter(|length| !fits(v, *length)) {
            Some(length) => format!("values of width {length} cannot have the type {}", v.name()),
            None => "it is too large".to_owned(),
        }
    }
}

/// The window and its period, where some layers have one.
fn windows(architecture: Architecture, model: &Model) -> Result<Option<(u64, u64)>, String> {
    if architecture.windows().is_none() {
        return Ok(None);
    }
    match (model.sliding_window, model.sliding_window_pattern) {
        (None, _) | (_, Some(1)) => Ok(None),
        (Some(window), Some(period)) if period > 0 => Ok(Some((window, period))),
        (Some(_), _) => Err("it is not known which layers have a sliding window".to_owned()),
    }
}
