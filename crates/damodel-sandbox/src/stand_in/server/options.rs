//! The command line.

use std::path::{Path, PathBuf};

use crate::stand_in::machine::Call;

/// Permitted types of a cache.
const CACHE_TYPES: [&str; 9] = ["f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"];

/// The request of a command line.
#[derive(Debug)]
pub(super) enum Asked {
    Devices,
    Help,
    Serve(Box<StandInSettings>),
    Version,
}

/// Whether flash attention is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlashAttention {
    Auto,
    Off,
    On,
}

/// The settings of a server.
#[derive(Clone, Debug)]
pub(super) struct StandInSettings {
    /// `None`: the server starts without one, and chooses models by request.
    pub(super) model: Option<PathBuf>,
    pub(super) alias: Option<String>,
    /// The projector of images.
    pub(super) projector: Option<PathBuf>,
    pub(super) host: String,
    /// As written; a number beyond 65535 wraps when it is bound.
    pub(super) port: u64,
    /// 0: the model's context.
    pub(super) context: u64,
    pub(super) parallel: i64,
    /// `None`: all that fit.
    pub(super) gpu_layers: Option<i64>,
    pub(super) flash_attention: FlashAttention,
    pub(super) cache_k: String,
    pub(super) cache_v: String,
    pub(super) jinja: bool,
    pub(super) metrics: bool,
    /// Whether embeddings are served.
    pub(super) embeds: bool,
    /// Whether documents are ranked.
    pub(super) ranks: bool,
    /// Empty: no key is required.
    pub(super) keys: Vec<String>,
}

impl Default for StandInSettings {
    fn default() -> Self {
        Self {
            model: None,
            alias: None,
            projector: None,
            host: "127.0.0.1".to_owned(),
            port: 8080,
            context: 0,
            parallel: -1,
            gpu_layers: None,
            flash_attention: FlashAttention::Auto,
            cache_k: "f16".to_owned(),
            cache_v: "f16".to_owned(),
            jinja: true,
            metrics: false,
            embeds: false,
            ranks: false,
            keys: Vec::new(),
        }
    }
}

impl StandInSettings {
    /// The name in answers: the alias, or else the path as given.
    pub(super) fn name(&self) -> String {
        let path = self.model.as_deref().unwrap_or_else(|| Path::new(""));
        self.alias.clone().unwrap_or_else(|| path.display().to_string())
    }

    /// How many requests are computed at once; -1 is the server's own choice.
    pub(super) fn slot_count(&self) -> usize {
        usize::try_from(self.parallel).unwrap_or(4).max(1)
    }

    fn set(&mut self, option: &Opt, value: &str) -> Result<(), String> {
        let number = || value.parse::<i64>().map_err(|_| "stoi".to_owned());
        match option.names.last().copied().unwrap_or_default() {
            "--alias" => self.alias = Some(value.to_owned()),
            "--api-key" => self.keys.extend(value.split(',').filter(|key| !key.is_empty()).map(str::to_owned)),
            "--api-key-file" => {
                let text =
                    std::fs::read_to_string(value).map_err(|_| format!("error: failed to open file '{value}'\n"))?;
                let keys = text.lines().map(str::trim).filter(|key| !key.is_empty() && !key.starts_with('#'));
                self.keys.extend(keys.map(str::to_owned));
            }
            "--cache-type-k" => self.cache_k = cache_type(value)?,
            "--cache-type-v" => self.cache_v = cache_type(value)?,
            "--ctx-size" => self.context = u64::try_from(number()?).unwrap_or(0),
            "--flash-attn" => self.flash_attention = flash_attention(value)?,
            "--gpu-layers" | "--n-gpu-layers" => {
                self.gpu_layers = match value {
                    "all" | "auto" => None,
                    _ => Some(number()?).filter(|layers| *layers >= 0),
                };
            }
            "--embeddings" => self.embeds = true,
            "--host" => self.host = value.to_owned(),
            "--jinja" => self.jinja = true,
            "--metrics" => self.metrics = true,
            "--model" => self.model = Some(PathBuf::from(value)).filter(|path| !path.as_os_str().is_empty()),
            "--mmproj" => self.projector = Some(PathBuf::from(value)),
            "--no-jinja" => self.jinja = false,
            "--parallel" => self.parallel = number()?,
            "--port" => self.port = u64::try_from(number()?).map_err(|_| "stoi".to_owned())?,
            "--reranking" => (self.embeds, self.ranks) = (true, true),
            _ => match option.kind {
                ValueKind::Number => drop(number()?),
                ValueKind::Decimal => drop(value.parse::<f64>().map_err(|_| "stof".to_owned())?),
                ValueKind::Flag | ValueKind::Text => {}
            },
        }
        Ok(())
    }
}

/// Reads the command line, and the environment for options that it does not set.
///
/// # Errors
///
/// What the server writes on standard error before it ends with 1.
pub(super) fn read(call: &Call<'_>) -> Result<Asked, String> {
    let mut settings = StandInSettings::default();
    let mut given = Vec::new();
    let mut words = call.arguments.iter();
    while let Some(word) = words.next() {
        let Some(option) = by_name(word) else {
            return Err(format!("error: invalid argument: {word}\n"));
        };
        match option.names.last().copied().unwrap_or_default() {
            "--help" => return Ok(Asked::Help),
            "--list-devices" => return Ok(Asked::Devices),
            "--version" => return Ok(Asked::Version),
            _ => {}
        }
        let fault = |error: String| {
            format!(
                "error while handling argument \"{word}\": {error}\n\nusage:\n{}\n\n\
                 to show complete usage, run with -h\n",
                option.help()
            )
        };
        let value = match option.kind {
            ValueKind::Flag => "",
            ValueKind::Decimal | ValueKind::Number | ValueKind::Text => {
                words.next().ok_or_else(|| fault("expected value for argument".to_owned()))?
            }
        };
        settings.set(option, value).map_err(fault)?;
        given.push(option.names);
    }
    for option in OPTIONS.iter().filter(|option| !given.contains(&option.names)) {
        let Some(value) = option.variable.and_then(|name| call.text(name)) else { continue };
        let is_wanted = match option.kind {
            ValueKind::Flag => ["1", "true", "on", "enabled"].contains(&value.as_str()),
            ValueKind::Decimal | ValueKind::Number | ValueKind::Text => !value.is_empty(),
        };
        if is_wanted {
            let name = option.variable.unwrap_or_default();
            let fault = |error| format!("error while handling environment variable \"{name}\": {error}\n\n");
            settings.set(option, &value).map_err(fault)?;
        }
    }
    Ok(Asked::Serve(Box::new(settings)))
}

fn cache_type(value: &str) -> Result<String, String> {
    match CACHE_TYPES.contains(&value) {
        true => Ok(value.to_owned()),
        false => Err(format!("Unsupported cache type: {value}")),
    }
}

fn flash_attention(value: &str) -> Result<FlashAttention, String> {
    match value {
        "1" | "enabled" | "on" | "true" => Ok(FlashAttention::On),
        "0" | "disabled" | "false" | "off" => Ok(FlashAttention::Off),
        "-1" | "auto" => Ok(FlashAttention::Auto),
        _ => Err(format!("error: unknown value for --flash-attn: '{value}'\n")),
    }
}

/// The kind of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueKind {
    Decimal,
    /// No value.
    Flag,
    Number,
    Text,
}

/// An option.
#[derive(Debug)]
struct Opt {
    /// The last one is the name in this code.
    names: &'static [&'static str],
    kind: ValueKind,
    hint: &'static str,
    about: &'static str,
    /// The environment variable of the option.
    variable: Option<&'static str>,
}

impl Opt {
    /// The lines of `--help`.
    fn help(&self) -> String {
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
fn by_name(name: &str) -> Option<&'static Opt> {
    OPTIONS.iter().find(|option| option.names.contains(&name))
}

/// The whole help, for standard output.
pub(super) fn help() -> String {
    let lines: Vec<String> = OPTIONS.iter().map(Opt::help).collect();
    format!("----- common params -----\n\n{}\n", lines.join("\n"))
}

macro_rules! option {
    ($kind:ident $hint:literal $variable:expr; $($name:literal),+; $about:literal) => {
        Opt {
            names: &[$($name),+],
            kind: ValueKind::$kind,
            hint: $hint,
            about: $about,
            variable: $variable,
        }
    };
}

#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    option!(Flag "" None; "-h", "--usage", "--help"; "print usage and exit"),
    option!(Flag "" None; "--version"; "show version and build info"),
    option!(Flag "" None; "--list-devices"; "print list of available devices and exit"),
    option!(Text "FNAME" Some("LLAMA_ARG_MODEL"); "-m", "--model"; "model path (default: `models/$filename` with \
        filename from `--hf-file` or `--model-url`)"),
    option!(Text "FILE" Some("LLAMA_ARG_MMPROJ"); "-mm", "--mmproj"; "path to a multimodal projector file"),
    option!(Text "STRING" Some("LLAMA_ARG_ALIAS"); "-a", "--alias"; "set alias for model name (to be used by \
        REST API)"),
    option!(Text "HOST" Some("LLAMA_ARG_HOST"); "--host"; "ip address to listen (default: 127.0.0.1)"),
    option!(Number "PORT" Some("LLAMA_ARG_PORT"); "--port"; "port to listen (default: 8080)"),
    option!(Number "N" Some("LLAMA_ARG_CTX_SIZE"); "-c", "--ctx-size"; "size of the prompt context"),
    option!(Number "N" Some("LLAMA_ARG_N_PARALLEL"); "-np", "--parallel"; "number of parallel sequences to \
        decode"),
    option!(Text "N" Some("LLAMA_ARG_N_GPU_LAYERS"); "-ngl", "--gpu-layers", "--n-gpu-layers"; "number of layers \
        to store in VRAM"),
    option!(Text "[on|off|auto]" Some("LLAMA_ARG_FLASH_ATTN"); "-fa", "--flash-attn"; "set Flash Attention use \
        ('on', 'off', or 'auto', default: 'auto')"),
    option!(Text "TYPE" Some("LLAMA_ARG_CACHE_TYPE_K"); "-ctk", "--cache-type-k"; "KV cache data type for K \
        (default: f16)"),
    option!(Text "TYPE" Some("LLAMA_ARG_CACHE_TYPE_V"); "-ctv", "--cache-type-v"; "KV cache data type for V \
        (default: f16)"),
    option!(Flag "" Some("LLAMA_ARG_JINJA"); "--jinja"; "use jinja template for chat"),
    option!(Flag "" None; "--no-jinja"; "do not use jinja template for chat"),
    option!(Text "JINJA_TEMPLATE" Some("LLAMA_ARG_CHAT_TEMPLATE"); "--chat-template"; "set custom jinja chat \
        template"),
    option!(Flag "" Some("LLAMA_ARG_ENDPOINT_METRICS"); "--metrics"; "enable prometheus compatible metrics \
        endpoint (default: disabled)"),
    option!(Flag "" Some("LLAMA_ARG_ENDPOINT_SLOTS"); "--slots"; "enable slots monitoring endpoint"),
    option!(Flag "" None; "--no-slots"; "disable slots monitoring endpoint"),
    option!(Flag "" Some("LLAMA_ARG_ENDPOINT_PROPS"); "--props"; "enable changing global properties via POST \
        /props (default: disabled)"),
    option!(Text "KEY" Some("LLAMA_API_KEY"); "--api-key"; "API key to use for authentication (default: none)"),
    option!(Text "FNAME" None; "--api-key-file"; "path to file containing API keys (default: none)"),
    option!(Number "N" Some("LLAMA_ARG_TIMEOUT"); "-to", "--timeout"; "server read/write timeout in seconds \
        (default: 600)"),
    option!(Number "N" Some("LLAMA_ARG_THREADS"); "-t", "--threads"; "number of threads to use during generation \
        (default: -1)"),
    option!(Number "N" None; "-tb", "--threads-batch"; "number of threads to use during batch and prompt \
        processing"),
    option!(Number "N" Some("LLAMA_ARG_THREADS_HTTP"); "--threads-http"; "number of threads used to process HTTP \
        requests (default: -1)"),
    option!(Number "N" Some("LLAMA_ARG_BATCH"); "-b", "--batch-size"; "logical maximum batch size (default: \
        2048)"),
    option!(Number "N" Some("LLAMA_ARG_UBATCH"); "-ub", "--ubatch-size"; "physical maximum batch size (default: \
        512)"),
    option!(Number "N" Some("LLAMA_ARG_N_PREDICT"); "-n", "--predict", "--n-predict"; "number of tokens to \
        predict (default: -1)"),
    option!(Number "N" None; "-s", "--seed"; "RNG seed (default: -1, use random seed for -1)"),
    option!(Decimal "N" None; "--temp"; "temperature (default: 0.8)"),
    option!(Number "N" None; "--top-k"; "top-k sampling (default: 40)"),
    option!(Decimal "N" None; "--top-p"; "top-p sampling (default: 0.9)"),
    option!(Decimal "N" None; "--min-p"; "min-p sampling (default: 0.1)"),
    option!(Flag "" Some("LLAMA_ARG_MLOCK"); "--mlock"; "force system to keep model in RAM rather than swapping \
        or compressing"),
    option!(Flag "" Some("LLAMA_ARG_NO_MMAP"); "--no-mmap"; "do not memory-map model"),
    option!(Flag "" None; "--no-warmup"; "skip warming up the model with an empty run"),
    option!(Flag "" Some("LLAMA_ARG_CONT_BATCHING"); "-cb", "--cont-batching"; "enable continuous batching"),
    option!(Flag "" Some("LLAMA_ARG_EMBEDDINGS"); "--embedding", "--embeddings"; "restrict to only support \
        embedding use case"),
    option!(Flag "" Some("LLAMA_ARG_RERANKING"); "--rerank", "--reranking"; "enable reranking endpoint on server \
        (default: disabled)"),
    option!(Flag "" Some("LLAMA_ARG_NO_WEBUI"); "--no-webui"; "disable the Web UI"),
    option!(Text "{none,layer,row}" Some("LLAMA_ARG_SPLIT_MODE"); "-sm", "--split-mode"; "how to split the model \
        across multiple GPUs"),
    option!(Text "N0,N1,N2,..." Some("LLAMA_ARG_TENSOR_SPLIT"); "-ts", "--tensor-split"; "fraction of the model \
        to offload to each GPU"),
    option!(Number "INDEX" Some("LLAMA_ARG_MAIN_GPU"); "-mg", "--main-gpu"; "the GPU to use for the model \
        (default: 0)"),
    option!(Text "FNAME" None; "--log-file"; "log to file"),
    option!(Flag "" None; "--log-disable"; "log disable"),
    option!(Flag "" None; "-v", "--verbose", "--log-verbose"; "set verbosity level to infinity"),
    option!(Number "N" None; "-lv", "--verbosity", "--log-verbosity"; "set the verbosity threshold"),
];

#[cfg(test)]
mod tests {
    use std::{ffi::OsString, path::PathBuf};

    use rstest::rstest;

    use super::*;

    fn read_with(line: &str, variables: &[(&str, &str)]) -> Result<Asked, String> {
        let variable =
            |name: &str| variables.iter().find(|(own, _)| *own == name).map(|(_, value)| OsString::from(value));
        let arguments = line.split_whitespace().map(str::to_owned).collect();
        let call = Call { program: PathBuf::from("llama-server"), arguments, variable: &variable };
        read(&call)
    }

    fn settings(line: &str, variables: &[(&str, &str)]) -> StandInSettings {
        match read_with(line, variables) {
            Ok(Asked::Serve(settings)) => *settings,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_guides_options_are_taken() {
        let guide = "-m M --host 0.0.0.0 --port 8000 -c 32768 -np 1 -ngl 999 -fa on -ctk q8_0 -ctv q8_0 --jinja \
                     --metrics";
        let settings = settings(guide, &[]);
        assert_eq!((settings.port, settings.context, settings.parallel), (8000, 32_768, 1));
        assert_eq!((settings.gpu_layers, settings.flash_attention), (Some(999), FlashAttention::On));
        assert_eq!((settings.cache_k.as_str(), settings.cache_v.as_str()), ("q8_0", "q8_0"));
        assert!(settings.jinja && settings.metrics && settings.keys.is_empty());
    }

    #[rstest]
    #[case("-m M --no-such-flag", "error: invalid argument: --no-such-flag\n")]
    #[case(
        "-fa -ctk q8_0",
        "error while handling argument \"-fa\": error: unknown value for --flash-attn: '-ctk'\n\n\nusage:\n\
         -fa,   --flash-attn [on|off|auto]"
    )]
    #[case("-m M -fa", "error while handling argument \"-fa\": expected value for argument\n\nusage:\n-fa,")]
    #[case("--port eight", "error while handling argument \"--port\": stoi\n\nusage:\n--port PORT")]
    #[case("-ctk q9_9", "error while handling argument \"-ctk\": Unsupported cache type: q9_9\n\nusage:\n-ctk,")]
    fn what_is_not_understood_is_said(#[case] line: &str, #[case] text: &str) {
        let error = read_with(line, &[]).unwrap_err();
        assert!(error.starts_with(text), "{error}");
    }

    #[test]
    fn the_environment_fills_what_the_line_leaves_out() {
        let variables = [("LLAMA_ARG_CTX_SIZE", "512"), ("LLAMA_ARG_PORT", "9000"), ("LLAMA_API_KEY", "k1,k2")];
        let settings = settings("-m M --port 8000", &variables);
        assert_eq!((settings.context, settings.port), (512, 8000));
        assert_eq!(settings.keys, ["k1", "k2"]);
    }

    #[rstest]
    #[case("1", FlashAttention::On)]
    #[case("on", FlashAttention::On)]
    fn flash_attention_by_the_environment(#[case] value: &str, #[case] meant: FlashAttention) {
        let settings = settings("-m M", &[("LLAMA_ARG_FLASH_ATTN", value)]);
        assert_eq!(settings.flash_attention, meant);
    }

    #[test]
    fn keys_come_from_a_file_too() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "one\n\n# of the team\n two \n").unwrap();
        let line = format!("-m M --api-key zero --api-key-file {}", file.path().display());
        assert_eq!(settings(&line, &[]).keys, ["zero", "one", "two"]);
    }
}
