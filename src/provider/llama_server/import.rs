//! Imports, and the identity of a server.

use super::{
    failure,
    log_in::{LoginEffort, witness_key},
    model::{LlamaServer, Records as _},
    read::refresh,
};
use crate::{
    api::{InstanceUid, Presence},
    framework::{
        Attr, Diagnostic, Diagnostics, Identity, IdentityAttribute, IdentitySchema, Outcome, Private, Result, State,
        Type,
    },
    llama::{DEFAULT_PORT, DEFAULT_WORKSPACE, Phase, Verb},
    provider::{
        StepContext,
        client::limits,
        errors::{Failure, database_id_hint},
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
pub(super) async fn import(id: &str, context: &StepContext) -> Result<Outcome<LlamaServer>> {
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
        workspace: DEFAULT_WORKSPACE.into(),
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
            let advice = database_id_hint(uid.as_str())
                .unwrap_or_else(|| "Check the id, base_url and the account of the API token".to_owned());
            return refused(
                format!("Cannot import {id:?}: the service does not have instance {uid}"),
                &format!("{advice}. {NOTHING}"),
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
    context: &StepContext,
) -> Result<Outcome<LlamaServer>> {
    let state = &current.state;
    let tried = format!("import {}", state.title());
    let mut said = Diagnostics::new();
    let opened = LoginEffort::of_a_refresh().open(state, state, access, &current.private, context, &mut said).await;
    let mut instance = match opened {
        Ok(instance) => instance,
        Err(NoLogin::NoCredentials) => {
            current.state.workspace = Attr::Null;
            return Ok(current.unchanged(Diagnostic::warning(
                "The server was not checked",
                "An import has no ssh argument, and the service provides no password for this instance. The first \
                 apply logs in with the configuration's ssh, and adopts the server that is running.",
            )));
        }
        Err(error) => return Err(Diagnostics::from(error.diagnostic(tried, access, NOTHING)).with(said)),
    };
    let outcome = match instance.run(&Verb::Look).await {
        Ok(report) if report.phase == Phase::Absent && !report.is_refused => Outcome::absent().with(Diagnostic::error(
            format!("Cannot import {}: it does not exist", state.title()),
            format!(
                "{DEFAULT_WORKSPACE}/.damodel of the instance has no record of a server on that port. {NOTHING} \
                 Apply its configuration instead."
            ),
        )),
        Ok(report) if report.is_refused => Outcome::absent().with(failure::refused(state, &report, NOTHING)),
        Ok(report) => {
            current.state.take_login(&instance, &mut current.private);
            current.state.set_owner(report.owner.clone());
            Box::pin(refresh(current, report, access, &mut instance)).await
        }
        Err(trouble) => Outcome::absent().with(failure::unseen(state, &trouble, None, NOTHING)),
    };
    Ok(outcome.with(said))
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
        None => (left, DEFAULT_PORT),
    };
    if uid.contains(['.', ' ', '/', ':']) || (uid.is_empty() && host.is_none()) {
        return None;
    }
    Some(Named { uid: Some(uid).filter(|uid| !uid.is_empty()).map(InstanceUid::new), port, host })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_an_instance_and_perhaps_a_port() {
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
}
