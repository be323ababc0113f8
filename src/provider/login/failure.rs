//! Diagnostics for errors of SSH.

use super::access::Access;
use crate::{
    framework::{Diagnostic, Path},
    provider::words::capitalized,
    ssh,
};

/// A failed SSH operation, with the context for its diagnostic.
#[derive(Debug)]
pub(crate) struct SshFailure<'a> {
    /// The error.
    pub(crate) error: &'a ssh::Error,
    /// The attempted action, as text after "Cannot".
    pub(crate) tried: String,
    /// The resulting state, in a sentence.
    pub(crate) now: String,
}

impl SshFailure<'_> {
    /// The diagnostic, at the blamed argument.
    pub(crate) fn diagnostic(&self) -> Diagnostic {
        let (title, advice) = meaning(self.error);
        let mut parts = vec![format!("{}.", sentence(&self.error.to_string()))];
        parts.extend([advice, self.now.clone()].into_iter().filter(|part| !part.is_empty()));
        let diagnostic = Diagnostic::error(format!("Cannot {}: {title}", self.tried), parts.join("\n\n"));
        let ssh = Path::to("ssh");
        match self.error {
            ssh::Error::HostKeyChanged { is_bastion: true, .. } => {
                diagnostic.at(ssh.attribute("bastion").attribute("host_key"))
            }
            ssh::Error::Excluded { is_bastion: true, .. } => diagnostic.at(ssh.attribute("bastion").attribute("user")),
            ssh::Error::Excluded { .. } => diagnostic.at(ssh.attribute("user")),
            ssh::Error::BadPin { .. } | ssh::Error::HostKeyChanged { .. } => diagnostic.at(ssh.attribute("host_key")),
            _ => diagnostic,
        }
    }
}

fn sentence(text: &str) -> String {
    capitalized(text.trim_end_matches('.'))
}

fn meaning(error: &ssh::Error) -> (&'static str, String) {
    use ssh::Error;
    // The error of the last attempt is more precise than the timeout.
    if let Error::TimedOut { last: Some(last), .. } = error {
        return meaning(last);
    }
    let (title, advice) = match error {
        Error::BadKey { .. } => (
            "a key cannot be read",
            "Check the private key or certificate: it must be complete, in OpenSSH or PEM format. A .pub file needs an \
             agent: set agent = true.",
        ),
        Error::BadPin { .. } => {
            ("the pinned host key cannot be read", "Write an OpenSSH public-key line or a fingerprint (SHA256:…).")
        }
        Error::Cancelled { .. } => ("the run was stopped", ""),
        Error::Denied { tried, is_bastion, .. } => return denied(tried, *is_bastion),
        Error::EncryptedKey { .. } => (
            "the private key has a passphrase",
            "Load it into an agent and set agent = true with private_key_file, or use a key without a passphrase.",
        ),
        Error::Excluded { is_bastion: true, .. } => (
            "the bastion refuses the user",
            "Waiting does not help. Set ssh.bastion.user to a user that may log in there.",
        ),
        Error::Excluded { .. } => (
            "the SSH user may not run commands",
            "Waiting does not help. Set ssh.user to a user that may run commands, such as the one that the host names. \
             To change an expired password, log in by hand. A proxy that requires a terminal cannot be used: set \
             ssh.host to the address of the instance itself.",
        ),
        Error::HostKeyChanged { is_bastion, .. } => {
            let (title, host, argument) = if *is_bastion {
                ("the bastion's host key has changed", "bastion", "ssh.bastion.host_key")
            } else {
                ("the host key has changed", "instance", "ssh.host_key")
            };
            return (
                title,
                format!(
                    "Either the {host} was recreated, or another server answers at its address. If the new key is \
                     right, set {argument} to it, or run terraform apply -replace=<address>."
                ),
            );
        }
        Error::Incompatible { .. } => {
            ("no common SSH algorithm with the server", "Check host and port: another program may use the port.")
        }
        Error::NotReady { .. } => (
            "the SSH server accepts logins but not commands yet",
            "The instance may still be starting: try again. ssh.timeout limits how long a login may take. If the user \
             has no shell, set ssh.user to one that has.",
        ),
        Error::NotRun { .. } => (
            "the server runs no commands",
            "The instance may still be starting: try again. If the user has no shell, set ssh.user to one that has.",
        ),
        Error::TimedOut { .. } => {
            ("timed out", "The host did not answer in time. ssh.timeout limits how long a login may take.")
        }
        Error::Unreachable { .. } | Error::Lost { .. } => (
            "SSH connection failed",
            "Check host, port, the network and the bastion, and that the instance is running. If it is still starting, \
             try again: ssh.timeout limits how long a login may take.",
        ),
        Error::Forbidden { .. } => (
            "the SSH server forbids forwarding",
            "Health checks go through the SSH connection: allow AllowTcpForwarding in its sshd_config, also on the \
             bastion.",
        ),
        _ => ("SSH failed", ""),
    };
    (title, advice.to_owned())
}

/// The meaning of a refused login. A server that ends the connection has not seen all keys of an agent.
fn denied(tried: &[String], is_bastion: bool) -> (&'static str, String) {
    let title = if is_bastion { "the bastion refused the login" } else { "the login was refused" };
    let ssh = if is_bastion { "ssh.bastion" } else { "ssh" };
    let agents = tried.iter().filter(|tried| tried.starts_with("agent's key")).count();
    let is_cut = tried.iter().any(|tried| tried.starts_with("server message"));
    let advice = if agents > 1 || (agents == 1 && is_cut) {
        format!(
            "The server refused further attempts, or accepts no key of the agent. If the agent has several keys, set \
             {ssh}.private_key_file to the file of the right one, or to its .pub file: then only that key is tried."
        )
    } else if is_bastion {
        "Check ssh.bastion: its user, and its key or agent. It takes no password and no certificate.".to_owned()
    } else {
        "Check user, key and password. An instance created with login_method = \"ssh_key\" accepts only its key: set \
         ssh.private_key_file or ssh.agent."
            .to_owned()
    };
    (title, advice)
}

/// Why a login failed.
#[derive(Debug)]
pub(crate) enum NoLogin {
    /// There are no credentials: write-only ones are not known here.
    NoCredentials,
    /// An argument is wrong, or missing in the state.
    Refused(Box<Diagnostic>),
    /// The error of SSH.
    Ssh(Box<ssh::Error>),
}

impl NoLogin {
    /// The diagnostic. `tried` is the action, as text after "Cannot"; `now` is the resulting state, in a sentence.
    pub(crate) fn diagnostic(&self, tried: String, access: Option<&Access>, now: &str) -> Diagnostic {
        match self {
            Self::NoCredentials => no_credentials(access, now),
            Self::Refused(diagnostic) => (**diagnostic).clone(),
            Self::Ssh(error) => SshFailure { error, tried, now: now.to_owned() }.diagnostic(),
        }
    }
}

impl From<ssh::Error> for NoLogin {
    fn from(error: ssh::Error) -> Self {
        Self::Ssh(Box::new(error))
    }
}

/// The error for a login without credentials.
pub(crate) fn no_credentials(access: Option<&Access>, now: &str) -> Diagnostic {
    let detail = match access {
        Some(access) => format!(
            "The service shows no password for instance {}, as for instances created with login_method = \"ssh_key\". \
             Set ssh.private_key_file, ssh.agent or other credentials. {now}",
            access.uid
        ),
        None => format!("Set ssh.private_key_file, ssh.private_key, ssh.password or ssh.agent. {now}"),
    };
    Diagnostic::error("No SSH credentials", detail).at(Path::to("ssh"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnostic(error: &ssh::Error) -> Diagnostic {
        SshFailure { error, tried: "log in".to_owned(), now: "Nothing was changed.".to_owned() }.diagnostic()
    }

    #[test]
    fn a_changed_host_key_is_told_once() {
        let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ".parse().unwrap();
        let (address, expected, shown) = ("h:22".to_owned(), "SHA256:a".to_owned(), "SHA256:b".to_owned());
        let changed = ssh::Error::HostKeyChanged { address, expected, shown, key: Box::new(key), is_bastion: false };
        let text = diagnostic(&changed).detail.to_lowercase();
        for words in ["sha256:a", "sha256:b", "no credential was sent", "pinned"] {
            assert_eq!(text.matches(words).count(), 1, "{words}: {text}");
        }
    }

    #[test]
    fn with_many_keys_of_an_agent_the_error_says_how_to_choose() {
        let denied = |tried: &[&str]| ssh::Error::Denied {
            address: "h:22".to_owned(),
            user: "root".to_owned(),
            tried: tried.iter().map(ToString::to_string).collect(),
            offered: Vec::new(),
            is_bastion: false,
        };
        let many =
            diagnostic(&denied(&["agent's key ssh-rsa SHA256:a", "agent's key ssh-rsa SHA256:b", "server message: c"]));
        assert!(many.detail.contains("set ssh.private_key_file") && many.detail.contains(".pub file"), "{many:?}");
        assert!(!diagnostic(&denied(&["agent's key ssh-rsa SHA256:a"])).detail.contains(".pub file"));
        // As sshd with MaxAuthTries 1.
        let cut = diagnostic(&denied(&["agent's key ssh-rsa SHA256:a", "server message: Too many"]));
        assert!(cut.detail.contains(".pub file"), "{cut:?}");
    }

    #[test]
    fn a_refusal_of_the_bastion_names_its_arguments() {
        let (address, user) = ("jump:22".to_owned(), "root".to_owned());
        for (tried, argument) in [
            (vec!["private key ssh-rsa SHA256:a"], "Check ssh.bastion"),
            (vec!["agent's key ssh-rsa SHA256:a"; 2], "set ssh.bastion.private_key_file"),
        ] {
            let (address, user, tried) =
                (address.clone(), user.clone(), tried.into_iter().map(str::to_owned).collect());
            let offered = Vec::new();
            let error = ssh::Error::Denied { address, user, tried, offered, is_bastion: true };
            let shown = diagnostic(&error);
            let text = format!("{} {}", shown.summary, shown.detail);
            assert!(text.contains(argument) && text.contains("the bastion refused"), "{text}");
            assert!(!text.contains("ssh.private_key_file") && !text.contains("ssh.agent"), "{text}");
        }
        let error = ssh::Error::Excluded { address, user, reason: "x".to_owned(), is_bastion: true };
        let path = Path::to("ssh").attribute("bastion").attribute("user");
        assert_eq!(diagnostic(&error).path, Some(path));
    }

    #[test]
    fn a_user_that_may_not_run_commands_is_an_error_at_the_user() {
        let reason = "exit code 142: Please login as the user \"ubuntu\"".to_owned();
        let error =
            ssh::Error::Excluded { address: "h:22".to_owned(), user: "root".to_owned(), reason, is_bastion: false };
        let shown = diagnostic(&error);
        assert_eq!(shown.path, Some(Path::to("ssh").attribute("user")));
        assert!(shown.detail.contains("the user \"ubuntu\"") && shown.detail.contains("Set ssh.user"), "{shown:?}");
        assert!(!shown.detail.contains("starting"), "{shown:?}");
    }
}
