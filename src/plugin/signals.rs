//! What ends the process from outside: signals, and the death of the process that started us (plugin protocol, signals
//! and orphans).

use std::{io, time::Duration};

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
#[cfg(windows)]
use tokio::signal::windows::{CtrlC, ctrl_c};
use tokio::time::{MissedTickBehavior, interval};

/// The signals that end the server, in one of the two ways it is started.
#[derive(Debug)]
pub(super) struct Signals {
    #[cfg(unix)]
    ending: (Signal, Option<Signal>),
    #[cfg(windows)]
    ending: Option<CtrlC>,
}

#[cfg(unix)]
impl Signals {
    /// For a server that the core started: only SIGTERM ends it.
    ///
    /// Ctrl-C in a terminal reaches the whole process group, and the core tells us itself what to do about it; so
    /// does the end of a terminal, where the core may be the one that was told to survive it (`nohup`). Dying
    /// of them would abandon what is being created. Should the core die, that is noticed.
    pub(super) fn under_core() -> io::Result<Self> {
        // A handler, once installed, stays; what it reports is never asked for.
        drop(signal(SignalKind::interrupt())?);
        drop(signal(SignalKind::hangup())?);
        Ok(Self { ending: (signal(SignalKind::terminate())?, None) })
    }

    /// For a server that a person started: SIGTERM and SIGINT end it.
    pub(super) fn by_hand() -> io::Result<Self> {
        Ok(Self { ending: (signal(SignalKind::terminate())?, Some(signal(SignalKind::interrupt())?)) })
    }

    /// Waits for a signal that ends the server.
    pub(super) async fn ended(mut self) {
        let (terminate, interrupt) = &mut self.ending;
        let interrupted = async {
            match interrupt {
                Some(interrupt) => interrupt.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupted => {}
        }
    }
}

#[cfg(windows)]
impl Signals {
    /// For a server that the core started: Ctrl-C does not end it.
    pub(super) fn under_core() -> io::Result<Self> {
        // A handler, once installed, stays; what it reports is never asked for.
        drop(ctrl_c()?);
        Ok(Self { ending: None })
    }

    /// For a server that a person started: Ctrl-C ends it.
    pub(super) fn by_hand() -> io::Result<Self> {
        Ok(Self { ending: Some(ctrl_c()?) })
    }

    /// Waits for a signal that ends the server.
    pub(super) async fn ended(self) {
        match self.ending {
            Some(mut ending) => {
                ending.recv().await;
            }
            None => std::future::pending().await,
        }
    }
}

/// The parent whose death is waited for.
///
/// go-plugin has nothing of the kind: a plugin of a killed core lives on forever. Asking the kernel for a signal
/// (`PR_SET_PDEATHSIG`) is no way out, as that one fires when the *thread* that started us ends.
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
