//! The handling of an object that the service does not show, in a refresh or destroy.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    api::{self, Absence, AccountMatch, Context, LastSeen},
    framework::{Diagnostic, Outcome, Private, State},
    provider::{ProviderClient, errors::Failure, words::capitalized},
};

/// How long an object may be invisible after its creation.
const GRACE: Duration = Duration::from_secs(5 * 60);
const KEY: &str = "origin";
const STAYS: &str = "The state is unchanged.";

/// The account in which an object was last seen and the time of its creation, stored in its private data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Origin {
    /// A fingerprint of base address and token.
    account: String,
    /// Unix seconds of the create; 0 for an imported object.
    created_at: i64,
}

/// An object in a diagnostic, and the witness of its account.
#[derive(Clone, Debug)]
pub(in crate::provider) struct Subject {
    /// The name in diagnostics: `instance "trainer" (ins-…)`.
    pub(in crate::provider) title: String,
    /// The key under which it, or its instance, is a witness for others.
    pub(in crate::provider) witness: String,
    /// The status in the state.
    pub(in crate::provider) status: String,
}

/// Records the creation of an object. It is not a witness for others, because this run created it.
pub(in crate::provider) async fn made(private: &mut Private, client: &ProviderClient, limits: &Context) {
    note(private, client, limits, jiff::Timestamp::now().as_second()).await;
}

/// Records that an object of an earlier run exists, for itself and as a witness for others.
pub(in crate::provider) async fn seen(private: &mut Private, witness: &str, client: &ProviderClient, limits: &Context) {
    client.api.witness().saw(witness);
    let created_at = private.entry::<Origin>(KEY).map_or(0, |origin| origin.created_at);
    note(private, client, limits, created_at).await;
}

/// Records the account. If it cannot be determined now, the earlier record is kept.
async fn note(private: &mut Private, client: &ProviderClient, limits: &Context, created_at: i64) {
    if let Ok(account) = client.api.fingerprint(limits).await {
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
        account: origin.as_ref().map(|origin| origin.account.as_str()),
        made_at: origin.as_ref().map_or(0, |origin| origin.created_at),
        grace: GRACE,
    };
    client.api.judge_absence(last_seen, witness, limits).await
}

/// The diagnostic for an absent object that is not proven to be gone.
pub(in crate::provider) fn doubt(subject: &Subject, absence: Absence) -> Diagnostic {
    let title = capitalized(&subject.title);
    if absence.account == AccountMatch::Same {
        return Diagnostic::error(
            format!("{title} is not visible yet"),
            format!(
                "It was created a few minutes ago, but the service does not list it yet. {STAYS} Try again in a few \
                 minutes."
            ),
        );
    }
    Diagnostic::error(
        format!("{title} was not found in this account"),
        format!(
            "It may belong to another account: the API token or base_url differs from the one under which it was last \
             seen (status {}), and no other object of this state was found either. {STAYS} Check api_token and \
             base_url. If it was deleted, run: terraform state rm <address>",
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
pub(in crate::provider) fn released<M>(subject: &Subject, client: &ProviderClient) -> Outcome<M> {
    client.api.witness().saw(&subject.witness);
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
        format!("It is not clear whether {} exists", subject.title),
        format!(
            "The answers of the service contradict each other: {reason}. The state is unchanged. Run the plan again \
             later."
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
