//! What the forms for people have in common: a report as sections of tables, whose cells keep apart what this program says and what
//! the plan says. The latter is for each form to escape.

use super::words;
use crate::review::{
    cost::CostRow,
    drift::{Drift, Drifted},
    gate::Violation,
    losses::{Item, Loss},
    plan::Check,
    prepaid::Term,
    replacements::{Forced, Replacement},
    report::{Forgotten, Report},
    secrets::Secrets,
};

/// A table with its title.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) title: String,
    pub(super) columns: Vec<Column>,
    /// The sum of the rows, which is never left out.
    pub(super) total: Option<Row>,
    pub(super) rows: Vec<Row>,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub(super) title: &'static str,
    pub(super) is_number: bool,
}

#[derive(Debug)]
pub(super) struct Row(pub(super) Vec<Cell>);

#[derive(Debug, Default)]
pub(super) struct Cell(pub(super) Vec<Line>);

/// One line of a cell.
#[derive(Debug, Default)]
pub(super) struct Line(pub(super) Vec<Piece>);

/// A stretch of text.
#[derive(Debug)]
pub(super) enum Piece {
    /// What the plan says, whatever that is.
    Plan(String),
    /// What this program says.
    Words(String),
}

/// The sections of a report that have something to say.
pub(super) fn sections(report: &Report) -> Vec<Section> {
    let mut sections = Vec::new();
    if let (Some(line), Some(verdict)) = (words::verdict(report), &report.gate) {
        let columns = ["rule", "object", "what it does"].map(text);
        sections
            .push(Section { title: format!("Gate: {line}"), ..section("", columns, &verdict.violations, violation) });
    }
    if !report.cost.resources.is_empty() {
        sections.push(cost(report));
    }
    let others = [
        section("Unreadable", ["part of the plan"].map(text), &report.unreadable, |part| vec![plan(part)]),
        section("Destroyed", ["object", "action", "data that goes with it"].map(text), &report.destroyed, loss),
        section("Replaced", ["object", "order", "forced by"].map(text), &report.replaced, replacement),
        section(
            "Forgotten: not destroyed, and managed by nobody",
            ["object", "type"].map(text),
            &report.forgotten,
            forgotten,
        ),
        section(
            "Paid ahead",
            [text("machine"), text("term"), number("in all"), text("what is done to it")],
            &report.prepaid,
            term,
        ),
        section("Secrets that would enter the state", ["object", "attributes"].map(text), &report.secrets, secrets),
        section(
            "Drift: changed outside of plans",
            ["object", "what the refresh found"].map(text),
            &report.drift,
            drift,
        ),
        section("Checks that do not hold", ["check", "status", "problems"].map(text), &report.failed_checks, check),
    ];
    sections.extend(others.into_iter().filter(|section| !section.rows.is_empty()));
    sections
}

fn section<T, const N: usize>(
    title: &str,
    columns: [Column; N],
    entries: &[T],
    row: impl Fn(&T) -> Vec<Cell>,
) -> Section {
    let title = if entries.is_empty() { title.to_owned() } else { format!("{title} ({})", entries.len()) };
    let rows = entries.iter().map(|entry| Row(row(entry))).collect();
    Section { title, columns: columns.to_vec(), total: None, rows }
}

fn cost(report: &Report) -> Section {
    let cost = &report.cost;
    let columns = [
        text("machine"),
        text("action"),
        number("now"),
        number("after"),
        number("change"),
        number("after, by the hour"),
    ];
    let sum = |sum: String, unknown: usize| {
        let open = (unknown > 0).then(|| words(words::unknown(unknown)));
        Cell([Some(words(sum)), open].into_iter().flatten().collect())
    };
    let total = vec![
        said("all of them"),
        Cell::default(),
        sum(cost.now.monthly.with_digits(2), cost.now.unknown),
        sum(cost.after.monthly.with_digits(2), cost.after.unknown),
        sum(cost.monthly_change.signed(2), cost.unknown_increases.len()),
        said(cost.after.hourly.with_digits(4)),
    ];
    let row = |row: &CostRow| {
        let action = [Some(words::action(row)), words::remark(row)].into_iter().flatten().map(words);
        vec![
            plan(&row.address),
            Cell(action.collect()),
            said(words::monthly(&row.now)),
            said(words::monthly(&row.after)),
            said(words::change(row)),
            said(words::hourly(&row.after)),
        ]
    };
    Section {
        title: "Cost by the month".to_owned(),
        total: Some(Row(total)),
        ..section("", columns, &cost.resources, row)
    }
}

fn violation(violation: &Violation) -> Vec<Cell> {
    let details = violation.details.iter().map(|detail| Line(vec![Piece::Plan(detail.clone())]));
    let object = violation.address.as_deref().map_or_else(|| said("the plan"), plan);
    let what = [words(violation.message.as_str())].into_iter().chain(details).collect();
    vec![said(violation.rule.to_string()), object, Cell(what)]
}

fn loss(loss: &Loss) -> Vec<Cell> {
    let reason = loss.reason.as_deref().map(reason);
    let mut goes: Vec<Line> = loss.data.iter().map(|gone| item("", gone)).collect();
    if goes.is_empty() {
        goes.push(words(words::no_data(loss)));
    }
    goes.extend(loss.staying.iter().map(|stays| item("stays, and goes on being billed: ", stays)));
    if loss.protected {
        goes.push(words("deletion_protection: this will be refused"));
    }
    let action = [words(loss.action.word())].into_iter().chain(reason).collect();
    vec![plan(&loss.address), Cell(action), Cell(goes)]
}

fn replacement(replaced: &Replacement) -> Vec<Cell> {
    let is_told = |word: &&str| replaced.forced_by.is_empty() || *word != "replace_because_cannot_update";
    let reason = replaced.reason.as_deref().filter(is_told).map(reason);
    let forced = reason.into_iter().chain(replaced.forced_by.iter().map(difference)).collect();
    vec![plan(&replaced.address), said(replaced.action.word()), Cell(forced)]
}

fn forgotten(forgotten: &Forgotten) -> Vec<Cell> {
    vec![plan(&forgotten.address), plan(&forgotten.kind)]
}

fn term(term: &Term) -> Vec<Cell> {
    let renewed = term.auto_renew.then(|| words("renewed by itself"));
    let until = term.until.clone().map(|until| Line(vec![Piece::Words("until ".to_owned()), Piece::Plan(until)]));
    vec![
        plan(&term.address),
        Cell([words(words::periods(term))].into_iter().chain(renewed).collect()),
        said(term.total.as_ref().map_or_else(|| "unknown".to_owned(), |total| total.with_digits(2))),
        Cell([words(words::term(term))].into_iter().chain(until).collect()),
    ]
}

fn secrets(secrets: &Secrets) -> Vec<Cell> {
    let attributes = secrets.attributes.iter().map(|attribute| Line(vec![Piece::Plan(attribute.clone())]));
    vec![plan(&secrets.address), Cell(attributes.collect())]
}

fn drift(drift: &Drift) -> Vec<Cell> {
    let found = match &drift.what {
        Drifted::Changed { attributes } => attributes.iter().map(difference).collect(),
        Drifted::Gone => vec![words("it is gone")],
    };
    vec![plan(&drift.address), Cell(found)]
}

fn check(check: &Check) -> Vec<Cell> {
    let problems = check.problems.iter().map(|problem| Line(vec![Piece::Plan(problem.clone())]));
    vec![plan(&check.address), plan(&check.status), Cell(problems.collect())]
}

fn item(before: &str, item: &Item) -> Line {
    let mut pieces = vec![Piece::Words(format!("{before}{}", item.kind.word()))];
    let mut named = |word: &str, name: &Option<String>| {
        if let Some(name) = name {
            pieces.extend([Piece::Words(word.to_owned()), Piece::Plan(name.clone())]);
        }
    };
    named(" ", &item.name);
    named(" of ", &item.managed_by);
    if let Some(size) = item.size_gb {
        pieces.push(Piece::Words(format!(", {size} GB")));
    }
    Line(pieces)
}

fn difference(changed: &Forced) -> Line {
    let arrow = |word: &str| Piece::Words(word.to_owned());
    let value = |value: &String| Piece::Plan(value.clone());
    Line(vec![value(&changed.argument), arrow(": "), value(&changed.before), arrow(" → "), value(&changed.after)])
}

fn reason(word: &str) -> Line {
    Line(vec![words::reason(word).map_or_else(|| Piece::Plan(word.to_owned()), |words| Piece::Words(words.to_owned()))])
}

fn plan(text: &str) -> Cell {
    Cell(vec![Line(vec![Piece::Plan(text.to_owned())])])
}

fn said(text: impl Into<String>) -> Cell {
    Cell(vec![words(text)])
}

fn words(text: impl Into<String>) -> Line {
    Line(vec![Piece::Words(text.into())])
}

fn text(title: &'static str) -> Column {
    Column { title, is_number: false }
}

fn number(title: &'static str) -> Column {
    Column { title, is_number: true }
}
