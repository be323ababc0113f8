//! The bars of the chart: what each machine costs by the month, before and after.

use std::cmp::Reverse;

use super::words;
use crate::review::{
    cost::{Amount, Cost, CostRow},
    money::Money,
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
pub(super) fn bars(cost: &Cost) -> Vec<Bar> {
    let mut rows: Vec<&CostRow> = cost.resources.iter().collect();
    rows.sort_by_key(|row| Reverse(known(&row.now).max(known(&row.after))));
    rows.truncate(BARS);
    let longest = rows.iter().map(|row| known(&row.now).max(known(&row.after))).max().unwrap_or_default();
    let bar = |row: &&CostRow| Bar {
        label: row.address.clone(),
        now: known(&row.now).thousandths_of(&longest),
        after: known(&row.after).thousandths_of(&longest),
        now_text: words::monthly(&row.now),
        after_text: words::monthly(&row.after),
    };
    rows.iter().map(bar).collect()
}

/// How many machines have no bar.
pub(super) fn left_out(cost: &Cost) -> usize {
    cost.resources.len().saturating_sub(BARS)
}

fn known(amount: &Amount) -> Money {
    match amount {
        Amount::Known { monthly, .. } => monthly.clone(),
        Amount::Nothing | Amount::Unknown { .. } => Money::default(),
    }
}
