//! Destroys: the server is stopped and its records are removed.

use super::{
    bootstrap::{FailureKind, JobReport, Verb},
    failure,
    log_in::{LoginEffort, NoLogin},
    model::{LlamaServer, Records as _},
    read::subject,
};
use crate::{
    api::{AccountMatch, InstanceUid, Presence},
    framework::{Diagnostic, Outcome, State, StepContext},
    provider::{
        ProviderClient, access::Access, client::limits, errors::Failure, lifecycle::absence, words::capitalized,
    },
    ssh,
};

const STAYS: &str = "It stays in the state; destroy again when this is corrected. If the instance no longer exists, \
                     remove it with: terraform state rm <address>.";

/// What is known of the instance before anyone logs in to it.
enum Home {
    /// It is gone, and its processes with it.
    Gone,
    /// It may be running, or is none of the service's.
    There(Option<Access>),
}

/// Stops the server and removes its records; builds stay. Where the instance is gone there is nothing to do, and
/// where nobody can log in for want of a credential the server is left running, with a warning.
pub(super) async fn delete(current: State<LlamaServer>, context: &StepContext<ProviderClient>) -> Outcome<LlamaServer> {
    let access = match find_home(&current, context).await {
        Ok(Home::Gone) => return Outcome::absent(),
        Ok(Home::There(access)) => access,
        Err(diagnostic) => return current.unchanged(*diagnostic),
    };
    if let Some(access) = access.as_ref().filter(|access| !access.runs()) {
        tracing::info!(instance.id = %access.uid, "the instance is gone, and its processes with it");
        return Outcome::absent();
    }
    let (state, private) = (&current.state, &current.private);
    let opened = LoginEffort::of_a_destroy().open(state, state, access.as_ref(), private, context).await;
    let mut machine = match opened {
        Ok(machine) => machine,
        Err(NoLogin::NoCredentials) => {
            let why = "A destroy cannot use write-only credentials, and no others are set.";
            return Outcome::absent().with(left_running(state, access.as_ref(), why));
        }
        Err(NoLogin::Ssh(error)) if matches!(*error, ssh::Error::HostKeyChanged { .. }) => {
            let why = format!("{}. The provider could not log in to stop it.", capitalized(&error.to_string()));
            return Outcome::absent().with(left_running(state, access.as_ref(), &why));
        }
        Err(error) => {
            let diagnostic = error.diagnostic(format!("stop {}", state.title()), access.as_ref(), STAYS);
            return current.unchanged(diagnostic);
        }
    };
    let owner = private.owner();
    match machine.run(&Verb::Destroy { owner: &owner }).await {
        Ok(report) if is_foreign(&report) => Outcome::absent().with(failure::foreign(state)),
        Ok(report) if report.is_refused => {
            let diagnostic = failure::not_stopped(state, &report, STAYS);
            current.unchanged(diagnostic)
        }
        Ok(_) => Outcome::absent(),
        Err(trouble) => {
            let diagnostic = failure::unseen(state, &trouble, None, STAYS);
            current.unchanged(diagnostic)
        }
    }
}

/// Whether another resource owns the server by now.
fn is_foreign(report: &JobReport) -> bool {
    report.is_refused && report.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Foreign)
}

async fn find_home(
    current: &State<LlamaServer>,
    context: &StepContext<ProviderClient>,
) -> Result<Home, Box<Diagnostic>> {
    let Some(uid) = current.state.instance_id.as_str().map(InstanceUid::new) else { return Ok(Home::There(None)) };
    let (client, limits) = (context.client.as_ref(), limits(context));
    let subject = subject(&current.state, &uid);
    let failed = |error: &crate::api::Error| {
        let failure = Failure { error, tried: format!("stop {}", subject.title), now: STAYS.to_owned() };
        Box::new(failure.whole())
    };
    match client.api.instances().look(&uid, None, &limits).await {
        Ok(Presence::Present(detail)) => Ok(Home::There(Some(Access::of(&detail.instance)))),
        Ok(Presence::Released) => Ok(Home::Gone),
        Ok(Presence::Absent) => match absence::judge(&current.private, &subject.witness, client, &limits).await {
            Ok(absence) if absence.account == AccountMatch::Same => Ok(Home::Gone),
            Ok(absence) => Err(Box::new(absence::doubt(&subject, absence))),
            Err(error) => Err(failed(&error)),
        },
        Ok(Presence::Unproved { reason }) => Err(Box::new(Diagnostic::error(
            format!("It is not clear whether instance {uid} exists"),
            format!("The answers of the service contradict each other: {reason}. {STAYS}"),
        ))),
        Err(error) => Err(failed(&error)),
    }
}

/// It leaves the state, and goes on running: how to end it by hand.
fn left_running(server: &LlamaServer, access: Option<&Access>, why: &str) -> Diagnostic {
    let (ssh, user) = (server.ssh.known(), "root");
    let host = ssh.and_then(|ssh| ssh.host.as_str()).or_else(|| access?.host.as_deref());
    let port = ssh.and_then(|ssh| ssh.port.known().copied()).or_else(|| access?.port.map(i64::from));
    let user = ssh.and_then(|ssh| ssh.user.as_str()).unwrap_or(user);
    let login = format!("ssh -p {} {user}@{}", port.unwrap_or(22), host.unwrap_or("<host>"));
    let stop = match server.pid.known() {
        Some(pid) => format!("It is process {pid}; stop it with: {login} kill {pid}"),
        None => format!("To find its process, run: {login} pgrep -a llama-server"),
    };
    Diagnostic::warning(
        format!("{} was left running", capitalized(&server.title())),
        format!(
            "{why} It was removed from the state. {stop}. Its records are in {}/.damodel.",
            server.workspace.as_str().unwrap_or("~/workspace")
        ),
    )
}
