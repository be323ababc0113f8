//! The server options that affect its memory.

/// The largest number of slots (llama.cpp, LLAMA_MAX_SEQ).
const MAX_SLOTS: u64 = 256;
/// The default number of slots, which share one cache.
const AUTOMATIC_SLOTS: u64 = 4;

/// The options of a server that affect its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOptions {
    /// The context in tokens; 0 for the context that the model was trained for.
    pub context_size: u64,
    /// The number of concurrent chats; `None` for the server's default: four that share the context.
    pub parallel: Option<u64>,
    /// The type of keys in the cache.
    pub cache_type_k: CacheType,
    /// The type of values in the cache.
    pub cache_type_v: CacheType,
    /// The number of layers on the card; the output counts as one.
    pub gpu_layers: u64,
    /// Whether flash attention is used.
    pub flash_attention: bool,
    /// The largest number of tokens in a batch (`--batch-size`).
    pub batch: u64,
    /// The number of tokens computed at once (`--ubatch-size`).
    pub ubatch: u64,
    /// Whether all chats share one cache (`--kv-unified`).
    pub unified: bool,
}

impl Default for ServerOptions {
    /// The options that `damodel_llama_server` uses.
    fn default() -> Self {
        Self {
            context_size: 32_768,
            parallel: Some(1),
            cache_type_k: CacheType::Q8_0,
            cache_type_v: CacheType::Q8_0,
            gpu_layers: 999,
            flash_attention: true,
            batch: 2048,
            ubatch: 512,
            unified: false,
        }
    }
}

/// An invalid option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidOption {
    /// Unknown option. Its name is not included, because it may be a secret.
    #[error("an option is unknown; the options are {}", NAMES.join(", "))]
    Name,
    /// Invalid value.
    #[error("{name} must be {rule}")]
    Value {
        /// The option.
        name: &'static str,
        /// The allowed values.
        rule: &'static str,
    },
    /// Quantized values need flash attention: without it the server exits.
    #[error("cache_type_v can be quantized with flash_attention only")]
    NeedsFlashAttention,
    /// A head of the model is not a whole number of blocks.
    #[error("{what} of width {width} cannot have the type {ty}")]
    Width {
        /// The option.
        name: &'static str,
        /// The noun for the side of the cache.
        what: &'static str,
        /// The width of a head.
        width: u64,
        /// The type's name.
        ty: &'static str,
    },
}

impl InvalidOption {
    /// The option's name; `None` if it is unknown.
    #[must_use]
    pub fn option(&self) -> Option<&'static str> {
        match self {
            Self::Name => None,
            Self::Value { name, .. } | Self::Width { name, .. } => Some(name),
            Self::NeedsFlashAttention => Some("cache_type_v"),
        }
    }
}

/// The names of the options.
const NAMES: &[&str] = &[
    "context_size",
    "parallel",
    "cache_type_k",
    "cache_type_v",
    "gpu_layers",
    "flash_attention",
    "batch",
    "ubatch",
    "unified",
];

const CACHE_TYPE: &str = "one of f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0 and iq4_nl";

impl ServerOptions {
    /// The defaults, changed by `set`.
    ///
    /// # Errors
    /// The first invalid option.
    pub fn parse<'a>(set: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, InvalidOption> {
        let mut options = Self::default();
        for (name, value) in set {
            options.set(name, value)?;
        }
        if !options.flash_attention && options.cache_type_v.block() > 1 {
            return Err(InvalidOption::NeedsFlashAttention);
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), InvalidOption> {
        let known = NAMES.iter().find(|known| **known == name);
        let name = *known.ok_or(InvalidOption::Name)?;
        let value = value.trim();
        let invalid = |rule| InvalidOption::Value { name, rule };
        let number = |least: u64, rule| {
            let number = value.parse().ok().filter(|number| (least..=i32::MAX as u64).contains(number));
            number.ok_or_else(|| invalid(rule))
        };
        let cache = || CacheType::parse(value).ok_or_else(|| invalid(CACHE_TYPE));
        match name {
            "context_size" => self.context_size = number(0, "a whole number, or 0 for the trained context")?,
            "parallel" if value == "-1" => self.parallel = None,
            "parallel" => {
                let rule = "a whole number from 1 to 256, or -1 for the server's default";
                let slots = number(1, rule)?;
                self.parallel = Some(if slots <= MAX_SLOTS { slots } else { return Err(invalid(rule)) });
            }
            "cache_type_k" => self.cache_type_k = cache()?,
            "cache_type_v" => self.cache_type_v = cache()?,
            "gpu_layers" => self.gpu_layers = number(0, "a whole number")?,
            "flash_attention" => {
                // With `auto`, the server enables it on a GPU.
                let is_on = match value {
                    "on" | "true" | "auto" => Some(true),
                    "off" | "false" => Some(false),
                    _ => None,
                };
                self.flash_attention = is_on.ok_or_else(|| invalid("on, off or auto"))?;
            }
            "batch" => self.batch = number(1, "a whole number above 0")?,
            "ubatch" => self.ubatch = number(1, "a whole number above 0")?,
            _ => self.unified = value.parse().map_err(|_| invalid("true or false"))?,
        }
        Ok(())
    }

    pub(super) fn slots(&self) -> u64 {
        self.parallel.unwrap_or(AUTOMATIC_SLOTS)
    }

    pub(super) fn is_unified(&self) -> bool {
        self.unified || self.parallel.is_none()
    }
}

/// The type of numbers in a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of ggml's types")]
pub enum CacheType {
    Bf16,
    F16,
    F32,
    Iq4Nl,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
}

impl CacheType {
    const ALL: [Self; 9] =
        [Self::Bf16, Self::F16, Self::F32, Self::Iq4Nl, Self::Q4_0, Self::Q4_1, Self::Q5_0, Self::Q5_1, Self::Q8_0];

    /// The type with this name of the server.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|ty| ty.name() == name)
    }

    pub(super) fn name(self) -> &'static str {
        self.layout().0
    }

    /// The number of values in a block.
    pub(super) fn block(self) -> u64 {
        self.layout().1
    }

    /// Name, values in a block, and bytes of a block (ggml's type_traits).
    fn layout(self) -> (&'static str, u64, u64) {
        match self {
            Self::Bf16 => ("bf16", 1, 2),
            Self::F16 => ("f16", 1, 2),
            Self::F32 => ("f32", 1, 4),
            Self::Iq4Nl => ("iq4_nl", 32, 18),
            Self::Q4_0 => ("q4_0", 32, 18),
            Self::Q4_1 => ("q4_1", 32, 20),
            Self::Q5_0 => ("q5_0", 32, 22),
            Self::Q5_1 => ("q5_1", 32, 24),
            Self::Q8_0 => ("q8_0", 32, 34),
        }
    }

    /// The bytes of `heads` heads of this width; `None` if a head is not a whole number of blocks, or on overflow.
    pub(super) fn row(self, width: u64, heads: u64) -> Option<u64> {
        let (_, block, bytes) = self.layout();
        let blocks = width.is_multiple_of(block).then_some(width / block)?;
        blocks.checked_mul(heads)?.checked_mul(bytes)
    }
}
