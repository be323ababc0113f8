//! The death of the process that started us.
//!
//! go-plugin has nothing of the kind: a plugin of a killed core lives on forever. Asking the kernel for a signal
//! (`PR_SET_PDEATHSIG`) is no way out, as that one fires when the *thread* that started us ends.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

/// The parent whose death is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parent(u32);

impl Parent {
    /// The process that is the parent now.
    pub(super) fn current() -> Self {
        Self(parent_id())
    }

    /// Waits until it has died, which shows within about a second: an orphan is given another parent.
    pub(super) async fn gone(self) {
        self.gone_by(parent_id).await;
    }

    async fn gone_by(self, parent_id: impl Fn() -> u32) {
        let mut ticks = interval(LOOK_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if parent_id() != self.0 {
                return;
            }
        }
    }
}

const LOOK_INTERVAL: Duration = Duration::from_secs(1);

#[cfg(unix)]
fn parent_id() -> u32 {
    std::os::unix::process::parent_id()
}

/// Windows gives an orphan no new parent; there the plugin outlives a killed core, as every go-plugin does.
#[cfg(windows)]
fn parent_id() -> u32 {
    0
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_orphan_notices_within_a_second() {
        let start = Instant::now();
        let looks = Cell::new(0);
        let parent_id = || {
            looks.set(looks.get() + 1);
            if start.elapsed() < Duration::from_secs(90) { 41 } else { 1 }
        };
        Parent(41).gone_by(parent_id).await;
        assert!(start.elapsed() <= Duration::from_secs(91));
        assert!(looks.get() <= 92, "{} looks", looks.get());
    }

    #[tokio::test(start_paused = true)]
    async fn a_living_parent_is_never_gone() {
        // In a container the core may well be process 1.
        let wait = tokio::time::timeout(Duration::from_secs(3600), Parent(1).gone_by(|| 1));
        assert!(wait.await.is_err());
    }
}
