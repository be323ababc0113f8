//! Refresh, and import by id. Only the status Released or a proven absence removes an object from the state.

use std::{borrow::Borrow as _, sync::atomic::Ordering};

use super::{
    absence,
    managed::{ImportTarget, Managed, ManagedExt as _, ObjectRecord, Shown, noun},
};
use crate::{
    api::{self, Context, Object, Presence},
    framework::{Diagnostic, Outcome, Private, Result, State},
    provider::{ProviderClient, StepContext, client::limits, errors::Failure, words::with_article},
};

/// Refreshes an object. If lists show all attributes, all objects of the run share a list, and only objects missing in
/// it are looked up separately.
pub(super) async fn read<M: Managed>(mut current: State<M>, context: &StepContext) -> Outcome<M> {
    let (client, limits) = (context.client.as_ref(), limits(context));
    if let Some(id) = current.state.id() {
        client.refreshed(M::Object::KIND, id, current.state.uid());
    }
    let subject = current.state.subject();
    match look(&current.state, client, &limits).await {
        Ok(Presence::Present(shown)) => {
            if let Some(another) = absence::another(&current.state, (*shown).borrow().uid()) {
                return current.unchanged(another);
            }
            absence::seen(&mut current.private, &subject.witness, client, &limits).await;
            let name = current.state.common().name.clone();
            current.state.take(&shown);
            current.state.complete(client, &limits).await;
            let mut diagnostics = current.state.refreshed(&mut current.private, client);
            if current.state.keep_spelling(&name) && !client.has_reported_spelling.swap(true, Ordering::Relaxed) {
                diagnostics.push(respelled(&current.state, (*shown).borrow()));
            }
            Outcome::present(current.state, current.private).with(diagnostics)
        }
        Ok(Presence::Released) => absence::released(&current.private, &subject, client),
        Ok(Presence::Absent) => absence::refresh(current, &subject, client, &limits).await,
        Ok(Presence::Unproved { reason }) => absence::unproved(current, &subject, reason),
        Err(error) => absence::failed(current, &subject, &error, client),
    }
}

/// The warning about names that the service changes, for the first one of a run.
fn respelled<M: Managed>(state: &M, shown: &M::Object) -> Diagnostic {
    Diagnostic::warning(
        "A name is shown in another spelling",
        format!(
            "The service shows {} as {:?}. The state keeps the configured name: case and blanks alone are no change.",
            state.title(),
            shown.name().unwrap_or_default()
        ),
    )
}

/// Looks at the object of a state.
pub(super) async fn look<M: Managed>(
    state: &M,
    client: &ProviderClient,
    limits: &Context,
) -> Result<Presence<Shown<M>>, api::Error> {
    let objects = client.api.objects::<M::Object>();
    let Some(key) = state.key() else { return Ok(Presence::Unproved { reason: "its id in the state cannot be read" }) };
    if let Some(shown) = glance::<M>(&key, client, limits).await? {
        return Ok(Presence::Present(Box::new(shown)));
    }
    objects.look(&key, state.hint(), limits).await
}

/// The object in the shared list, if the list shows all attributes.
async fn glance<M: Managed>(
    key: &super::Key<M>,
    client: &ProviderClient,
    limits: &Context,
) -> Result<Option<Shown<M>>, api::Error> {
    if M::Object::DETAILS_AT_MOST > 0 {
        return Ok(None);
    }
    let listing = client.api.objects::<M::Object>().snapshot(limits).await?;
    Ok(listing.find(key).filter(|record| !record.is_released()).and_then(M::Object::as_shown))
}

/// Imports an object by id. All reported attributes are set; the others stay null.
pub(super) async fn import<M: Managed>(id: &str, context: &StepContext) -> Result<Outcome<M>> {
    let (client, limits) = (context.client.as_ref(), limits(context));
    let (id, noun) = (id.trim(), noun::<M>());
    let failed = |summary: String, detail: String| Err(Diagnostic::error(summary, detail).into());
    if id.is_empty() {
        return failed(
            format!("Cannot import {}", with_article(noun)),
            format!("The import id is empty; expected: {}.", M::KIND.import_id),
        );
    }
    match M::find(id, client, &limits).await {
        Ok(ImportTarget::One(shown)) => {
            let (mut state, mut private) = (M::default(), Private::default());
            state.take(&shown);
            state.complete(client, &limits).await;
            absence::seen(&mut private, &state.subject().witness, client, &limits).await;
            Ok(Outcome::present(state, private))
        }
        Ok(ImportTarget::Released) => failed(
            format!("Cannot import {noun} {id}: it is released"),
            "The service shows it as released, so it can no longer be managed.".to_owned(),
        ),
        Ok(ImportTarget::None) => failed(
            format!("Cannot import {noun} {id}: it does not exist"),
            format!("The import id is {}. Check the id, base_url and the account of the API token.", M::KIND.import_id),
        ),
        Err(error) => {
            let tried = format!("import {noun} {id}");
            let failure = Failure { error: &error, tried, now: "Nothing was imported.".to_owned() };
            Err(failure.whole().into())
        }
    }
}

/// Finds an object in the list that all imports of a run share; if it is missing there, in a fresh list.
pub(in crate::provider) async fn in_list<M: Managed>(
    client: &ProviderClient,
    limits: &Context,
    is_wanted: impl Fn(&ObjectRecord<M>) -> bool,
) -> Result<ImportTarget<M>, api::Error> {
    let objects = client.api.objects::<M::Object>();
    let mut listing = objects.snapshot(limits).await?;
    if !listing.records.iter().any(&is_wanted) {
        listing = objects.fresh(limits).await?;
    }
    let found = listing.records.iter().find(|record| is_wanted(record));
    Ok(found.and_then(M::Object::as_shown).map_or(ImportTarget::None, |shown| ImportTarget::One(Box::new(shown))))
}
