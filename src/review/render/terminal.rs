//! The review for a terminal: one line for each fact, independent of the terminal's width.

use std::fmt::Write as _;

use console::{Style, StyledObject};

use super::document::{Cell, Piece, Section, sections};
use crate::review::report::{Review, visible};

/// The longest text of the plan in one place, in characters.
const LONGEST: usize = 200;

/// Writes a review.
pub(super) fn write(review: &Review, is_coloured: bool) -> String {
    let paint =
        |text: String, style: Style| -> StyledObject<String> { style.force_styling(is_coloured).apply_to(text) };
    let mut text = format!("{}\n", super::summary(review));
    for warning in super::warnings(review) {
        let _ = writeln!(text, "{}", paint(warning, Style::new().yellow()));
    }
    if let Some(verdict) = super::verdict(review) {
        let is_open = review.gate.as_ref().is_some_and(|verdict| verdict.passed);
        let style = if is_open { Style::new().green().bold() } else { Style::new().red().bold() };
        let _ = writeln!(text, "{}", paint(verdict, style));
    }
    for section in sections(review).iter().filter(|section| !section.rows.is_empty()) {
        let _ = writeln!(text, "\n{}", paint(section.title.clone(), Style::new().bold()));
        for row in section.rows.iter().chain(&section.total) {
            for (index, cell) in row.0.iter().enumerate() {
                write_cell(&mut text, section, index, cell);
            }
        }
    }
    text.push('\n');
    for note in super::notes(review) {
        let _ = writeln!(text, "{}", paint(note.to_owned(), Style::new().dim()));
    }
    text
}

/// Writes a cell. The first cell of a row is its head; the others follow with their column titles.
fn write_cell(text: &mut String, section: &Section, index: usize, cell: &Cell) {
    let title = section.columns.get(index).map_or("", |column| column.title);
    let mut lines = cell.0.iter().map(|line| line.0.iter().map(shown).collect::<String>());
    let Some(first) = lines.next() else { return };
    let _ = if index == 0 { writeln!(text, "  {first}") } else { writeln!(text, "      {title}: {first}") };
    for line in lines {
        let _ = writeln!(text, "        {line}");
    }
}

fn shown(piece: &Piece) -> String {
    match piece {
        Piece::Plan(text) => visible(text, LONGEST),
        Piece::Words(text) => text.clone(),
    }
}
