//! The review as a comment of a pull request, in GitHub Flavored Markdown. What is not folded has at most 24,000
//! characters by the limits of its parts: headline 400, lines 5 × 600 and 21 × 240, table 20 × 660, the rest 1,400.

use std::fmt::Write as _;

use super::style::{mark, visible};
use crate::{
    document::{Page, Piece, Table, Text, count},
    rules::and_more,
};

/// The longest comment that code hosts accept, in UTF-16 units, so that it holds for every way to count characters.
const MOST: usize = 65_536;
/// The longest text of the plan in one place, in characters of the span.
const LONGEST: usize = 120;
/// The longest object in a row above the folds, and the longest reason.
const OBJECT: usize = 200;
const REASON: usize = 300;
/// The longest line above the folds, and the longest line about an exception.
const LINE: usize = 600;
const EXCEPTION: usize = 240;
/// The maximum number of lines of a cell.
const LINES: usize = 10;

/// Writes a review, with as many rows of each fold as fit.
pub(super) fn write(page: &Page, marker: &str) -> String {
    let head = head(page, marker);
    let small = format!("\n<sub>{}</sub>\n", bounded(&page.small, 2 * LINE));
    let with_rows = |rows: usize| format!("{head}{}{small}", folds(page, rows));
    let fits = |rows: usize| with_rows(rows).encode_utf16().count() <= MOST;
    let most = page.folds.iter().map(|fold| fold.table.rows.len()).max().unwrap_or(0);
    let (mut fitting, mut too_many) = (0, 1);
    while too_many <= most && fits(too_many) {
        (fitting, too_many) = (too_many, 2 * too_many);
    }
    too_many = too_many.min(most + 1);
    while fitting + 1 < too_many {
        let rows = usize::midpoint(fitting, too_many);
        if fits(rows) {
            fitting = rows;
        } else {
            too_many = rows;
        }
    }
    with_rows(fitting)
}

/// What is not folded, but for the last line.
fn head(page: &Page, marker: &str) -> String {
    let mut text = format!("{marker}## {}{}\n", mark(page), bounded(&page.headline, 2 * OBJECT));
    for (title, what) in &page.lines {
        let _ = write!(text, "\n**{title}:** {}\n", bounded(what, if *title == "Excepted" { EXCEPTION } else { LINE }));
    }
    if !page.table.rows.is_empty() {
        let cell = |lines: &[Text], column: usize| within(lines, if column == 0 { OBJECT } else { REASON });
        let _ = write!(text, "\n{}", table(&page.table, usize::MAX, cell));
    }
    let _ = write!(text, "\n{}\n", page.counts);
    text
}

/// The folds. A table is one only after a blank line.
fn folds(page: &Page, rows: usize) -> String {
    let mut text = String::new();
    for fold in &page.folds {
        let _ = write!(
            text,
            "\n<details><summary>{}</summary>\n\n{}",
            fold.summary,
            table(&fold.table, rows, |lines, _| {
                let mut shown: Vec<String> = lines.iter().take(LINES).map(|line| bounded(line, usize::MAX)).collect();
                if lines.len() > LINES {
                    shown.push(and_more(lines.len() - LINES));
                }
                shown.join("<br>")
            })
        );
        let left_out = fold.table.rows.len().saturating_sub(rows);
        if left_out > 0 {
            let rows = count(left_out, "more row", "more rows");
            let _ = write!(text, "\n{rows} left out: comments are limited to 65,536 characters.\n");
        }
        text.push_str("\n</details>\n");
    }
    text
}

fn table(table: &Table, rows: usize, cell: impl Fn(&[Text], usize) -> String) -> String {
    let titles = table.columns.iter().map(|column| column.title.to_owned());
    let rules = table.columns.iter().map(|column| if column.is_number { "---:" } else { "---" }.to_owned());
    let mut text = line(titles) + &line(rules);
    for row in table.rows.iter().take(rows) {
        text.push_str(&line(row.iter().enumerate().map(|(column, lines)| cell(lines, column))));
    }
    text
}

fn line(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

/// The lines of a cell, as far as they fit.
fn within(lines: &[Text], most: usize) -> String {
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate() {
        let line = bounded(line, most.saturating_sub(text.chars().count() + 4));
        if index > 0 && !line.is_empty() {
            text.push_str("<br>");
        }
        text.push_str(&line);
    }
    text
}

/// A text of at most `most` characters and an ellipsis, with each text of the plan in a span.
fn bounded(text: &Text, most: usize) -> String {
    let mut written = String::new();
    for piece in &text.0 {
        let left = most.saturating_sub(written.chars().count());
        let (piece, is_cut) = match piece {
            Piece::Plan(text) => (span(text, left), span(text, usize::MAX).chars().count() > left),
            Piece::Words(words) if words.chars().count() > left => (words.chars().take(left).collect(), true),
            Piece::Words(words) => (words.clone(), false),
        };
        written.push_str(&piece);
        if is_cut {
            return written + "…";
        }
    }
    written
}

/// A text of the plan as a code span of at most `most` characters in a table, so that neither Markdown nor code hosts'
/// links for names and numbers apply. Empty if none fits.
fn span(text: &str, most: usize) -> String {
    let most = most.min(LONGEST + 2);
    let mut length = LONGEST;
    loop {
        let span = code(&visible(text, length));
        if span.chars().count() <= most {
            return span;
        }
        if length < 4 {
            return String::new();
        }
        length -= length / 4;
    }
}

/// A code span. A pipe is escaped (GitHub Flavored Markdown, tables). A backtick, and a pipe after a backslash, are
/// written as in a string of HCL, so that every text is one span.
fn code(text: &str) -> String {
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
    fn what_could_end_a_span_or_a_cell_is_written_as_in_hcl() {
        for (text, escaped) in [
            ("damodel_instance.a[0]", "damodel_instance.a[0]"),
            (r#"module.m["x y"].damodel_cloud_disk.data["k"]"#, r#"module.m["x y"].damodel_cloud_disk.data["k"]"#),
            ("名前", "名前"),
            ("a|b", "a\\|b"),
            ("a\\|b", "a\\\\u007cb"),
            ("a`b", "a\\u0060b"),
            ("a\\", "a\\"),
            ("<b>&lt;@team [x](http://x.y)", "<b>&lt;@team [x](http://x.y)"),
            (" ", "\"\""),
            ("a\nb\r\u{202e}", "a\u{fffd}b\u{fffd}\u{fffd}"),
        ] {
            assert_eq!(span(text, usize::MAX), format!("`{escaped}`"), "{text}");
        }
    }

    proptest::proptest! {
        /// Every text keeps to its limit, and its spans are whole.
        #[test]
        fn what_is_cut_is_whole(name in "\\PC{0,300}|[`|]{0,300}", words in "[a-z ]{0,40}", most in 1_usize..400) {
            let text = Text(vec![Piece::Words(words), Piece::Plan(name.clone()), Piece::Plan(name)]);
            let written = bounded(&text, most);
            proptest::prop_assert!(written.chars().count() <= most + 1, "{written}");
            proptest::prop_assert!(written.matches('`').count().is_multiple_of(2), "{written}");
            proptest::prop_assert!(bounded(&text, usize::MAX).chars().count() <= 40 + 2 * (LONGEST + 2));
        }
    }
}
