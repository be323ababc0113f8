//! The review as an HTML page: one file without scripts and external resources. The template escapes all texts.

use std::cmp::Reverse;

use askama::Template;

use super::style::{mark, visible};
use crate::{
    document::{Page, Piece, Table, Text, month},
    facts::CostRow,
    verdict::Review,
};

/// The maximum number of instances with a bar.
const BARS: usize = 20;

#[derive(Template)]
#[template(path = "report.html", config = "src/render/askama.toml")]
struct Html<'a> {
    marker: String,
    mark: &'static str,
    page: &'a Page,
    bars: Vec<Bar>,
    bars_left_out: usize,
}

/// Two bars with their label. Lengths are in thousandths of the longest bar of the chart.
struct Bar {
    label: String,
    now: u32,
    after: u32,
    now_text: String,
    after_text: String,
}

/// Writes a review.
pub(super) fn write(page: &Page, review: &Review<'_>, marker: String) -> Result<String, askama::Error> {
    let mut rows: Vec<&CostRow> = review.plans.iter().flat_map(|plan| &plan.cost.instances).collect();
    let bars_left_out = rows.len().saturating_sub(BARS);
    Ok(Html { marker, mark: mark(page), page, bars: bars(&mut rows), bars_left_out }.render()? + "\n")
}

/// The bars of the most expensive instances.
fn bars(rows: &mut Vec<&CostRow>) -> Vec<Bar> {
    let height = |row: &CostRow| row.now.monthly().max(row.after.monthly());
    rows.sort_by_cached_key(|row| Reverse(height(row)));
    rows.truncate(BARS);
    let longest = rows.first().map(|row| height(row)).unwrap_or_default();
    rows.iter()
        .map(|row| {
            let [now, after] = [row.now.monthly(), row.after.monthly()];
            Bar {
                label: visible(&row.address.to_string(), usize::MAX),
                now: now.thousandths_of(&longest),
                after: after.thousandths_of(&longest),
                now_text: month(&row.now),
                after_text: month(&row.after),
            }
        })
        .collect()
}

impl Bar {
    /// A share of the longest bar as a percentage.
    fn percent(thousandths: &u32) -> String {
        format!("{}.{}", thousandths / 10, thousandths % 10)
    }
}

impl Table {
    fn title(&self, column: &usize) -> &'static str {
        self.columns.get(*column).map_or("", |column| column.title)
    }

    fn is_number(&self, column: &usize) -> bool {
        self.columns.get(*column).is_some_and(|column| column.is_number)
    }
}

impl Text {
    /// Each piece, and whether it comes from the plan.
    fn pieces(&self) -> impl Iterator<Item = (String, bool)> {
        self.0.iter().map(|piece| match piece {
            Piece::Plan(text) => (visible(text, usize::MAX), true),
            Piece::Words(text) => (text.clone(), false),
        })
    }
}
