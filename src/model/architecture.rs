//! What the server knows about an architecture and the file does not say (llama.cpp, src/models).

/// How the layers of an architecture attend to earlier tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Architecture {
    /// One compressed key for all heads, and no value.
    Latent,
    /// Every layer attends to the whole context.
    Plain,
    /// Some layers attend to a window of it.
    Windowed(Windows),
}

/// The windows where the file names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Windows {
    /// How many tokens a window holds; none where the file has to say it.
    pub(super) length: Option<u64>,
    /// Every so many layers one has the whole context.
    pub(super) period: u64,
}

/// Architectures that hold keys and values of each token in every layer, and nothing else.
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
    /// That of this name; none for one that is not known here.
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

/// Whether an architecture is known to keep a state of its own beside or instead of keys and values.
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
