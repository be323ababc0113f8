//! The marker that a create carries in its name, so that what it made can be found without its answer.

use crate::api::settings::Random;

/// The stem of the marker of an object for which no name is wanted; it then keeps that name.
const NAMELESS: &str = "tf";

/// How much of a create's key a marker holds.
const KEY_DIGITS: usize = 4;

/// How many random digits follow.
const RANDOM_DIGITS: usize = 8;

/// A name that nothing else has: `<name>-<4 hex of the key><8 hex random>`.
pub(super) fn mark(name: Option<&str>, key: &str, random: &Random) -> String {
    format!("{}-{}{:08x}", name.unwrap_or(NAMELESS), digits(key), random.next() & 0xffff_ffff)
}

/// Whose create sent a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marked {
    /// One of another configuration, or of one that is not known to be this.
    Another,
    /// One of this key.
    Own,
}

/// Whether `own` is the name that a create of `name` sends, and whether one with this key.
#[must_use]
pub fn marked(own: &str, name: Option<&str>, key: &str) -> Option<Marked> {
    let hex = own.strip_prefix(name.unwrap_or(NAMELESS))?.strip_prefix('-')?;
    let is_hex = hex.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    match hex.len() {
        // The form before markers held a part of the key.
        RANDOM_DIGITS if is_hex => Some(Marked::Another),
        length if is_hex && length == KEY_DIGITS + RANDOM_DIGITS => {
            Some(if hex.starts_with(digits(key)) { Marked::Own } else { Marked::Another })
        }
        _ => None,
    }
}

fn digits(key: &str) -> &str {
    key.get(..KEY_DIGITS).unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_known_again() {
        let random = Random::new(|| 0xffff_ffff_0000_00ab);
        assert_eq!(mark(Some("web"), "beef0123", &random), "web-beef000000ab");
        assert_eq!(mark(None, "beef0123", &random), "tf-beef000000ab");
        assert_eq!(marked("web-beef000000ab", Some("web"), "beef0123"), Some(Marked::Own));
        assert_eq!(marked("web-beef000000ab", Some("web"), "cafe0123"), Some(Marked::Another));
        assert_eq!(marked("web-000000ab", Some("web"), "0000"), Some(Marked::Another));
        assert_eq!(marked("tf-beef000000ab", None, "beef0123"), Some(Marked::Own));
        for other in
            ["web", "web-1", "web-BEEF000000AB", "web-x-beef000000ab", "webb-beef000000ab", "web-beef000000abc"]
        {
            assert_eq!(marked(other, Some("web"), "beef0123"), None, "{other}");
        }
    }
}
