//! The update in place: the name of every kind, then what a kind has of its own.

use super::{Managed, ManagedExt as _};
use crate::{
    framework::{Context, Outcome, Path, Update},
    provider::{Client, client::limits, errors::Failure},
};

/// Renames, then changes the rest. What was reached is what the state says, step by step.
pub(super) async fn update<M: Managed>(mut change: Update<M>, context: &Context<Client>) -> Outcome<M> {
    let name = change.planned.common().name.clone();
    if let (Some(wanted), Some(key)) =
        (name.as_str().filter(|name| change.prior.name() != Some(name)), change.prior.key())
    {
        tracing::info!(id = %key, name = wanted, "renaming");
        if let Err(error) = context.client.api.objects::<M::Object>().rename(&key, wanted, &limits(context)).await {
            let failure = Failure {
                error: &error,
                tried: format!("rename {} to {wanted:?}", change.prior.title()),
                now: "The state keeps the old name; nothing else was changed.".to_owned(),
            };
            return Outcome::present(change.prior, change.private).with(failure.whole().at(Path::to("name")));
        }
        *change.prior.name_mut() = name;
    }
    M::update(change, context).await
}
