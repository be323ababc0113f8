//! Whether an object exists, and the meaning of its absence: a wrong "gone" in a refresh would create it again.

use std::{collections::BTreeSet, time::Duration};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::{
    client::Client,
    context::Context,
    error::Error,
    object::{Object, Objects},
};

/// The result of two looks for an object: an instance by its detail and a complete list, a cloud disk and a private
/// image (which have no detail) by a complete list and a search.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Presence<K: Object> {
    /// A complete list lacks it, and the other look does not find it either. [`Absence`] has the meaning.
    Absent,
    /// It exists.
    Present(Box<K::Shown>),
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

/// An account, as fingerprints: no token or command line can be computed from them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountFingerprints {
    /// Of base address and token.
    #[serde(rename = "account")]
    pub token: String,
    /// Of base address and token program, if a program prints the token: it may print another one each time.
    #[serde(rename = "token_program", default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

impl AccountFingerprints {
    /// Whether both are one account, as far as the same token program always logs in to the same one.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        self.token == other.token || (self.program.is_some() && self.program == other.program)
    }
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

/// Looks for an object in a list of all and, if the list lacks it, by a search or, without a hint, in another list.
pub(super) async fn look_in_lists<K: Object<Shown = K>>(
    objects: &Objects<K>,
    key: &K::Key,
    hint: Option<&str>,
    context: &Context,
) -> Result<Presence<K>, Error> {
    let listing = objects.fresh(context).await?;
    match listing.find(key) {
        Some(record) if record.is_released() => return Ok(Presence::Released),
        Some(record) => return Ok(Presence::Present(Box::new(record.clone()))),
        None if !listing.complete => return Ok(Presence::Unproved { reason: "the list is not complete" }),
        None => {}
    }
    let second = match hint {
        Some(hint) => objects.search(hint, context).await?,
        None => objects.ask(context, crate::api::retry::Retry::AsConfigured).await?,
    };
    Ok(if second.find(key).is_some() {
        Presence::Unproved { reason: "the list of all objects does not contain it, but a second lookup finds it" }
    } else if second.complete {
        Presence::Absent
    } else {
        Presence::Unproved {
            reason: "the list of all objects does not contain it, and the answer to a second lookup is not complete",
        }
    })
}

/// How long to wait for other reads of the same run to find an object.
const MOMENT: Duration = Duration::from_secs(2);

/// The objects of earlier runs that this run found. They prove that a missing object of the same account is not in
/// another one.
///
/// An object that this run created or imported proves nothing about the account of an older one. Two different objects
/// of an account are enough to vouch for any third, so no more are kept.
#[derive(Debug, Default)]
pub struct Witness {
    seen: watch::Sender<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Objects with the accounts that they were recorded under before this run.
    earlier: Vec<(String, AccountFingerprints)>,
    /// Objects without such a record.
    new: BTreeSet<String>,
}

impl Witness {
    /// Records that an object was found; `key` consists of kind and id, as `instance/ins-…`, and `recorded` is the
    /// account under which an earlier run saw it.
    pub fn saw(&self, key: &str, recorded: Option<&AccountFingerprints>) {
        self.seen.send_if_modified(|seen| {
            let Some(account) = recorded.filter(|_| !seen.new.contains(key)) else {
                seen.new.insert(key.to_owned());
                return false;
            };
            let of_account = || seen.earlier.iter().filter(|(_, other)| other == account);
            let is_needed = of_account().count() < 2 && of_account().all(|(known, _)| known != key);
            if is_needed {
                seen.earlier.push((key.to_owned(), account.clone()));
            }
            is_needed
        });
    }

    /// Whether an object other than this one was seen that was last seen under this account. Reads run concurrently,
    /// so this waits a moment for them. Cancel-safe.
    pub async fn vouches(&self, key: &str, account: &AccountFingerprints, context: &Context) -> bool {
        let mut seen = self.seen.subscribe();
        let other = async {
            let is_other = |(known, other): &(String, AccountFingerprints)| known != key && other.is_like(account);
            seen.wait_for(|seen| seen.earlier.iter().any(is_other)).await.is_ok()
        };
        context.at_most(MOMENT).run(other).await.unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::api::testing::{context, page, serve};

    #[tokio::test(start_paused = true)]
    async fn only_the_same_account_and_some_age_prove_that_an_object_is_gone() {
        let (client, _) = serve(|_| async { page(&[]) });
        let context = context(60);
        let own = client.fingerprint(&context).await.unwrap();
        let now = jiff::Timestamp::now().as_second();
        let grace = Duration::from_secs(300);
        let (own, another) = (account(&own, None), account("another", None));
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

    fn account(token: &str, program: Option<&str>) -> AccountFingerprints {
        AccountFingerprints { token: token.to_owned(), program: program.map(str::to_owned) }
    }

    #[rstest]
    #[case::same_token(account("old", None), account("old", Some("p")), true)]
    #[case::same_program(account("old", Some("p")), account("older", Some("p")), true)]
    #[case::neither(account("old", Some("p")), account("older", Some("q")), false)]
    #[case::no_program(account("old", None), account("older", None), false)]
    #[tokio::test(start_paused = true)]
    async fn a_witness_vouches_for_its_own_account(
        #[case] witness: AccountFingerprints,
        #[case] missing: AccountFingerprints,
        #[case] vouches: bool,
    ) {
        let (seen, context) = (Witness::default(), context(60));
        seen.saw("instance/a", Some(&witness));
        assert!(!seen.vouches("instance/a", &missing, &context).await, "nothing vouches for itself");
        assert_eq!(seen.vouches("instance/b", &missing, &context).await, vouches);
    }

    #[tokio::test(start_paused = true)]
    async fn what_this_run_recorded_never_vouches_and_others_may_come_late() {
        let (seen, context, own) = (Witness::default(), context(60), account("own", None));
        seen.saw("instance/imported", None);
        seen.saw("instance/imported", Some(&own));
        assert!(!seen.vouches("instance/b", &own, &context).await);
        let late = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            seen.saw("instance/a", Some(&own));
        };
        assert!(tokio::join!(seen.vouches("instance/b", &own, &context), late).0);
    }
}
