//! The accounts under which objects were seen, and the objects of earlier runs that vouch for one.

use std::{collections::BTreeSet, time::Duration};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::context::Context;

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
    use crate::api::testing::context;

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
