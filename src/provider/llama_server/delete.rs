//! Destroys: the server is stopped and its records are removed.

use super::{failure, log_in::LoginEffort, model::LlamaServer, read::subject};
use crate::{
    api::{AccountMatch, InstanceUid, Presence},
    framework::{Attr, Diagnostic, Diagnostics, Outcome, State},
    llama::{FailureKind, ServerPlace, Verb},
    provider::{
        DestroyFallback, ProviderClient, StepContext,
        client::limits,
        errors::Failure,
        lifecycle::absence,
        login::{Access, NoLogin},
        words::capitalized,
    },
    ssh,
};

const STAYS: &str = "The resource stays in the state. Correct the cause, then destroy again.";
const STAYS_UNLESS_ABANDONED: &str = "The resource stays in the state. Correct the cause, then destroy again. To leave \
                                      the server running and remove it from the state, set \
                                      DAMODEL_ON_UNREACHABLE=abandon.";

const STAYS_THOUGH_ABANDONED: &str = "The resource stays in the state. Correct the cause, then destroy again. \
                                      DAMODEL_ON_UNREACHABLE and on_unreachable are ignored: both apply only to an \
                                      instance that cannot be reached.";

/// The state of the instance before the login.
enum Home {
    /// It no longer exists, and neither do its processes.
    Gone,
    /// It may be running, or the service does not manage it.
    There(Option<Access>),
}

/// Stops the server and removes its records; builds stay. Nothing needs to be done if the instance no longer exists. A
/// server that cannot be reached is left running if the operator says so, or if only write-only credentials are set.
pub(super) async fn delete(current: State<LlamaServer>, context: &StepContext) -> Outcome<LlamaServer> {
    let access = match find_home(&current, context).await {
        Ok(Home::Gone) => return Outcome::absent(),
        Ok(Home::There(access)) => access,
        Err(diagnostic) => return current.unchanged(*diagnostic),
    };
    if let Some(access) = access.as_ref().filter(|access| !access.runs()) {
        tracing::info!(instance.id = %access.uid, "the instance is gone, and its processes with it");
        return Outcome::absent();
    }
    let mut unpinned = Diagnostics::new();
    let outcome = match stop(&current, access.as_ref(), context, &mut unpinned).await {
        Ok(warning) => Outcome::absent().with(warning),
        Err(error) => current.unchanged(*error),
    };
    outcome.with(unpinned)
}

/// Whether the operator gives up a server that cannot be reached.
fn abandons(state: &LlamaServer, client: &ProviderClient) -> bool {
    let wanted = state.on_unreachable.as_str().and_then(DestroyFallback::parse);
    client.on_unreachable.or(wanted) == Some(DestroyFallback::Abandon)
}

/// The advice after an error that does not prove the instance to be out of reach.
fn stays(state: &LlamaServer, client: &ProviderClient) -> &'static str {
    if abandons(state, client) { STAYS_THOUGH_ABANDONED } else { STAYS }
}

/// Stops the server: a warning if it was not stopped and leaves the state.
///
/// # Errors
/// The resource stays in the state.
async fn stop(
    current: &State<LlamaServer>,
    access: Option<&Access>,
    context: &StepContext,
    unpinned: &mut Diagnostics,
) -> Result<Diagnostics, Box<Diagnostic>> {
    let (state, private) = (&current.state, &current.private);
    let abandons = abandons(state, &context.client);
    let left = |why: &str| Ok(not_stopped(state, access, why, &[]).into());
    let unreachable = |error: Diagnostic| match abandons {
        true => left(&format!("{}, and on_unreachable is \"abandon\".", error.summary)),
        false => Err(Box::new(error)),
    };
    let effort = LoginEffort::of_a_destroy(abandons);
    let mut instance = match effort.open(state, state, access, private, context, unpinned).await {
        Ok(instance) => instance,
        Err(NoLogin::NoCredentials) => {
            return left("A destroy cannot use write-only credentials, and no others are set.");
        }
        Err(NoLogin::Ssh(error)) if matches!(*error, ssh::Error::HostKeyChanged { .. }) => {
            return left(&format!("{}.", capitalized(&error.to_string())));
        }
        Err(error) => {
            let tried = format!("stop {}", state.title());
            return unreachable(error.diagnostic(tried, access, STAYS_UNLESS_ABANDONED));
        }
    };
    let owner = state.owner();
    let verb = owner.as_deref().map_or(Verb::Look, |owner| Verb::Destroy { owner });
    match instance.run(&verb).await {
        Ok(report) if report.is_refused => match report.failure.as_ref().map(|failure| failure.kind) {
            Some(FailureKind::Foreign) => Ok(failure::foreign(state).into()),
            Some(FailureKind::NoAnswer | FailureKind::Stuck) => {
                unreachable(failure::not_stopped(state, &report, STAYS_UNLESS_ABANDONED))
            }
            _ => Err(Box::new(failure::not_stopped(state, &report, stays(state, &context.client)))),
        },
        // The process may belong to a successor.
        Ok(report) if owner.is_none() && report.runs().next().is_some() => {
            let why = "Its owner is unknown (process.owner is null), and another resource may own it.";
            Ok(not_stopped(state, access, why, &report.runs().collect::<Vec<_>>()).into())
        }
        Ok(_) => Ok(Diagnostics::new()),
        Err(trouble) => {
            let is_out_of_reach = trouble.is_out_of_reach();
            let now = if is_out_of_reach { STAYS_UNLESS_ABANDONED } else { stays(state, &context.client) };
            let error = failure::unseen(state, &trouble, None, now);
            if is_out_of_reach { unreachable(error) } else { Err(Box::new(error)) }
        }
    }
}

async fn find_home(current: &State<LlamaServer>, context: &StepContext) -> Result<Home, Box<Diagnostic>> {
    let Some(uid) = current.state.instance_id.as_str().map(InstanceUid::new) else { return Ok(Home::There(None)) };
    let (client, limits) = (context.client.as_ref(), limits(context));
    let (subject, stays) = (subject(&current.state, &uid), stays(&current.state, client));
    let failed = |error: &crate::api::Error| {
        let failure = Failure { error, tried: format!("stop {}", subject.title), now: stays.to_owned() };
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
            format!("Unclear whether instance {uid} exists"),
            format!("The service's responses are contradictory: {reason}. {stays}"),
        ))),
        Err(error) => Err(failed(&error)),
    }
}

/// It was removed from the state and not stopped: how to stop it by hand, unless its instance is destroyed too.
/// `processes` are those that a look has shown.
fn not_stopped(server: &LlamaServer, access: Option<&Access>, why: &str, processes: &[u32]) -> Diagnostic {
    let ssh = server.ssh.known();
    let host = ssh.and_then(|ssh| ssh.host()).or_else(|| access?.host.as_deref());
    let port = ssh.and_then(|ssh| ssh.port.known().copied()).or_else(|| access?.port.map(i64::from));
    let user = ssh.and_then(|ssh| ssh.user.as_str()).unwrap_or("root");
    let login = format!("ssh -p {} {user}@{}", port.unwrap_or(22), host.unwrap_or("<host>"));
    let stop = match (processes, server.records()) {
        ([], None) => format!("list its processes: {login} pgrep -a llama-server"),
        // The work, which would start it again, leads its process group. The pattern does not match its own command.
        ([], Some(ServerPlace { port, instance, .. })) => {
            format!("run: {login} 'pkill -g $(pgrep -of \"[.]damodel/{port}-{instance}/bootstrap.sh work\")'")
        }
        (seen, _) => {
            let pids: Vec<String> = seen.iter().map(ToString::to_string).collect();
            format!("run: {login} kill {}", pids.join(" "))
        }
    };
    // The create of a replacement takes it up: the command would end the new server.
    let stays = match &server.instance_id {
        Attr::Null => "Unless this run starts another server on its port",
        _ => "It ends with its instance. If the instance stays, and this run starts no other server on its port",
    };
    Diagnostic::warning(
        format!("{} was not stopped", capitalized(&server.title())),
        format!(
            "{why} The resource was removed from the state. {stays}, {stop}. Its records are in {}/.damodel.",
            server.workspace.as_str().unwrap_or("~/workspace")
        ),
    )
}
