//! A login to an instance, as ssh is given it on its command line and in its configuration.

use std::{ffi::OsString, path::Path};

use super::{host_keys, target::SshTarget};
use crate::{
    api::Instance,
    commands::{Failure, Surroundings},
    provider::login::{Access, USER},
    review::visible,
};

/// The number of the login with a key alone, in records of instances.
const KEY_LOGIN: i64 = 1;

/// A login to an instance, with the host key of the state known to ssh.
#[derive(Debug, Default)]
pub(super) struct Login {
    pub(super) uid: String,
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) has_password: bool,
    /// The guards of the host key, in the form of ssh's configuration. Usual settings of a user's own would keep the
    /// keys of instances by addresses that other instances get later.
    pub(super) host_key: Vec<(&'static str, String)>,
}

impl Login {
    pub(super) async fn new(
        target: &SshTarget,
        instance: &Instance,
        surroundings: &Surroundings,
    ) -> Result<Self, Failure> {
        let uid = target.uid.clone();
        let access = Access::of(instance);
        let (Some(host), Some(port)) = (&access.host, access.port) else {
            return Err(Failure::new(format!("instance {uid} has no SSH address yet")));
        };
        let host = visible(host, usize::MAX);
        let file = host_keys::file(surroundings)?;
        let is_pinned = host_keys::expect(&file, &uid, &target.pins, &host, port).await?;
        let mut host_key = vec![
            ("HostKeyAlias", uid.clone()),
            ("UserKnownHostsFile", path(&file)),
            ("StrictHostKeyChecking", if is_pinned { "yes" } else { "accept-new" }.to_owned()),
        ];
        host_key.extend(HOST_KEY.map(|(keyword, value)| (keyword, value.to_owned())));
        Ok(Self { uid, host, port, has_password: password(instance).is_some(), host_key })
    }

    /// The first words of ssh's command line: the options come before the user's, and the first value counts.
    pub(super) fn command(&self) -> Vec<OsString> {
        let host_key = self.host_key.iter().map(|(keyword, value)| format!("{keyword}={value}"));
        let by_password = BY_PASSWORD.into_iter().filter(|_| self.has_password);
        let others = ["ControlMaster=no", "ControlPath=none"].into_iter().chain(by_password).map(str::to_owned);
        let mut words = vec![OsString::from("ssh")];
        words.extend(host_key.chain(others).flat_map(|option| [OsString::from("-o"), option.into()]));
        words.extend(["-p".into(), self.port.to_string().into()]);
        words
    }

    pub(super) fn destination(&self) -> OsString {
        format!("{USER}@{}", self.host).into()
    }
}

const HOST_KEY: [(&str, &str); 7] = [
    ("CheckHostIP", "no"),
    ("HashKnownHosts", "no"),
    ("UpdateHostKeys", "no"),
    ("VerifyHostKeyDNS", "no"),
    ("GlobalKnownHostsFile", "/dev/null"),
    ("IgnoreUnknown", "KnownHostsCommand"),
    ("KnownHostsCommand", "none"),
];

/// Usual hardenings of a user's own configuration would leave no login by password.
const BY_PASSWORD: [&str; 6] = [
    "PreferredAuthentications=password,keyboard-interactive",
    "PasswordAuthentication=yes",
    "KbdInteractiveAuthentication=yes",
    "PubkeyAuthentication=no",
    "NumberOfPasswordPrompts=1",
    "BatchMode=no",
];

/// The password of an instance whose logins take one.
pub(super) fn password(instance: &Instance) -> Option<&str> {
    let password = instance.ssh_password.as_ref().map(secrecy::ExposeSecret::expose_secret);
    password.filter(|password| !password.is_empty() && instance.login_method != Some(KEY_LOGIN))
}

/// A path in ssh's configuration: it may have spaces, and `%` begins a token there.
pub(super) fn path(path: &Path) -> String {
    format!("\"{}\"", path.display().to_string().replace('%', "%%"))
}
