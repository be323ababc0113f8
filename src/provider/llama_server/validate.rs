//! Rules between arguments, checked without an instance.

use secrecy::ExposeSecret;

use super::{model::LlamaServer, model_source};
use crate::{
    framework::{Attr, Diagnostics, Path},
    llama::{self, Clash},
    provider::login::Login,
};

/// Checks the rules between arguments.
pub(super) fn validate(config: &LlamaServer, diagnostics: &mut Diagnostics) {
    Login::validate(&config.ssh, !config.instance_id.is_null(), &config.write_only(), diagnostics);
    api_key(config, diagnostics);
    build(config, diagnostics);
    model_source::validate(config, diagnostics);
    extra_args(config, diagnostics);
    environment(config, diagnostics);
    if let Attr::Known(probe) = &config.probe
        && let (Some(endpoint @ ("embeddings" | "rerank" | "health")), Some(_)) =
            (probe.endpoint.as_str(), probe.expect.known())
    {
        diagnostics.warning_at(
            Path::to("probe").attribute("expect"),
            "expect has no effect",
            format!("Only the answer to a chat is compared with it, and endpoint is {endpoint:?}."),
        );
    }
    if let (Some("off"), Some(cache)) = (config.flash_attention.as_str(), config.cache_type_v.as_str())
        && llama::needs_flash_attention(cache)
    {
        diagnostics.error_at(
            Path::to("cache_type_v"),
            "This cache needs flash attention",
            format!(
                "The server exits at its start with flash_attention = \"off\" and a quantized value cache ({cache}). \
                 Set cache_type_v to \"f16\", or flash_attention to \"on\"."
            ),
        );
    }
}

fn api_key(config: &LlamaServer, diagnostics: &mut Diagnostics) {
    if config.api_key.is_known() && config.api_key_wo.is_known() {
        diagnostics.error_at(
            Path::to("api_key_wo"),
            "The same secret twice",
            "Set either api_key, which is stored in the state, or api_key_wo, which is not.",
        );
    }
    if config.api_key_wo_version.is_known() && config.api_key_wo.is_null() {
        diagnostics.error_at(
            Path::to("api_key_wo_version"),
            "A version without its key",
            "api_key_wo_version has no effect without api_key_wo. Set api_key_wo, or remove the version.",
        );
    }
    if config.api_key.is_null() && config.api_key_wo.is_known() && config.api_key_wo_version.is_null() {
        diagnostics.error_at(
            Path::to("api_key_wo"),
            "A write-only key without its version",
            "Terraform cannot detect changes of write-only values: set api_key_wo_version, and change it whenever the \
             key changes.",
        );
    }
}

fn build(config: &LlamaServer, diagnostics: &mut Diagnostics) {
    match config.build.as_str() {
        Some("prebuilt") if config.source.is_known() => diagnostics.warning_at(
            Path::to("source"),
            "source has no effect",
            "Nothing is compiled with build = \"prebuilt\".",
        ),
        Some("source") if config.package.is_known() => diagnostics.warning_at(
            Path::to("package"),
            "package has no effect",
            "The prebuilt server is not used with build = \"source\".",
        ),
        _ => {}
    }
    let Attr::Known(source) = &config.source else { return };
    if source.url.as_str().is_some_and(has_credentials) {
        diagnostics.error_at(
            Path::to("source").attribute("url"),
            "Credentials in an address",
            "They would be stored in the state, and shown in plans and logs. Give an address without user and \
             password: configure the credentials in the instance's git, or set source.path.",
        );
    }
    if source.path.is_known() && (source.url.is_known() || source.reference.is_known()) {
        diagnostics.error_at(
            Path::to("source").attribute("path"),
            "Two sources",
            "Set either source.path, which is in the instance, or source.url and source.ref, which are fetched with \
             git.",
        );
    }
}

/// Whether an address holds a password or token. The user of SSH is no secret.
fn has_credentials(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    let authority = rest.split('/').next().unwrap_or_default();
    authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':') || scheme.starts_with("http"))
}

fn extra_args(config: &LlamaServer, diagnostics: &mut Diagnostics) {
    for (index, word) in config.extra_args.known().into_iter().flatten().enumerate() {
        let path = Path::to("extra_args").index(index);
        let word = match word {
            Attr::Unknown => continue,
            Attr::Null => {
                diagnostics.error_at(
                    path,
                    "An option that is null",
                    "Each element of extra_args must be one word of a command line.",
                );
                continue;
            }
            Attr::Known(word) => word,
        };
        match llama::clash(word) {
            Some(Clash::Secret(instead)) => diagnostics.error_at(
                path,
                "A key on the command line",
                format!(
                    "Every user of the instance can read a command line, and it would be stored in the state. {instead}"
                ),
            ),
            Some(Clash::Forbidden(argument)) => diagnostics.error_at(
                path,
                "An option that an argument sets",
                format!(
                    "{word:?} is set with {argument}. The provider uses it to check the server, so it must not be set \
                         here too."
                ),
            ),
            Some(Clash::Set(argument)) => diagnostics.warning_at(
                path,
                "An option that an argument sets",
                format!("{word:?} is set with {argument}, and this second value would override it."),
            ),
            Some(Clash::Unsupported(reason)) => diagnostics.error_at(
                path,
                "An option that the provider does not support",
                format!("{word:?} cannot be set here. {reason}"),
            ),
            None if word.starts_with('-') && word.contains(' ') => diagnostics.warning_at(
                path,
                "An option and its value in one word",
                format!("{word:?} is passed as one word. Write the option and its value as two elements."),
            ),
            None => {}
        }
    }
}

fn environment(config: &LlamaServer, diagnostics: &mut Diagnostics) {
    if !config
        .environment
        .known()
        .into_iter()
        .flat_map(|variables| variables.values())
        .all(|value| value.known().is_none_or(|value| llama::is_passable(value.clone().into_inner().expose_secret())))
    {
        diagnostics.error_at(
            Path::to("environment"),
            "A value with a NUL character",
            "No process accepts a NUL character. Remove it.",
        );
    }
    // The names are as sensitive as the values, and a path would show them.
    for name in config.environment.known().into_iter().flat_map(|variables| variables.keys()) {
        if let Some(instead) = llama::variable_clash(name) {
            diagnostics.error_at(
                Path::to("environment"),
                "A variable that an argument sets",
                format!("{name} cannot be set here. {instead}"),
            );
        } else if !llama::is_variable_name(name) {
            diagnostics.error_at(
                Path::to("environment"),
                "Invalid name of a variable",
                format!(
                    "{name:?} is not a valid name of an environment variable. Use letters, digits and _; the first \
                         character must not be a digit."
                ),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{
        super::model::{BuildSource, Probe},
        *,
    };
    use crate::{
        framework::{Secret, Severity},
        provider::login::{Bastion, Ssh},
    };

    /// A complete configuration.
    fn sound() -> LlamaServer {
        LlamaServer { instance_id: "ins-1".into(), model: "/m.gguf".into(), ..LlamaServer::default() }
    }

    fn found(config: &LlamaServer) -> Vec<(Severity, String)> {
        let mut diagnostics = Diagnostics::new();
        validate(config, &mut diagnostics);
        diagnostics.into_iter().map(|found| (found.severity, found.path.unwrap_or_default().to_string())).collect()
    }

    fn errors(config: &LlamaServer) -> Vec<String> {
        let errors = found(config).into_iter().filter(|(severity, _)| *severity == Severity::Error);
        errors.map(|(_, path)| path).collect()
    }

    fn words(words: &[&str]) -> Attr<Vec<Attr<String>>> {
        Attr::Known(words.iter().map(|word| Attr::from(*word)).collect())
    }

    #[test]
    fn an_instance_is_enough() {
        assert_eq!(found(&sound()), []);
        assert_eq!(found(&LlamaServer { instance_id: Attr::Unknown, ..sound() }), []);
    }

    #[test]
    fn without_an_instance_there_must_be_a_host_and_something_to_log_in_with() {
        let nowhere = LlamaServer { instance_id: Attr::Null, ..sound() };
        assert_eq!(errors(&nowhere), ["instance_id"]);
        let with = |ssh: Ssh| LlamaServer { ssh: Attr::Known(ssh), ..nowhere.clone() };
        assert_eq!(errors(&with(Ssh::default())), ["ssh", "ssh"]);
        let host = Ssh { host: "h".into(), ..Ssh::default() };
        assert_eq!(errors(&with(host.clone())), ["ssh"]);
        assert_eq!(errors(&with(Ssh { agent: Attr::Known(false), ..host.clone() })), ["ssh"]);
        for ssh in [
            Ssh { agent: Attr::Known(true), ..host.clone() },
            Ssh { private_key_file: "~/.ssh/id".into(), ..host.clone() },
            Ssh { password: Attr::Unknown, ..host.clone() },
            Ssh { host: Attr::Unknown, agent: Attr::Known(true), ..Ssh::default() },
        ] {
            assert_eq!(errors(&with(ssh.clone())), Vec::<String>::new(), "{ssh:?}");
        }
        let write_only = LlamaServer { ssh_password_wo: Attr::Known(Secret::new("planted")), ..with(host) };
        assert_eq!(errors(&write_only), Vec::<String>::new());
        assert_eq!(errors(&LlamaServer { ssh: Attr::Unknown, ..nowhere.clone() }), Vec::<String>::new());
    }

    #[test]
    fn a_bastion_has_credentials_of_its_own() {
        let through = |bastion: Bastion| LlamaServer {
            ssh: Attr::Known(Ssh { bastion: Attr::Known(bastion), ..Ssh::default() }),
            ..sound()
        };
        let bastion = Bastion { host: "b".into(), ..Bastion::default() };
        assert_eq!(errors(&through(bastion.clone())), ["ssh.bastion"]);
        assert_eq!(errors(&through(Bastion { agent: Attr::Known(true), ..bastion })), Vec::<String>::new());
    }

    #[test]
    fn a_secret_is_either_stored_or_write_only() {
        let secret = || Attr::Known(Secret::new("planted"));
        let twice = LlamaServer {
            ssh: Attr::Known(Ssh { password: secret(), ..Ssh::default() }),
            ssh_password_wo: secret(),
            api_key: secret(),
            api_key_wo: secret(),
            api_key_wo_version: Attr::Known(1),
            ..sound()
        };
        assert_eq!(errors(&twice), ["ssh_password_wo", "api_key_wo"]);
        assert_eq!(errors(&LlamaServer { api_key: secret(), api_key_wo: secret(), ..sound() }), ["api_key_wo"]);
        assert_eq!(errors(&LlamaServer { api_key_wo: secret(), ..sound() }), ["api_key_wo"]);
        assert_eq!(errors(&LlamaServer { api_key_wo_version: Attr::Known(1), ..sound() }), ["api_key_wo_version"]);
    }

    #[test]
    fn options_that_arguments_set_are_refused_or_told() {
        let config = LlamaServer { extra_args: words(&["--threads", "8", "--api-key", "k", "--port=1"]), ..sound() };
        assert_eq!(errors(&config), ["extra_args[2]", "extra_args[4]"]);
        let config = LlamaServer { extra_args: words(&["--api_key", "k", "--api-prefix", "/v2"]), ..sound() };
        assert_eq!(errors(&config), ["extra_args[0]", "extra_args[2]"]);
        let config = LlamaServer { extra_args: words(&["-c", "4096", "--threads 8"]), ..sound() };
        let warned = [(Severity::Warning, "extra_args[0]".to_owned()), (Severity::Warning, "extra_args[2]".to_owned())];
        assert_eq!(found(&config), warned);
        let config = LlamaServer { extra_args: Attr::Known(vec![Attr::Unknown, Attr::Null]), ..sound() };
        assert_eq!(errors(&config), ["extra_args[1]"]);
    }

    #[test]
    fn a_key_on_the_command_line_is_not_repeated_in_the_error() {
        let mut diagnostics = Diagnostics::new();
        let planted = words(&["--api-key=planted", "--api_key=planted"]);
        validate(&LlamaServer { extra_args: planted, ..sound() }, &mut diagnostics);
        assert!(!format!("{diagnostics:?}").contains("planted"), "{diagnostics:?}");
    }

    #[test]
    fn variables_have_names_and_no_argument_of_their_own() {
        let with = |name: &str, value: &str| {
            let variables = BTreeMap::from([(name.to_owned(), Attr::Known(Secret::new(value)))]);
            LlamaServer { environment: Attr::Known(variables), ..sound() }
        };
        assert_eq!(found(&with("CUDA_VISIBLE_DEVICES", "0")), []);
        for name in ["LLAMA_API_KEY", "LLAMA_ARG_PORT", "1A", "A-B", ""] {
            assert_eq!(errors(&with(name, "x")), ["environment"], "{name}");
        }
        assert_eq!(errors(&with("A", "x\0y")), ["environment"]);
    }

    #[test]
    fn a_quantized_value_cache_needs_flash_attention() {
        let with = |cache: &str| LlamaServer { flash_attention: "off".into(), cache_type_v: cache.into(), ..sound() };
        assert_eq!(errors(&with("q8_0")), ["cache_type_v"]);
        assert_eq!(errors(&with("f16")), Vec::<String>::new());
    }

    /// Only the answer to a chat is a text.
    #[test]
    fn an_expected_answer_needs_a_chat() {
        let with = |endpoint: &str| {
            let probe = Probe { endpoint: endpoint.into(), expect: "pong".into(), ..Probe::default() };
            found(&LlamaServer { probe: Attr::Known(probe), ..sound() })
        };
        assert_eq!(with("chat"), []);
        for endpoint in ["embeddings", "rerank", "health"] {
            assert_eq!(with(endpoint), [(Severity::Warning, "probe.expect".to_owned())], "{endpoint}");
        }
    }

    #[test]
    fn a_source_is_fetched_or_there() {
        let with = |source: BuildSource| LlamaServer { source: Attr::Known(source), ..sound() };
        let both = BuildSource { path: "/src".into(), reference: "b1".into(), ..BuildSource::default() };
        assert_eq!(errors(&with(both)), ["source.path"]);
        let unused = LlamaServer { build: "prebuilt".into(), ..with(BuildSource::default()) };
        assert_eq!(found(&unused), [(Severity::Warning, "source".to_owned())]);
    }
}
