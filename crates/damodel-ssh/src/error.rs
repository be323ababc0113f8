//! Errors of this layer.

use super::{HostKey, address};

/// An error of this layer. Its text is a lowercase fragment that names the server, and contains no secret.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// An answer through a channel is not HTTP, or ended too early. Usual cause: the server on the port crashed, or has
    /// another protocol.
    #[error("the answer on port {port} broke off: {reason}")]
    BadAnswer {
        /// The port on the far side.
        port: u16,
        /// The fault.
        reason: String,
    },
    /// A credential cannot be read. Usual cause: it is the public key, a line is missing, or the file does not exist.
    #[error("the {what} cannot be used: {reason}")]
    BadKey {
        /// The credential, such as `private key` or `certificate`.
        what: String,
        /// Why.
        reason: String,
    },
    /// A pin is neither a public key nor a SHA256 fingerprint. Usual cause: a line of known_hosts with its host name.
    #[error("the host key {reason}; expected is a line like `ssh-ed25519 AAAA…`, or a fingerprint like `SHA256:…`")]
    BadPin {
        /// The fault.
        reason: String,
    },
    /// The caller cancelled. Usual cause: Ctrl-C.
    #[error("{doing} was cancelled")]
    Cancelled {
        /// The operation.
        doing: String,
    },
    /// The server refused every credential. Usual cause: the wrong user, or a key that is not installed there.
    #[error("{user}@{address} refused the login; {}", attempts(tried, offered))]
    Denied {
        /// Host and port.
        address: String,
        /// The user.
        user: String,
        /// The tried credentials in order, such as `private key ssh-ed25519 SHA256:…`.
        tried: Vec<String>,
        /// The methods that the server supports, such as `publickey`.
        offered: Vec<String>,
        /// Whether this is the bastion and not the server itself.
        is_bastion: bool,
    },
    /// A private key is encrypted. Usual cause: a personal key.
    #[error("the {what} is encrypted: give one without a passphrase, or load it into an agent")]
    EncryptedKey {
        /// The credential.
        what: String,
    },
    /// The login succeeds, and the server says that it runs no commands for this user. Usual cause: a cloud image that
    /// wants another user, or a password that has expired.
    #[error("{user}@{address} may not run commands: {reason}")]
    Excluded {
        /// Host and port.
        address: String,
        /// The user.
        user: String,
        /// The server's words.
        reason: String,
        /// Whether this is the bastion and not the server itself.
        is_bastion: bool,
    },
    /// The server permits no connections through it. Usual cause: `AllowTcpForwarding no` in sshd_config.
    #[error(
        "the server does not permit connections to {} (sshd's AllowTcpForwarding and PermitOpen)",
        address(host, *port)
    )]
    Forbidden {
        /// The host, as the server sees it.
        host: String,
        /// Its port.
        port: u16,
    },
    /// The server has another host key than the pinned one; no credential was sent. Usual cause: another instance has
    /// the same address now. It may also be an attack.
    #[error(
        "the host key of {address} is not the pinned one: expected {expected}, shown {} {shown}; no credential was \
         sent",
        key.algorithm()
    )]
    HostKeyChanged {
        /// Host and port.
        address: String,
        /// The fingerprint of the pin, `SHA256:…`.
        expected: String,
        /// The fingerprint of the server's key, `SHA256:…`.
        shown: String,
        /// The server's key.
        key: Box<HostKey>,
        /// Whether this is the bastion and not the server itself.
        is_bastion: bool,
    },
    /// The handshake cannot succeed. Usual cause: an old server without any safe algorithm.
    #[error("no safe connection to {address}: {reason}")]
    Incompatible {
        /// Host and port.
        address: String,
        /// The missing algorithm.
        reason: String,
    },
    /// A session was lost. Usual cause: the network, a restart, an instance that was stopped.
    #[error("the connection to {address} was lost: {reason}")]
    Lost {
        /// Host and port.
        address: String,
        /// How it ended.
        reason: String,
    },
    /// The login succeeds, but no command runs. Usual cause: an instance that is still starting; no shell.
    #[error("{address} accepts the login, but runs no commands: {reason}")]
    NotReady {
        /// Host and port.
        address: String,
        /// The result of the test command.
        reason: String,
    },
    /// The server did not start a command. Usual cause: its limit of sessions, or commands are not permitted.
    #[error("the server did not start the command: {reason}")]
    NotRun {
        /// Why.
        reason: String,
    },
    /// No process listens on the port that a channel should reach. Usual cause: a server that is still starting, or
    /// crashed.
    #[error("no connection from the server to {}: {reason}", address(host, *port))]
    Refused {
        /// The host, as the server sees it.
        host: String,
        /// Its port.
        port: u16,
        /// The server's reason.
        reason: String,
    },
    /// A time limit or a deadline was reached. Usual cause: the last failure, if there is one.
    #[error("{doing} took too long{}", after(last.as_deref()))]
    TimedOut {
        /// The operation.
        doing: String,
        /// The last failure before the end.
        last: Option<Box<Self>>,
    },
    /// A body is longer than the caller's limit. Usual cause: another program answers on the port.
    #[error("the answer on port {port} is longer than {limit} bytes")]
    TooLong {
        /// The port on the far side.
        port: u16,
        /// The largest allowed number of bytes.
        limit: usize,
    },
    /// No connection, or it ended before the login. Usual cause: sshd is still starting; a firewall.
    #[error("{address} cannot be reached: {reason}")]
    Unreachable {
        /// Host and port.
        address: String,
        /// The reason.
        reason: String,
    },
}

impl Error {
    /// Whether the server did not answer, so that nothing is known about its current state.
    pub fn is_out_of_reach(&self) -> bool {
        matches!(
            self,
            Self::Incompatible { .. }
                | Self::Lost { .. }
                | Self::NotReady { .. }
                | Self::TimedOut { .. }
                | Self::Unreachable { .. }
        )
    }
}

/// The same error for the bastion.
pub(super) fn of_a_bastion(mut error: Error) -> Error {
    match &mut error {
        Error::Denied { is_bastion, .. }
        | Error::Excluded { is_bastion, .. }
        | Error::HostKeyChanged { is_bastion, .. } => *is_bastion = true,
        Error::BadKey { what, .. } | Error::EncryptedKey { what } => *what = format!("bastion's {what}"),
        _ => {}
    }
    error
}

/// What a host says that runs no commands for this user, now or later, in small letters: forced commands of cloud
/// images, passwords and accounts that have expired (PAM, OpenSSH, passwd), proxies for terminals, nologin, and
/// OpenSSH's sftp.
const REFUSALS: [&str; 8] = [
    "please login as the user",
    "you are required to change your password",
    "your password has expired",
    "password change required",
    "your account has expired",
    "client doesn't support pty",
    "this account is currently not available",
    "allows sftp connections only",
];

/// Whether a text of the server is a refusal that will not pass.
pub(super) fn is_lasting(said: &str) -> bool {
    let small = said.to_lowercase();
    REFUSALS.iter().any(|refusal| small.contains(refusal))
}

fn attempts(tried: &[String], offered: &[String]) -> String {
    let offered = if offered.is_empty() { "nothing".to_owned() } else { offered.join(", ") };
    if tried.is_empty() {
        return format!("no credential was given that the server accepts (it accepts {offered})");
    }
    format!("tried: {} (the server accepts {offered})", tried.join("; "))
}

fn after(last: Option<&Error>) -> String {
    last.map(|last| format!("; last: {last}")).unwrap_or_default()
}

/// A text of the server, made fit for an error: one line of limited length without control characters.
pub(super) fn said(text: &str) -> String {
    const MAX_LINE: usize = 300;

    let words: Vec<&str> = text.split(|letter: char| letter.is_control() || letter.is_whitespace()).collect();
    let line = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    if line.chars().count() <= MAX_LINE {
        return line;
    }
    // The end is more useful than the beginning.
    let skipped = line.chars().count() - MAX_LINE;
    format!("…{}", line.chars().skip(skipped).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_fits_a_line() {
        assert_eq!(said("a\x1b[31m\r\n\n  b\0"), "a [31m b");
        let long = said(&"x".repeat(1000));
        assert_eq!(long.chars().count(), 301);
    }

    #[test]
    fn a_denial_names_what_was_tried_and_what_is_taken() {
        let denied = |tried: &[&str], offered: &[&str]| {
            let strings = |words: &[&str]| words.iter().map(ToString::to_string).collect();
            Error::Denied {
                address: "h:22".to_owned(),
                user: "root".to_owned(),
                tried: strings(tried),
                offered: strings(offered),
                is_bastion: false,
            }
            .to_string()
        };
        assert_eq!(
            denied(&["private key", "password"], &["publickey"]),
            "root@h:22 refused the login; tried: private key; password (the server accepts publickey)"
        );
        assert_eq!(
            denied(&[], &[]),
            "root@h:22 refused the login; no credential was given that the server accepts (it accepts nothing)"
        );
    }

    #[test]
    fn an_ipv6_address_is_bracketed() {
        let error = Error::Refused { host: "::1".to_owned(), port: 1, reason: "x".to_owned() };
        assert_eq!(error.to_string(), "no connection from the server to [::1]:1: x");
    }
}
