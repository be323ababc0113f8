//! A unix socket in a directory of its own (plugin protocol, socket details).

use std::{
    fs::{Permissions, set_permissions},
    io,
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
};

use nix::unistd::Group;
use tokio::net::UnixListener;

use super::{Bound, Error, Listener, PluginAddress};
use crate::plugin::environment::SocketPlace;

/// Listens in a new directory that only this user (and the group of `place`) may enter. That protects the socket for
/// every umask, also without encryption.
///
/// A directory that the host requires is the only one tried. Otherwise the user's directory for temporary files is
/// tried first, then the system's, as the first may be missing or its name too long for a socket.
pub(super) fn bind(place: &SocketPlace) -> Result<Bound, Error> {
    let group = place.group.as_deref().map(group_id).transpose()?;
    let candidates = match (&place.directory, &place.temporary) {
        (Some(only), _) => vec![only.clone()],
        (None, Some(own)) => vec![own.clone(), PathBuf::from(SYSTEM_DIRECTORY)],
        (None, None) => vec![PathBuf::from(SYSTEM_DIRECTORY)],
    };
    let mut refusal = Error::Socket { directory: PathBuf::new(), source: io::ErrorKind::NotFound.into() };
    for directory in candidates {
        match bind_under(&directory, group) {
            Ok(bound) => return Ok(bound),
            Err(source) => refusal = Error::Socket { directory, source },
        }
    }
    Err(refusal)
}

fn bind_under(parent: &Path, group: Option<u32>) -> io::Result<Bound> {
    // The host may connect from another working directory.
    let parent = std::path::absolute(parent)?;
    let directory =
        tempfile::Builder::new().prefix("plugin").permissions(Permissions::from_mode(0o700)).tempdir_in(parent)?;
    let path = directory.path().join("socket");
    let address = printable(&path)?;
    let listener = UnixListener::bind(&path)?;
    if let Some(group) = group {
        chown(directory.path(), None, Some(group))?;
        chown(&path, None, Some(group))?;
        set_permissions(directory.path(), Permissions::from_mode(0o710))?;
        set_permissions(&path, Permissions::from_mode(0o660))?;
    }
    Ok(Bound {
        directory: Some(directory),
        endpoint: PluginAddress { network: "unix", address },
        listener: Listener::Unix(listener),
    })
}

/// The path as a field of the handshake line: bars separate the fields, and a line break ends them.
fn printable(path: &Path) -> io::Result<String> {
    let text = path.to_str().filter(|text| !text.contains(|c: char| c == '|' || c.is_control()));
    text.map(str::to_owned).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "the path has characters that the handshake cannot carry")
    })
}

fn group_id(name: &str) -> Result<u32, Error> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    match Group::from_name(name) {
        Ok(Some(group)) => Ok(group.gid.as_raw()),
        Ok(None) | Err(_) => Err(Error::Group { name: name.to_owned() }),
    }
}

/// Short enough for a socket on every system.
const SYSTEM_DIRECTORY: &str = "/tmp";

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

    use super::*;

    fn under(directory: &Path) -> SocketPlace {
        SocketPlace { temporary: Some(directory.to_owned()), ..SocketPlace::default() }
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[tokio::test]
    async fn the_directory_is_private_and_goes_with_the_server() {
        let temporary = tempfile::tempdir().unwrap();
        let bound = bind(&under(temporary.path())).unwrap();
        let socket = PathBuf::from(&bound.endpoint.address);
        let directory = socket.parent().unwrap().to_owned();
        assert_eq!(directory.parent(), Some(temporary.path()));
        let name = directory.file_name().unwrap().to_string_lossy();
        assert!(name.starts_with("plugin"), "{name}");
        assert_eq!(mode(&directory), 0o700);
        assert!(socket.exists());

        drop(bound);
        assert!(!directory.exists());
    }

    #[tokio::test]
    async fn a_directory_too_long_for_a_socket_falls_back() {
        let temporary = tempfile::tempdir().unwrap();
        let long = temporary.path().join("long".repeat(40));
        std::fs::create_dir(&long).unwrap();
        let bound = bind(&under(&long)).unwrap();
        assert!(bound.endpoint.address.starts_with("/tmp/plugin"));
        // A failure leaves no directory behind.
        assert_eq!(std::fs::read_dir(&long).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_directory_that_cannot_be_told_falls_back() {
        let temporary = tempfile::tempdir().unwrap();
        let names = [OsStr::new("a|b"), OsStr::new("a\nb"), OsStr::from_bytes(b"\xff")];
        for name in names {
            let odd = temporary.path().join(name);
            std::fs::create_dir(&odd).unwrap();
            let bound = bind(&under(&odd)).unwrap();
            assert!(bound.endpoint.address.starts_with("/tmp/plugin"));
        }
        let missing = temporary.path().join("missing");
        let bound = bind(&under(&missing)).unwrap();
        assert!(bound.endpoint.address.starts_with("/tmp/plugin"));
    }

    #[tokio::test]
    async fn the_directory_of_the_host_is_the_only_one_tried() {
        let temporary = tempfile::tempdir().unwrap();
        let long = temporary.path().join("long".repeat(40));
        std::fs::create_dir(&long).unwrap();
        let place = SocketPlace { directory: Some(long.clone()), ..SocketPlace::default() };
        let error = bind(&place).unwrap_err();
        assert!(
            matches!(&error, Error::Socket { directory, source }
                if *directory == long && source.to_string().contains("SUN_LEN")),
            "{error:?}"
        );
    }

    #[tokio::test]
    async fn a_group_may_enter_when_the_host_wants_it() {
        let temporary = tempfile::tempdir().unwrap();
        let own = nix::unistd::getegid();
        let name = Group::from_gid(own).unwrap().map(|group| group.name);
        for group in [Some(own.to_string()), name].into_iter().flatten() {
            let place = SocketPlace { group: Some(group), ..under(temporary.path()) };
            let bound = bind(&place).unwrap();
            let socket = PathBuf::from(&bound.endpoint.address);
            assert_eq!(mode(&socket), 0o660);
            assert_eq!(mode(socket.parent().unwrap()), 0o710);
        }
    }

    #[tokio::test]
    async fn an_unknown_group_is_an_error() {
        let place = SocketPlace { group: Some("no such group".to_owned()), ..SocketPlace::default() };
        assert!(matches!(bind(&place), Err(Error::Group { .. })));
    }
}
