//! Whether an object exists, and the meaning of its absence: a wrong "gone" in a refresh would create it again.

use std::time::Duration;

use super::{client::Client, context::Context, error::Error, witness::AccountFingerprints};

/// The result of two looks for an object: an instance by its detail and a complete list, a cloud disk and a private
/// image (which have no detail) by a complete list and a search.
#[derive(Debug, Clone)]
pub enum Presence<S> {
    /// A complete list lacks it, and the other look does not find it either. [`Absence`] has the meaning.
    Absent,
    /// It exists.
    Present(Box<S>),
    /// The service shows it as Released.
    Released,
    /// The looks contradict each other or prove nothing: treat it as existing.
    Unproved {
        /// The reason, as a fragment.
        reason: &'static str,
    },
}

/// The meaning of an object's absence. Only this type turns "not found" into "gone".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absence {
    /// The account in which it was looked for.
    pub account: AccountMatch,
    /// Whether it is so new that the service may not show it yet.
    pub is_young: bool,
}

/// The account in which an object was looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountMatch {
    /// The object's own account: the token is the one under which it was last seen, or shows another object that was
    /// last seen under the same account.
    Same,
    /// The token differs from the one under which it was last seen: it was rotated, or belongs to another account.
    Other,
    /// The token under which it was last seen is not recorded.
    Unknown,
}

/// The known facts about an object that was not found.
#[derive(Clone, Copy, Debug)]
pub struct LastSeen<'a> {
    /// The [account](Client::account) under which it was last seen.
    pub account: Option<&'a AccountFingerprints>,
    /// When it was created, in Unix seconds; 0 if unknown.
    pub made_at: i64,
    /// How long after that it may be invisible.
    pub grace: Duration,
}

impl Absence {
    /// Whether the object is certainly gone.
    #[must_use]
    pub fn is_proof(self) -> bool {
        self.account == AccountMatch::Same && !self.is_young
    }
}

impl Client {
    /// Judges an object that two looks did not find. `witness` is its key among the [witnesses](Client::witness).
    ///
    /// # Errors
    /// A token that is not available.
    pub async fn judge_absence(
        &self,
        last_seen: LastSeen<'_>,
        witness: &str,
        context: &Context,
    ) -> Result<Absence, Error> {
        let fingerprint = self.fingerprint(context).await?;
        let age = jiff::Timestamp::now().as_second().saturating_sub(last_seen.made_at);
        let account = match last_seen.account {
            None => AccountMatch::Unknown,
            Some(own) if own.token == fingerprint || self.witness().vouches(witness, own, context).await => {
                AccountMatch::Same
            }
            Some(_) => AccountMatch::Other,
        };
        Ok(Absence { account, is_young: age < last_seen.grace.as_secs().cast_signed() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testing::{context, page, serve};

    #[tokio::test(start_paused = true)]
    async fn only_the_same_account_and_some_age_prove_that_an_object_is_gone() {
        let (client, _) = serve(|_| async { page(&[]) });
        let context = context(60);
        let own = client.fingerprint(&context).await.unwrap();
        let now = jiff::Timestamp::now().as_second();
        let grace = Duration::from_secs(300);
        let account = |token: &str| AccountFingerprints { token: token.to_owned(), program: None };
        let (own, another) = (account(&own), account("another"));
        for (account, made_at, expected, is_young) in [
            (Some(&own), now - 301, AccountMatch::Same, false),
            (Some(&own), now, AccountMatch::Same, true),
            (Some(&another), now - 301, AccountMatch::Other, false),
            (Some(&another), now, AccountMatch::Other, true),
            (None, 0, AccountMatch::Unknown, false),
        ] {
            let absence = client.judge_absence(LastSeen { account, made_at, grace }, "disk/1", &context).await.unwrap();
            assert_eq!(absence, Absence { account: expected, is_young });
            assert_eq!(absence.is_proof(), expected == AccountMatch::Same && !is_young);
        }
        client.witness().saw("disk/2", Some(&another));
        let seen = LastSeen { account: Some(&another), made_at: 0, grace };
        assert!(client.judge_absence(seen, "disk/1", &context).await.unwrap().is_proof());
        assert!(!client.judge_absence(seen, "disk/2", &context).await.unwrap().is_proof());
    }
}
