//! The report as a page: one file that loads nothing and runs nothing. The template escapes whatever it prints.

use askama::Template;

use super::{
    chart::{self, Bar},
    document::{Piece, Section, sections},
    words,
};
use crate::review::{report::Report, text::visible};

/// Pixels from one machine of the chart to the next.
const STEP: usize = 46;

/// The longest label of a bar, in characters.
const LABEL: usize = 38;

/// The longest text of the plan that is shown in one place, in characters.
const LONGEST: usize = 400;

#[derive(Template)]
#[template(path = "report.html", config = "src/review/render/askama.toml")]
struct Page<'a> {
    summary: String,
    core: Option<&'a str>,
    warnings: Vec<String>,
    verdict: Option<String>,
    is_passed: bool,
    now: String,
    after: String,
    change: String,
    unknown: String,
    bars: Vec<Placed>,
    height: usize,
    bars_left_out: usize,
    sections: Vec<Section>,
    notes: Vec<&'static str>,
}

/// Two bars at their place in the chart, in pixels of its own.
struct Placed {
    bar: Bar,
    label: String,
    top: usize,
}

/// Writes a report.
pub(super) fn write(report: &Report) -> Result<String, askama::Error> {
    let cost = &report.cost;
    let bars: Vec<Placed> = chart::bars(cost)
        .into_iter()
        .enumerate()
        .map(|(index, bar)| Placed { label: visible(&bar.label, LABEL), top: index * STEP, bar })
        .collect();
    let page = Page {
        summary: words::summary(report),
        core: report.core_version.as_deref(),
        warnings: words::warnings(report),
        verdict: words::verdict(report),
        is_passed: report.gate.as_ref().is_some_and(|verdict| verdict.passed),
        now: cost.now.monthly.with_digits(2),
        after: cost.after.monthly.with_digits(2),
        change: cost.monthly_change.signed(2),
        unknown: words::unknown(cost.unknown_increases.len()),
        height: bars.len() * STEP,
        bars,
        bars_left_out: chart::left_out(cost),
        sections: sections(report),
        notes: words::notes(report),
    };
    Ok(page.render()? + "\n")
}

impl Placed {
    /// The length of a bar, and where the sum behind it begins: the longest bar has 560 pixels.
    fn length(thousandths: &u32) -> u32 {
        thousandths * 560 / 1000
    }
}

impl Section {
    fn is_number(&self, column: &usize) -> bool {
        self.columns.get(*column).is_some_and(|column| column.is_number)
    }
}

impl Piece {
    /// The text, and whether it is the plan's.
    fn shown(&self) -> (String, bool) {
        match self {
            Self::Plan(text) => (visible(text, LONGEST), true),
            Self::Words(text) => (text.clone(), false),
        }
    }
}
