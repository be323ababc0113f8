//! Objects known before this run that were seen in it.

use std::time::Duration;

use tokio::sync::watch;

use crate::api::context::Context;

/// How long other reads of the same run are given to find something.
const MOMENT: Duration = Duration::from_secs(2);

/// Remembers objects that were known before this run and were found in it, so that an absent one can be told from
/// another account.
///
/// What this run made must not be noted: it says nothing of the account in which an older object is. Two different
/// objects are enough to answer for any third, so no more are kept.
#[derive(Debug)]
pub struct Witness {
    seen: watch::Sender<Vec<String>>,
}

impl Default for Witness {
    fn default() -> Self {
        Self { seen: watch::Sender::new(Vec::new()) }
    }
}

impl Witness {
    /// Notes that an object that was known before this run was found; `key` names kind and id, as `instance/ins-…`.
    pub fn saw(&self, key: &str) {
        self.seen.send_if_modified(|seen| {
            let new = seen.len() < 2 && seen.iter().all(|known| known != key);
            if new {
                seen.push(key.to_owned());
            }
            new
        });
    }

    /// Whether another object than this one was seen. Reads run at once, so others get a moment. Cancel-safe.
    pub async fn vouches(&self, key: &str, context: &Context) -> bool {
        let mut seen = self.seen.subscribe();
        let other = async {
            let found = seen.wait_for(|seen| seen.iter().any(|known| known != key)).await;
            found.is_ok()
        };
        context.at_most(MOMENT).run(other).await.unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_another_thing_counts() {
        let witness = Witness::default();
        let context = Context::within(Duration::from_secs(60), &CancellationToken::new());
        witness.saw("instance/a");
        witness.saw("instance/a");
        assert!(!witness.vouches("instance/a", &context).await);
        assert!(witness.vouches("instance/b", &context).await);
        let waiting = witness.vouches("instance/a", &context);
        let late = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            witness.saw("instance/b");
        };
        assert!(tokio::join!(waiting, late).0);
    }
}
