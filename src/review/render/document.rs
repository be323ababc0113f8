//! The common part of the formats for people: a report as sections of tables. Cells separate texts of this program from
//! texts of the plan, which each format must escape.

use crate::review::{
    actions::{
        Argument, Created, Drift, Drifted, Forced, Imported, Invoked, Moved, PlannedDisk, ReplacedObject, Updated,
    },
    cost::{Candidates, CostRow, Sums, Term},
    findings::{Finding, Level},
    losses::{Item, Loss},
    plan::{Check, Deferred},
    report::{Forgotten, Report, Review},
    values::Secrets,
};

/// A table with its title.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) title: String,
    pub(super) columns: Vec<Column>,
    /// The sum of the rows, which is never omitted.
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
pub(super) struct Cell(pub(super) Vec<CellLine>);

/// One line of a cell.
#[derive(Debug, Default)]
pub(super) struct CellLine(pub(super) Vec<Piece>);

/// A part of a line.
#[derive(Debug)]
pub(super) enum Piece {
    /// Arbitrary text of the plan.
    Plan(String),
    /// Text of this program.
    Words(String),
}

/// The sections of a review that are not empty. Those about parts that cannot be judged and about losses come first.
pub(super) fn sections(review: &Review) -> Vec<Section> {
    let all = Tables { review };
    let before = [
        all.gate(),
        all.of("Unreadable", ["part of the plan"].map(text), |report| &report.unreadable, |part| vec![plan(part)]),
        all.of("Deferred to a later plan", ["object", "reason"].map(text), |report| &report.deferred, deferred),
        all.of("Destroyed", ["object", "action", "deleted data"].map(text), |report| &report.destroyed, loss),
        all.of("Replaced", ["object", "order", "forced by"].map(text), |report| &report.replaced, replacement),
        all.of(
            "Removed from the state, not destroyed (still billed)",
            ["object", "type"].map(text),
            |report| &report.forgotten,
            forgotten,
        ),
        all.of(
            "Actions that the apply invokes",
            ["action", "when", "with"].map(text),
            |report| &report.actions,
            action,
        ),
    ];
    let after = [
        all.of(
            "Prepaid",
            [text("instance"), text("term"), number("in all"), text("action")],
            |report| &report.prepaid,
            term,
        ),
        all.of("Created", ["object", "arguments"].map(text), |report| &report.created, created),
        all.of("Changed in place", ["object", "what changes"].map(text), |report| &report.updated, updated),
        all.of("Imported", ["object", "id", "beside"].map(text), |report| &report.imported, imported),
        all.of("Moved", ["object", "from", "beside"].map(text), |report| &report.moved, moved),
        all.of(
            "Secrets that would enter the state",
            ["object", "attributes"].map(text),
            |report| &report.secrets,
            secrets,
        ),
        all.of(
            "Drift: changed outside of plans",
            ["object", "what the refresh found"].map(text),
            |report| &report.drift,
            drift,
        ),
        all.of(
            "Checks with problems",
            ["check", "status", "problems"].map(text),
            |report| &report.failed_checks,
            check,
        ),
        all.notes(),
    ];
    let cost = [Some(all.cost()), all.by_plan(), all.by_module()].into_iter().flatten();
    let sections = before.into_iter().flatten().chain(cost.filter(|section| !section.rows.is_empty()));
    sections.chain(after.into_iter().flatten()).collect()
}

/// Tables with rows of all plans of a review.
struct Tables<'a> {
    review: &'a Review,
}

impl<'a> Tables<'a> {
    /// A table of the entries of all plans; `None` if no plan has one.
    fn of<T: 'a, const N: usize>(
        &self,
        title: &str,
        columns: [Column; N],
        entries: impl Fn(&'a Report) -> &'a Vec<T>,
        row: impl Fn(&'a T) -> Vec<Cell>,
    ) -> Option<Section> {
        let mut rows = Vec::new();
        for reviewed in &self.review.plans {
            rows.extend(entries(&reviewed.report).iter().map(|entry| {
                let mut cells = row(entry);
                self.name_plan(cells.first_mut(), reviewed.name.as_deref());
                Row(cells)
            }));
        }
        let title = format!("{title} ({})", rows.len());
        (!rows.is_empty()).then(|| Section { title, columns: columns.to_vec(), total: None, rows })
    }

    /// Adds the name of the plan, if there are several.
    fn name_plan(&self, cell: Option<&mut Cell>, name: Option<&str>) {
        if let (Some(cell), Some(name), true) = (cell, name, self.review.is_of_several()) {
            cell.0.push(CellLine(vec![Piece::Words("in ".to_owned()), Piece::Plan(name.to_owned())]));
        }
    }

    fn gate(&self) -> Option<Section> {
        let (line, verdict) = (super::verdict(self.review)?, self.review.gate.as_ref()?);
        let columns = ["rule", "object", "finding"].map(text).to_vec();
        let rows = verdict.violations.iter().map(|finding| self.finding(finding)).collect();
        Some(Section { title: format!("Gate: {line}"), columns, total: None, rows })
    }

    /// The section of findings that an exception or the baseline allows, and of exceptions without an object.
    fn notes(&self) -> Option<Section> {
        let is_of_policy = |finding: &&Finding| {
            let is_let_through = ["excepted until", "known from the baseline", "matches no object"];
            finding.level == Level::Note && is_let_through.iter().any(|words| finding.message.contains(words))
        };
        let rows: Vec<Row> = self.review.findings.iter().filter(is_of_policy).map(|one| self.finding(one)).collect();
        let columns = ["rule", "object", "accepted finding"].map(text).to_vec();
        let title = format!("Exceptions ({})", rows.len());
        (!rows.is_empty()).then_some(Section { title, columns, total: None, rows })
    }

    fn finding(&self, finding: &Finding) -> Row {
        let details = finding.details.iter().map(|detail| CellLine(vec![Piece::Plan(detail.clone())]));
        let mut object = finding.address.as_deref().map_or_else(|| said("the plan"), plan);
        self.name_plan(Some(&mut object), finding.plan.as_deref());
        let what = [words(finding.message.as_str())].into_iter().chain(details).collect();
        Row(vec![said(finding.rule.as_str()), object, Cell(what)])
    }

    fn cost(&self) -> Section {
        let columns = [
            text("instance"),
            text("action"),
            number("now"),
            number("after"),
            number("change"),
            number("after, per hour"),
        ];
        let sums = self.review.sums();
        let [now, after, change] = monthly(&sums);
        let total = vec![said("total"), Cell::default(), now, after, change, said(sums.after.hourly.with_digits(4))];
        let section = self.of("", columns, |report| &report.cost.resources, cost_row);
        let rows = section.map(|section| section.rows).unwrap_or_default();
        Section { title: "Cost per month".to_owned(), columns: columns.to_vec(), total: Some(Row(total)), rows }
    }

    fn by_plan(&self) -> Option<Section> {
        let row = |name: &Option<String>, report: &Report| {
            let cost = &report.cost;
            let sums = Sums::of(&cost.resources);
            let name = plan(name.as_deref().unwrap_or_default());
            Row([name, said(super::counts(&report.counts))].into_iter().chain(monthly(&sums)).collect())
        };
        let rows = self.review.plans.iter().map(|plan| row(&plan.name, &plan.report)).collect();
        self.review.is_of_several().then(|| sums("Cost by plan", [text("plan"), text("objects")].to_vec(), rows))
    }

    fn by_module(&self) -> Option<Section> {
        let modules = self.review.modules();
        let row = |(module, sums): (&&str, &Sums)| {
            let name = if module.is_empty() { said("root module") } else { plan(module) };
            Row([name].into_iter().chain(monthly(sums)).collect())
        };
        let is_told = modules.keys().any(|module| !module.is_empty());
        is_told.then(|| sums("Cost by module", vec![text("module")], modules.iter().map(row).collect()))
    }
}

fn sums(title: &str, mut columns: Vec<Column>, rows: Vec<Row>) -> Section {
    columns.extend(["now", "after", "change"].map(number));
    Section { title: title.to_owned(), columns, total: None, rows }
}

/// The monthly costs before and after and the difference, each with the number of unknown prices.
fn monthly(sums: &Sums) -> [Cell; 3] {
    let cell = |sum: String, unknown: usize| {
        let open = (unknown > 0).then(|| words(super::unknown(unknown)));
        Cell([Some(words(sum)), open].into_iter().flatten().collect())
    };
    [
        cell(sums.now.monthly.with_digits(2), sums.now.unknown),
        cell(sums.after.monthly.with_digits(2), sums.after.unknown),
        cell(sums.monthly_change.signed(2), sums.unknown_increases),
    ]
}

fn cost_row(row: &CostRow) -> Vec<Cell> {
    let mut action = vec![words(super::action(row))];
    action.extend(super::remark(row).map(words));
    action.extend(row.candidates.as_ref().map(candidates));
    vec![
        plan(&row.address),
        Cell(action),
        said(super::monthly(&row.now)),
        said(super::monthly(&row.after)),
        said(super::change(row)),
        said(super::hourly(&row.after)),
    ]
}

fn candidates(candidates: &Candidates) -> CellLine {
    let count =
        if candidates.count == 1 { "1 candidate".to_owned() } else { format!("{} candidates", candidates.count) };
    let mut pieces = vec![Piece::Words(format!("{count}: "))];
    for (index, option) in candidates.options.iter().enumerate() {
        pieces.extend((index > 0).then(|| Piece::Words(", ".to_owned())));
        pieces.push(Piece::Plan(option.clone()));
    }
    match &candidates.choice {
        Some(choice) => pieces.extend([Piece::Words("; chosen: ".to_owned()), Piece::Plan(choice.clone())]),
        None => pieces.push(Piece::Words("; the apply chooses".to_owned())),
    }
    CellLine(pieces)
}

fn deferred(deferred: &Deferred) -> Vec<Cell> {
    vec![plan(&deferred.address), Cell(vec![reason(&deferred.reason)])]
}

fn action(invoked: &Invoked) -> Vec<Cell> {
    let (event, resource) = invoked.trigger.words();
    let mut when = vec![Piece::Words(event.to_owned())];
    when.extend(
        resource.iter().flat_map(|resource| [Piece::Words(" ".to_owned()), Piece::Plan((*resource).to_owned())]),
    );
    let when = [CellLine(when)].into_iter().chain(invoked.trigger.on_error().map(words)).collect();
    vec![plan(&invoked.address), Cell(when), Cell(invoked.arguments.iter().map(argument).collect())]
}

fn argument(argument: &Argument) -> CellLine {
    let pieces = [&argument.name, &argument.value].map(|text| Piece::Plan(text.clone()));
    let [name, value] = pieces;
    let unit = unit(&argument.name, &[&argument.value]);
    CellLine([name, Piece::Words(" = ".to_owned()), value].into_iter().chain(unit).collect())
}

/// The unit of a size, by the name of its argument; `None` if no value is a number.
fn unit(argument: &str, values: &[&str]) -> Option<Piece> {
    let is_number = values.iter().any(|value| value.parse::<f64>().is_ok());
    let unit = match argument.rsplit('_').next() {
        Some("gb") => " GB",
        Some("mb") => " MB",
        _ => return None,
    };
    is_number.then(|| Piece::Words(unit.to_owned()))
}

fn created(created: &Created) -> Vec<Cell> {
    let mut what: Vec<CellLine> = created.arguments.iter().map(argument).collect();
    what.extend(created.disks.iter().map(planned_disk));
    if what.is_empty() {
        what.push(CellLine(vec![Piece::Plan(created.kind.clone())]));
    }
    vec![plan(&created.address), Cell(what)]
}

fn planned_disk(disk: &PlannedDisk) -> CellLine {
    let size = disk.size_gb.map_or_else(|| "of unknown size".to_owned(), |size| format!("of {size} GB"));
    let mut pieces = vec![Piece::Words(format!("new cloud disk {size}"))];
    if let Some(path) = &disk.mount_path {
        pieces.extend([Piece::Words(" at ".to_owned()), Piece::Plan(path.clone())]);
    }
    let fate =
        if disk.release_with_instance { "released with the instance" } else { "stays when the instance is released" };
    pieces.push(Piece::Words(format!(", {fate}")));
    CellLine(pieces)
}

fn updated(updated: &Updated) -> Vec<Cell> {
    vec![plan(&updated.address), Cell(updated.attributes.iter().map(difference).collect())]
}

fn imported(imported: &Imported) -> Vec<Cell> {
    let id = imported.id.as_deref().map_or_else(|| said("known after the apply"), plan);
    vec![plan(&imported.address), id, said(imported.action.word())]
}

fn moved(moved: &Moved) -> Vec<Cell> {
    vec![plan(&moved.address), plan(&moved.previous_address), said(moved.action.word())]
}

fn loss(loss: &Loss) -> Vec<Cell> {
    let reason = loss.reason.as_deref().map(reason);
    let mut goes: Vec<CellLine> = loss.data.iter().map(|gone| item("", gone)).collect();
    if goes.is_empty() {
        goes.push(words(super::no_data(loss)));
    }
    goes.extend(loss.staying.iter().map(|stays| item("stays, and is still billed: ", stays)));
    if loss.protected {
        goes.push(words("deletion_protection = true: this will be refused"));
    }
    let action = [words(loss.action.word())].into_iter().chain(reason).collect();
    vec![plan(&loss.address), Cell(action), Cell(goes)]
}

fn replacement(replaced: &ReplacedObject) -> Vec<Cell> {
    let is_told = |word: &&str| replaced.forced_by.is_empty() || *word != "replace_because_cannot_update";
    let reason = replaced.reason.as_deref().filter(is_told).map(reason);
    let mut forced: Vec<CellLine> = reason.into_iter().chain(replaced.forced_by.iter().map(difference)).collect();
    if !replaced.changes.is_empty() {
        forced.push(words("also changes:"));
        forced.extend(replaced.changes.iter().map(difference));
    }
    vec![plan(&replaced.address), said(replaced.action.word()), Cell(forced)]
}

fn forgotten(forgotten: &Forgotten) -> Vec<Cell> {
    let reason = forgotten.reason.as_deref().map(reason);
    vec![plan(&forgotten.address), Cell([plan_line(&forgotten.kind)].into_iter().chain(reason).collect())]
}

fn term(term: &Term) -> Vec<Cell> {
    let renewed = term.auto_renew.then(|| words("renewed automatically"));
    let until = term.until.clone().map(|until| CellLine(vec![Piece::Words("until ".to_owned()), Piece::Plan(until)]));
    vec![
        plan(&term.address),
        Cell([words(super::periods(term))].into_iter().chain(renewed).collect()),
        said(term.total.as_ref().map_or_else(|| "unknown".to_owned(), |total| total.with_digits(2))),
        Cell([words(super::term(term))].into_iter().chain(until).collect()),
    ]
}

fn secrets(secrets: &Secrets) -> Vec<Cell> {
    let attributes = secrets.attributes.iter().map(|attribute| CellLine(vec![Piece::Plan(attribute.clone())]));
    vec![plan(&secrets.address), Cell(attributes.collect())]
}

fn drift(drift: &Drift) -> Vec<Cell> {
    let found = match &drift.what {
        Drifted::Changed { attributes } => attributes.iter().map(difference).collect(),
        Drifted::Gone => vec![words("it no longer exists")],
    };
    vec![plan(&drift.address), Cell(found)]
}

fn check(check: &Check) -> Vec<Cell> {
    let problems = check.problems.iter().map(|problem| CellLine(vec![Piece::Plan(problem.clone())]));
    let status = if check.status == "fail" { "does not hold" } else { "cannot be evaluated" };
    vec![plan(&check.address), said(status), Cell(problems.collect())]
}

fn item(before: &str, item: &Item) -> CellLine {
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
    CellLine(pieces)
}

fn difference(changed: &Forced) -> CellLine {
    let arrow = |word: &str| Piece::Words(word.to_owned());
    let value = |value: &String| Piece::Plan(value.clone());
    let pieces = [value(&changed.argument), arrow(": "), value(&changed.before), arrow(" → "), value(&changed.after)];
    let unit = unit(&changed.argument, &[&changed.before, &changed.after]);
    CellLine(pieces.into_iter().chain(unit).collect())
}

fn reason(word: &str) -> CellLine {
    CellLine(vec![
        super::reason(word).map_or_else(|| Piece::Plan(word.to_owned()), |words| Piece::Words(words.to_owned())),
    ])
}

fn plan(text: &str) -> Cell {
    Cell(vec![plan_line(text)])
}

fn plan_line(text: &str) -> CellLine {
    CellLine(vec![Piece::Plan(text.to_owned())])
}

fn said(text: impl Into<String>) -> Cell {
    Cell(vec![words(text)])
}

fn words(text: impl Into<String>) -> CellLine {
    CellLine(vec![Piece::Words(text.into())])
}

fn text(title: &'static str) -> Column {
    Column { title, is_number: false }
}

fn number(title: &'static str) -> Column {
    Column { title, is_number: true }
}
