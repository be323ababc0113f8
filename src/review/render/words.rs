//! What all forms say in the same words.

use crate::review::{
    cost::{Amount, CostRow},
    losses::Loss,
    money::Money,
    prepaid::{Term, TermKind},
    report::Report,
};

/// What the sums mean, and what they leave out.
const NOTES: [&str; 3] = [
    "Sums are in the service's currency, from the quotes in the plan; a month has 730 hours. Discounts are not applied.",
    "The service names prices for instances alone: cloud disks and images are billed too, and are not in these sums.",
    "What a plan calls sensitive is not shown here.",
];

/// What stands where the core leaves open whether there is more.
const MAYBE_MORE: &str = "This plan does not say whether it is whole (Terraform says so from 1.8 on, OpenTofu does not): what -target or \
    -exclude left out is not seen here.";

/// What there is to say below everything.
pub(super) fn notes(report: &Report) -> Vec<&'static str> {
    let maybe_more = (!report.says_whether_complete).then_some(MAYBE_MORE);
    NOTES.into_iter().chain(maybe_more).collect()
}

/// Why the core does what it does, for its word for it; none for a word that this program does not know.
pub(super) fn reason(word: &str) -> Option<&'static str> {
    Some(match word {
        "delete_because_count_index" => "its index is outside of count",
        "delete_because_each_key" => "its key is not in for_each",
        "delete_because_no_module" => "its module is gone from the configuration",
        "delete_because_no_move_target" => "it was moved to where nothing is configured",
        "delete_because_no_resource_config" => "it is gone from the configuration",
        "delete_because_wrong_repetition" => "count or for_each came or went",
        "replace_because_cannot_update" => "an argument cannot be changed in place",
        "replace_because_tainted" => "it is tainted",
        "replace_by_request" => "it was asked for (-replace)",
        "replace_by_triggers" => "replace_triggered_by",
        _ => return None,
    })
}

/// What is left of one side of a machine's bill.
pub(super) fn amount(amount: &Amount, digits: u32, of: impl Fn(&Money, &Money) -> Money) -> String {
    match amount {
        Amount::Known { hourly, monthly } => of(hourly, monthly).with_digits(digits),
        Amount::Nothing => "\u{2013}".to_owned(),
        Amount::Unknown { .. } => "unknown".to_owned(),
    }
}

/// By the month.
pub(super) fn monthly(side: &Amount) -> String {
    amount(side, 2, |_, monthly| monthly.clone())
}

/// By the hour.
pub(super) fn hourly(side: &Amount) -> String {
    amount(side, 4, |hourly, _| hourly.clone())
}

/// The difference by the month.
pub(super) fn change(row: &CostRow) -> String {
    row.monthly_change.as_ref().map_or_else(|| "unknown".to_owned(), |change| change.signed(2))
}

/// What there is to say of a machine's bill beside the numbers.
pub(super) fn remark(row: &CostRow) -> Option<&'static str> {
    let why = |amount: &Amount| match amount {
        Amount::Unknown { why } => Some(*why),
        Amount::Known { .. } | Amount::Nothing => None,
    };
    let forgotten = row.forgotten.then_some("leaves the state, and goes on being billed");
    forgotten.or_else(|| why(&row.after)).or_else(|| why(&row.now))
}

/// What the plan does to a machine.
pub(super) fn action(row: &CostRow) -> &'static str {
    row.action.map_or("not in this plan", |action| action.word())
}

/// How many machines have an unknown price, beside a sum.
pub(super) fn unknown(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => "1 unknown price".to_owned(),
        more => format!("{more} unknown prices"),
    }
}

/// What a destroyed object is, where no data is told.
pub(super) fn no_data(loss: &Loss) -> &'static str {
    if loss.known { "no data" } else { "another provider's: what goes with it is not known here" }
}

/// What is paid ahead, in how many periods.
pub(super) fn periods(term: &Term) -> String {
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

/// What is done to a term.
pub(super) fn term(term: &Term) -> &'static str {
    match term.kind {
        TermKind::Bought => "bought",
        TermKind::GivenUp => "given up; nothing is paid back, and the service may refuse the release",
    }
}

/// What keeps a plan from being judged.
pub(super) fn warnings(report: &Report) -> Vec<String> {
    let errored = report.errored.then(|| "The plan is errored: it stopped before its end.".to_owned());
    let incomplete = report.incomplete.map(|why| format!("The plan is incomplete: {why}."));
    let unreadable = match report.unreadable.len() {
        0 => None,
        count => Some(format!("{count} parts of the plan are unreadable, and are missing below.")),
    };
    [errored, incomplete, unreadable].into_iter().flatten().collect()
}

/// How many objects the plan is about.
pub(super) fn summary(report: &Report) -> String {
    let counts = report.counts.words();
    let others = match report.counts.other_providers {
        0 => String::new(),
        count => format!(" ({count} of the changes are other providers')"),
    };
    if counts.is_empty() {
        "There are no resources in this plan.".to_owned()
    } else {
        format!("{}{others}.", counts.join(", "))
    }
}

/// The line that says whether the plan passes; none where nothing was asked.
pub(super) fn verdict(report: &Report) -> Option<String> {
    let verdict = report.gate.as_ref()?;
    Some(match verdict.violations.len() {
        0 => "Passed".to_owned(),
        1 => "Not passed: 1 violation".to_owned(),
        count => format!("Not passed: {count} violations"),
    })
}
