//! Updates of instances.

use super::{disks::find_uids, model::Instance};
use crate::{
    framework::{Context, Outcome, Update, to_value},
    provider::{Client, client::limits, errors::Failure, lifecycle::ManagedExt as _},
};

/// Changes in place: everything but the name that may change without a new instance is never sent to the service.
pub(super) async fn update(change: Update<Instance>, context: &Context<Client>) -> Outcome<Instance> {
    let Update { prior, mut planned, private, .. } = change;
    let (client, limits) = (context.client.as_ref(), limits(context));
    if let Err(error) = find_uids(&mut planned.exist_disks, client, &limits).await {
        tracing::warn!(%error, "the uids of the cloud disks could not be looked up");
    }
    if to_value(&planned).is_ok_and(|planned| planned.is_wholly_known()) {
        return Outcome::present(planned, private);
    }
    let mut state = planned.clone();
    match client.api.instances().detail(&prior.uid(), &limits).await {
        Ok(detail) => {
            state.take_detail(&detail);
            // The service may show the old name for a moment; what was accepted counts, and the next refresh looks
            // again.
            state.name = planned.name;
            Outcome::present(state, private)
        }
        Err(error) => {
            let failure = Failure {
                error: &error,
                tried: format!("look at {} after its change", prior.title()),
                now: "The change itself was made. The next refresh completes the state.".to_owned(),
            };
            Outcome::present(state, private).with(failure.warning())
        }
    }
}
