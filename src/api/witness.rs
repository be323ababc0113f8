//! What was seen to exist in this run.

use std::time::Duration;

use tokio::sync::watch;

use crate::api::context::Context;

/// Remembers that things were found, so that an absent one can be told from another account.
///
/// Two different things are enough to answer for any third, so no more are kept.
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
    /// Notes that a thing the caller knew of was found; `key` names kind and id, as `instance/ins-…`.
    pub fn saw(&self, key: &str) {
        self.seen.send_if_modified(|seen| {
            let new = seen.len() < 2 && seen.iter().all(|known| known != key);
            if new {
                seen.push(key.to_owned());
            }
            new
        });
    }

    /// Whether another thing than this one was seen.
    #[must_use]
    pub fn saw_other_than(&self, key: &str) -> bool {
        self.seen.borrow().iter().any(|known| known != key)
    }

    /// Waits a moment for another thing to be seen: reads run at once. Cancel-safe.
    pub async fn sees_other_than(&self, key: &str, moment: Duration, context: &Context) -> bool {
        let mut seen = self.seen.subscribe();
        let other = async {
            let found = seen.wait_for(|seen| seen.iter().any(|known| known != key)).await;
            found.is_ok()
        };
        context.at_most(moment).run(other).await.unwrap_or(false)
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
        assert!(!witness.saw_other_than("instance/a"));
        assert!(witness.saw_other_than("instance/b"));
        assert!(!witness.sees_other_than("instance/a", Duration::from_secs(1), &context).await);
        let waiting = witness.sees_other_than("instance/a", Duration::from_secs(5), &context);
        let late = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            witness.saw("instance/b");
        };
        assert!(tokio::join!(waiting, late).0);
    }
}
