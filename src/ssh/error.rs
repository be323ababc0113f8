//! What can go wrong between here and a command that ran.

use super::{HostKey, address};

/// Every failure of this layer. Its text is a lowercase fragment that names the server, and never holds a secret.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What came through a channel was no HTTP, or ended too early. Usual cause: the server behind the port died, or
    /// speaks something else.
    #[error("the answer on port {port} broke off: {reason}")]
    BadAnswer {
        /// The port on the far side.
        port: u16,
        /// What was wrong with it.
        reason: String,
    },
    /// A credential cannot be read. Usual cause: the public half was given, a line was lost, or the file is missing.
    #[error("the {what} cannot be used: {reason}")]
    BadKey {
        /// Which of the credentials, as in `private key` or `certificate`.
        what: String,
        /// Why.
        reason: String,
    },
    /// A pin is neither a public key nor a SHA256 fingerprint. Usual cause: a line of known_hosts with its host name.
    #[error("the host key {reason}; expected is a line like `ssh-ed25519 AAAA…`, or a fingerprint like `SHA256:…`")]
    BadPin {
        /// What it is instead.
        reason: String,
    },
    /// The caller cancelled. Usual cause: Ctrl-C.
    #[error("{doing} was cancelled")]
    Cancelled {
        /// What was under way.
        doing: String,
    },
    /// The server refused every credential. Usual cause: another user, or a key that the machine does not know.
    #[error("{user}@{address} refused the login; {}", attempts(tried, offered))]
    Denied {
        /// Host and port.
        address: String,
        /// Who wanted to log in.
        user: String,
        /// What was tried, in order, each as in `private key ssh-ed25519 SHA256:…`.
        tried: Vec<String>,
        /// The methods that the server takes, as in `publickey`.
        offered: Vec<String>,
    },
    /// A private key is encrypted, and no passphrase is set. Usual cause: a person's own key.
    #[error("the {what} is encrypted: give one without a passphrase, or load it into an agent")]
    EncryptedKey {
        /// Which of the credentials.
        what: String,
    },
    /// The server does not let us open connections through it. Usual cause: `AllowTcpForwarding no` in sshd_config.
    #[error(
        "the server does not permit connections to {} (sshd's AllowTcpForwarding and PermitOpen)",
        address(host, *port)
    )]
    Forbidden {
        /// The host that was asked for, as the server sees it.
        host: String,
        /// Its port.
        port: u16,
    },
    /// The server showed another host key than the pinned one; no credential was sent. Usual cause: the machine was
    /// made anew under the same address; else somebody is in between.
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
        /// The fingerprint of what was shown, `SHA256:…`.
        shown: String,
        /// The key that was shown.
        key: Box<HostKey>,
        /// Whether it is a bastion on the way, and not the server itself.
        is_bastion: bool,
    },
    /// The handshake cannot succeed. Usual cause: a server so old that no safe algorithm is common.
    #[error("no safe connection to {address}: {reason}")]
    Incompatible {
        /// Host and port.
        address: String,
        /// What is not common.
        reason: String,
    },
    /// A session that worked is gone. Usual cause: the network, a restart, a machine that was stopped.
    #[error("the connection to {address} was lost: {reason}")]
    Lost {
        /// Host and port.
        address: String,
        /// How it ended.
        reason: String,
    },
    /// The login works, and no command runs. Usual cause: a machine that is still booting; a user without a shell.
    #[error("{address} accepts the login, but runs no commands: {reason}")]
    NotReady {
        /// Host and port.
        address: String,
        /// What came instead.
        reason: String,
    },
    /// The server did not start a command. Usual cause: its limit of sessions, or commands that are not permitted.
    #[error("the server did not start the command: {reason}")]
    NotRun {
        /// Why.
        reason: String,
    },
    /// Nobody listens at the place that a channel was to lead to. Usual cause: a server that is not up yet, or died.
    #[error("no connection from the server to {}: {reason}", address(host, *port))]
    Refused {
        /// The host, as the server sees it.
        host: String,
        /// Its port.
        port: u16,
        /// The server's word for it.
        reason: String,
    },
    /// A wait ended by its limit or its deadline. Usual cause: see the last failure, when there is one.
    #[error("{doing} took too long{}", after(last.as_deref()))]
    TimedOut {
        /// What was waited for.
        doing: String,
        /// The last failure before the end.
        last: Option<Box<Self>>,
    },
    /// A body is longer than the caller reads. Usual cause: something else than expected answers on the port.
    #[error("the answer on port {port} is longer than {limit} bytes")]
    TooLong {
        /// The port on the far side.
        port: u16,
        /// How many bytes were allowed.
        limit: usize,
    },
    /// No connection, or one that ended before the login. Usual cause: sshd is still coming up; a firewall.
    #[error("{address} cannot be reached: {reason}")]
    Unreachable {
        /// Host and port.
        address: String,
        /// What the attempt ended with.
        reason: String,
    },
    /// A file did not arrive; what was there before is still there. Usual cause: a missing folder, a full disk.
    #[error("{path} was not written: {reason}")]
    Upload {
        /// The path on the far side.
        path: String,
        /// What the far side said.
        reason: String,
    },
}

impl Error {
    /// Whether nothing was learnt about the machine, since it could not be asked: a reader keeps what it knew.
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

/// The same of a bastion on the way.
pub(super) fn of_a_bastion(error: Error) -> Error {
    match error {
        Error::HostKeyChanged { address, expected, shown, key, .. } => {
            Error::HostKeyChanged { address, expected, shown, key, is_bastion: true }
        }
        other => other,
    }
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

/// What the far side said, fit for an error: one line, bounded, without control characters.
pub(super) fn said(text: &str) -> String {
    const LONGEST: usize = 300;

    let words: Vec<&str> = text.split(|letter: char| letter.is_control() || letter.is_whitespace()).collect();
    let line = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    if line.chars().count() <= LONGEST {
        return line;
    }
    // The end tells more than the beginning.
    let skipped = line.chars().count() - LONGEST;
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
