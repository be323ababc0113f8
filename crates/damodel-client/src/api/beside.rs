//! Work on large answers, beside the thread that serves.

use super::error::Error;

/// The size in bytes above which an answer would hold up the other calls.
const LARGE: usize = 256 << 10;

/// Does work on an answer of this size, on another thread if it is large.
pub(super) async fn beside<T: Send + 'static>(
    size: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    if size <= LARGE {
        return Ok(work());
    }
    tokio::task::spawn_blocking(work).await.map_err(|error| Error::Transport { reason: error.to_string() })
}
