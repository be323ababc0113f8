//! The words of `status`.

/// It serves.
pub(super) const READY: &str = "ready";
/// There is no process.
pub(super) const STOPPED: &str = "stopped";
/// The work in the instance goes on.
pub(super) const STARTING: &str = "starting";
/// The last start did not lead to a server that serves.
pub(super) const FAILED: &str = "failed";
/// It does not run, and another program listens on its port.
pub(super) const BLOCKED: &str = "blocked";
/// It does not run, and a llama-server that was started by hand serves on its port.
pub(super) const DISPLACED: &str = "displaced";
/// It runs, and does not answer.
pub(super) const UNRESPONSIVE: &str = "unresponsive";
/// It serves a file that has been replaced since.
pub(super) const OUTDATED: &str = "outdated";
