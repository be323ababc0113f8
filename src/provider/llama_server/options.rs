//! The server's own options, as the provider sets and refuses them.

use std::borrow::Cow;

/// Types that a cache may have.
pub(super) const CACHE_TYPES: &[&str] = &["f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"];

/// Those that are not quantized.
const FLOATS: &[&str] = &["f32", "f16", "bf16"];

/// The port where nobody names one.
pub(super) const PORT: u16 = 8000;

/// The workspace where nobody names one.
pub(super) const WORKSPACE: &str = "~/workspace";

/// What the probe asks when nobody says.
pub(super) const PROMPT: &str = "Say hello.";

/// What git calls the default branch of a repository.
pub(super) const DEFAULT_BRANCH: &str = "HEAD";

/// Whether a value cache of this type needs flash attention: the server exits without it.
pub(super) fn needs_flash_attention(cache_type: &str) -> bool {
    !FLOATS.contains(&cache_type)
}

/// What stands in the way of an extra argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clash {
    /// The key must not stand on a command line.
    ApiKey,
    /// The argument of this name sets it, and the provider would check the wrong server.
    Forbidden(&'static str),
    /// The argument of this name sets it already.
    Set(&'static str),
    /// With it no server would ever count as ready, and why.
    Unready(&'static str),
}

/// Options that an argument sets, and whether the provider relies on them.
const OPTIONS: &[(&[&str], &str, bool)] = &[
    (&["-m", "--model"], "model", true),
    (&["--host"], "host", true),
    (&["--port"], "port", true),
    (&["-c", "--ctx-size"], "context_size", false),
    (&["-np", "--parallel"], "parallel", false),
    (&["-ngl", "--gpu-layers", "--n-gpu-layers"], "gpu_layers", false),
    (&["-fa", "--flash-attn"], "flash_attention", false),
    (&["-ctk", "--cache-type-k"], "cache_type_k", false),
    (&["-ctv", "--cache-type-v"], "cache_type_v", false),
    (&["--jinja", "--no-jinja"], "jinja", false),
    (&["--metrics"], "metrics", false),
];

/// Judges one extra argument; its value, if it has one, is the next word.
pub(super) fn clash(word: &str) -> Option<Clash> {
    let name = name(word);
    match &*name {
        "--api-key" | "--api-key-file" => return Some(Clash::ApiKey),
        "--api-prefix" => {
            let reason = "The provider's health check, probe and chats do not support a prefix.";
            return Some(Clash::Unready(reason));
        }
        "--ssl-key-file" | "--ssl-cert-file" => {
            return Some(Clash::Unready(
                "The provider connects to the server through SSH, without TLS. For TLS, put a proxy in front of the \
                 server.",
            ));
        }
        "-h" | "--help" | "--usage" | "--version" | "--list-devices" => {
            return Some(Clash::Unready("With this option the server prints information and exits."));
        }
        _ => {}
    }
    let (_, argument, is_relied_on) = OPTIONS.iter().find(|(names, ..)| names.contains(&&*name))?;
    Some(if *is_relied_on { Clash::Forbidden(argument) } else { Clash::Set(argument) })
}

/// The argument that sets the option which a text speaks of, such as a server's error.
pub(super) fn argument_in(text: &str) -> Option<&'static str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let named = |names: &[&str]| text.split(|c| !is_word(c)).any(|word| names.contains(&word));
    OPTIONS.iter().find(|(names, ..)| named(names)).map(|(_, argument, _)| *argument)
}

/// The option that a word means. The server takes `_` for `-` in words that begin with `--` (llama.cpp,
/// common/arg.cpp).
pub(super) fn name(word: &str) -> Cow<'_, str> {
    let name = word.split('=').next().unwrap_or(word);
    if name.starts_with("--") { name.replace('_', "-").into() } else { name.into() }
}

/// The argument that sets what this environment variable would set, or what to use instead.
pub(super) fn variable_clash(name: &str) -> Option<&'static str> {
    match name {
        "LLAMA_API_KEY" => Some("api_key sets the key, and keeps it out of the process's environment."),
        "AIP_MODE" | "AIP_HTTP_PORT" => Some("It would change the port that the server listens on."),
        _ if name.starts_with("LLAMA_ARG_") => {
            Some("The options of the server are arguments here; for others use extra_args.")
        }
        _ => None,
    }
}

/// Whether an environment variable can have this name.
pub(super) fn is_variable_name(name: &str) -> bool {
    name.chars().next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The rule for a key, for people.
pub(super) const API_KEY: &str = "a string of printable ASCII without spaces that does not begin with #";

/// Whether a server takes this text as a key: it reads one from each line, and newer servers take a line with # for a
/// comment. Clients send it in a header.
pub(super) fn is_api_key(key: &str) -> bool {
    !key.is_empty() && !key.starts_with('#') && key.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_provider_relies_on_is_refused_and_what_it_sets_is_told() {
        assert_eq!(clash("--api-key"), Some(Clash::ApiKey));
        assert_eq!(clash("--api-key=planted"), Some(Clash::ApiKey));
        assert_eq!(clash("--port=1"), Some(Clash::Forbidden("port")));
        assert_eq!(clash("-c"), Some(Clash::Set("context_size")));
        for word in ["--api-prefix", "--ssl-key-file", "--ssl_cert_file=x", "--version", "--help", "--list-devices"] {
            assert!(matches!(clash(word), Some(Clash::Unready(_))), "{word}");
        }
        for word in ["--embedding", "--reranking", "--threads", "8", "-cb", "--model-alias", "api_key"] {
            assert_eq!(clash(word), None, "{word}");
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
            assert_eq!(clash(word), Some(Clash::ApiKey), "{word}");
        }
        assert_eq!(clash("--ctx_size=a_b"), Some(Clash::Set("context_size")));
        assert!(matches!(clash("--api_prefix=/v2"), Some(Clash::Unready(_))));
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
