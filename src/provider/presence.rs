//! Whether a thing that the service does not show is really gone: the state is the only trace of a paid machine, and a token of
//! another account, or one bad answer, must not erase it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Client, client::limits, errors::Failure};
use crate::{
    api::{self, Context},
    framework::{self, Diagnostic, Outcome, Private, State},
};

/// How long after its creation a thing may still be invisible.
const GRACE: Duration = Duration::from_secs(5 * 60);
/// How long other reads of the same run are given to find something.
const MOMENT: Duration = Duration::from_secs(2);
const KEY: &str = "origin";

/// Where and when a thing was last seen, kept in its private data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Origin {
    /// A fingerprint of base address and token.
    account: String,
    /// Unix seconds of the create; 0 for an imported thing.
    created_at: i64,
}

/// What absence means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absence {
    /// This may be another account.
    AnotherAccount,
    /// It is gone.
    Proved,
    /// It was made a moment ago, and may not be visible yet.
    TooYoung,
}

/// Notes that a thing was made just now. An account that cannot be told apart is left out.
pub(super) async fn made(private: &mut Private, client: &Client, context: &Context) {
    note(private, client, context, jiff::Timestamp::now().as_second()).await;
}

/// Notes that a thing is there, for itself and for the others of this run.
pub(super) async fn seen(private: &mut Private, key: &str, client: &Client, context: &Context) {
    client.witness().saw(key);
    let created_at = private.entry::<Origin>(KEY).map_or(0, |origin| origin.created_at);
    note(private, client, context, created_at).await;
}

/// Judges a thing that two looks did not find.
pub(super) async fn judge(
    private: &Private,
    key: &str,
    client: &Client,
    context: &Context,
) -> Result<Absence, api::Error> {
    let origin: Option<Origin> = private.entry(KEY);
    let account = client.api.fingerprint(context).await?;
    let age = origin.as_ref().map(|origin| jiff::Timestamp::now().as_second().saturating_sub(origin.created_at));
    if age.is_some_and(|age| age < GRACE.as_secs().cast_signed()) {
        return Ok(Absence::TooYoung);
    }
    let same_account = origin.is_some_and(|origin| origin.account == account);
    if same_account || client.witness().sees_other_than(key, MOMENT, context).await {
        Ok(Absence::Proved)
    } else {
        Ok(Absence::AnotherAccount)
    }
}

async fn note(private: &mut Private, client: &Client, context: &Context, created_at: i64) {
    if let Ok(account) = client.api.fingerprint(context).await {
        private.insert(KEY, Origin { account, created_at });
    }
}

/// A thing as a refresh speaks of it.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    /// As an error names it: `instance "trainer" (ins-…)`.
    pub(super) title: String,
    /// The key under which it is a witness for others.
    pub(super) key: String,
    /// The status in the state.
    pub(super) last: String,
}

/// What a refresh makes of a thing that the service shows as released.
pub(super) fn released<M>(subject: &Subject, client: &Client) -> Outcome<M> {
    client.witness().saw(&subject.key);
    left(subject, "The service shows it as released.")
}

/// What a refresh makes of a thing that two looks did not find.
pub(super) async fn absent<M>(
    current: State<M>,
    subject: &Subject,
    context: &framework::Context<Client>,
) -> Outcome<M> {
    let title = capitalized(&subject.title);
    match judge(&current.private, &subject.key, &context.client, &limits(context)).await {
        Ok(Absence::Proved) => left(subject, "The service no longer has it: two looks did not find it."),
        Ok(Absence::TooYoung) => current.unchanged(Diagnostic::warning(
            format!("{title} is not visible yet"),
            "It was made a few minutes ago and the service does not show it. It stays in the state; the next refresh looks again.",
        )),
        Ok(Absence::AnotherAccount) => current.unchanged(Diagnostic::error(
            format!("The service does not show {}", subject.title),
            format!(
                "Is this another account? Two looks did not find it, but it was last seen under another base address or API token, \
                 and nothing else of this state was found. In the state it was last {}. {UNCHANGED} If the token is the right one \
                 and it is really gone, remove it with: terraform state rm <address>.",
                subject.last
            ),
        )),
        Err(error) => failed(current, subject, &error),
    }
}

/// What a refresh makes of looks that prove nothing.
pub(super) fn unproved<M>(current: State<M>, subject: &Subject, reason: &str) -> Outcome<M> {
    current.unchanged(Diagnostic::error(
        format!("It is not clear whether {} exists", subject.title),
        format!("The service contradicts itself: {reason}. {UNCHANGED} Run the plan again in a while."),
    ))
}

/// What a refresh makes of any error.
pub(super) fn failed<M>(current: State<M>, subject: &Subject, error: &api::Error) -> Outcome<M> {
    let tried = format!("refresh {}", subject.title);
    let diagnostic = Failure { error, tried, now: UNCHANGED.to_owned() }.whole();
    current.unchanged(diagnostic)
}

const UNCHANGED: &str = "The state is unchanged.";

fn left<M>(subject: &Subject, why: &str) -> Outcome<M> {
    Outcome::absent().with(Diagnostic::warning(
        format!("{} has left the state", capitalized(&subject.title)),
        format!(
            "{why} In the state it was last {}. If the configuration still has it, the plan makes a new one.",
            subject.last
        ),
    ))
}

/// The title at the start of a sentence.
pub(super) fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
