//! Refresh. Only a status of Released, or an absence that is proved, takes an object out of the state.

use super::{Managed, ManagedExt as _, Shown, absence};
use crate::{
    api::{self, Context as Limits, Object, Presence},
    framework::{Context, Outcome, State},
    provider::{Client, client::limits},
};

/// Refreshes, where lists show all, from a list that all objects of the run share. Only what that list lacks is looked
/// for with calls of its own.
pub(super) async fn read<M: Managed>(mut current: State<M>, context: &Context<Client>) -> Outcome<M> {
    let (client, limits) = (context.client.as_ref(), limits(context));
    if let Some(id) = current.state.id() {
        client.in_a_state(M::Object::KIND, id);
    }
    let subject = current.state.subject();
    match look(&current.state, client, &limits).await {
        Ok(Presence::Present(shown)) => {
            absence::seen(&mut current.private, &subject.witness, client, &limits).await;
            current.state.take(&shown);
            current.state.complete(client, &limits).await;
            let diagnostics = current.state.refreshed(&mut current.private);
            Outcome::present(current.state, current.private).with(diagnostics)
        }
        Ok(Presence::Released) => absence::released(&subject, client),
        Ok(Presence::Absent) => absence::refresh(current, &subject, client, &limits).await,
        Ok(Presence::Unproved { reason }) => absence::unproved(current, &subject, reason),
        Err(error) => absence::failed(current, &subject, &error, client),
    }
}

async fn look<M: Managed>(state: &M, client: &Client, limits: &Limits) -> Result<Presence<M::Object>, api::Error> {
    let objects = client.api.objects::<M::Object>();
    let Some(key) = state.key() else { return Ok(Presence::Unproved { reason: "its id in the state cannot be read" }) };
    if let Some(shown) = glance::<M>(&key, client, limits).await? {
        return Ok(Presence::Present(Box::new(shown)));
    }
    objects.look(&key, state.hint(), limits).await
}

/// What the shared list shows of an object, where that is all there is to see.
async fn glance<M: Managed>(
    key: &super::Key<M>,
    client: &Client,
    limits: &Limits,
) -> Result<Option<Shown<M>>, api::Error> {
    if M::Object::DETAILS_AT_MOST > 0 {
        return Ok(None);
    }
    let listing = client.api.objects::<M::Object>().snapshot(limits).await?;
    Ok(listing.find(key).filter(|record| !record.is_released()).and_then(M::shown))
}
