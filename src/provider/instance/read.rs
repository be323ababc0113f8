use super::{model::Instance, witness_key};
use crate::{
    api::{InstanceStatus, Presence},
    framework::{Context, Diagnostic, Outcome, State},
    provider::{
        Client,
        client::limits,
        errors::Failure,
        presence::{self, Absence},
    },
};

/// Refreshes. Only Released, or absence that two looks and the account prove, takes an instance out of the state.
pub(super) async fn read(mut current: State<Instance>, context: &Context<Client>) -> Outcome<Instance> {
    let (client, limits) = (context.client.as_ref(), limits(context));
    let uid = current.state.uid();
    let title = current.state.title();
    match client.api.instances().look(&uid, &limits).await {
        Ok(Presence::Present(detail)) => {
            presence::seen(&mut current.private, &witness_key(&uid), client, &limits).await;
            current.state.take_detail(&detail);
            current.state.complete_image(client, &limits).await;
            let failed = detail.instance.status == Some(InstanceStatus::Failed);
            let outcome = Outcome::present(current.state, current.private);
            if failed { outcome.with(failed_warning(&title)) } else { outcome }
        }
        Ok(Presence::Released(record)) => {
            client.witness().saw(&witness_key(&uid));
            let status = record.status.as_ref().map_or("Released", InstanceStatus::as_str);
            Outcome::absent().with(Diagnostic::warning(
                format!("{} has left the state", capitalized(&title)),
                format!(
                    "The service shows it as {status}: the machine and its local disks are gone. In the state it was last {}. If the \
                     configuration still has it, the plan makes a new one.",
                    current.state.status.as_str().unwrap_or("of unknown status")
                ),
            ))
        }
        Ok(Presence::Absent { .. }) => absent(current, context).await,
        Ok(Presence::Unproved { reason }) => current.unchanged(Diagnostic::error(
            format!("It is not clear whether {title} exists"),
            format!("The service contradicts itself: {reason}. The state is unchanged. Run the plan again in a while."),
        )),
        Err(error) => {
            let failure = Failure { error: &error, tried: format!("refresh {title}"), now: UNCHANGED.to_owned() };
            let diagnostic = failure.whole();
            current.unchanged(diagnostic)
        }
    }
}

const UNCHANGED: &str = "The state is unchanged.";

async fn absent(current: State<Instance>, context: &Context<Client>) -> Outcome<Instance> {
    let (client, limits) = (context.client.as_ref(), limits(context));
    let title = current.state.title();
    let last = current.state.status.as_str().unwrap_or("of unknown status").to_owned();
    match presence::judge(&current.private, &witness_key(&current.state.uid()), client, &limits).await {
        Ok(Absence::Proved) => Outcome::absent().with(Diagnostic::warning(
            format!("{} has left the state", capitalized(&title)),
            format!(
                "The service no longer has it: neither its list nor its detail shows it. In the state it was last {last}. If the \
                 configuration still has it, the plan makes a new one."
            ),
        )),
        Ok(Absence::TooYoung) => current.unchanged(Diagnostic::warning(
            format!("{} is not visible yet", capitalized(&title)),
            "It was made a few minutes ago and the service does not show it. It stays in the state; the next refresh looks again.",
        )),
        Ok(Absence::AnotherAccount) => current.unchanged(Diagnostic::error(
            format!("The service does not show {title}"),
            format!(
                "Is this another account? Neither the list nor the detail shows it, but it was last seen under another base address \
                 or API token, and nothing else of this state was found. In the state it was last {last}. {UNCHANGED} If the token \
                 is the right one and the machine is really gone, remove it with: terraform state rm <address>."
            ),
        )),
        Err(error) => {
            let failure = Failure { error: &error, tried: format!("refresh {title}"), now: UNCHANGED.to_owned() };
            let diagnostic = failure.whole();
            current.unchanged(diagnostic)
        }
    }
}

fn failed_warning(title: &str) -> Diagnostic {
    Diagnostic::warning(
        format!("{} has failed", capitalized(title)),
        "The service shows it as Failed. It stays in the state; replace it with: terraform apply -replace=<address>.",
    )
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
