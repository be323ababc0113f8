//! Text that others wrote, made fit to be looked at.

/// Makes text safe for a terminal and honest for the eye: what would move the cursor, hide or turn around other
/// characters is shown as a replacement character, and what is longer than `most` characters is cut in the middle.
#[must_use]
pub fn visible(text: &str, most: usize) -> String {
    let shown = |c: char| if is_hidden(c) { '\u{fffd}' } else { c };
    let count = text.chars().count();
    if count <= most {
        return text.chars().map(shown).collect();
    }
    // The end of an address tells one instance from the next.
    let end = most / 3;
    let begin = most.saturating_sub(end + 1);
    let first = text.chars().take(begin);
    let last = text.chars().skip(count - end);
    first.map(shown).chain(['…']).chain(last.map(shown)).collect()
}

/// Control characters, and those of Unicode that are seen by what they do to others.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_is_shown() {
        assert_eq!(visible("a\u{1b}[2J\nb\u{202e}c\u{200b}", 99), "a\u{fffd}[2J\u{fffd}b\u{fffd}c\u{fffd}");
        assert_eq!(visible("Straße 名前", 99), "Straße 名前");
    }

    #[test]
    fn what_is_long_keeps_its_ends() {
        assert_eq!(visible("0123456789", 10), "0123456789");
        let cut = visible(&"0123456789".repeat(9), 10);
        assert_eq!(cut, "012345…789");
        assert_eq!(cut.chars().count(), 10);
    }
}
