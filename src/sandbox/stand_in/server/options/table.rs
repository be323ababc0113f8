//! The options that there are, with the generations that know them.

use super::super::super::build::Build;

/// What follows an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Decimal,
    /// Nothing.
    Flag,
    Number,
    Text,
}

/// Which generations know an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum In {
    Both,
    New,
    Old,
}

/// An option.
#[derive(Debug)]
pub(super) struct Opt {
    /// The last one is the name by which it is known here.
    pub(super) names: &'static [&'static str],
    pub(super) kind: Kind,
    generations: In,
    hint: &'static str,
    about: &'static str,
    /// The variable that stands for it.
    pub(super) variable: Option<&'static str>,
}

impl Opt {
    pub(super) fn is_in(&self, build: &Build) -> bool {
        match self.generations {
            In::Both => true,
            In::New => !build.is_old(),
            In::Old => build.is_old(),
        }
    }

    /// As `--help` shows it.
    pub(super) fn help(&self) -> String {
        let mut names = match self.names {
            [first, rest @ ..] if !rest.is_empty() => format!("{:<6} {}", format!("{first},"), rest.join(", ")),
            names => names.join(", "),
        };
        if !self.hint.is_empty() {
            names.push(' ');
            names.push_str(self.hint);
        }
        let gap = if names.len() < 40 { format!("{names:<40}") } else { format!("{names}\n{:40}", "") };
        let variable = self.variable.map(|name| format!("\n{:40}(env: {name})", "")).unwrap_or_default();
        format!("{gap}{}{variable}", self.about)
    }
}

/// The option of this name.
pub(super) fn by_name(name: &str, build: &Build) -> Option<&'static Opt> {
    OPTIONS.iter().find(|option| option.is_in(build) && option.names.contains(&name))
}

/// The whole help, for standard output.
pub(in super::super) fn help(build: &Build) -> String {
    let options = OPTIONS.iter().filter(|option| option.is_in(build));
    let lines: Vec<String> = options.map(Opt::help).collect();
    format!("----- common params -----\n\n{}\n", lines.join("\n"))
}

macro_rules! option {
    ($kind:ident $generations:ident $hint:literal $variable:expr; $($name:literal),+; $about:literal) => {
        Opt {
            names: &[$($name),+],
            kind: Kind::$kind,
            generations: In::$generations,
            hint: $hint,
            about: $about,
            variable: $variable,
        }
    };
}

#[rustfmt::skip]
pub(super) const OPTIONS: &[Opt] = &[
    option!(Flag Both "" None; "-h", "--usage", "--help"; "print usage and exit"),
    option!(Flag Both "" None; "--version"; "show version and build info"),
    option!(Flag Both "" None; "--list-devices"; "print list of available devices and exit"),
    option!(Text Both "FNAME" Some("LLAMA_ARG_MODEL"); "-m", "--model"; "model path (default: `models/$filename` with \
        filename from `--hf-file` or `--model-url`)"),
    option!(Text Both "STRING" Some("LLAMA_ARG_ALIAS"); "-a", "--alias"; "set alias for model name (to be used by \
        REST API)"),
    option!(Text Both "HOST" Some("LLAMA_ARG_HOST"); "--host"; "ip address to listen (default: 127.0.0.1)"),
    option!(Number Both "PORT" Some("LLAMA_ARG_PORT"); "--port"; "port to listen (default: 8080)"),
    option!(Number Both "N" Some("LLAMA_ARG_CTX_SIZE"); "-c", "--ctx-size"; "size of the prompt context"),
    option!(Number Both "N" Some("LLAMA_ARG_N_PARALLEL"); "-np", "--parallel"; "number of parallel sequences to \
        decode"),
    option!(Text Both "N" Some("LLAMA_ARG_N_GPU_LAYERS"); "-ngl", "--gpu-layers", "--n-gpu-layers"; "number of layers \
        to store in VRAM"),
    option!(Text New "[on|off|auto]" Some("LLAMA_ARG_FLASH_ATTN"); "-fa", "--flash-attn"; "set Flash Attention use \
        ('on', 'off', or 'auto', default: 'auto')"),
    option!(Flag Old "" Some("LLAMA_ARG_FLASH_ATTN"); "-fa", "--flash-attn"; "enable Flash Attention (default: \
        disabled)"),
    option!(Text Both "TYPE" Some("LLAMA_ARG_CACHE_TYPE_K"); "-ctk", "--cache-type-k"; "KV cache data type for K \
        (default: f16)"),
    option!(Text Both "TYPE" Some("LLAMA_ARG_CACHE_TYPE_V"); "-ctv", "--cache-type-v"; "KV cache data type for V \
        (default: f16)"),
    option!(Flag Both "" Some("LLAMA_ARG_JINJA"); "--jinja"; "use jinja template for chat"),
    option!(Flag New "" None; "--no-jinja"; "do not use jinja template for chat"),
    option!(Text Both "JINJA_TEMPLATE" Some("LLAMA_ARG_CHAT_TEMPLATE"); "--chat-template"; "set custom jinja chat \
        template"),
    option!(Flag Both "" Some("LLAMA_ARG_ENDPOINT_METRICS"); "--metrics"; "enable prometheus compatible metrics \
        endpoint (default: disabled)"),
    option!(Flag Both "" Some("LLAMA_ARG_ENDPOINT_SLOTS"); "--slots"; "enable slots monitoring endpoint"),
    option!(Flag New "" None; "--no-slots"; "disable slots monitoring endpoint"),
    option!(Flag Both "" Some("LLAMA_ARG_ENDPOINT_PROPS"); "--props"; "enable changing global properties via POST \
        /props (default: disabled)"),
    option!(Text Both "KEY" Some("LLAMA_API_KEY"); "--api-key"; "API key to use for authentication (default: none)"),
    option!(Text Both "FNAME" None; "--api-key-file"; "path to file containing API keys (default: none)"),
    option!(Number Both "N" Some("LLAMA_ARG_TIMEOUT"); "-to", "--timeout"; "server read/write timeout in seconds \
        (default: 600)"),
    option!(Number Both "N" Some("LLAMA_ARG_THREADS"); "-t", "--threads"; "number of threads to use during generation \
        (default: -1)"),
    option!(Number Both "N" None; "-tb", "--threads-batch"; "number of threads to use during batch and prompt \
        processing"),
    option!(Number Both "N" Some("LLAMA_ARG_THREADS_HTTP"); "--threads-http"; "number of threads used to process HTTP \
        requests (default: -1)"),
    option!(Number Both "N" Some("LLAMA_ARG_BATCH"); "-b", "--batch-size"; "logical maximum batch size (default: \
        2048)"),
    option!(Number Both "N" Some("LLAMA_ARG_UBATCH"); "-ub", "--ubatch-size"; "physical maximum batch size (default: \
        512)"),
    option!(Number Both "N" Some("LLAMA_ARG_N_PREDICT"); "-n", "--predict", "--n-predict"; "number of tokens to \
        predict (default: -1)"),
    option!(Number Both "N" None; "-s", "--seed"; "RNG seed (default: -1, use random seed for -1)"),
    option!(Decimal Both "N" None; "--temp"; "temperature (default: 0.8)"),
    option!(Number Both "N" None; "--top-k"; "top-k sampling (default: 40)"),
    option!(Decimal Both "N" None; "--top-p"; "top-p sampling (default: 0.9)"),
    option!(Decimal Both "N" None; "--min-p"; "min-p sampling (default: 0.1)"),
    option!(Flag Both "" Some("LLAMA_ARG_MLOCK"); "--mlock"; "force system to keep model in RAM rather than swapping \
        or compressing"),
    option!(Flag Both "" Some("LLAMA_ARG_NO_MMAP"); "--no-mmap"; "do not memory-map model"),
    option!(Flag Both "" None; "--no-warmup"; "skip warming up the model with an empty run"),
    option!(Flag Both "" Some("LLAMA_ARG_CONT_BATCHING"); "-cb", "--cont-batching"; "enable continuous batching"),
    option!(Flag Both "" Some("LLAMA_ARG_EMBEDDINGS"); "--embedding", "--embeddings"; "restrict to only support \
        embedding use case"),
    option!(Flag Both "" Some("LLAMA_ARG_NO_WEBUI"); "--no-webui"; "disable the Web UI"),
    option!(Text Both "{none,layer,row}" Some("LLAMA_ARG_SPLIT_MODE"); "-sm", "--split-mode"; "how to split the model \
        across multiple GPUs"),
    option!(Text Both "N0,N1,N2,..." Some("LLAMA_ARG_TENSOR_SPLIT"); "-ts", "--tensor-split"; "fraction of the model \
        to offload to each GPU"),
    option!(Number Both "INDEX" Some("LLAMA_ARG_MAIN_GPU"); "-mg", "--main-gpu"; "the GPU to use for the model \
        (default: 0)"),
    option!(Text Both "FNAME" None; "--log-file"; "log to file"),
    option!(Flag Both "" None; "--log-disable"; "log disable"),
    option!(Flag Both "" None; "-v", "--verbose", "--log-verbose"; "set verbosity level to infinity"),
    option!(Number Both "N" None; "-lv", "--verbosity", "--log-verbosity"; "set the verbosity threshold"),
];
