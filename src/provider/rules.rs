//! Rules for names and paths that can be checked without the service.

use crate::{
    api::trimmed,
    framework::{Attr, schema::Validator},
    review::rules::utf_8,
};

/// The rule for a name or a code: it is more than white space.
pub(super) fn non_empty() -> Validator {
    Validator::text("a non-empty string", |text| !text.trim().is_empty())
}

/// The rule for a region. Where the state must hold what the configuration says, white space cannot be ignored.
pub(super) fn region() -> Validator {
    Validator::text("a region without white space", is_one_word)
}

/// Whether a text has no white space, and is not empty.
pub(super) fn is_one_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_whitespace)
}

/// The rule for a key that is sent in a header.
pub(super) fn one_line() -> Validator {
    Validator::text("one line of printable ASCII", |key| trimmed(key).chars().all(|c| matches!(c, ' '..='~')))
}

/// The rule for an argument that names an instance: not a llama server's `id`, which has a port, and not digits alone,
/// which are a number of the database.
pub(super) fn instance_uid() -> Validator {
    Validator::text("an instance's UID: its id, not its database_id", |uid| {
        !uid.contains(|c: char| c.is_whitespace() || matches!(c, ':' | '/')) && !uid.bytes().all(|c| c.is_ascii_digit())
    })
}

/// The root certificates of a file in PEM format, for [`Settings`](crate::api::Settings); `None` if it has none.
pub(crate) fn certificates(file: &[u8]) -> Option<Vec<u8>> {
    const BEGIN: &[u8] = b"-----BEGIN CERTIFICATE-----";
    let text = utf_8(file)?;
    text.windows(BEGIN.len()).any(|line| line == BEGIN).then(|| text.into_owned())
}

/// What [`is_absolute_path`] accepts.
pub(super) const ABSOLUTE_PATH: &str = "an absolute path below /, without `.` or `..`";

/// Whether this is a normalized absolute path: no empty, `.` or `..` parts and no control characters (service API, POST
/// /api/instance/create: data_disk_mount_path).
pub(super) fn is_absolute_path(path: &str) -> bool {
    path.strip_prefix('/').is_some_and(|rest| {
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        !rest.is_empty()
            && rest.split('/').all(|part| !matches!(part, "" | "." | ".."))
            && !path.contains(|c: char| c.is_control())
    })
}

/// Whether two paths are equal, apart from a slash at the end.
pub(super) fn same_path(left: &str, right: &str) -> bool {
    left.trim_end_matches('/') == right.trim_end_matches('/')
}

/// Keeps a path of the state that the configuration spells with or without a slash at its end.
pub(super) fn keep_path(planned: &mut Attr<String>, prior: &Attr<String>) {
    if let (Some(after), Some(before)) = (planned.as_str(), prior.as_str())
        && same_path(after, before)
    {
        *planned = prior.clone();
    }
}

/// The rule of [`is_allowed_disk_path`], as a phrase.
pub(super) const DISK_PATH_RULE: &str =
    "outside /tmp, /dev, /proc, /sys, /etc, /usr and /boot, and not /, /root, /mnt or /var";

/// Whether a cloud disk may be mounted here (service API, POST /api/storage/cloud_disk/create).
pub(super) fn is_allowed_disk_path(path: &str) -> bool {
    const FORBIDDEN: [&str; 4] = ["", "/root", "/mnt", "/var"];
    const FORBIDDEN_TREES: [&str; 7] = ["/tmp", "/dev", "/proc", "/sys", "/etc", "/usr", "/boot"];
    let path = path.trim_end_matches('/');
    let is_within = |tree: &&str| path.strip_prefix(*tree).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    !FORBIDDEN.contains(&path) && !FORBIDDEN_TREES.iter().any(is_within)
}

/// Whether the service accepts this host name (service API, Limits).
pub(super) fn is_hostname(name: &str) -> bool {
    const LONGEST: usize = 42;
    let at_ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    name.len() <= LONGEST
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        && at_ends(name.chars().next())
        && at_ends(name.chars().next_back())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_paths_are_told_from_others() {
        for path in ["/data", "/root/damodel-tmp", "/a/b/", "/a b"] {
            assert!(is_absolute_path(path), "{path}");
        }
        for path in ["", "/", "data", "/a/../b", "/a//b", "/./a", "/a\n", "//"] {
            assert!(!is_absolute_path(path), "{path}");
        }
    }

    #[test]
    fn forbidden_mount_paths_are_refused() {
        for path in ["/data", "/root/data", "/mnt/a", "/var/lib", "/tmpfs", "/etcetera"] {
            assert!(is_allowed_disk_path(path), "{path}");
        }
        for path in ["/", "/root", "/root/", "/mnt", "/var", "/tmp", "/tmp/a", "/usr/local", "/boot/", "/dev/shm"] {
            assert!(!is_allowed_disk_path(path), "{path}");
        }
    }

    /// The mark hid the first line, so that nothing was trusted.
    #[test]
    fn a_byte_order_mark_before_certificates_is_skipped() {
        let pem = b"-----BEGIN CERTIFICATE-----\n".as_slice();
        assert_eq!(certificates(&[b"\xef\xbb\xbf", pem].concat()).as_deref(), Some(pem));
        assert_eq!(certificates(b"no certificate"), None);
    }

    #[test]
    fn host_names_obey_the_service() {
        for name in ["a", "gpu-1", "A0", &"x".repeat(42)] {
            assert!(is_hostname(name), "{name}");
        }
        for name in ["", "-a", "a-", "a_b", "a.b", "é", &"x".repeat(43)] {
            assert!(!is_hostname(name), "{name}");
        }
    }
}
