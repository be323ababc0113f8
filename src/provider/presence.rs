//! Whether a thing that the service does not show is really gone: the state is the only trace of a paid machine, and a token of
//! another account, or one bad answer, must not erase it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Client;
use crate::{
    api::{self, Context},
    framework::Private,
};

/// How long after its creation a thing may still be invisible.
const GRACE: Duration = Duration::from_secs(10 * 60);
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
