//! Import by id.

use super::{Managed, ManagedExt as _, Record, Shown, absence, noun};
use crate::{
    api::{self, Context as Limits},
    framework::{Context, Diagnostic, Outcome, Private},
    provider::{Client, client::limits, errors::Failure},
};

/// What an import id names.
pub(in crate::provider) enum Found<M: Managed> {
    /// An object.
    One(Box<Shown<M>>),
    /// One that the service shows as released.
    Released,
    /// Nothing.
    None,
}

/// Imports by id. Everything that the service reports is filled in; what it never reports stays null.
pub(super) async fn import<M: Managed>(id: &str, context: &Context<Client>) -> Outcome<M> {
    let (client, limits) = (context.client.as_ref(), limits(context));
    let (id, noun) = (id.trim(), noun::<M>());
    let failed = |summary: String, detail: String| Outcome::absent().with(Diagnostic::error(summary, detail));
    if id.is_empty() {
        return failed(format!("Cannot import a {noun}"), format!("The import id is empty. It is {}.", M::IMPORT_ID));
    }
    match M::find(id, client, &limits).await {
        Ok(Found::One(shown)) => {
            let (mut state, mut private) = (M::default(), Private::default());
            state.take(&shown);
            state.complete(client, &limits).await;
            absence::seen(&mut private, &state.subject().witness, client, &limits).await;
            state.imported(&mut private);
            Outcome::present(state, private)
        }
        Ok(Found::Released) => failed(
            format!("Cannot import {noun} {id}: it is released"),
            "The service shows it as released, so it cannot be managed any more.".to_owned(),
        ),
        Ok(Found::None) => failed(
            format!("Cannot import {noun} {id}: it does not exist"),
            format!("The import id is {}. Check the id, base_url and the account of the API token.", M::IMPORT_ID),
        ),
        Err(error) => {
            let tried = format!("import {noun} {id}");
            let failure = Failure { error: &error, tried, now: "Nothing was imported.".to_owned() };
            Outcome::absent().with(failure.whole())
        }
    }
}

/// Finds an object in the list that the imports of one run share; what that lacks may have been made since.
pub(in crate::provider) async fn in_list<M: Managed>(
    client: &Client,
    limits: &Limits,
    is_wanted: impl Fn(&Record<M>) -> bool,
) -> Result<Found<M>, api::Error> {
    let objects = client.api.objects::<M::Object>();
    let mut listing = objects.snapshot(limits).await?;
    if !listing.records.iter().any(&is_wanted) {
        listing = objects.fresh(limits).await?;
    }
    let found = listing.records.iter().find(|record| is_wanted(record));
    Ok(found.and_then(M::shown).map_or(Found::None, |shown| Found::One(Box::new(shown))))
}
