//! The host keys of instances: a file of ssh's form, whose lines are by UID, and the pins of the state.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use tempfile::NamedTempFile;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    commands::{Failure, Surroundings},
    provider::{home_of_user, login::USER},
    ssh::{self, Credentials, GivenAway, HostKey, Pin, SessionLimits, Target},
};

/// How long the server may take to show its key.
const HANDSHAKE: Duration = Duration::from_secs(30);

/// A fingerprint that no key has: a connection with it ends with the key that the server has shown.
const OF_NO_KEY: &str = "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// The file, in the folder that ssh itself uses: that of the user's entry, whatever `HOME` is. Windows has a variable.
pub(super) fn file(surroundings: &Surroundings) -> Result<PathBuf, Failure> {
    let home = home_of_user().or_else(|| surroundings.path("USERPROFILE"));
    let home = home.ok_or_else(|| Failure::new("the user has no home directory for the host keys"))?;
    Ok(home.join(".ssh/known_hosts_damodel"))
}

/// Makes ssh accept only the host key that the state has for the instance; `false` if the state has none. No credential
/// is sent.
///
/// # Errors
///
/// Two keys of the state differ, the instance has another one, or the file cannot be written.
pub(super) async fn expect(file: &Path, uid: &str, pins: &[String], host: &str, port: u16) -> Result<bool, Failure> {
    make_folder(file).map_err(|error| Failure::writing(file.display(), error))?;
    let [pin] = pins else {
        let two = || Failure::new(format!("the state has different host keys of {uid}:\n{}", pins.join("\n")));
        return if pins.is_empty() { Ok(false) } else { Err(two()) };
    };
    let bad = |error: ssh::Error| Failure::because(format!("cannot use the host key of {uid} in the state"), error);
    let expected: Pin = pin.parse().map_err(bad)?;
    let key = match pin.parse::<HostKey>() {
        Ok(key) => key,
        Err(_) => {
            let known = known(file, uid).map_err(|error| Failure::reading(file.display(), error))?;
            // A line that does not match is of an earlier machine, and proves nothing about this one.
            let key = match known.filter(|key| expected.matches(key)) {
                Some(key) => key,
                None => shown(host, port).await?,
            };
            if !expected.matches(&key) {
                let (wanted, shown) = (expected.fingerprint(), key.fingerprint());
                return Err(Failure::new(format!(
                    "the host key of {uid} is {shown}, and the state has {wanted}. No credential was sent"
                )));
            }
            key
        }
    };
    replace(file, uid, &key).map_err(|error| Failure::writing(file.display(), error))?;
    Ok(true)
}

fn make_folder(file: &Path) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.exists());
    let Some(folder) = folder else { return Ok(()) };
    fs::create_dir_all(folder)?;
    #[cfg(unix)]
    fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    Ok(())
}

fn lines(file: &Path) -> io::Result<String> {
    match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read,
    }
}

fn is_of(line: &str, uid: &str) -> bool {
    line.split_whitespace().next() == Some(uid)
}

/// The key in the file.
fn known(file: &Path, uid: &str) -> io::Result<Option<HostKey>> {
    let lines = lines(file)?;
    Ok(lines.lines().find(|line| is_of(line, uid)).and_then(|line| line.split_once(' ')?.1.parse().ok()))
}

/// Makes this key the only one of the instance in the file.
fn replace(file: &Path, uid: &str, key: &HostKey) -> io::Result<()> {
    let line = format!("{uid} {key}");
    let before = lines(file)?;
    let mut after: Vec<&str> = before.lines().filter(|known| !is_of(known, uid)).collect();
    after.push(&line);
    if before.lines().filter(|known| is_of(known, uid)).eq([line.as_str()]) {
        return Ok(());
    }
    let written = NamedTempFile::new_in(file.parent().unwrap_or_else(|| Path::new(".")))?;
    fs::write(written.path(), after.join("\n") + "\n")?;
    written.persist(file)?;
    Ok(())
}

/// The key that the server shows.
async fn shown(host: &str, port: u16) -> Result<HostKey, Failure> {
    let target = Target {
        host: host.to_owned(),
        port,
        user: USER.to_owned(),
        credentials: Credentials::default(),
        pin: OF_NO_KEY.parse().ok(),
        bastion: None,
        given_away: GivenAway::default(),
    };
    let limits = SessionLimits::default();
    let asked = ssh::connect(&target, &limits, Instant::now() + HANDSHAKE, &CancellationToken::new()).await;
    let failed = |error| Failure::because(format!("cannot see the host key of {host}:{port}"), error);
    match asked {
        Err(ssh::Error::HostKeyChanged { key, .. }) => Ok(*key),
        Err(error) => Err(failed(error)),
        Ok(session) => Ok(session.host_key().clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOH5xovzqhE4A8bFiusXYHyX9krazRycamoVT5W9+xLC";
    const OTHER: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKtKuIRU8jjUPnTbKmLZX3BVsrUXLkSc2RwTmZCvSFYZ";

    #[test]
    fn a_key_replaces_the_line_of_its_instance_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(".ssh/known_hosts_damodel");
        make_folder(&file).unwrap();
        let [one, other] = [ONE, OTHER].map(|key| key.parse::<HostKey>().unwrap());
        for (uid, key) in [("ins-1", &one), ("ins-2", &one), ("ins-1", &other), ("ins-1", &other)] {
            replace(&file, uid, key).unwrap();
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("ins-2 {ONE}\nins-1 {OTHER}\n"));
        assert_eq!(known(&file, "ins-1").unwrap(), Some(other));
        assert_eq!(known(&file, "ins").unwrap(), None);
    }

    #[test]
    fn no_key_has_the_fingerprint() {
        let pin: Pin = OF_NO_KEY.parse().unwrap();
        assert!(!pin.matches(&ONE.parse().unwrap()));
    }
}
