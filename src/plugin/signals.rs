//! What signals do to the process (plugin protocol, signals and orphans).

use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
#[cfg(windows)]
use tokio::signal::windows::{CtrlC, ctrl_c};

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
