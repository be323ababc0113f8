//! The argument `ssh`: the login of resources, data sources and ephemeral resources.
//!
//! Missing values are taken from an instance's [`Access`]; configured values take precedence.

use std::{sync::Arc, time::Duration};

use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    access::{Access, USER},
    failure::NoLogin,
};
use crate::{
    framework::{Attr, Diagnostic, Diagnostics, Path, Secret, timeouts::parse_duration},
    provider::{ProviderClient, StepContext},
    ssh,
};

/// The default port of SSH.
pub(crate) const PORT: u16 = 22;
/// The default time to wait for a login.
const TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// The struct of a login host, with additional fields.
macro_rules! login {
    ($(#[$meta:meta])* $name:ident { $($own:ident: $ty:ty,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub(crate) struct $name {
            pub(crate) host: Attr<String>,
            pub(crate) port: Attr<i64>,
            pub(crate) user: Attr<String>,
            pub(crate) private_key: Attr<Secret>,
            pub(crate) private_key_file: Attr<String>,
            pub(crate) agent: Attr<bool>,
            pub(crate) host_key: Attr<String>,
            pub(crate) timeout: Attr<String>,
            $(pub(crate) $own: Attr<$ty>,)*
        }

        impl $name {
            /// Its host and port, which identify it.
            pub(crate) fn address(&self) -> Option<String> {
                Some(format!("{}:{}", self.host()?, port(&self.port).unwrap_or(PORT)))
            }

            /// Its host, without what belongs to how an address is written.
            pub(crate) fn host(&self) -> Option<&str> {
                self.host.as_str().map(bare)
            }

            /// Whether the agent is configured or still unknown.
            fn has_agent(&self) -> bool {
                !matches!(self.agent, Attr::Null | Attr::Known(false))
            }

            /// Whether a key or an agent is configured or still unknown.
            fn has_key(&self) -> bool {
                !(self.private_key.is_null() && self.private_key_file.is_null()) || self.has_agent()
            }

            fn credentials(
                &self,
                write_only: &WriteOnly,
                client: &ProviderClient,
                at: &Path,
            ) -> Result<ssh::Credentials, NoLogin> {
                let refused = |diagnostic| NoLogin::Refused(Box::new(diagnostic));
                let file = self.private_key_file.as_str().map(|path| {
                    client.environment.path(path).map_err(|error| {
                        let diagnostic = Diagnostic::error("No home directory", error.to_string());
                        refused(diagnostic.at(at.clone().attribute("private_key_file")))
                    })
                });
                let agent = match (self.agent.known(), client.environment.ssh_agent()) {
                    (Some(true), None) => return Err(refused(no_agent(at.clone().attribute("agent")))),
                    (Some(true), socket) => socket,
                    _ => None,
                };
                Ok(ssh::Credentials {
                    private_key: secret(&self.private_key, &write_only.private_key),
                    private_key_file: file.transpose()?,
                    agent,
                    ..ssh::Credentials::default()
                })
            }

            fn pin(&self) -> Option<ssh::Pin> {
                self.host_key.as_str().and_then(|key| key.parse().ok())
            }

            fn own_timeout(&self) -> Option<Duration> {
                self.timeout.as_str().and_then(parse_duration)
            }
        }
    };
}

login!(
    /// The host to log in to.
    Ssh {
        certificate: String,
        password: Secret,
        bastion: Bastion,
    }
);

login!(
    /// The host that the connection goes through.
    Bastion {}
);

fn secret(own: &Attr<Secret>, other: &Attr<Secret>) -> Option<SecretString> {
    own.known().or_else(|| other.known()).cloned().map(Secret::into_inner)
}

/// The write-only credentials of one host, which exist only during the apply; null if not set.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WriteOnly {
    pub(crate) private_key: Attr<Secret>,
    pub(crate) password: Attr<Secret>,
}

impl WriteOnly {
    fn is_null(&self) -> bool {
        self.private_key.is_null() && self.password.is_null()
    }
}

/// The complete login configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Login {
    /// The configured argument, or its default.
    pub(crate) ssh: Ssh,
    /// Write-only credentials of the host.
    pub(crate) write_only: WriteOnly,
    /// The host key of an earlier login, an OpenSSH public-key line. A configured key takes precedence.
    pub(crate) known_host: Option<String>,
    /// The bastion's host key of an earlier login.
    pub(crate) known_bastion: Option<String>,
}

impl Login {
    /// The login of what keeps no host key of its own: its arguments `ssh` and `host_key`.
    pub(crate) fn visit(ssh: &Attr<Ssh>, host_key: &Attr<String>) -> Self {
        let ssh = ssh.known().cloned().unwrap_or_default();
        Self { ssh, known_host: host_key.known().cloned(), ..Self::default() }
    }

    /// The login target, including the bastion.
    ///
    /// # Errors
    /// The address or the credentials are missing.
    pub(crate) fn target(&self, access: Option<&Access>, client: &ProviderClient) -> Result<ssh::Target, NoLogin> {
        let ssh = &self.ssh;
        let user = ssh.user.as_str().unwrap_or(USER).to_owned();
        let host = ssh.host().or_else(|| access?.host.as_deref().map(bare));
        let host = host.ok_or_else(|| NoLogin::Refused(Box::new(no_address(access)))).map(str::to_owned)?;
        // The service's port is only valid for the service's address.
        let reported = access.filter(|_| ssh.host.known().is_none()).and_then(|access| access.port);
        let path = Path::to("ssh");
        let mut credentials = ssh.credentials(&self.write_only, client, &path)?;
        credentials.certificate = ssh.certificate.known().cloned();
        // A password may end with blanks, but not with the line end of the file that has it.
        let one_line = |text: SecretString| text.expose_secret().trim_end_matches(['\r', '\n']).into();
        credentials.password = secret(&ssh.password, &self.write_only.password).map(one_line);
        if credentials.password.is_none() && user == USER {
            credentials.password = access.and_then(|access| access.password.clone());
        }
        let bastion = match ssh.bastion.known() {
            Some(bastion) => {
                let path = path.attribute("bastion");
                let credentials = bastion.credentials(&WriteOnly::default(), client, &path)?;
                Some(Box::new(ssh::Target {
                    host: bastion.host().unwrap_or_default().to_owned(),
                    port: port(&bastion.port).unwrap_or(PORT),
                    user: bastion.user.as_str().unwrap_or(USER).to_owned(),
                    credentials: some(credentials)?,
                    pin: pinned(bastion.pin(), self.known_bastion.as_deref()),
                    bastion: None,
                    given_away: ssh::GivenAway::default(),
                }))
            }
            None => None,
        };
        Ok(ssh::Target {
            host,
            port: port(&ssh.port).or(reported).unwrap_or(PORT),
            user,
            credentials: some(credentials)?,
            pin: pinned(ssh.pin(), self.known_host.as_deref()),
            bastion,
            given_away: ssh::GivenAway::default(),
        })
    }

    /// Logs in, for one run. `tried` is the action, as text after "Cannot". A stop ends the login; the link stays open
    /// until it is dropped. The warnings about unverified host keys are added to `warnings` whatever follows.
    ///
    /// # Errors
    /// A diagnostic: no credentials, or the error of SSH.
    pub(crate) async fn open(
        &self,
        access: Option<&Access>,
        tried: &str,
        context: &StepContext,
        warnings: &mut Diagnostics,
    ) -> Result<(ssh::Link, Arc<ssh::Session>), Box<Diagnostic>> {
        let failed = |none: NoLogin| Box::new(none.diagnostic(tried.to_owned(), access, ""));
        let target = self.target(access, &context.client).map_err(failed)?;
        let (path, client) = (Path::to("host_key"), &context.client);
        let login = target.clone();
        let opened = async move {
            let patience = self.timeout().min(context.deadline.saturating_duration_since(Instant::now()));
            // After a stop, Terraform lets running operations, which may use this link, finish before it closes the
            // link.
            let lasting = CancellationToken::new();
            let (limits, doing) = (ssh::SessionLimits::default(), format!("the connection to {}", target.host));
            let link = tokio::select! {
                biased;
                () = context.stopping.cancelled() => Err(ssh::Error::Cancelled { doing }),
                connected = ssh::Link::open(target, limits, patience, lasting) => connected,
            }?;
            let session = link.session().await?;
            Ok((link, session))
        };
        let opened = opened.await;
        warnings.extend(self.unpinned(&login, opened.as_ref().ok().map(|(_, session)| &**session), path, client));
        opened.map_err(|error: ssh::Error| failed(error.into()))
    }

    /// The warnings about host keys without a pin after a login, each once in a run: those of its session, or if it
    /// failed, those that got a password. `path` is the argument that pins the host's key.
    pub(crate) fn unpinned(
        &self,
        target: &ssh::Target,
        session: Option<&ssh::Session>,
        path: Path,
        client: &ProviderClient,
    ) -> Diagnostics {
        let key = |target: &ssh::Target, shown: Option<&ssh::HostKey>| {
            let key = shown.or_else(|| target.given_away.host_key());
            key.filter(|_| target.pin.is_none()).cloned()
        };
        let host = key(target, session.map(ssh::Session::host_key));
        let shown = session.and_then(ssh::Session::bastion_host_key);
        let bastion = target.bastion.as_deref().and_then(|bastion| key(bastion, shown));
        let bastion_path = Path::to("ssh").attribute("bastion").attribute("host_key");
        let keys = [("instance", host, path), ("bastion", bastion, bastion_path)];
        let is_new = |whose: &str, key: &ssh::HostKey| client.accepted_unpinned(&format!("{whose} {key}"));
        keys.into_iter()
            .filter_map(|(whose, key, path)| Some((whose, key?, path)))
            .filter(|(whose, key, _)| is_new(whose, key))
            .map(|(whose, key, path)| unpinned(whose, &key, path))
            .collect()
    }

    /// The time limit of a login: the host's timeout plus, if set, the bastion's.
    pub(crate) fn timeout(&self) -> Duration {
        let bastion = self.ssh.bastion.known().and_then(Bastion::own_timeout).unwrap_or_default();
        self.ssh.own_timeout().unwrap_or(TIMEOUT) + bastion
    }

    /// Checks the rules between arguments without the service. With `has_instance`, the service provides missing
    /// values.
    pub(crate) fn validate(
        configured: &Attr<Ssh>,
        has_instance: bool,
        write_only: &WriteOnly,
        diagnostics: &mut Diagnostics,
    ) {
        let path = Path::to("ssh");
        let ssh = match configured {
            Attr::Unknown => return,
            Attr::Null => &Ssh::default(),
            Attr::Known(ssh) => ssh,
        };
        if !has_instance && configured.is_null() {
            diagnostics.error_at(
                Path::to("instance_id"),
                "No instance to log in to",
                "Set instance_id, to log in with the service's values, or ssh, with a host and credentials.",
            );
            return;
        }
        if !has_instance && ssh.host.is_null() {
            diagnostics.error_at(
                path.clone(),
                "Missing required argument",
                "Without instance_id, ssh needs a host: the address to log in to.",
            );
        }
        if !has_instance && !ssh.has_key() && ssh.password.is_null() && write_only.is_null() {
            diagnostics.error_at(
                path.clone(),
                "Missing SSH credentials",
                "Without instance_id, ssh needs a private_key_file, a private_key, a password, or agent = true.",
            );
        }
        twice(&ssh.private_key, &write_only.private_key, "ssh.private_key", "ssh_private_key_wo", diagnostics);
        twice(&ssh.password, &write_only.password, "ssh.password", "ssh_password_wo", diagnostics);
        check_certificate(
            &ssh.certificate,
            !ssh.has_agent()
                && ssh.private_key.is_null()
                && ssh.private_key_file.is_null()
                && write_only.private_key.is_null(),
            &path,
            diagnostics,
        );
        if let Attr::Known(bastion) = &ssh.bastion
            && !bastion.has_key()
        {
            diagnostics.error_at(
                path.attribute("bastion"),
                "Missing SSH credentials",
                "The bastion needs a private_key_file, a private_key, or agent = true of its own. It takes no password \
                 and no certificate.",
            );
        }
    }
}

/// A host without white space around it and without the brackets of an IPv6 address.
pub(crate) fn bare(host: &str) -> &str {
    let host = host.trim();
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

fn port(port: &Attr<i64>) -> Option<u16> {
    port.known().and_then(|port| u16::try_from(*port).ok())
}

fn pinned(configured: Option<ssh::Pin>, known: Option<&str>) -> Option<ssh::Pin> {
    configured.or_else(|| known.and_then(|key| key.parse().ok()))
}

/// Fails if the credentials are empty.
fn some(credentials: ssh::Credentials) -> Result<ssh::Credentials, NoLogin> {
    let ssh::Credentials { private_key, private_key_file, password, agent, .. } = &credentials;
    if private_key.is_none() && private_key_file.is_none() && password.is_none() && agent.is_none() {
        return Err(NoLogin::NoCredentials);
    }
    Ok(credentials)
}

fn twice(
    stored: &Attr<Secret>,
    write_only: &Attr<Secret>,
    name: &str,
    write_only_name: &str,
    diagnostics: &mut Diagnostics,
) {
    if stored.is_known() && write_only.is_known() {
        diagnostics.error_at(
            Path::to(write_only_name),
            "The same secret twice",
            format!("Set either {name}, which is stored in the state, or {write_only_name}, which is not."),
        );
    }
}

fn check_certificate(certificate: &Attr<String>, is_alone: bool, path: &Path, diagnostics: &mut Diagnostics) {
    if certificate.is_known() && is_alone {
        diagnostics.error_at(
            path.attribute("certificate"),
            "A certificate without its key",
            "A certificate is used with its private key: set private_key_file, private_key or agent = true.",
        );
    }
}

fn no_address(access: Option<&Access>) -> Diagnostic {
    let whose = access.map_or_else(|| "the instance".to_owned(), |access| format!("instance {}", access.uid));
    Diagnostic::error(
        format!("No SSH address for {whose}"),
        "The service shows no ssh_host for it, and ssh has no host. Set ssh.host and ssh.port, or try again when the \
         console shows an address.",
    )
}

fn no_agent(path: Path) -> Diagnostic {
    Diagnostic::error(
        "No SSH agent",
        "agent = true uses the agent at SSH_AUTH_SOCK, and that variable is not set. Start an agent, or set \
         private_key_file.",
    )
    .at(path)
}

fn unpinned(whose: &str, key: &ssh::HostKey, path: Path) -> Diagnostic {
    let summary = format!("The SSH host key of the {whose} is not pinned");
    // A server pins it in its state from now on.
    let is_of_a_visit = path == Path::to("host_key");
    let own = if is_of_a_visit { "host_key = damodel_llama_server.<name>.host_key, or with " } else { "" };
    let text = format!("The key {} was accepted without a check. Pin it with {own}this text: {key}", key.fingerprint());
    Diagnostic::warning(summary, text).at(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        api::{Client, Settings},
        creation::Journal,
    };

    #[test]
    fn a_password_loses_line_ends_only_and_a_path_in_an_unknown_home_is_refused() {
        let client = ProviderClient::new(Client::new(Settings::default()), Journal::new("none"));
        let password = Attr::Known(Secret::new(" two words \r\n"));
        let ssh = Ssh { host: "h".into(), password, ..Ssh::default() };
        let target = Login { ssh: ssh.clone(), ..Login::default() }.target(None, &client).unwrap();
        assert_eq!(target.credentials.password.unwrap().expose_secret(), " two words ");
        let ssh = Ssh { private_key_file: "~/.ssh/id".into(), ..ssh };
        let refused = Login { ssh, ..Login::default() }.target(None, &client).unwrap_err();
        let text = format!("{refused:?}");
        assert!(text.contains("HOME is not set") && text.contains("private_key_file"), "{text}");
    }
}
