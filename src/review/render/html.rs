//! The report as an HTML page: one file without scripts and external resources. The template escapes all texts.

use std::cmp::Reverse;

use askama::Template;

use super::{
    document::{Piece, Section, sections},
    marker,
};
use crate::review::{
    cost::{Amount, CostRow},
    money::{Money, thousands},
    report::{Review, visible},
};

/// The sections before this one (destroyed objects among them) are placed above the sums.
const COSTS: &str = "Cost per month";

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
        summary: super::summary(review),
        core,
        warnings: super::warnings(review),
        verdict: super::verdict(review),
        is_open: review.gate.as_ref().is_some_and(|verdict| verdict.passed),
        now: sums.now.monthly.grouped(),
        after: sums.after.monthly.grouped(),
        change: thousands(&sums.monthly_change.signed(2)),
        unknown: super::unknown(sums.unknown_increases),
        bars: bars(review),
        bars_left_out: left_out(review),
        before,
        sections,
        notes: super::notes(review),
    };
    Ok(page.render()? + "\n")
}

impl Bar {
    /// A share of the longest bar as a percentage.
    fn percent(thousandths: &u32) -> String {
        format!("{}.{}", thousandths / 10, thousandths % 10)
    }
}

/// Whether a text is only a number.
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
    /// The text, and whether it comes from the plan.
    fn shown(&self) -> (String, bool) {
        match self {
            Self::Plan(text) => (visible(text, usize::MAX), true),
            Self::Words(text) if is_sum(text) => (thousands(text), false),
            Self::Words(text) => (text.clone(), false),
        }
    }
}

/// The maximum number of instances with a bar.
const BARS: usize = 12;

/// Two bars with their label. Lengths are in thousandths of the longest bar of the chart.
#[derive(Debug)]
pub(super) struct Bar {
    pub(super) label: String,
    pub(super) now: u32,
    pub(super) after: u32,
    pub(super) now_text: String,
    pub(super) after_text: String,
}

/// The bars of the most expensive instances.
pub(super) fn bars(review: &Review) -> Vec<Bar> {
    let mut rows: Vec<&CostRow> = rows(review).collect();
    rows.sort_by_key(|row| Reverse(known(&row.now).max(known(&row.after))));
    rows.truncate(BARS);
    let longest = rows.iter().map(|row| known(&row.now).max(known(&row.after))).max().unwrap_or_default();
    let bar = |row: &&CostRow| Bar {
        label: visible(&row.address, usize::MAX),
        now: known(&row.now).thousandths_of(&longest),
        after: known(&row.after).thousandths_of(&longest),
        now_text: thousands(&super::monthly(&row.now)),
        after_text: thousands(&super::monthly(&row.after)),
    };
    rows.iter().map(bar).collect()
}

/// The number of instances without a bar.
pub(super) fn left_out(review: &Review) -> usize {
    rows(review).count().saturating_sub(BARS)
}

fn rows(review: &Review) -> impl Iterator<Item = &CostRow> {
    review.plans.iter().flat_map(|plan| &plan.report.cost.resources)
}

fn known(amount: &Amount) -> Money {
    match amount {
        Amount::Known { monthly, .. } => monthly.clone(),
        Amount::Nothing | Amount::Unknown { .. } => Money::default(),
    }
}
