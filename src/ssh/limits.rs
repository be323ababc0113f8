//! How long is waited, and how much is kept.

use std::time::Duration;

/// The limits of a session. All have a safe default; the deadline of [`connect`](crate::ssh::connect) stands above
/// them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The longest that one step of a connection may take: TCP, the handshake, the login, a channel. 20 s.
    pub connect: Duration,
    /// The silence after which the server is asked whether it is there. 10 s.
    pub keepalive: Duration,
    /// How many such questions in a row may go without an answer before the connection counts as lost. Zero: any
    /// number. 3.
    pub missed: usize,
    /// The longest that a command may take, from the request to the last byte. 2 min.
    pub command: Duration,
    /// The longest that an HTTP answer may be silent where its asker names no limit, before its head and between the
    /// pieces of its body, and that a client of a forward may leave untaken what came for it. 2 min.
    pub idle: Duration,
    /// How long a refused login is tried again, twice at most, since a fresh machine installs its keys late. Zero: not
    /// at all. 30 s.
    pub denied: Duration,
    /// How many bytes are kept of a command's stdout, and as many of its stderr: the first and the last. 1 MiB.
    pub output: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(20),
            keepalive: Duration::from_secs(10),
            missed: 3,
            command: Duration::from_secs(120),
            idle: Duration::from_secs(120),
            denied: Duration::from_secs(30),
            output: 1 << 20,
        }
    }
}
