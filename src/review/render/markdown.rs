//! The report as a comment of a pull request: tables of GitHub Flavored Markdown.

use std::fmt::Write as _;

use super::{
    document::{Cell, Piece, Section, sections},
    marker,
};
use crate::review::report::{Review, visible};

/// The longest comment that code hosts accept, in UTF-16 units, so that it holds for every way to count characters.
const MOST: usize = 65_536;

/// The longest text of the plan in one place, in characters.
const LONGEST: usize = 120;

/// The maximum number of lines of a cell.
const LINES: usize = 10;

/// Writes a report, with as many rows of each table as fit.
pub(super) fn write(review: &Review, id: Option<&str>) -> String {
    let sections = sections(review);
    let with_rows = |rows: usize| with_rows(review, id, &sections, rows);
    let whole = with_rows(usize::MAX);
    if fits(&whole) {
        return whole;
    }
    let (mut fitting, mut too_many) = (0, 1);
    while fits(&with_rows(too_many)) {
        (fitting, too_many) = (too_many, 2 * too_many);
    }
    while fitting + 1 < too_many {
        let rows = usize::midpoint(fitting, too_many);
        if fits(&with_rows(rows)) {
            fitting = rows;
        } else {
            too_many = rows;
        }
    }
    with_rows(fitting)
}

fn fits(text: &str) -> bool {
    text.encode_utf16().count() <= MOST
}

fn with_rows(review: &Review, id: Option<&str>, sections: &[Section], rows: usize) -> String {
    let marker = id.map(|id| marker(id) + "\n").unwrap_or_default();
    let mut text = format!("{marker}## Plan review\n\n{}\n", super::summary(review));
    for warning in super::warnings(review) {
        let _ = write!(text, "\n> [!CAUTION]\n> {warning}\n");
    }
    for section in sections {
        let _ = write!(text, "\n### {}\n", section.title);
        if !section.rows.is_empty() {
            text.push_str(&table(section, rows));
        }
    }
    let _ = write!(text, "\n<sub>{}</sub>\n", super::notes(review).join(" "));
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

/// A text of the plan as a code span in a table, so that neither Markdown nor code hosts' links for names and numbers
/// apply. A pipe is escaped (GitHub Flavored Markdown, tables). A backtick, and a pipe after a backslash, are written
/// as in a string of HCL, so that every text is one span.
fn code(text: &str) -> String {
    let text = visible(text, LONGEST);
    if text.trim().is_empty() {
        return "`\"\"`".to_owned();
    }
    let mut span = String::from("`");
    for c in text.chars() {
        match c {
            '|' if !span.ends_with('\\') => span.push_str("\\|"),
            '`' | '|' => {
                let _ = write!(span, "\\u{:04x}", u32::from(c));
            }
            c => span.push(c),
        }
    }
    span.push('`');
    span
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
    fn what_could_end_a_span_or_a_cell_is_written_as_in_hcl() {
        for (hostile, escaped) in [
            ("a|b", "a\\|b"),
            ("a\\|b", "a\\\\u007cb"),
            ("a`b", "a\\u0060b"),
            ("a\\", "a\\"),
            ("<b>&lt;@team [x](http://x.y)", "<b>&lt;@team [x](http://x.y)"),
            (" ", "\"\""),
        ] {
            assert_eq!(code(hostile), format!("`{escaped}`"), "{hostile}");
        }
        assert_eq!(code("a\nb\r\u{202e}"), "`a\u{fffd}b\u{fffd}\u{fffd}`");
        assert_eq!(code(&"x".repeat(1000)).chars().count(), LONGEST + 2);
    }

    /// The structure of a document: its events without their texts.
    fn structure(markdown: &str) -> Vec<String> {
        use pulldown_cmark::{Event, Options, Parser, TextMergeStream};

        let options = Options::ENABLE_TABLES | Options::ENABLE_GFM | Options::ENABLE_STRIKETHROUGH;
        let events = TextMergeStream::new(Parser::new_ext(markdown, options));
        events
            .map(|event| match event {
                Event::Code(_) => "code".to_owned(),
                Event::Text(_) => "text".to_owned(),
                event => format!("{event:?}"),
            })
            .collect()
    }

    proptest::proptest! {
        /// A name with any characters is one span of one cell.
        #[test]
        fn no_text_changes_the_structure(text in "\\PC{0,40}|[`|<>@\\\\\\[\\]()!*_#~&;\n\r\t -]{0,40}") {
            let table = |name: &str| format!("### T\n\n| a | b |\n| --- | ---: |\n| {0} | x {0}<br>y |\n", code(name));
            proptest::prop_assert_eq!(structure(&table(&text)), structure(&table("plain")), "{}", code(&text));
        }
    }
}
