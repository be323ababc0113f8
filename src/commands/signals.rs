//! How a person or a system tells a command to end.

use std::io;

/// Completes when the process is told to end. Listening begins with the first poll.
#[cfg(unix)]
pub(super) async fn told_to_end() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hang_up.recv() => {}
    }
    Ok(())
}

/// Completes when the process is told to end. Listening begins with the first poll.
#[cfg(not(unix))]
pub(super) async fn told_to_end() -> io::Result<()> {
    tokio::signal::ctrl_c().await
}
