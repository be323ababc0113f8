//! The threads that serve.

use std::{future::Future, io::Write, num::NonZero, process::ExitCode, thread::available_parallelism};

use tokio::runtime::Builder;

use super::{Error, error::with_causes, traces};

/// Runs `serving` on a runtime made for it, and gives the exit code of the process; an error is told on
/// standard error.
///
/// What is left running is dropped, not waited for: a call that hangs does not keep the process alive.
pub fn block_on(serving: impl Future<Output = Result<(), Error>>) -> ExitCode {
    // The work is waiting for a service; few threads start faster and are enough.
    let threads = available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS);
    let runtime = Builder::new_multi_thread()
        .worker_threads(threads)
        .on_thread_start(traces::join)
        .enable_all()
        .build()
        .map_err(Error::Runtime);
    let result = runtime.and_then(|runtime| {
        let result = runtime.block_on(serving);
        runtime.shutdown_background();
        result
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Plain text: the core shows what a plugin said that died before the handshake.
            let _ = writeln!(std::io::stderr(), "failed to {}", with_causes(&error));
            ExitCode::FAILURE
        }
    }
}

const MAX_THREADS: usize = 4;
