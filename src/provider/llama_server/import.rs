//! Imports, and the identity of a server.

use super::{
    bootstrap::{Phase, Verb},
    failure,
    log_in::{LoginEffort, witness_key},
    model::{LlamaServer, Records as _},
    options::{self, PORT, ServerOption, WORKSPACE},
    read::refresh,
};
use crate::{
    api::{InstanceUid, Presence},
    framework::{
        Attr, Diagnostic, Diagnostics, Identity, IdentityAttribute, IdentitySchema, Outcome, Private, Result, State,
        StepContext, Type,
    },
    provider::{
        ProviderClient,
        client::limits,
        errors::Failure,
        lifecycle::absence,
        login::{Access, NoLogin, Ssh},
    },
};

const NOTHING: &str = "Nothing was imported.";

/// The identity of a server: its instance or SSH host, and the port.
pub(super) fn identity() -> IdentitySchema {
    let optional = IdentityAttribute::optional;
    IdentitySchema::new(vec![
        optional("instance_id", "instance_id", Type::String, "The instance's UID (`ins-…`)."),
        optional("host", "ssh.host", Type::String, "The address for SSH, if `ssh.host` is set."),
        optional("port", "port", Type::Number, "The port that the server listens on. Default of an import: 8000."),
    ])
}

/// The import id of an identity.
///
/// # Errors
/// Neither an instance nor a host is named.
pub(super) fn id_of(identity: &Identity) -> Result<String, Diagnostics> {
    let (uid, host) = (identity.text("instance_id"), identity.text("host"));
    if uid.is_none() && host.is_none() {
        let detail = "Set instance_id, or the host of a server over plain SSH.";
        return Err(Diagnostic::error("The identity has neither instance_id nor host", detail).into());
    }
    let port = identity.text("port").map(|port| format!(":{port}")).unwrap_or_default();
    let host = host.map(|host| format!("@{host}")).unwrap_or_default();
    Ok(format!("{}{port}{host}", uid.unwrap_or_default()))
}

/// Imports by the instance's UID, with a port if it is not the default. The options come from the command line of the
/// server. An import has no SSH credentials, so a server over plain SSH is not looked at.
pub(super) async fn import(id: &str, context: &StepContext<ProviderClient>) -> Result<Outcome<LlamaServer>> {
    let refused = |summary: String, detail: &str| Err(Diagnostic::error(summary, detail).into());
    let Some(Named { uid, port, host }) = parse(id) else {
        return refused(
            format!("Cannot import {id:?}"),
            "The import id is the instance's UID, with the server's port if it is not 8000: ins-… or ins-…:8001. For a \
             server over plain SSH it is the port and the host: :8000@10.0.0.1.",
        );
    };
    let mut private = Private::default();
    private.note_import();
    let mut state = LlamaServer {
        instance_id: uid.as_ref().map(|uid| uid.as_str().to_owned()).into(),
        port: Attr::Known(i64::from(port)),
        workspace: WORKSPACE.into(),
        ..LlamaServer::default()
    };
    if let Some(host) = host {
        state.ssh = Attr::Known(Ssh { host: host.into(), ..Ssh::default() });
    }
    state.take_place();
    let Some(uid) = uid else { return look(State { state, private }, None, context).await };
    let (client, limits) = (context.client.as_ref(), limits(context));
    let access = match client.api.instances().look(&uid, None, &limits).await {
        Ok(Presence::Present(detail)) => Access::of(&detail.instance),
        Ok(_) => {
            return refused(
                format!("Cannot import {id:?}: the service does not have instance {uid}"),
                "Check the id, base_url and the account of the API token. Nothing was imported.",
            );
        }
        Err(error) => {
            let failure = Failure { error: &error, tried: format!("import {id:?}"), now: NOTHING.to_owned() };
            return Err(failure.whole().into());
        }
    };
    if !access.runs() {
        return Err(access.not_running(NOTHING).into());
    }
    absence::seen(&mut private, &witness_key(&uid), client, &limits).await;
    look(State { state, private }, Some(&access), context).await
}

async fn look(
    mut current: State<LlamaServer>,
    access: Option<&Access>,
    context: &StepContext<ProviderClient>,
) -> Result<Outcome<LlamaServer>> {
    let state = &current.state;
    let tried = format!("import {}", state.title());
    let opened = LoginEffort::of_a_refresh().open(state, state, access, &current.private, context).await;
    let (mut machine, warnings) = match opened {
        Ok(opened) => opened,
        Err(NoLogin::NoCredentials) => {
            current.state.workspace = Attr::Null;
            return Ok(current.unchanged(Diagnostic::warning(
                "The server was not checked",
                "An import has no ssh argument, and the service provides no password for this instance. The first \
                 apply logs in with the configuration's ssh, and adopts the server that is running.",
            )));
        }
        Err(error) => return Err(error.diagnostic(tried, access, NOTHING).into()),
    };
    let outcome = match machine.run(&Verb::Look).await {
        Ok(report) if report.phase == Phase::Absent && !report.is_refused => Outcome::absent().with(Diagnostic::error(
            format!("Cannot import {}: it does not exist", state.title()),
            format!(
                "{WORKSPACE}/.damodel of the instance has no record of a server on that port. {NOTHING} Apply its \
                 configuration instead."
            ),
        )),
        Ok(report) if report.is_refused => Outcome::absent().with(failure::refused(state, &report, NOTHING)),
        Ok(report) => {
            current.state.take_login(&machine, &mut current.private);
            current.state.owner = report.owner.clone().into();
            Box::pin(refresh(current, report, access, &mut machine)).await
        }
        Err(trouble) => Outcome::absent().with(failure::unseen(state, &trouble, None, NOTHING)),
    };
    Ok(outcome.with(warnings))
}

/// The parts of an import id.
#[derive(Debug, PartialEq)]
struct Named {
    uid: Option<InstanceUid>,
    port: u16,
    host: Option<String>,
}

/// `ins-…`, `ins-…:8001` or, over plain SSH, `:8000@10.0.0.1`; an instance whose `ssh.host` is set has both.
fn parse(id: &str) -> Option<Named> {
    let (left, host) = match id.trim().split_once('@') {
        Some((left, host)) => {
            (left, Some(host.to_owned()).filter(|host| !host.is_empty() && !host.contains([' ', '/', '@'])))
        }
        None => (id.trim(), None),
    };
    let (uid, port) = match left.split_once(':') {
        Some((uid, port)) => (uid, port.parse().ok().filter(|port| *port != 0)?),
        None => (left, PORT),
    };
    if uid.contains(['.', ' ', '/', ':']) || (uid.is_empty() && host.is_none()) {
        return None;
    }
    Some(Named { uid: Some(uid).filter(|uid| !uid.is_empty()).map(InstanceUid::new), port, host })
}

impl LlamaServer {
    /// Takes the options of a command line, whose first word is the program. An option that is not on it keeps its
    /// value, except flags.
    pub(super) fn take_command_line(&mut self, words: &[String], home: Option<&str>) {
        let Some((_, arguments)) = words.split_first() else { return };
        let mut words = arguments.iter().map(String::as_str).peekable();
        let mut extra: Vec<Attr<String>> = Vec::new();
        let (mut jinja, mut metrics) = (false, false);
        while let Some(word) = words.next() {
            let option = options::find(word).filter(|_| !word.contains('='));
            match option.and_then(ServerOption::argument) {
                Some("model") => {
                    let before = self.model.clone();
                    words.next().into_iter().for_each(|path| take_path(&mut self.model, path, home));
                    if self.model != before {
                        // The address is that of the previous file.
                        self.model_source = Attr::Null;
                    }
                }
                // "localhost" is passed as this address.
                Some("host") => match words.next() {
                    Some("127.0.0.1") if self.host.as_str() == Some("localhost") => {}
                    host => take(&mut self.host, host),
                },
                Some("port") => drop(words.next()),
                Some("context_size") => take_number(&mut self.context_size, words.next()),
                Some("parallel") => take_number(&mut self.parallel, words.next()),
                Some("gpu_layers") => take_number(&mut self.gpu_layers, words.next()),
                Some("flash_attention") => {
                    // Builds before the autumn of 2025 know the bare flag only.
                    let value = words.next_if(|next| !next.starts_with("--") && flash_attention(next).is_some());
                    take(&mut self.flash_attention, value.map_or(Some("on"), flash_attention));
                }
                Some("cache_type_k") => take(&mut self.cache_type_k, words.next()),
                Some("cache_type_v") => take(&mut self.cache_type_v, words.next()),
                Some("jinja") => jinja = word != "--no-jinja",
                Some("metrics") => metrics = true,
                _ if word == options::API_KEY_FILE => drop(words.next()),
                _ => extra.push(word.into()),
            }
        }
        self.jinja = Attr::Known(jinja);
        self.metrics = Attr::Known(metrics);
        self.extra_args = if extra.is_empty() { Attr::Null } else { Attr::Known(extra) };
    }
}

/// The value of the attribute for a value of the option.
fn flash_attention(value: &str) -> Option<&'static str> {
    match value {
        "on" | "1" | "true" | "enabled" => Some("on"),
        "off" | "0" | "false" | "disabled" => Some("off"),
        "auto" | "-1" => Some("auto"),
        _ => None,
    }
}

fn take(attribute: &mut Attr<String>, value: Option<&str>) {
    if let Some(value) = value {
        *attribute = value.into();
    }
}

fn take_number(attribute: &mut Attr<i64>, value: Option<&str>) {
    if let Some(number) = value.and_then(|value| value.parse().ok()) {
        *attribute = Attr::Known(number);
    }
}

/// A path of the instance, which keeps its spelling when it means the same.
pub(super) fn take_path(attribute: &mut Attr<String>, path: &str, home: Option<&str>) {
    let in_home = home.and_then(|home| path.strip_prefix(home)).filter(|rest| rest.starts_with('/'));
    let short = in_home.map(|rest| format!("~{rest}"));
    if attribute.as_str() != Some(path) {
        *attribute = Attr::Known(short.unwrap_or_else(|| path.to_owned()));
    }
}

/// A command line as a person could type it.
pub(super) fn as_text(words: &[String]) -> String {
    let quoted = words.iter().map(|word| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+~()".contains(c);
        if !word.is_empty() && word.chars().all(is_plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_machine_and_perhaps_a_port() {
        let parsed =
            |id: &str| parse(id).map(|Named { uid, port, host }| (uid.map(|uid| uid.as_str().to_owned()), port, host));
        let (uid, host) = (Some("ins-1".to_owned()), Some("10.0.0.1".to_owned()));
        assert_eq!(parsed("ins-1"), Some((uid.clone(), 8000, None)));
        assert_eq!(parsed(" ins-1:8001 "), Some((uid.clone(), 8001, None)));
        assert_eq!(parsed(":8001@10.0.0.1"), Some((None, 8001, host.clone())));
        assert_eq!(parsed("@10.0.0.1"), Some((None, 8000, host.clone())));
        assert_eq!(parsed("ins-1:8001@10.0.0.1"), Some((uid, 8001, host)));
        assert_eq!(parsed(":8000@fd00::1"), Some((None, 8000, Some("fd00::1".to_owned()))));
        for id in
            ["", ":8000", "ins-1:", "ins-1:0", "ins-1:99999", "ins-1:x", "10.0.0.1:8000", "a:b:1", "@", ":8000@a b"]
        {
            assert_eq!(parsed(id), None, "{id}");
        }
    }

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn the_guides_command_line_gives_the_defaults() {
        let mut server = LlamaServer::default();
        let line = "/p/llama-server -m /root/m.gguf --host 0.0.0.0 --port 8000 -c 32768 -np 1 -ngl 999 -fa on -ctk \
                    q8_0 -ctv q8_0 --jinja --metrics";
        server.take_command_line(&words(line), Some("/root"));
        assert_eq!(server.model, "~/m.gguf".into());
        assert_eq!((server.context_size, server.parallel, server.gpu_layers), (32768.into(), 1.into(), 999.into()));
        assert_eq!((server.flash_attention, server.cache_type_k), ("on".into(), "q8_0".into()));
        assert_eq!((server.jinja, server.metrics, server.extra_args), (true.into(), true.into(), Attr::Null));
    }

    #[test]
    fn a_bare_flag_takes_no_word_of_others_and_what_is_unknown_is_extra() {
        let mut server = LlamaServer { model: "/root/m.gguf".into(), ..LlamaServer::default() };
        let line = "s -m /root/m.gguf -fa -ctk f16 --threads 8 --api-key-file /k";
        server.take_command_line(&words(line), Some("/root"));
        assert_eq!((server.flash_attention.as_str(), server.cache_type_k.as_str()), (Some("on"), Some("f16")));
        assert_eq!(server.model, "/root/m.gguf".into());
        assert_eq!(server.extra_args, Attr::Known(vec!["--threads".into(), "8".into()]));
        assert_eq!(server.jinja, false.into());
    }

    #[test]
    fn a_command_line_is_quoted_where_a_shell_would_need_it() {
        let words = ["/a b/llama-server", "--grammar", "it's", ""].map(str::to_owned);
        assert_eq!(as_text(&words), r"'/a b/llama-server' --grammar 'it'\''s' ''");
    }
}
