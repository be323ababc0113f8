//! The bars of the chart: what each machine costs by the month, before and after.

use std::cmp::Reverse;

use super::words;
use crate::review::{
    cost::{Amount, CostRow},
    money::{Money, thousands},
    reviewed::Review,
    text::visible,
};

/// So many machines have a bar of their own.
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

/// The most expensive machines.
pub(super) fn bars(review: &Review) -> Vec<Bar> {
    let mut rows: Vec<&CostRow> = rows(review).collect();
    rows.sort_by_key(|row| Reverse(known(&row.now).max(known(&row.after))));
    rows.truncate(BARS);
    let longest = rows.iter().map(|row| known(&row.now).max(known(&row.after))).max().unwrap_or_default();
    let bar = |row: &&CostRow| Bar {
        label: visible(&row.address, usize::MAX),
        now: known(&row.now).thousandths_of(&longest),
        after: known(&row.after).thousandths_of(&longest),
        now_text: thousands(&words::monthly(&row.now)),
        after_text: thousands(&words::monthly(&row.after)),
    };
    rows.iter().map(bar).collect()
}

/// How many machines have no bar.
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
