//! Imports, and the identity of a server.

use super::{
    bootstrap::{Phase, Verb},
    enter::{Attempt, NoEntrance, witness_key},
    failure,
    model::LlamaServer,
    options::{PORT, WORKSPACE},
    read::refresh,
    records::Records as _,
};
use crate::{
    api::{InstanceUid, Presence},
    framework::{
        Attr, Context, Diagnostic, Diagnostics, Identity, IdentityAttribute, IdentitySchema, Outcome, Private, State,
        Type,
    },
    provider::{Client, access::Access, client::limits, errors::Failure, lifecycle::absence, ssh::Ssh},
};

const NOTHING: &str = "Nothing was imported.";

/// What tells one server from all others: the machine, by its instance or its address, and the port.
pub(super) fn identity() -> IdentitySchema {
    let optional = IdentityAttribute::optional;
    IdentitySchema::new(vec![
        optional("instance_id", "instance_id", Type::String, "The instance's UID (`ins-…`)."),
        optional("host", "ssh.host", Type::String, "The address for SSH, where `ssh.host` is set."),
        optional("port", "port", Type::Number, "The port that the server listens on. An import without it means 8000."),
    ])
}

/// The import id of an identity.
///
/// # Errors
/// It names no machine.
pub(super) fn id_of(identity: &Identity) -> Result<String, Diagnostics> {
    let (uid, host) = (identity.text("instance_id"), identity.text("host"));
    if uid.is_none() && host.is_none() {
        let detail = "Say instance_id, or the host of a server over plain SSH.";
        return Err(Diagnostic::error("The identity names no machine", detail).into());
    }
    let port = identity.text("port").map(|port| format!(":{port}")).unwrap_or_default();
    let host = host.map(|host| format!("@{host}")).unwrap_or_default();
    Ok(format!("{}{port}{host}", uid.unwrap_or_default()))
}

/// Imports by the instance's UID, with a port where it is not the usual one. What runs there tells its options. Of a
/// server over plain SSH nothing is looked at: an import does not see what to log in with.
pub(super) async fn import(id: &str, context: &Context<Client>) -> Outcome<LlamaServer> {
    let refused = |summary: String, detail: &str| Outcome::absent().with(Diagnostic::error(summary, detail));
    let Some(Named { uid, port, host }) = parse(id) else {
        return refused(
            format!("Cannot import {id:?}"),
            "The import id is the instance's UID, and the server's port where it is not 8000: ins-… or ins-…:8001. \
             That of a server over plain SSH is its port and the host: :8000@10.0.0.1.",
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
            return Outcome::absent().with(failure.whole());
        }
    };
    if !access.runs() {
        return Outcome::absent().with(access.not_running(NOTHING));
    }
    absence::seen(&mut private, &witness_key(&uid), client, &limits).await;
    look(State { state, private }, Some(&access), context).await
}

async fn look(
    mut current: State<LlamaServer>,
    access: Option<&Access>,
    context: &Context<Client>,
) -> Outcome<LlamaServer> {
    let state = &current.state;
    let tried = format!("import {}", state.title());
    let opened = Attempt::of_a_refresh().open(state, state, access, &current.private, context).await;
    let mut machine = match opened {
        Ok(machine) => machine,
        Err(NoEntrance::NoCredentials) => {
            return current.unchanged(Diagnostic::warning(
                "The server was not looked at",
                "An import sees no ssh argument, and the service provides no password for this instance. The first \
                 apply logs in as the configuration says, and takes up what runs there.",
            ));
        }
        Err(error) => return Outcome::absent().with(error.diagnostic(tried, access, NOTHING)),
    };
    match machine.run(&Verb::Look).await {
        Ok(report) if report.phase == Phase::Absent => Outcome::absent().with(Diagnostic::error(
            format!("There is no {}", state.title()),
            format!(
                "Nothing that this provider started is recorded in {WORKSPACE}/.damodel of the instance for that \
                 port. {NOTHING} Apply its configuration instead."
            ),
        )),
        Ok(report) => {
            current.state.take_login(&machine, &mut current.private);
            current.private.note_owner(report.owner.as_deref().unwrap_or_default());
            Box::pin(refresh(current, report, &mut machine)).await
        }
        Err(trouble) => Outcome::absent().with(failure::unseen(state, &trouble, None, NOTHING)),
    }
}

/// What an import id names.
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
}
