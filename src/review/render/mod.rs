//! Reviews in formats for people and programs. All texts of a plan are escaped for the format.

mod document;
mod html;
mod markdown;
mod sarif;
mod terminal;

use std::collections::BTreeMap;

use clap::ValueEnum;

use super::{
    changes::{Change, ChangeAction},
    cost::{Amount, CostRow, Term, TermKind, UNREAD},
    losses::Loss,
    money::Money,
    report::{Counts, Report, Review},
};

/// A format of reviews.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A self-contained page with a chart.
    Html,
    /// The review as data; see [`Report`](super::Report).
    Json,
    /// A comment for a pull request: at most 65,536 characters.
    #[default]
    Markdown,
    /// A log for code scanning (SARIF 2.1.0).
    Sarif,
    /// Text for a terminal.
    Text,
}

/// The options of a rendered review.
#[derive(Clone, Debug, Default)]
pub struct Style {
    /// The format.
    pub format: Format,
    /// The name by which a program can find the comment later, in Markdown and HTML.
    pub id: Option<String>,
    /// Whether the text has colours.
    pub is_coloured: bool,
    /// The files of the plans, by the names of the plans.
    pub plan_files: BTreeMap<Option<String>, String>,
}

/// Writes a review. Every format ends with a line break.
///
/// # Errors
///
/// If it cannot be written in this format. Usual cause: a defect of this program.
pub fn render(review: &Review, style: &Style) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let id = style.id.as_deref();
    Ok(match style.format {
        Format::Html => html::write(review, id)?,
        Format::Json => review.to_json()? + "\n",
        Format::Markdown => markdown::write(review, id),
        Format::Sarif => sarif::write(review, style)?,
        Format::Text => terminal::write(review, style.is_coloured),
    })
}

/// The invisible mark of the review of this name.
fn marker(id: &str) -> String {
    format!("<!-- damodel-review: {id} -->")
}

/// The meaning of the sums, and what they omit.
const NOTES: [&str; 3] = [
    "Sums are in the service's currency, from the quotes in the plan; a month has 730 hours. Discounts are not \
     applied.",
    "The service has prices for instances only: cloud disks and images are billed too, but not included in these sums.",
    "Sensitive values are not shown.",
];

/// The note for plans of cores that do not mark them as complete.
const MAYBE_MORE: &str = "This plan does not state whether it is complete (Terraform reports it from 1.8 on, OpenTofu \
                          does not): objects that -target or -exclude left out are not shown.";

/// The notes below the report.
fn notes(review: &Review) -> Vec<&'static str> {
    let is_told = review.plans.iter().all(|plan| plan.report.says_whether_complete);
    let maybe_more = (!is_told).then_some(MAYBE_MORE);
    NOTES.into_iter().chain(maybe_more).collect()
}

/// The text for a core's code of a reason; `None` for an unknown code.
fn reason(word: &str) -> Option<&'static str> {
    Some(match word {
        "absent_prereq" => "a dependency does not exist yet",
        "deferred_prereq" => "a dependency is deferred",
        "instance_count_unknown" => "its count or for_each is unknown so far",
        "provider_config_unknown" => "the configuration of its provider is unknown so far",
        "resource_config_unknown" => "its configuration is unknown so far",
        "delete_because_count_index" => "its index is outside of count",
        "delete_because_enabled_false" => "its enabled is false",
        "delete_because_each_key" => "its key is not in for_each",
        "delete_because_no_module" => "its module was removed from the configuration",
        "delete_because_no_move_target" => "it was moved to an address that is not configured",
        "delete_because_no_resource_config" => "it was removed from the configuration",
        "delete_because_wrong_repetition" => "count or for_each was added or removed",
        "forgot_because_lifecycle_destroy_in_config" => "destroy = false in its configuration",
        "forgot_because_lifecycle_destroy_in_state" => "destroy = false in the state",
        "replace_because_cannot_update" => "an argument cannot be changed in place",
        "replace_because_tainted" => "it is tainted",
        "replace_by_request" => "it was requested (-replace)",
        "replace_by_triggers" => "replace_triggered_by",
        _ => return None,
    })
}

/// One side of an instance's costs as text.
fn amount(amount: &Amount, digits: u32, of: impl Fn(&Money, &Money) -> Money) -> String {
    match amount {
        Amount::Known { hourly, monthly } => of(hourly, monthly).with_digits(digits),
        Amount::Nothing => "\u{2013}".to_owned(),
        Amount::Unknown { .. } => "unknown".to_owned(),
    }
}

/// The monthly costs.
fn monthly(side: &Amount) -> String {
    amount(side, 2, |_, monthly| monthly.clone())
}

/// The hourly costs.
fn hourly(side: &Amount) -> String {
    amount(side, 4, |hourly, _| hourly.clone())
}

/// The monthly difference.
fn change(row: &CostRow) -> String {
    row.monthly_change.as_ref().map_or_else(|| "unknown".to_owned(), |change| change.signed(2))
}

/// The remark on an instance's costs, if there is one.
fn remark(row: &CostRow) -> Option<&str> {
    fn why(amount: &Amount) -> Option<&str> {
        match amount {
            Amount::Unknown { why } => Some(why),
            Amount::Known { .. } | Amount::Nothing => None,
        }
    }
    let forgotten = row.forgotten.then_some("is removed from the state, and is still billed");
    let ceiling = row.is_ceiling.then_some("at most: its price_ceiling");
    forgotten.or(ceiling).or_else(|| why(&row.after)).or_else(|| why(&row.now))
}

/// The planned action for an instance.
fn action(row: &CostRow) -> &'static str {
    let is_unread = matches!(&row.after, Amount::Unknown { why } if why == UNREAD);
    let without = if is_unread { "unknown" } else { "not in this plan" };
    row.action.map_or(without, |action| action.word())
}

/// The number of unknown prices, as text beside a sum.
fn unknown(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => "1 unknown price".to_owned(),
        more => format!("{more} unknown prices"),
    }
}

/// The text for a destroyed object without listed data.
fn no_data(loss: &Loss) -> &'static str {
    if loss.known { "no data" } else { "other provider: data loss not assessed" }
}

/// The length of a prepaid term.
fn periods(term: &Term) -> String {
    let unit = match term.payment_type.as_deref() {
        Some("Daily") => "day",
        Some("Weekly") => "week",
        Some("Monthly") => "month",
        _ => return "an unknown term".to_owned(),
    };
    match term.periods {
        Some(1) => format!("1 {unit}"),
        Some(count) => format!("{count} {unit}s"),
        None => format!("an unknown number of {unit}s"),
    }
}

/// The change of a term.
fn term(term: &Term) -> &'static str {
    match term.kind {
        TermKind::Bought => "bought",
        TermKind::GivenUp => "ended early; the service may refuse the release",
    }
}

/// The reasons why plans cannot be judged.
fn warnings(review: &Review) -> Vec<String> {
    let count = |is_so: fn(&Report) -> bool| review.plans.iter().filter(|plan| is_so(&plan.report)).count();
    let sentence = |count: usize, rest: &str| match (count, review.is_of_several()) {
        (0, _) => None,
        (_, false) => Some(format!("The plan is {rest}.")),
        (1, true) => Some(format!("1 plan is {rest}.")),
        (count, true) => Some(format!("{count} plans are {rest}.")),
    };
    let why = review.plans.iter().find_map(|plan| plan.report.incomplete).unwrap_or_default();
    [
        sentence(count(|report| report.errored), "errored: it stopped before its end"),
        sentence(count(|report| report.incomplete.is_some()), &format!("incomplete: {why}")),
        sentence(count(|report| !report.unreadable.is_empty()), "unreadable in parts, which are missing below"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The number of objects in a review.
fn summary(review: &Review) -> String {
    let plans = if review.is_of_several() { format!("{} plans: ", review.plans.len()) } else { String::new() };
    let is_drift = |change: &&Change| matches!(change.action, ChangeAction::Drift | ChangeAction::Gone);
    let drifted = review.plans.iter().flat_map(|plan| &plan.report.changes).filter(is_drift).count();
    let drift = match drifted {
        0 => String::new(),
        1 => " 1 object changed outside of plans.".to_owned(),
        count => format!(" {count} objects changed outside of plans."),
    };
    format!("{plans}{}.{drift}", counts(&review.counts()))
}

/// The number of objects by action.
fn counts(counts: &Counts) -> String {
    let words = counts.words();
    if words.is_empty() {
        return "no changes".to_owned();
    }
    let others = match counts.other_providers {
        0 => String::new(),
        count => format!(" ({count} of the changes are other providers')"),
    };
    format!("{}{others}", words.join(", "))
}

/// The line with the result of the gate; `None` without a gate.
fn verdict(review: &Review) -> Option<String> {
    let verdict = review.gate.as_ref()?;
    Some(match verdict.violations.len() {
        0 => "Passed".to_owned(),
        1 => "Failed: 1 violation".to_owned(),
        count => format!("Failed: {count} violations"),
    })
}
