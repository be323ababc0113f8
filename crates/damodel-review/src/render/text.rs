//! The review as text: one line for each fact, independent of the terminal's width. A line that begins with text of a
//! plan is indented by four, so that it cannot end a code block of Markdown around it.

use std::fmt::Write as _;

use console::{Style, StyledObject};

use super::style::{mark, visible};
use crate::document::{Page, Piece, Table, Text};

/// The longest text of the plan in one place, in characters.
const LONGEST: usize = 200;

/// Writes a review.
pub(super) fn write(page: &Page, is_coloured: bool) -> String {
    let paint =
        |text: String, style: Style| -> StyledObject<String> { style.force_styling(is_coloured).apply_to(text) };
    let style = match page.passed {
        Some(true) => Style::new().green().bold(),
        Some(false) => Style::new().red().bold(),
        None => Style::new().bold(),
    };
    let mut text = format!("{}\n", paint(format!("{}{}", mark(page), line(&page.headline)), style));
    for (title, what) in &page.lines {
        let _ = writeln!(text, "{} {}", paint(format!("{title}:"), Style::new().yellow()), line(what));
    }
    if !page.table.rows.is_empty() {
        text.push('\n');
        write_table(&mut text, &page.table);
    }
    let _ = writeln!(text, "\n{}", page.counts);
    for fold in &page.folds {
        let _ = writeln!(text, "\n{}", paint(fold.summary.clone(), Style::new().bold()));
        write_table(&mut text, &fold.table);
    }
    let _ = writeln!(text, "\n{}", paint(line(&page.small), Style::new().dim()));
    text
}

/// Writes a table. The first cell of a row is its head; the others follow with their column titles.
fn write_table(text: &mut String, table: &Table) {
    for row in &table.rows {
        for (index, (cell, column)) in row.iter().zip(&table.columns).enumerate() {
            let mut lines = cell.iter().map(line).filter(|line| !line.is_empty());
            let Some(first) = lines.next() else { continue };
            let _ = if index == 0 {
                writeln!(text, "    {first}")
            } else {
                writeln!(text, "      {}: {first}", column.title)
            };
            for line in lines {
                let _ = writeln!(text, "        {line}");
            }
        }
    }
}

fn line(text: &Text) -> String {
    text.0
        .iter()
        .map(|piece| match piece {
            Piece::Plan(text) => visible(text, LONGEST),
            Piece::Words(text) => text.clone(),
        })
        .collect()
}
