//! The marker in the name under which an object is created: of family and backend, and random.

use super::Scope;
use crate::api::{ObjectKind, Random, is_same_name};

/// The name before the marker of an object without a configured name; the object keeps that name.
const NAMELESS: &str = "tf";

/// The number of hexadecimal digits in a marker: four of family and backend, and eight random ones.
const MARKER_DIGITS: usize = 12;

/// A unique name: `<name>-<4 hex of family and backend><8 hex random>`.
pub(super) fn mark(kind: ObjectKind, name: Option<&str>, scope: &Scope, random: &Random) -> String {
    let digits = scope.digits(kind, name);
    format!("{}-{digits}{:08x}", name.unwrap_or(NAMELESS), random.next() & 0xffff_ffff)
}

/// The marker, if a create of this name in any configuration sent the name that is shown as `shown`.
#[must_use]
pub fn marker_of(shown: &str, name: &str) -> Option<String> {
    let (beginning, hex) = shown.trim_end().rsplit_once('-')?;
    let is_marker = hex.len() == MARKER_DIGITS && hex.bytes().all(|digit| digit.is_ascii_hexdigit());
    (is_marker && is_same_name(beginning, name)).then(|| hex.to_ascii_lowercase())
}

/// Whether a create of this name in this configuration sent the name that is shown as `shown`.
#[must_use]
pub fn is_marked(shown: &str, kind: ObjectKind, name: &str, scope: &Scope) -> bool {
    marker_of(shown, name).is_some_and(|marker| marker.starts_with(&scope.digits(kind, Some(name))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_names_its_family_and_backend() {
        let random = Random::new(|| 0xffff_ffff_0000_00ab);
        let scope = Scope { stack: "a".to_owned(), ..Scope::default() };
        let kind = ObjectKind::Instance;
        let name = mark(kind, Some("web"), &scope, &random);
        assert!(name.starts_with("web-") && name.ends_with("000000ab") && name.len() == 16, "{name}");
        assert!(mark(kind, None, &scope, &random).starts_with("tf-"));
        for shown in [&name, &name.to_uppercase(), &format!(" {name} ")] {
            assert!(is_marked(shown, kind, "web", &scope), "{shown:?}");
        }
        let (stack, backend) = (Some("b".to_owned()), Some("b".to_owned()));
        for other in [
            Scope { stack: stack.unwrap_or_default(), ..scope.clone() },
            Scope { backend: backend.unwrap_or_default(), ..scope.clone() },
            Scope { workspace: "b".to_owned(), ..scope.clone() },
        ] {
            assert!(!is_marked(&name, kind, "web", &other), "{other:?}");
            assert!(marker_of(&name, "web").is_some());
        }
        assert!(is_marked(&name, kind, "web", &Scope { directory: "b".to_owned(), ..scope.clone() }));
        assert!(!is_marked(&name, ObjectKind::CloudDisk, "web", &scope));
        for other in ["web", "web-1", &format!("{name}c"), &name.replace("web", "webb")] {
            assert!(!is_marked(other, kind, "web", &scope), "{other}");
            assert_eq!(marker_of(other, "web"), None);
        }
    }
}
