//! The handling of an object that the service does not show, in a refresh or destroy.

use serde::{Deserialize, Serialize};

use super::managed::{Managed, ManagedExt as _, Subject, noun};
use crate::{
    api::{self, Absence, AccountFingerprints, AccountMatch, Context, LastSeen, Object as _},
    creation::ACCEPTED_WINDOW,
    framework::{Diagnostic, Outcome, Private, State},
    provider::{ProviderClient, errors::Failure, words::capitalized},
};

const KEY: &str = "origin";
const STAYS: &str = "The state is unchanged.";

/// The account in which an object was last seen and the time of its creation, stored in its private data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Origin {
    #[serde(flatten)]
    account: AccountFingerprints,
    /// Unix seconds of the create; 0 for an imported object.
    created_at: i64,
}

/// Records the creation of an object. It is not a witness for others, because this run created it.
pub(in crate::provider) async fn made(private: &mut Private, client: &ProviderClient, limits: &Context) {
    note(private, client, limits, jiff::Timestamp::now().as_second()).await;
}

/// Records that an object exists, for itself and, if an earlier run recorded it, as a witness for others.
pub(in crate::provider) async fn seen(private: &mut Private, witness: &str, client: &ProviderClient, limits: &Context) {
    let origin = private.entry::<Origin>(KEY);
    client.api.witness().saw(witness, origin.as_ref().map(|origin| &origin.account));
    note(private, client, limits, origin.map_or(0, |origin| origin.created_at)).await;
}

/// Records the account. If it cannot be determined now, the earlier record is kept.
async fn note(private: &mut Private, client: &ProviderClient, limits: &Context, created_at: i64) {
    if let Ok(account) = client.api.account(limits).await {
        private.insert(KEY, Origin { account, created_at });
    }
}

/// Judges the absence of an object.
pub(in crate::provider) async fn judge(
    private: &Private,
    witness: &str,
    client: &ProviderClient,
    limits: &Context,
) -> Result<Absence, api::Error> {
    let origin: Option<Origin> = private.entry(KEY);
    let last_seen = LastSeen {
        account: origin.as_ref().map(|origin| &origin.account),
        made_at: origin.as_ref().map_or(0, |origin| origin.created_at),
        grace: ACCEPTED_WINDOW,
    };
    client.api.judge_absence(last_seen, witness, limits).await
}

/// The diagnostic for an absent object that is not proven to be gone.
pub(in crate::provider) fn doubt(subject: &Subject, absence: Absence) -> Diagnostic {
    let title = capitalized(&subject.title);
    let reason = match absence.account {
        AccountMatch::Same => {
            return Diagnostic::error(
                format!("{title} is not visible yet"),
                format!(
                    "The object was created a few minutes ago and is not listed yet. {STAYS} Try again in a few \
                     minutes."
                ),
            );
        }
        AccountMatch::Other => "api_token or base_url has changed, and no other object of the old account is visible",
        AccountMatch::Unknown => "the account under which it was last seen is unknown",
    };
    Diagnostic::error(
        format!("{title} was not found in this account"),
        format!(
            "The object may belong to another account: {reason}. Its last known status was {}. {STAYS} Check api_token \
             and base_url. If it was deleted, run: terraform state rm <address>",
            subject.status,
        ),
    )
}

/// A refresh of an object that two looks did not find.
pub(in crate::provider) async fn refresh<M>(
    current: State<M>,
    subject: &Subject,
    client: &ProviderClient,
    limits: &Context,
) -> Outcome<M> {
    match judge(&current.private, &subject.witness, client, limits).await {
        Ok(absence) if absence.is_proof() => gone(subject, "Two lookups did not find it."),
        Ok(absence) => {
            let doubt = doubt(subject, absence);
            // In the right account, a young object is only late: this is a warning, and the refresh continues.
            let is_late = absence.account == AccountMatch::Same;
            let said = if is_late { Diagnostic::warning(doubt.summary, doubt.detail) } else { doubt };
            current.unchanged(said)
        }
        Err(error) => failed(current, subject, &error, client),
    }
}

/// A refresh of an object that the service shows as released.
pub(in crate::provider) fn released<M>(private: &Private, subject: &Subject, client: &ProviderClient) -> Outcome<M> {
    let origin = private.entry::<Origin>(KEY);
    client.api.witness().saw(&subject.witness, origin.as_ref().map(|origin| &origin.account));
    gone(subject, "The service shows it as released.")
}

fn gone<M>(subject: &Subject, why: &str) -> Outcome<M> {
    Outcome::absent().with(Diagnostic::warning(
        format!("{} was removed from the state", capitalized(&subject.title)),
        format!(
            "{why} Its last known status was {}. If the configuration still contains it, the plan creates a new one.",
            subject.status,
        ),
    ))
}

/// A refresh whose lookups prove nothing.
pub(in crate::provider) fn unproved<M>(current: State<M>, subject: &Subject, reason: &str) -> Outcome<M> {
    let diagnostic = Diagnostic::error(
        format!("Unclear whether {} exists", subject.title),
        format!(
            "The service's responses are contradictory: {reason}. The state is unchanged. Run the plan again later."
        ),
    );
    current.unchanged(diagnostic)
}

/// A refresh that failed.
pub(in crate::provider) fn failed<M>(
    current: State<M>,
    subject: &Subject,
    error: &api::Error,
    client: &ProviderClient,
) -> Outcome<M> {
    let tried = format!("refresh {}", subject.title);
    let failure = Failure { error, tried, now: "The state is unchanged.".to_owned() };
    current.unchanged(failure.of_a_refresh(client))
}

/// The error for an object that has the number of the one in the state, and another uid: it is another service's or
/// another account's, and must not be changed.
pub(in crate::provider) fn another<M: Managed>(state: &M, shown: Option<&str>) -> Option<Diagnostic> {
    let (own, shown) = state.uid().zip(shown).filter(|(own, shown)| own != shown)?;
    Some(Diagnostic::error(
        format!("{} is another {} now", capitalized(&state.title()), noun::<M>()),
        format!(
            "The unique id of the object is {own} in the state and {shown} in this account. It was not changed. \
             {STAYS} Check base_url and api_token: another service or account uses the same numbers."
        ),
    ))
}

/// The same before a change, in a list that may be half a minute old: numbers are not used twice.
pub(in crate::provider) async fn is_another<M: Managed>(
    state: &M,
    client: &ProviderClient,
    limits: &Context,
) -> Option<Diagnostic> {
    state.uid()?;
    match client.api.objects::<M::Object>().recent(limits).await {
        Ok(listing) => another(state, listing.find(&state.key()?)?.uid()),
        Err(error) => {
            let tried = format!("check that {} is the same {}", state.title(), noun::<M>());
            Some(Failure { error: &error, tried, now: STAYS.to_owned() }.whole())
        }
    }
}
