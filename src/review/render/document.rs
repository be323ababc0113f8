//! The common part of the formats for people: a report as sections of tables. Cells separate texts of this program from
//! texts of the plan, which each format must escape.

use crate::review::{
    changes::{Change, ChangeAction, Line, PlannedDisk},
    cost::{Candidates, CostRow, Sums, Term},
    findings::{Finding, Level, Rule},
    losses::{Item, Loss},
    plan::Check,
    report::{Report, Review},
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
    let terms = [text("object"), text("term"), number("in all"), text("action")];
    let unpriced = ["object", "disk or image"].map(text);
    [
        all.gate(),
        all.of("Unreadable", ["part of the plan"].map(text), |report| &report.unreadable, |part| vec![plan(part)]),
        all.changes("Deferred to a later plan", &["reason"], |change| of_action(change, ChangeAction::Defer), deferred),
        all.changes("Destroyed", &["action", "deleted data"], |change| change.loss.is_some(), destroyed),
        all.changes("Replaced", &["order", "forced by"], |change| change.action.replaces(), replacement),
        all.changes(
            "Removed from the state, not destroyed (still billed)",
            &["type"],
            |change| change.action.forgets(),
            forgotten,
        ),
        all.changes(
            "Actions that the apply invokes",
            &["when", "with"],
            |change| of_action(change, ChangeAction::Invoke),
            invoked,
        ),
        Some(all.cost()).filter(|section| !section.rows.is_empty()),
        all.by_plan().filter(|section| !section.rows.is_empty()),
        all.by_module(),
        all.of("Prepaid", terms, |report| &report.prepaid, term),
        all.findings("Disks and images without a price", unpriced.to_vec(), |finding| finding.rule == Rule::Unpriced),
        all.changes("Created", &["arguments"], |change| of_action(change, ChangeAction::Create), created),
        all.changes("Changed in place", &["what changes"], |change| of_action(change, ChangeAction::Update), changed),
        all.changes("Imported", &["id", "beside"], |change| change.import.is_some(), imported),
        all.changes("Moved", &["from", "beside"], |change| change.previous_address.is_some(), moved),
        all.of(
            "Secrets that would enter the state",
            ["object", "attributes"].map(text),
            |report| &report.secrets,
            secrets,
        ),
        all.changes(
            "Drift: changed outside of plans",
            &["what the refresh found"],
            |change| matches!(change.action, ChangeAction::Drift | ChangeAction::Gone),
            drift,
        ),
        all.of(
            "Checks with problems",
            ["check", "status", "problems"].map(text),
            |report| &report.failed_checks,
            check,
        ),
        all.findings("Exceptions", finding_columns("accepted finding"), |finding| {
            finding.accepted || finding.rule == Rule::Exception && finding.level == Level::Note
        }),
        all.findings("Notes", finding_columns("note"), |finding| finding.rule == Rule::Note),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn of_action(change: &Change, action: ChangeAction) -> bool {
    change.action == action
}

fn finding_columns(what: &'static str) -> Vec<Column> {
    ["rule", "object", what].map(text).to_vec()
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
        self.rows(title, columns.to_vec(), |report| entries(report).iter().map(&row).collect())
    }

    /// A table of the changes of a kind, with the object in its first column.
    fn changes(
        &self,
        title: &str,
        columns: &[&'static str],
        is: impl Fn(&Change) -> bool,
        cells: impl Fn(&'a Change) -> Vec<Cell>,
    ) -> Option<Section> {
        let first = if columns.contains(&"when") { "action" } else { "object" };
        let columns = [first].iter().chain(columns).map(|title| text(title)).collect();
        let row = |change: &'a Change| [plan(&change.address)].into_iter().chain(cells(change)).collect();
        self.rows(title, columns, |report| report.changes.iter().filter(|change| is(change)).map(row).collect())
    }

    fn rows(&self, title: &str, columns: Vec<Column>, of: impl Fn(&'a Report) -> Vec<Vec<Cell>>) -> Option<Section> {
        let mut rows = Vec::new();
        for reviewed in &self.review.plans {
            rows.extend(of(&reviewed.report).into_iter().map(|mut cells| {
                self.name_plan(cells.first_mut(), reviewed.name.as_deref());
                Row(cells)
            }));
        }
        let title = format!("{title} ({})", rows.len());
        (!rows.is_empty()).then_some(Section { title, columns, total: None, rows })
    }

    /// Adds the name of the plan, if there are several.
    fn name_plan(&self, cell: Option<&mut Cell>, name: Option<&str>) {
        if let (Some(cell), Some(name), true) = (cell, name, self.review.is_of_several()) {
            cell.0.push(CellLine(vec![Piece::Words("in ".to_owned()), Piece::Plan(name.to_owned())]));
        }
    }

    fn gate(&self) -> Option<Section> {
        let (line, verdict) = (super::verdict(self.review)?, self.review.gate.as_ref()?);
        let rows = verdict.violations.iter().map(|finding| self.finding(finding)).collect();
        Some(Section { title: format!("Gate: {line}"), columns: finding_columns("finding"), total: None, rows })
    }

    /// A table of the findings of a kind.
    fn findings(&self, title: &str, columns: Vec<Column>, is: impl Fn(&Finding) -> bool) -> Option<Section> {
        let meant = self.review.findings.iter().filter(|finding| is(finding));
        let rows: Vec<Row> = meant.map(|one| self.finding(one)).collect();
        // A table without a column for the rule.
        let left_out = 3_usize.saturating_sub(columns.len());
        let rows: Vec<Row> = rows.into_iter().map(|row| Row(row.0.into_iter().skip(left_out).collect())).collect();
        let title = format!("{title} ({})", rows.len());
        (!rows.is_empty()).then_some(Section { title, columns, total: None, rows })
    }

    fn finding(&self, finding: &Finding) -> Row {
        let details = finding.details.iter().map(|detail| CellLine(vec![Piece::Plan(detail.clone())]));
        let mut object = finding.address.as_deref().map_or_else(|| said("the plan"), plan);
        self.name_plan(Some(&mut object), finding.plan.as_deref());
        let place = finding.location.as_ref().map(|place| plan_line(&format!("{}:{}", place.file, place.line)));
        object.0.extend(place);
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

fn deferred(change: &Change) -> Vec<Cell> {
    vec![Cell(change.reason.as_deref().map(reason).into_iter().collect())]
}

fn invoked(change: &Change) -> Vec<Cell> {
    let mut when = Vec::new();
    if let Some(trigger) = &change.trigger {
        let (event, resource) = trigger.words();
        let mut pieces = vec![Piece::Words(event.to_owned())];
        let named = |resource: &str| [Piece::Words(" ".to_owned()), Piece::Plan(resource.to_owned())];
        pieces.extend(resource.into_iter().flat_map(named));
        when.push(CellLine(pieces));
        when.extend(trigger.on_error().map(words));
    }
    vec![Cell(when), Cell(change.lines.iter().map(line).collect())]
}

/// An argument with its value, or with the values before and after.
fn line(line: &Line) -> CellLine {
    let mut pieces = vec![Piece::Plan(line.argument.clone())];
    match &line.before {
        Some(before) => {
            let before = [Piece::Words(": ".to_owned()), Piece::Plan(before.clone()), Piece::Words(" → ".to_owned())];
            pieces.extend(before);
        }
        None => pieces.push(Piece::Words(" = ".to_owned())),
    }
    pieces.push(Piece::Plan(line.after.clone()));
    let values = line.before.iter().chain([&line.after]).map(String::as_str);
    pieces.extend(unit(&line.argument, &values.collect::<Vec<_>>()));
    CellLine(pieces)
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

fn created(change: &Change) -> Vec<Cell> {
    let mut what: Vec<CellLine> = change.disks.iter().map(planned_disk).chain(change.lines.iter().map(line)).collect();
    if what.is_empty() {
        what.push(plan_line(&change.kind));
    }
    vec![Cell(what)]
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

fn changed(change: &Change) -> Vec<Cell> {
    vec![Cell(change.lines.iter().map(line).collect())]
}

fn drift(change: &Change) -> Vec<Cell> {
    if change.action == ChangeAction::Gone { vec![said("it no longer exists")] } else { changed(change) }
}

fn imported(change: &Change) -> Vec<Cell> {
    let id = change.import.as_ref().and_then(|import| import.id.as_deref());
    vec![id.map_or_else(|| said("known after the apply"), plan), said(change.action.word())]
}

fn moved(change: &Change) -> Vec<Cell> {
    vec![plan(change.previous_address.as_deref().unwrap_or_default()), said(change.action.word())]
}

fn destroyed(change: &Change) -> Vec<Cell> {
    let action = [words(change.action.word())].into_iter().chain(change.reason.as_deref().map(reason)).collect();
    vec![Cell(action), Cell(change.loss.iter().flat_map(loss).collect())]
}

fn loss(loss: &Loss) -> Vec<CellLine> {
    let mut goes: Vec<CellLine> = loss.data.iter().map(|gone| item("", gone)).collect();
    if goes.is_empty() {
        goes.push(words(super::no_data(loss)));
    }
    goes.extend(loss.staying.iter().map(|stays| item("stays, and is still billed: ", stays)));
    if loss.protected {
        goes.push(words("deletion_protection = true: this will be refused"));
    }
    goes
}

fn replacement(change: &Change) -> Vec<Cell> {
    let (forcing, others): (Vec<&Line>, Vec<&Line>) = change.lines.iter().partition(|line| line.forces);
    let is_told = |word: &&str| forcing.is_empty() || *word != "replace_because_cannot_update";
    let reason = change.reason.as_deref().filter(is_told).map(reason);
    let mut forced: Vec<CellLine> = reason.into_iter().chain(forcing.into_iter().map(line)).collect();
    if !others.is_empty() {
        forced.push(words("also changes:"));
        forced.extend(others.into_iter().map(line));
    }
    vec![said(change.action.word()), Cell(forced)]
}

fn forgotten(change: &Change) -> Vec<Cell> {
    let reason = change.reason.as_deref().map(reason);
    vec![Cell([plan_line(&change.kind)].into_iter().chain(reason).collect())]
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
