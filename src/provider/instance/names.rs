//! The check of a planned name: what has it already, and what an unfinished create may have left under it.

use super::{max_age::print_age, schema::Instance};
use crate::{
    api::{self, Context, Object as _, ObjectKind, is_same_name},
    creation::{CreatePhase, is_marked, marker_of},
    framework::{Diagnostic, Diagnostics, Path},
    provider::{
        OnLeftover, ProviderClient,
        errors::Failure,
        lifecycle::{ManagedExt as _, taken},
        words::{indented, keep_or_delete},
    },
};

/// Looks once at the account's instances. `replaced` is the uid of the instance that the planned one replaces.
pub(super) async fn check(
    planned: &Instance,
    replaced: Option<&str>,
    client: &ProviderClient,
    limits: &Context,
) -> Diagnostics {
    let Some(name) = planned.name.as_str() else { return Diagnostics::new() };
    let listing = match client.api.instances().snapshot(limits).await {
        Ok(listing) => listing,
        Err(error) => {
            let now = "The plan continues without this check.".to_owned();
            let tried = format!("look for instances named {name:?}");
            return Failure { error: &error, tried, now }.of_a_check(client);
        }
    };
    let living = listing.records.iter().filter(|instance| instance.is_living());
    let (named, others): (Vec<_>, Vec<_>) =
        living.partition(|instance| instance.name().is_some_and(|shown| is_same_name(shown, name)));
    let mut marked = others;
    marked.retain(|instance| instance.name().is_some_and(|sent| marker_of(sent, name).is_some()));
    marked.retain(|instance| !client.has_shown(ObjectKind::Instance, instance.uid.as_str()));
    let mut named = if client.unique_names { named } else { Vec::new() };
    named.retain(|instance| {
        let uid = instance.uid.as_str();
        Some(uid) != replaced && !client.may_free_name(ObjectKind::Instance, uid)
    });
    if named.is_empty() && marked.is_empty() {
        return Diagnostics::new();
    }
    let (journal, base_url) = (client.journal.clone(), client.base_url().unwrap_or_default());
    let report = limits.blocking(move || journal.list()).await.and_then(Result::ok).unwrap_or_default();
    let is_recorded = |instance: &api::Instance, is_finished: bool| {
        let records = report.entries.iter().map(|listed| &listed.record);
        records
            .filter(|record| is_finished || record.phase != CreatePhase::Finished)
            .any(|record| record.names(instance, &base_url) || record.sent_name_of(instance))
    };
    // The apply judges what a record names, and resumes an unfinished create.
    named.retain(|instance| !is_recorded(instance, false));
    // A create of the same run names it once more, with the address.
    let is_new = |instance: &api::Instance| client.names(ObjectKind::Instance, &format!("{} in a plan", instance.uid));
    marked.retain(|instance| !is_recorded(instance, true) && is_new(instance));
    let warning = (!marked.is_empty()).then(|| left(planned, name, &marked, client));
    [taken::<Instance>(&named, client), warning].into_iter().flatten().collect()
}

/// The warning about the instances that have the name of an unfinished create.
fn left(planned: &Instance, name: &str, marked: &[&api::Instance], client: &ProviderClient) -> Diagnostic {
    let lines = marked.iter().map(|instance| {
        let started = instance.start_time.filter(|start| *start > 0);
        let age = client.api.last_date().zip(started).and_then(|(now, start)| u64::try_from(now - start).ok());
        let age = age.map(|age| format!(", {} old", print_age(age))).unwrap_or_default();
        let (uid, sent) = (&instance.uid, instance.name().unwrap_or_default());
        let commands = indented(&keep_or_delete(ObjectKind::Instance, uid.as_str()));
        format!("- {uid}, {sent:?}, {}{age}{commands}", instance.status_text())
    });
    let lines: Vec<String> = lines.collect();
    let is_own = marked.iter().any(|instance| {
        is_marked(instance.name().unwrap_or_default(), ObjectKind::Instance, name, client.journal.scope())
    });
    let then = if client.on_leftover == OnLeftover::Fail && is_own {
        "If it has that name in the apply too, the apply stops before it buys another one."
    } else {
        "The apply buys another one."
    };
    Diagnostic::warning(
        format!("An earlier create of {} may not be finished", planned.title()),
        format!(
            "{}\n\nAn instance has such a name while a run creates it, after that run was killed, or if its rename \
             failed. If no run creates it and no state has it, keep or delete it: it is billed. {then}",
            lines.join("\n")
        ),
    )
    .at(Path::to("name"))
}
