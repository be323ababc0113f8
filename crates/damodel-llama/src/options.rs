//! The table of the server's options: for the command line, imports, the check of extra arguments and of memory.

use std::borrow::Cow;

/// Types that a cache may have.
pub const CACHE_TYPES: &[&str] = &["f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"];

/// Those that are not quantized.
const FLOATS: &[&str] = &["f32", "f16", "bf16"];

/// The default port.
pub const DEFAULT_PORT: u16 = 8000;

/// The service's shared storage in an instance: the first of these folders that has what is looked for counts.
pub(super) const PUBLIC_STORAGE: [&str; 2] = ["~/public-storage", "/root/public-storage"];

/// The default workspace.
pub const DEFAULT_WORKSPACE: &str = "~/workspace";

/// The default question of the probe.
pub const DEFAULT_PROMPT: &str = "Say hello.";

/// git's name of the default branch.
pub const DEFAULT_BRANCH: &str = "HEAD";

/// The arguments whose value is passed on as it is, in the order of the command line.
pub const PLAIN_ARGUMENTS: [&str; 6] =
    ["context_size", "parallel", "gpu_layers", "flash_attention", "cache_type_k", "cache_type_v"];

/// Whether a value cache of this type needs flash attention: the server exits without it.
pub fn needs_flash_attention(cache_type: &str) -> bool {
    !FLOATS.contains(&cache_type)
}

/// What is wrong with an extra argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clash {
    /// The argument of this name sets it, and the provider would check the wrong server.
    Forbidden(&'static str),
    /// A secret that must not be on a command line, and what to set instead.
    Secret(&'static str),
    /// The argument of this name sets it already.
    Set(&'static str),
    /// The provider does not support it, and why.
    Unsupported(&'static str),
}

/// The effect of an option on the memory that a server needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryEffect {
    /// It is the size of a batch.
    Batch,
    /// It names files whose weights are put on the GPU.
    Files,
    /// It is the size of a physical batch.
    MicroBatch,
    /// It has none.
    None,
    /// It moves memory in a way that is not computed here.
    Uncomputed,
    /// The chats share one cache.
    Unified,
}

/// The files of the instance that an option names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OptionFiles {
    /// Its value is a list of files with commas, each with `:SCALE` behind it if the option's name ends in "scaled".
    Many,
    /// It names none.
    None,
    /// Its value is a file or a folder.
    One,
}

/// An option of the server.
#[derive(Debug)]
pub struct ServerOption {
    /// Its spellings, the one that the provider uses first.
    names: &'static [&'static str],
    /// What is wrong with it among the extra arguments.
    clash: Option<Clash>,
    /// Its effect on memory.
    pub memory: MemoryEffect,
    /// The files that must be there.
    files: OptionFiles,
}

/// The options that the provider knows. It passes all others on as they are.
const OPTIONS: &[ServerOption] = &[
    forbidden("model", &["-m", "--model"]),
    forbidden("host", &["--host"]),
    forbidden("port", &["--port"]),
    set("context_size", &["-c", "--ctx-size"]),
    set("parallel", &["-np", "--parallel"]),
    set("gpu_layers", &["-ngl", "--gpu-layers", "--n-gpu-layers"]),
    set("flash_attention", &["-fa", "--flash-attn"]),
    set("cache_type_k", &["-ctk", "--cache-type-k"]),
    set("cache_type_v", &["-ctv", "--cache-type-v"]),
    set("jinja", &["--jinja", "--no-jinja"]),
    set("metrics", &["--metrics"]),
    clashes(&[API_KEY_FILE, "--api-key"], Clash::Secret("Set api_key instead.")),
    clashes(&["-hft", "--hf-token"], Clash::Secret("Set model_source_token_wo instead.")),
    clashes(
        &["--api-prefix"],
        Clash::Unsupported("The provider's health check, probe and chats do not support a prefix."),
    ),
    clashes(
        &["--ssl-key-file", "--ssl-cert-file"],
        Clash::Unsupported(
            "The provider connects to the server through SSH, without TLS. For TLS, put a proxy in front of the \
             server.",
        ),
    ),
    clashes(
        &["-h", "--help", "--usage", "--version", "--list-devices", "-cl", "--cache-list", "--completion-bash"],
        Clash::Unsupported("With this option the server prints information and exits."),
    ),
    clashes(
        &[
            "-mu",
            "--model-url",
            "-dr",
            "--docker-repo",
            "-hf",
            "-hfr",
            "--hf-repo",
            "-hff",
            "--hf-file",
            "--models-dir",
            "--models-preset",
            "--embd-gemma-default",
            "--embd-bge-small-en-default",
            "--embd-e5-small-en-default",
            "--embd-gte-small-default",
            "--fim-qwen-1.5b-default",
            "--fim-qwen-3b-default",
            "--fim-qwen-7b-default",
            "--fim-qwen-7b-spec",
            "--fim-qwen-14b-spec",
            "--fim-qwen-30b-default",
            "--gpt-oss-20b-default",
            "--gpt-oss-120b-default",
            "--vision-gemma-4b-default",
            "--vision-gemma-12b-default",
        ],
        Clash::Unsupported(
            "Set model_source to the model's address (with model_source_token_wo if it needs a token), and model to a \
             path for the file. Other files, such as the projector, belong into additional_files.",
        ),
    ),
    clashes(
        &["-hfd", "-hfrd", "--hf-repo-draft", "--spec-draft-hf"],
        Clash::Unsupported("Set additional_files to the draft model's address, and name its path with --model-draft."),
    ),
    clashes(
        &["-hfv", "-hfrv", "--hf-repo-v", "-hffv", "--hf-file-v"],
        Clash::Unsupported("Set additional_files to the vocoder's address, and name its path with --model-vocoder."),
    ),
    clashes(
        &["-mmu", "--mmproj-url"],
        Clash::Unsupported("Set additional_files to the projector's address, and name its path with --mmproj."),
    ),
    names_files(MemoryEffect::None, OptionFiles::One, &["--chat-template-file"]),
    names_files(MemoryEffect::None, OptionFiles::One, &["--grammar-file"]),
    names_files(MemoryEffect::None, OptionFiles::One, &["-jf", "--json-schema-file"]),
    names_files(MemoryEffect::None, OptionFiles::One, &["-lcs", "--lookup-cache-static"]),
    names_files(MemoryEffect::None, OptionFiles::One, &["-lcd", "--lookup-cache-dynamic"]),
    names_files(MemoryEffect::None, OptionFiles::One, &["--mcp-servers-config"]),
    names_files(MemoryEffect::None, OptionFiles::One, &["--media-path"]),
    names_files(MemoryEffect::None, OptionFiles::One, &["--path"]),
    names_files(MemoryEffect::None, OptionFiles::One, &["--slot-save-path"]),
    names_files(MemoryEffect::None, OptionFiles::One, &["--ui-config-file", "--webui-config-file"]),
    names_files(MemoryEffect::Uncomputed, OptionFiles::Many, &["--control-vector", "--control-vector-scaled"]),
    names_files(MemoryEffect::Files, OptionFiles::Many, &["--lora", "--lora-scaled"]),
    names_files(MemoryEffect::Files, OptionFiles::One, &["-md", "--model-draft", "--spec-draft-model"]),
    names_files(MemoryEffect::Files, OptionFiles::One, &["-mm", "--mmproj"]),
    names_files(MemoryEffect::Uncomputed, OptionFiles::One, &["-mv", "--model-vocoder"]),
    affects(MemoryEffect::Batch, &["-b", "--batch-size"]),
    affects(MemoryEffect::MicroBatch, &["-ub", "--ubatch-size"]),
    affects(MemoryEffect::Unified, &["-kvu", "--kv-unified"]),
    affects(MemoryEffect::Uncomputed, &["-cmoe", "--cpu-moe"]),
    affects(MemoryEffect::Uncomputed, &["-dev", DEVICE]),
    affects(MemoryEffect::Uncomputed, &["-devd", "--device-draft", "--spec-draft-device"]),
    affects(MemoryEffect::Uncomputed, &["-fit", "--fit"]),
    affects(MemoryEffect::Uncomputed, &["-kvo", "--kv-offload", "-nkvo", "--no-kv-offload"]),
    affects(MemoryEffect::Uncomputed, &["--kv-unified-per-slot"]),
    affects(MemoryEffect::Uncomputed, &["-mg", "--main-gpu"]),
    affects(MemoryEffect::Uncomputed, &["-ncffn", "--n-cpu-ffn"]),
    affects(MemoryEffect::Uncomputed, &["-ncmoe", "--n-cpu-moe"]),
    affects(MemoryEffect::Uncomputed, &["-ngld", "--gpu-layers-draft", "--n-gpu-layers-draft", "--spec-draft-ngl"]),
    affects(MemoryEffect::Uncomputed, &["--mmproj-offload", "--no-mmproj-offload"]),
    affects(MemoryEffect::Uncomputed, &["--op-offload", "--no-op-offload"]),
    affects(MemoryEffect::Uncomputed, &["-ot", "--override-tensor"]),
    affects(MemoryEffect::Uncomputed, &["--override-kv"]),
    affects(MemoryEffect::Uncomputed, &["--rpc"]),
    affects(MemoryEffect::Uncomputed, &["--spec-type"]),
    affects(MemoryEffect::Uncomputed, &["-sm", "--split-mode"]),
    affects(MemoryEffect::Uncomputed, &["--swa-full"]),
    affects(MemoryEffect::Uncomputed, &["-ts", "--tensor-split"]),
];

/// The option that names the file with the keys.
pub const API_KEY_FILE: &str = "--api-key-file";

/// The option that names the devices to use.
pub(super) const DEVICE: &str = "--device";

/// An option that an argument sets, and that the provider relies on.
const fn forbidden(argument: &'static str, names: &'static [&'static str]) -> ServerOption {
    clashes(names, Clash::Forbidden(argument))
}

/// An option that an argument sets.
const fn set(argument: &'static str, names: &'static [&'static str]) -> ServerOption {
    clashes(names, Clash::Set(argument))
}

const fn clashes(names: &'static [&'static str], clash: Clash) -> ServerOption {
    ServerOption { names, clash: Some(clash), memory: MemoryEffect::Uncomputed, files: OptionFiles::None }
}

const fn affects(memory: MemoryEffect, names: &'static [&'static str]) -> ServerOption {
    names_files(memory, OptionFiles::None, names)
}

const fn names_files(memory: MemoryEffect, files: OptionFiles, names: &'static [&'static str]) -> ServerOption {
    ServerOption { names, clash: None, memory, files }
}

impl ServerOption {
    /// The argument of the resource that sets it.
    pub fn argument(&self) -> Option<&'static str> {
        match self.clash {
            Some(Clash::Forbidden(argument) | Clash::Set(argument)) => Some(argument),
            Some(Clash::Secret(_) | Clash::Unsupported(_)) | None => None,
        }
    }

    /// Whether this is one of its spellings.
    pub fn is(&self, name: &str) -> bool {
        self.names.contains(&name)
    }

    /// Whether its value is a secret.
    pub fn is_secret(&self) -> bool {
        matches!(self.clash, Some(Clash::Secret(_)))
    }
}

/// The option that a word means; `None` for one that the provider does not know, and for a value.
pub fn find_option(word: &str) -> Option<&'static ServerOption> {
    let name = name(word);
    OPTIONS.iter().find(|option| option.is(&name))
}

/// The options among these words, each as it is spelled, and with its value: what follows `=`, or the next word.
pub(super) fn with_values(words: &[String]) -> impl Iterator<Item = (&'static ServerOption, &str, &str)> {
    words.iter().enumerate().filter_map(move |(index, word)| {
        let (name, value) = match word.split_once('=') {
            Some(both) => both,
            None => (word.as_str(), words.get(index + 1).map_or("", String::as_str)),
        };
        Some((find_option(name)?, name, value))
    })
}

/// The files that these words name, each after its option.
pub fn named_files(words: &[String]) -> Vec<(&str, &str)> {
    let mut files = Vec::new();
    for (option, name, value) in with_values(words) {
        match option.files {
            OptionFiles::Many => {
                let is_scaled = name.ends_with("scaled");
                let file = |file| if is_scaled { without_scale(file) } else { file };
                files.extend(value.split(',').map(|part| (name, file(part))));
            }
            OptionFiles::None => {}
            OptionFiles::One => files.push((name, value)),
        }
    }
    files.retain(|(_, file)| !file.is_empty());
    files
}

fn without_scale(file: &str) -> &str {
    match file.rsplit_once(':') {
        Some((file, scale)) if scale.parse::<f64>().is_ok() => file,
        _ => file,
    }
}

/// The spelling of the option that an argument sets.
pub(super) fn spelling(argument: &str) -> &'static str {
    let option = OPTIONS.iter().find(|option| option.argument() == Some(argument));
    option.and_then(|option| option.names.first()).copied().unwrap_or_default()
}

/// Judges one extra argument; its value, if it has one, is the next word.
pub fn clash(word: &str) -> Option<Clash> {
    find_option(word)?.clash
}

/// The argument that sets the option which a text names, such as a server's error.
pub fn argument_in(text: &str) -> Option<&'static str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let mut words = text.split(|c| !is_word(c));
    words.find_map(|word| OPTIONS.iter().find(|option| option.is(word))?.argument())
}

/// The option that a word means. The server takes `_` for `-` in words that begin with `--` (llama.cpp,
/// common/arg.cpp).
fn name(word: &str) -> Cow<'_, str> {
    let name = word.split('=').next().unwrap_or(word);
    if name.starts_with("--") { name.replace('_', "-").into() } else { name.into() }
}

/// The argument that sets what this environment variable would set, or what to use instead.
pub fn variable_clash(name: &str) -> Option<&'static str> {
    match name {
        "LLAMA_API_KEY" => Some("api_key sets the key, and keeps it out of the process's environment."),
        "AIP_MODE" | "AIP_HTTP_PORT" => Some("This variable would change the port that the server listens on."),
        _ if name.starts_with("LLAMA_ARG_") => {
            Some("The options of the server are arguments here; for others use extra_args.")
        }
        _ => None,
    }
}

/// Whether an environment variable can have this name.
pub fn is_variable_name(name: &str) -> bool {
    name.chars().next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The rule for a key, for people.
pub const API_KEY_RULE: &str = "a string of printable ASCII without spaces that does not begin with #";

/// Whether a server takes this text as a key: it reads one from each line, and newer servers take a line with # for a
/// comment. Clients send it in a header.
pub fn is_api_key(key: &str) -> bool {
    !key.is_empty() && !key.starts_with('#') && key.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_provider_relies_on_is_refused_and_what_it_sets_is_told() {
        for word in ["--api-key", "--api-key=planted", "--hf-token", "-hft"] {
            assert!(matches!(clash(word), Some(Clash::Secret(_))), "{word}");
        }
        assert_eq!(clash("--port=1"), Some(Clash::Forbidden("port")));
        assert_eq!(clash("-c"), Some(Clash::Set("context_size")));
        for word in ["--api-prefix", "--ssl-key-file", "--ssl_cert_file=x", "--version", "--help", "-cl"] {
            assert!(matches!(clash(word), Some(Clash::Unsupported(_))), "{word}");
        }
        for word in ["--embedding", "--reranking", "--threads", "8", "-cb", "--model-alias", "api_key"] {
            assert_eq!(clash(word), None, "{word}");
        }
    }

    /// All spellings of the server's help that choose, fetch or switch a model beside `model`.
    #[test]
    fn a_model_is_chosen_by_the_argument_alone() {
        let spellings = "-m --model -mu --model-url -dr --docker-repo -hf -hfr --hf-repo -hff --hf-file -hfd -hfrd \
                         --hf-repo-draft --spec-draft-hf -hfv -hfrv --hf-repo-v -hffv --hf-file-v -mmu --mmproj-url \
                         --models-dir --models-preset --embd-gemma-default --embd-bge-small-en-default \
                         --embd-e5-small-en-default --embd-gte-small-default --fim-qwen-1.5b-default \
                         --fim-qwen-3b-default --fim-qwen-7b-default \
                         --fim-qwen-7b-spec --fim-qwen-14b-spec --fim-qwen-30b-default --gpt-oss-20b-default \
                         --gpt-oss-120b-default --vision-gemma-4b-default --vision-gemma-12b-default";
        for word in spellings.split_whitespace() {
            let refused = |word: &str| !matches!(clash(word), None | Some(Clash::Set(_)));
            // The server takes `_` for `-` in a long name.
            let long = word.strip_prefix("--").map(|name| format!("--{}", name.replace('-', "_")));
            let other = long.unwrap_or_else(|| word.to_owned());
            assert!(refused(word) && refused(&other) && refused(&format!("{word}=x")), "{word}");
        }
    }

    #[test]
    fn an_error_of_the_server_names_the_argument_that_sets_its_option() {
        for (text, argument) in [
            ("error while handling argument \"-ctk\": Unsupported cache type: q9_9", Some("cache_type_k")),
            ("error while handling argument \"--cache-type-v\": no", Some("cache_type_v")),
            ("error: invalid argument: --no-such-flag", None),
            ("error: invalid argument: --host-name", None),
        ] {
            assert_eq!(argument_in(text), argument, "{text}");
        }
    }

    #[test]
    fn an_underscore_is_a_hyphen_as_the_server_reads_it() {
        for word in ["--api_key", "--api_key=planted", "--api_key-file"] {
            assert!(matches!(clash(word), Some(Clash::Secret(_))), "{word}");
        }
        assert_eq!(clash("--ctx_size=a_b"), Some(Clash::Set("context_size")));
        assert!(matches!(clash("--api_prefix=/v2"), Some(Clash::Unsupported(_))));
        assert_eq!(clash("-n_gpu_layers"), None);
    }

    #[test]
    fn variables_that_would_change_options_are_refused() {
        for name in ["LLAMA_API_KEY", "LLAMA_ARG_PORT", "AIP_MODE"] {
            assert!(variable_clash(name).is_some(), "{name}");
        }
        assert_eq!(variable_clash("CUDA_VISIBLE_DEVICES"), None);
    }
}
