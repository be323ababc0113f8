//! Leftovers of earlier runs without a pending record: found by the marker in the name, or by a handed-over record
//! whose object is in no state.

use super::{Choice, Managed, ManagedExt as _, ObjectRecord, noun};
use crate::{
    api::{self, Context, Marked, Object, Permission, marked},
    framework::{Diagnostic, Diagnostics},
    provider::{OnLeftover, ProviderClient, errors::Failure, words::capitalized},
};

/// The decision about leftovers.
pub(super) struct Decision<K> {
    pub(super) permission: Permission<K>,
    /// The index of the choice that the adopted object matches.
    pub(super) adopted: Option<usize>,
    pub(super) diagnostics: Diagnostics,
}

/// Looks for objects that an earlier run of this or another configuration created under the same name. `on_leftover`
/// decides about those of the same configuration; the others are a warning.
pub(super) async fn decide<M: Managed>(
    choices: &[Choice<M>],
    key: &str,
    client: &ProviderClient,
    limits: &Context,
) -> Decision<M::Object> {
    let mut decision = Decision { permission: Permission::Send, adopted: None, diagnostics: Diagnostics::new() };
    let Some(Choice { object: planned, .. }) = choices.first() else { return decision };
    if M::WHILE_BUSY == api::WhileBusy::Wait {
        // A private image has no marker: its name is unique, and the service refuses a second one.
        return decision;
    }
    let found = match found(planned, key, client, limits).await {
        Ok(found) => found,
        Err(error) => {
            not_looked_for(planned, &error, client, &mut decision);
            return decision;
        }
    };
    let mut own = Vec::new();
    for (record, whose) in found {
        let alike = choices.iter().position(|choice| choice.object.is_like(&record));
        let is_own = whose == Marked::Own && planned.name().is_some() && alike.is_some();
        match client.on_leftover {
            OnLeftover::Adopt if is_own && client.adopts(&record_id(&record)) => {
                decision.permission = Permission::Adopt(Box::new(record));
                decision.adopted = alike;
                return decision;
            }
            OnLeftover::Fail if is_own => own.push(record),
            _ => decision.diagnostics.push(look_alike::<M>(&record)),
        }
    }
    if !own.is_empty() {
        decision.diagnostics.push(refusal::<M>(&own));
        decision.permission = Permission::Refuse;
    }
    decision
}

/// Handles a failed search for leftovers: nothing is created, unless `on_leftover` is "warn".
fn not_looked_for<M: Managed>(
    planned: &M,
    error: &api::Error,
    client: &ProviderClient,
    decision: &mut Decision<M::Object>,
) {
    let noun = noun::<M>();
    let tried = format!("look for leftovers of {}", planned.title());
    if client.on_leftover == OnLeftover::Warn {
        let now = format!("The {noun} is created, as on_leftover is \"warn\".");
        decision.diagnostics.extend(Failure { error, tried, now }.of_a_check(client));
        return;
    }
    let now = format!(
        "Nothing was created. Apply again. To create without this check, set the provider's argument on_leftover to \
         \"warn\"; if an earlier run left a {noun}, a second one is then billed."
    );
    decision.diagnostics.push(Failure { error, tried, now }.whole());
    decision.permission = Permission::Refuse;
}

/// Objects with this name and a marker, without a pending record, and that no state has shown.
async fn found<M: Managed>(
    planned: &M,
    key: &str,
    client: &ProviderClient,
    limits: &Context,
) -> Result<Vec<(ObjectRecord<M>, Marked)>, api::Error> {
    let objects = client.api.objects::<M::Object>();
    let before = M::before(client).get_or_try_init(|| objects.snapshot(limits)).await?;
    let marked = before.records.iter().filter(|record| !record.is_released()).filter_map(|record| {
        let whose = marked(record.name()?, planned.name(), key)?;
        Some((record.clone(), whose))
    });
    let mut found: Vec<_> = marked.collect();
    if found.is_empty() {
        return Ok(found);
    }
    let entries = client.journal.list()?.entries;
    found.retain(|(record, _)| {
        let is_explained = entries.iter().any(|listed| Some(listed.record.marker.as_str()) == record.name());
        !is_explained && !client.was_in_a_state(M::Object::KIND, &record_id(record))
    });
    Ok(found)
}

fn record_id<K: Object>(record: &K) -> String {
    record.key().to_string()
}

/// The error for objects that an earlier run of this configuration may have created.
fn refusal<M: Managed>(records: &[ObjectRecord<M>]) -> Diagnostic {
    let noun = capitalized(noun::<M>());
    let (who, verb) = match records {
        [record] => (format!("{noun} {}", record_id(record)), "was"),
        several => (format!("{} {}s", several.len(), self::noun::<M>()), "were"),
    };
    let objects: Vec<String> = records
        .iter()
        .map(|record| {
            let (id, name) = (record_id(record), record.name().unwrap_or_default());
            format!("{noun} {id} with the name {name:?}: terraform import {}.<name> {id}", M::TYPE_NAME)
        })
        .collect();
    Diagnostic::error(
        format!("{who} {verb} left behind by an earlier run of this configuration"),
        format!(
            "The objects below have the marker of this configuration but no pending record, for example because \
             .terraform was deleted. They exist and are billed. Nothing was created. Import each one to its own \
             address, or release it in the console. To change what a create does, set the provider's argument \
             on_leftover to \"adopt\" or \"warn\".\n\n{}",
            objects.join("\n")
        ),
    )
}

/// The warning about an object that has the marker of another configuration, or may differ from this one's.
fn look_alike<M: Managed>(record: &ObjectRecord<M>) -> Diagnostic {
    let name = record.name().unwrap_or_default();
    leftover::<M>(&record_id(record), &format!("Its name {name:?} is the temporary name of a create."))
}

/// The warnings about objects that an earlier run created from the same configuration and returned, and that no state
/// has shown since.
pub(super) fn never_shown<M: Managed>(key: &str, client: &ProviderClient) -> Diagnostics {
    let mut diagnostics = Diagnostics::new();
    let never_shown = client.journal.never_shown(M::Object::KIND, key).unwrap_or_default();
    for id in &never_shown {
        let why = "An earlier run created it from the same configuration and reported it to Terraform, but no state \
                   has contained it since.";
        diagnostics.push(leftover::<M>(id, why));
    }
    diagnostics
}

fn leftover<M: Managed>(id: &str, why: &str) -> Diagnostic {
    Diagnostic::warning(
        format!("{} {id} may have been left behind", capitalized(noun::<M>())),
        format!(
            "{why} If it is in no state, it is billed and not managed. To manage it: terraform import {}.<name> {id}. \
             Otherwise release it in the console.",
            M::TYPE_NAME
        ),
    )
}
