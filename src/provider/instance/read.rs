use super::{import, model::Instance, witness_key};
use crate::{
    api::{InstanceStatus, Presence},
    framework::{Context, Diagnostic, Outcome, State},
    provider::{
        Client,
        client::limits,
        presence::{self, Subject, capitalized},
        protection::Protected as _,
    },
};

/// Refreshes. Only Released, or absence that two looks and the account prove, takes an instance out of the state.
pub(super) async fn read(mut current: State<Instance>, context: &Context<Client>) -> Outcome<Instance> {
    let (client, limits) = (context.client.as_ref(), limits(context));
    let uid = current.state.uid();
    let subject = Subject {
        title: current.state.title(),
        key: witness_key(&uid),
        last: current.state.status.as_str().unwrap_or("of unknown status").to_owned(),
    };
    match client.api.instances().look(&uid, &limits).await {
        Ok(Presence::Present(detail)) => {
            presence::seen(&mut current.private, &subject.key, client, &limits).await;
            current.state.take_detail(&detail);
            current.state.complete_image(client, &limits).await;
            import::complete(&mut current.state, &mut current.private);
            let failed = detail.instance.status == Some(InstanceStatus::Failed);
            let outcome = Outcome::present(current.state, current.private);
            if failed { outcome.with(failed_warning(&subject.title)) } else { outcome }
        }
        Ok(Presence::Released(_)) => presence::released(&subject, client),
        Ok(Presence::Absent { .. }) => presence::absent(current, &subject, context).await,
        Ok(Presence::Unproved { reason }) => presence::unproved(current, &subject, reason),
        Err(error) => presence::failed(current, &subject, &error),
    }
}

fn failed_warning(title: &str) -> Diagnostic {
    Diagnostic::warning(
        format!("{} has failed", capitalized(title)),
        "The service shows it as Failed. It stays in the state; replace it with: terraform apply -replace=<address>.",
    )
}
