//! What a refresh or a destroy makes of an object that the service does not show.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    api::{self, Absence, Account, Context, LastSeen},
    framework::{Diagnostic, Outcome, Private, State},
    provider::{Client, errors::Failure, words::capitalized},
};

/// How long after its creation an object may still be invisible.
const GRACE: Duration = Duration::from_secs(5 * 60);
const KEY: &str = "origin";
const STAYS: &str = "The state is unchanged.";

/// Where and when an object was last seen, kept in its private data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Origin {
    /// A fingerprint of base address and token.
    account: String,
    /// Unix seconds of the create; 0 for an imported object.
    created_at: i64,
}

/// What a diagnostic says of an object, and what vouches for its account.
#[derive(Clone, Debug)]
pub(in crate::provider) struct Subject {
    /// As an error names it: `instance "trainer" (ins-…)`.
    pub(in crate::provider) title: String,
    /// The key under which it, or the instance that it is in, is a witness for others.
    pub(in crate::provider) witness: String,
    /// The status in the state.
    pub(in crate::provider) status: String,
}

/// Notes that an object was made just now. It is no witness for others: this run made it.
pub(in crate::provider) async fn made(private: &mut Private, client: &Client, limits: &Context) {
    note(private, client, limits, jiff::Timestamp::now().as_second()).await;
}

/// Notes that an object that was known before this run is there, for itself and for the others of the run.
pub(in crate::provider) async fn seen(private: &mut Private, witness: &str, client: &Client, limits: &Context) {
    client.api.witness().saw(witness);
    let created_at = private.entry::<Origin>(KEY).map_or(0, |origin| origin.created_at);
    note(private, client, limits, created_at).await;
}

/// An account that cannot be told now is left as it was noted.
async fn note(private: &mut Private, client: &Client, limits: &Context, created_at: i64) {
    if let Ok(account) = client.api.fingerprint(limits).await {
        private.insert(KEY, Origin { account, created_at });
    }
}

/// What the absence of an object means.
pub(in crate::provider) async fn judge(
    private: &Private,
    witness: &str,
    client: &Client,
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

/// Why an absent object is not taken for gone.
pub(in crate::provider) fn doubt(subject: &Subject, absence: Absence) -> Diagnostic {
    let title = capitalized(&subject.title);
    if absence.account == Account::Same {
        return Diagnostic::error(
            format!("{title} is not visible yet"),
            format!(
                "It was created a few minutes ago, and the service does not show it yet. {STAYS} Try again in a few \
                 minutes."
            ),
        );
    }
    Diagnostic::error(
        format!("{title} was not found in this account"),
        format!(
            "It may belong to another account: the API token or base_url differs from the one under which it was last \
             seen (status {}), and no other object of this state was found either. {STAYS} Check api_token and \
             base_url. If it really was deleted, run: terraform state rm <address>",
            subject.status,
        ),
    )
}

/// A refresh of an object that two looks did not find.
pub(in crate::provider) async fn refresh<M>(
    current: State<M>,
    subject: &Subject,
    client: &Client,
    limits: &Context,
) -> Outcome<M> {
    match judge(&current.private, &subject.witness, client, limits).await {
        Ok(absence) if absence.is_proof() => gone(subject, "Two lookups did not find it."),
        Ok(absence) => {
            let doubt = doubt(subject, absence);
            // In the right account a young object is only late: the refresh goes on.
            let is_late = absence.account == Account::Same;
            let said = if is_late { Diagnostic::warning(doubt.summary, doubt.detail) } else { doubt };
            current.unchanged(said)
        }
        Err(error) => failed(current, subject, &error, client),
    }
}

/// A refresh of an object that the service shows as released.
pub(in crate::provider) fn released<M>(subject: &Subject, client: &Client) -> Outcome<M> {
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

/// A refresh whose looks prove nothing.
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
    client: &Client,
) -> Outcome<M> {
    let tried = format!("refresh {}", subject.title);
    let failure = Failure { error, tried, now: "The state is unchanged.".to_owned() };
    current.unchanged(failure.of_a_refresh(client))
}
