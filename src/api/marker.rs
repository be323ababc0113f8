//! The marker that a create carries in its name, so that what it made can be found without its answer.

use crate::api::settings::Random;

/// The stem of the marker of a thing for which no name is wanted; it then keeps that name.
const NAMELESS: &str = "tf";

/// A name that nothing else has: `<name>-<8 hex>`.
pub(super) fn mark(name: Option<&str>, random: &Random) -> String {
    format!("{}-{:08x}", name.unwrap_or(NAMELESS), random.next() & 0xffff_ffff)
}

/// Whether `own` is `name` with a marker.
pub(super) fn marks(own: &str, name: &str) -> bool {
    own.strip_prefix(name)
        .and_then(|rest| rest.strip_prefix('-'))
        .is_some_and(|hex| hex.len() == 8 && hex.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_known_again() {
        let random = Random::new(|| 0xffff_ffff_0000_00ab);
        assert_eq!(mark(Some("web"), &random), "web-000000ab");
        assert_eq!(mark(None, &random), "tf-000000ab");
        assert!(marks("web-000000ab", "web"));
        for other in ["web", "web-1", "web-000000AB", "web-x-000000ab", "webb-000000ab", "web-000000abc"] {
            assert!(!marks(other, "web"), "{other}");
        }
    }
}
