//! The report as a page: one file that loads nothing and runs nothing. The template escapes whatever it prints.

use askama::Template;

use super::{
    chart::{self, Bar},
    document::{Piece, Section, sections},
    marker, words,
};
use crate::review::{money::thousands, reviewed::Review, text::visible};

/// What is destroyed stands above the sums: the sections up to that of the costs.
const COSTS: &str = "Cost by the month";

#[derive(Template)]
#[template(path = "report.html", config = "src/review/render/askama.toml")]
struct Page<'a> {
    marker: Option<String>,
    summary: String,
    core: Option<&'a str>,
    warnings: Vec<String>,
    verdict: Option<String>,
    is_open: bool,
    now: String,
    after: String,
    change: String,
    unknown: String,
    bars: Vec<Bar>,
    bars_left_out: usize,
    before: Vec<Section>,
    sections: Vec<Section>,
    notes: Vec<&'static str>,
}

/// Writes a review.
pub(super) fn write(review: &Review, id: Option<&str>) -> Result<String, askama::Error> {
    let sums = review.sums();
    let mut before = sections(review);
    let costs = before.iter().position(|section| section.title == COSTS).unwrap_or(before.len());
    let sections = before.split_off(costs);
    let core = match review.plans.as_slice() {
        [plan] => plan.report.core_version.as_deref(),
        _ => None,
    };
    let page = Page {
        marker: id.map(marker),
        summary: words::summary(review),
        core,
        warnings: words::warnings(review),
        verdict: words::verdict(review),
        is_open: review.gate.as_ref().is_some_and(|verdict| verdict.passed),
        now: sums.now.monthly.grouped(),
        after: sums.after.monthly.grouped(),
        change: thousands(&sums.monthly_change.signed(2)),
        unknown: words::unknown(sums.unknown_increases),
        bars: chart::bars(review),
        bars_left_out: chart::left_out(review),
        before,
        sections,
        notes: words::notes(review),
    };
    Ok(page.render()? + "\n")
}

impl Bar {
    /// A part of the longest bar as a percentage.
    fn percent(thousandths: &u32) -> String {
        format!("{}.{}", thousandths / 10, thousandths % 10)
    }
}

/// Whether a text is a number and nothing else.
fn is_sum(text: &str) -> bool {
    let digits = text.trim_start_matches(['+', '\u{2212}']);
    !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit() || c == '.')
}

impl Section {
    fn column(&self, column: &usize) -> &'static str {
        self.columns.get(*column).map_or("", |column| column.title)
    }

    fn is_number(&self, column: &usize) -> bool {
        self.columns.get(*column).is_some_and(|column| column.is_number)
    }
}

impl Piece {
    /// The text, and whether it is the plan's.
    fn shown(&self) -> (String, bool) {
        match self {
            Self::Plan(text) => (visible(text, usize::MAX), true),
            Self::Words(text) if is_sum(text) => (thousands(text), false),
            Self::Words(text) => (text.clone(), false),
        }
    }
}
