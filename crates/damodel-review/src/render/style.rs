//! What the forms share: the options, the mark of the gate, and text without hidden characters.

use std::collections::BTreeMap;

use clap::ValueEnum;

use crate::document::Page;

/// A form of reviews.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A self-contained page with a chart.
    Html,
    /// The review as data.
    Json,
    /// A comment for a pull request: at most 65,536 characters.
    #[default]
    Markdown,
    /// A log for code scanning (SARIF 2.1.0): violations and warnings.
    Sarif,
    /// Text for a terminal, or for a code block of a comment.
    Text,
}

/// The options of a rendered review.
#[derive(Clone, Debug, Default)]
pub struct Style {
    /// The form.
    pub format: Format,
    /// The name of a review of one plan, by which a program can find the comment later: in Markdown and HTML.
    pub id: Option<String>,
    /// The unit of the sums.
    pub currency: Option<String>,
    /// Whether the text has colours.
    pub is_coloured: bool,
    /// The files of the plans, by the names of the plans.
    pub plan_files: BTreeMap<Option<String>, String>,
}

/// The mark of the gate before the headline.
pub(super) fn mark(page: &Page) -> &'static str {
    match page.passed {
        Some(true) => "✅ ",
        Some(false) => "❌ ",
        None => "",
    }
}

/// Makes text safe for a terminal: characters that would move the cursor, or hide or reverse others, are shown as
/// replacement characters. Text of more than `most` characters is cut in the middle.
#[must_use]
pub fn visible(text: &str, most: usize) -> String {
    let shown = |c: char| if is_hidden(c) { '\u{fffd}' } else { c };
    let count = text.chars().count();
    if count <= most {
        return text.chars().map(shown).collect();
    }
    // The end of an address distinguishes similar resources.
    let end = most / 3;
    let begin = most.saturating_sub(end + 1);
    let first = text.chars().take(begin);
    let last = text.chars().skip(count - end);
    first.map(shown).chain(['…']).chain(last.map(shown)).collect()
}

/// Whether this is a control character, or a character of Unicode that only affects others.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_is_shown_and_what_is_long_keeps_its_ends() {
        assert_eq!(visible("a\u{1b}[2J\nb\u{202e}c\u{200b}", 99), "a\u{fffd}[2J\u{fffd}b\u{fffd}c\u{fffd}");
        assert_eq!(visible("Straße 名前", 99), "Straße 名前");
        assert_eq!(visible("0123456789", 10), "0123456789");
        assert_eq!(visible(&"0123456789".repeat(9), 10), "012345…789");
    }
}
