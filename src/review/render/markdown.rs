//! The report as a comment of a pull request: tables of GitHub Flavored Markdown.

use std::fmt::Write as _;

use super::{
    document::{Cell, Piece, Section, sections},
    words,
};
use crate::review::{report::Report, text::visible};

/// The longest comment that the code hosts take, in UTF-16 units, so that no counting of characters finds more.
const MOST: usize = 65_536;

/// The longest text of the plan that is shown in one place, in characters.
const LONGEST: usize = 120;

/// How many lines a cell has.
const LINES: usize = 10;

/// Writes a report, with as many rows of each table as fit.
pub(super) fn write(report: &Report) -> String {
    let sections = sections(report);
    let whole = with_rows(report, &sections, usize::MAX);
    if fits(&whole) {
        return whole;
    }
    let (mut fitting, mut too_many) = (0, MOST);
    while fitting + 1 < too_many {
        let rows = usize::midpoint(fitting, too_many);
        if fits(&with_rows(report, &sections, rows)) {
            fitting = rows;
        } else {
            too_many = rows;
        }
    }
    with_rows(report, &sections, fitting)
}

fn fits(text: &str) -> bool {
    text.encode_utf16().count() <= MOST
}

fn with_rows(report: &Report, sections: &[Section], rows: usize) -> String {
    let mut text = format!("## Plan review\n\n{}\n", words::summary(report));
    for warning in words::warnings(report) {
        let _ = write!(text, "\n> [!CAUTION]\n> {warning}\n");
    }
    for section in sections {
        let _ = write!(text, "\n### {}\n", section.title);
        if !section.rows.is_empty() {
            text.push_str(&table(section, rows));
        }
    }
    let _ = write!(text, "\n<sub>{}</sub>\n", words::notes(report).join(" "));
    text
}

fn table(section: &Section, rows: usize) -> String {
    let titles = section.columns.iter().map(|column| column.title.to_owned());
    let rules = section.columns.iter().map(|column| if column.is_number { "---:" } else { "---" }.to_owned());
    let mut text = format!("\n{}{}", line(titles), line(rules));
    if let Some(total) = &section.total {
        let strong = |text: String| if text.is_empty() { text } else { format!("**{text}**") };
        text.push_str(&line(total.0.iter().map(|sum| strong(cell(sum)))));
    }
    for row in section.rows.iter().take(rows) {
        text.push_str(&line(row.0.iter().map(cell)));
    }
    let left_out = section.rows.len().saturating_sub(rows);
    if left_out > 0 {
        let _ = write!(text, "\n*{left_out} more left out: a comment takes {MOST} characters.*\n");
    }
    text
}

fn line(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

fn cell(cell: &Cell) -> String {
    let piece = |piece: &Piece| match piece {
        Piece::Plan(text) => code(text),
        Piece::Words(text) => text.clone(),
    };
    let mut lines: Vec<String> = cell.0.iter().take(LINES).map(|line| line.0.iter().map(piece).collect()).collect();
    if cell.0.len() > LINES {
        lines.push(format!("and {} more", cell.0.len() - LINES));
    }
    lines.join("<br>")
}

/// A text of the plan as code, in which nothing means anything: neither to Markdown nor to a table, nor to what the code hosts make
/// of names and numbers in prose.
///
/// What is harmless stands in a code span. Anything else stands in an element of HTML, where all that could begin something is
/// written as a number: an entity never is markup (CommonMark, entity references). A mention is parted from its sign.
fn code(text: &str) -> String {
    let text = visible(text, LONGEST);
    if !text.is_empty() && text.chars().all(is_harmless) && !text.contains("](") && !text.contains("//") {
        return format!("`{text}`");
    }
    let mut escaped = String::from("<code>");
    for c in text.chars() {
        match c {
            '@' => escaped.push_str("&#64;&#8203;"),
            c if c.is_ascii_punctuation() => {
                let _ = write!(escaped, "&#{};", u32::from(c));
            }
            c => escaped.push(c),
        }
    }
    escaped.push_str("</code>");
    escaped
}

/// What a code span and a cell of a table leave alone.
fn is_harmless(c: char) -> bool {
    !matches!(c, '`' | '|' | '\\' | '<' | '>' | '&' | '@')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_readable_as_they_are() {
        for address in ["damodel_instance.a[0]", r#"module.m["x y"].damodel_cloud_disk.data["k"]"#, "名前"] {
            assert_eq!(code(address), format!("`{address}`"));
        }
    }

    #[test]
    fn what_could_mean_something_is_written_as_numbers() {
        for (hostile, escaped) in [
            ("a|b", "a&#124;b"),
            ("a`b", "a&#96;b"),
            ("<b>", "&#60;b&#62;"),
            ("\\", "&#92;"),
            ("&lt;", "&#38;lt&#59;"),
            ("@team", "&#64;&#8203;team"),
            ("[x](y)", "&#91;x&#93;&#40;y&#41;"),
            ("http://x.y", "http&#58;&#47;&#47;x&#46;y"),
            ("", ""),
        ] {
            assert_eq!(code(hostile), format!("<code>{escaped}</code>"), "{hostile}");
        }
        assert_eq!(code("a\nb\r\u{202e}"), "`a\u{fffd}b\u{fffd}\u{fffd}`");
        assert_eq!(code(&"x".repeat(1000)).chars().count(), LONGEST + 2);
    }

    proptest::proptest! {
        /// Whatever a name holds, it stays in its cell and begins nothing.
        #[test]
        fn no_text_leaves_its_place(text in "\\PC{0,40}|[`|<>@\\\\\\[\\]()!*_#~\n\r\t -]{0,40}") {
            let escaped = code(&text);
            let inner = escaped.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
            let inner = inner.or_else(|| escaped.strip_prefix("<code>").and_then(|rest| rest.strip_suffix("</code>"))).unwrap();
            let is_free = |c: char| matches!(c, '`' | '|' | '\\' | '<' | '>' | '@' | '\n' | '\r');
            proptest::prop_assert!(!inner.contains(is_free), "{}", escaped);
        }
    }
}
