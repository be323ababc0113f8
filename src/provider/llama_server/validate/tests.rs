//! Arguments that are refused.

use std::collections::BTreeMap;

use super::{super::model::Source, *};
use crate::{
    framework::Severity,
    provider::ssh::{Bastion, Ssh},
};

/// A server that needs nothing more.
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
    let lonely = LlamaServer { bastion_password_wo: Attr::Known(Secret::new("planted")), ..sound() };
    assert_eq!(errors(&lonely), ["ssh"]);
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

#[test]
fn a_source_is_fetched_or_there() {
    let with = |source: Source| LlamaServer { source: Attr::Known(source), ..sound() };
    let both = Source { path: "/src".into(), reference: "b1".into(), ..Source::default() };
    assert_eq!(errors(&with(both)), ["source.path"]);
    let unused = LlamaServer { build: "prebuilt".into(), ..with(Source::default()) };
    assert_eq!(found(&unused), [(Severity::Warning, "source".to_owned())]);
}
