//! The page that people read, before it is written in a form: a headline, lines, a table, folds. Its texts separate
//! words of this program from texts of a plan, which each form escapes.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use super::{
    address::{Address, Pattern},
    facts::{
        Amount, Argument, Candidates, CostRow, Counts, Facts, Item, ItemKind, Loss, Money, Object, Sums, Term, Unpriced,
    },
    findings::{Finding, Grounds},
    plan::{ChangeAction, LLAMA_SERVER, is_own, reason},
    policy::{Exception, Rule},
    rules::{and_more, thousands},
    values::{SENSITIVE, UNKNOWN},
    verdict::{Judged, Level, Review, Use},
};

/// The maximum number of rows above the folds, and of lines about exceptions.
const MOST: usize = 20;
/// The maximum number of names in a line.
const NAMES: usize = 5;
/// The number of instances that the row of a limit names.
const LARGEST: usize = 3;

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Arbitrary text of a plan or a policy.
    Plan(String),
    /// Words of this program.
    Words(String),
}

/// One line of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Text(pub(super) Vec<Piece>);

/// A table. Each cell has some lines.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Vec<Vec<Text>>>,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub(super) title: &'static str,
    pub(super) is_number: bool,
}

/// A part of the page that opens on demand. Its summary has words and numbers of this program only.
#[derive(Debug)]
pub(super) struct Fold {
    pub(super) summary: String,
    pub(super) table: Table,
}

/// The page.
#[derive(Debug)]
pub(super) struct Page {
    /// Whether the gate holds; `None` without a gate.
    pub(super) passed: Option<bool>,
    pub(super) headline: Text,
    /// What must not be missed: a title and a text.
    pub(super) lines: Vec<(&'static str, Text)>,
    /// What violates the gate, and then what is destroyed for good.
    pub(super) table: Table,
    pub(super) counts: String,
    pub(super) folds: Vec<Fold>,
    pub(super) small: Text,
}

impl Page {
    /// The page of a review, whose sums are in this unit. Without a plan's own name it has the given one.
    pub(super) fn of(review: &Review<'_>, name: Option<&str>, currency: Option<&str>) -> Self {
        let is_gate = review.is_gate;
        let (shown, rest) = most_important(table(review));
        let violations = rest.iter().filter(|row| !row.rules.is_empty()).count();
        let more =
            [(violations, "more violation", "more violations"), (rest.len() - violations, "more loss", "more losses")];
        let more = more.into_iter().filter(|(number, ..)| *number > 0);
        let summary: Vec<String> = more.map(|(number, one, several)| count(number, one, several)).collect();
        let more = Fold { summary: summary.join(", "), table: rows_of(&rest, review, is_gate) };
        Self {
            passed: is_gate.then(|| review.violations().next().is_none()),
            headline: headline(review, name, currency),
            lines: lines(review),
            table: rows_of(&shown, review, is_gate),
            counts: counts(review),
            folds: [more].into_iter().chain(folds(review)).filter(|fold| !fold.table.rows.is_empty()).collect(),
            small: small(review),
        }
    }
}

impl Text {
    pub(super) fn words(words: impl Into<String>) -> Self {
        Self::default().say(words)
    }

    fn name(text: impl ToString) -> Self {
        Self(vec![Piece::Plan(text.to_string())])
    }

    fn say(mut self, words: impl Into<String>) -> Self {
        self.0.push(Piece::Words(words.into()));
        self
    }

    fn then(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    fn joined(texts: impl IntoIterator<Item = Self>, between: &str) -> Self {
        texts.into_iter().reduce(|all, text| all.say(between).then(text)).unwrap_or_default()
    }

    /// The first few of many texts, and the number of the others.
    fn first(mut texts: Vec<Self>, most: usize) -> Self {
        let more = texts.len().saturating_sub(most);
        texts.truncate(most);
        let text = Self::joined(texts, ", ");
        if more > 0 { text.say(format!(" {}", and_more(more))) } else { text }
    }

    /// The first few of many texts of the plan.
    fn names<T: ToString>(names: impl IntoIterator<Item = T>) -> Self {
        Self::first(names.into_iter().map(Self::name).collect(), NAMES)
    }

    /// The text without the distinction of its pieces.
    pub(super) fn plain(&self) -> String {
        self.0.iter().map(|(Piece::Plan(text) | Piece::Words(text))| text.as_str()).collect()
    }
}

/// A number with its noun, thousands separated.
pub(super) fn count(number: usize, one: &str, several: &str) -> String {
    format!("{} {}", thousands(&number.to_string()), if number == 1 { one } else { several })
}

fn headline(review: &Review<'_>, name: Option<&str>, currency: Option<&str>) -> Text {
    let title = match review.plans {
        [plan] => plan.name.as_deref().or(name).map(|name| Text::name(name).say(": ")),
        plans => Some(Text::words(format!("{}: ", count(plans.len(), "plan", "plans")))),
    };
    let sums = review.sums();
    let unit = currency.map(|unit| format!(" {unit}")).unwrap_or_default();
    let at_most = if sums.is_ceiling { "at most " } else { "" };
    let unknown = match sums.unknown_increases {
        0 => String::new(),
        unknown => format!(" and {}", count(unknown, "unknown price", "unknown prices")),
    };
    // These do not change the costs, and are in no sum.
    let kept = match sums.after.unknown.saturating_sub(sums.unknown_increases) {
        0 => String::new(),
        kept => format!(", without {}", count(kept, "unknown price", "unknown prices")),
    };
    let [change, now, after] = [sums.monthly_change.signed(), sums.now.monthly.grouped(), sums.after.monthly.grouped()];
    let rules = review.violations().map(|judged| judged.finding.rule).collect::<BTreeSet<_>>().len();
    let rules = if rules == 0 { String::new() } else { format!(", {} violated", count(rules, "rule", "rules")) };
    let money = if review.plans.iter().all(|plan| plan.cost.instances.is_empty()) {
        "no instances".to_owned()
    } else {
        format!("{at_most}{change}{unit}{unknown} a month ({now} → {after}{kept})")
    };
    title.unwrap_or_default().say(format!("{money}{rules}"))
}

/// What must not be missed, a line a kind.
fn lines(review: &Review<'_>) -> Vec<(&'static str, Text)> {
    let objects = || review.plans.iter().flat_map(|plan| &plan.changes);
    let names = |is: &dyn Fn(&&Object) -> bool| Text::names(objects().filter(is).map(|object| &object.address));
    let judged = review.findings.iter().filter(|judged| judged.finding.rule == Rule::Plan);
    let judged = judged.map(|judged| {
        let plan = in_plan(review, judged.finding.plan).map(|plan| plan.say(": "));
        plan.unwrap_or_default().then(why(&judged.finding))
    });
    let mut lines = vec![("Cannot be judged", Text::first(judged.collect(), NAMES))];
    lines.extend(review.uses.iter().take(MOST).map(|used| ("Excepted", exception(used))));
    if let Some(more) = review.uses.len().checked_sub(MOST).filter(|more| *more > 0) {
        lines.push(("Excepted", Text::words(format!("by {}", count(more, "more exception", "more exceptions")))));
    }
    let is_protected = |object: &&Object| object.loss.as_ref().is_some_and(|loss| loss.protected);
    let is_foreign = |object: &&Object| object.loss.as_ref().is_some_and(|loss| !is_own(&object.kind) && !loss.known);
    let actions = review.plans.iter().flat_map(|plan| &plan.actions).map(|action| {
        let (event, resource) = action.trigger.words();
        let text = Text::name(&action.address).say(format!(" {event}"));
        let text = resource.into_iter().fold(text, |text, resource| text.say(" ").then(Text::name(resource)));
        action.trigger.on_error().into_iter().fold(text, |text, effect| text.say(format!(" ({effect})")))
    });
    lines.extend([
        ("Refused by deletion_protection", names(&is_protected)),
        ("Destroyed by other providers (data loss not assessed)", names(&is_foreign)),
        ("Run by the apply", Text::first(actions.collect(), NAMES)),
        ("Still billed afterwards", still_billed(review)),
    ]);
    lines.retain(|(_, text)| !text.0.is_empty());
    lines
}

fn exception(used: &Use<'_>) -> Text {
    let (objects, sum) = used.extent();
    let Exception { owner, reason, expires, .. } = used.exception;
    let extent = format!(" until {expires}, {}, {} a month: ", count(objects, "object", "objects"), sum.grouped());
    patterns(used.exception).say(" by ").then(Text::name(owner)).say(extent).then(Text::name(reason))
}

fn patterns(exception: &Exception) -> Text {
    Text::names(exception.matching.iter().map(Pattern::as_str))
}

/// The disks that stay, and what is removed from the state.
fn still_billed(review: &Review<'_>) -> Text {
    let (mut staying, mut forgotten) = (Vec::new(), Vec::new());
    for plan in review.plans {
        let destroyed = plan.changes.iter().filter(|object| object.action.destroys());
        let destroyed: BTreeSet<&str> = destroyed.map(|object| object.address.as_str()).collect();
        let rows: BTreeMap<&Address, &CostRow> = plan.cost.instances.iter().map(|row| (&row.address, row)).collect();
        for object in &plan.changes {
            let stays = object.loss.iter().flat_map(|loss| &loss.staying);
            let stays = stays.filter(|item| item.managed_by.as_deref().is_none_or(|disk| !destroyed.contains(disk)));
            staying.extend(stays.map(|disk| item(disk).say(" of ").then(Text::name(&object.address))));
            if object.action.forgets() && is_own(&object.kind) && object.kind != LLAMA_SERVER {
                let name = Text::name(&object.address);
                forgotten.push(match rows.get(&object.address).map(|row| &row.now) {
                    Some(Amount::Known { monthly, .. }) => name.say(format!(" ({} a month)", monthly.grouped())),
                    _ => name,
                });
            }
        }
    }
    let forgotten = (!forgotten.is_empty()).then(|| Text::words("forgotten: ").then(Text::first(forgotten, NAMES)));
    let staying = (!staying.is_empty()).then(|| Text::first(staying, NAMES));
    Text::joined(staying.into_iter().chain(forgotten), "; ")
}

/// A row of the table: all findings about one object.
struct Row<'a> {
    findings: Vec<&'a Judged<'a>>,
    rules: BTreeSet<Rule>,
    /// The class, and the place in it.
    order: (u8, Reverse<i64>, Reverse<Money>),
}

/// What violates the gate and what is destroyed for good, a row for each object: data first, by size, then money.
fn table<'a>(review: &'a Review<'a>) -> Vec<Row<'a>> {
    let mut groups: BTreeMap<_, Vec<&Judged<'_>>> = BTreeMap::new();
    for (index, judged) in review.findings.iter().enumerate() {
        let Finding { rule, plan, address, .. } = judged.finding;
        if judged.level == Level::Error || rule == Rule::DestroyData {
            // What is no object has a row of its own.
            let key = (plan, address, if address.is_none() { index } else { 0 });
            groups.entry(key).or_default().push(judged);
        }
    }
    let mut rows: Vec<Row<'_>> = groups.into_values().map(Row::of).collect();
    rows.sort_by(|one, other| one.order.cmp(&other.order));
    rows
}

impl<'a> Row<'a> {
    fn of(findings: Vec<&'a Judged<'a>>) -> Self {
        let violations = findings.iter().filter(|judged| judged.level == Level::Error);
        let rules: BTreeSet<Rule> = violations.map(|judged| judged.finding.rule).collect();
        let (mut class, mut size, mut money) = (3, 0, Money::default());
        for judged in &findings {
            match &judged.finding.grounds {
                Grounds::Destroyed(object) => {
                    let data = object.loss.iter().flat_map(|loss| &loss.data);
                    let is_disk =
                        data.clone().all(|item| matches!(item.kind, ItemKind::CloudDisk | ItemKind::PrivateImage));
                    class = if is_disk { 0 } else { 1 };
                    size = data.filter_map(|item| item.size_gb).fold(0, i64::saturating_add);
                }
                Grounds::Excess { sum, .. } => (class, money) = (class.min(2), sum.clone()),
                Grounds::Bought(_) | Grounds::Endless | Grounds::UnknownPrice(_) | Grounds::Unpriced(_) => {
                    class = class.min(2)
                }
                Grounds::Check(_) | Grounds::Exception(_) | Grounds::Said(..) | Grounds::Secrets(_) => {}
            }
        }
        // What violates nothing comes last.
        let class = if rules.is_empty() { class + 4 } else { class };
        Self { findings, rules, order: (class, Reverse(size), Reverse(money)) }
    }
}

/// The rows above the folds, among which each rule has one, and the others.
fn most_important(rows: Vec<Row<'_>>) -> (Vec<Row<'_>>, Vec<Row<'_>>) {
    let mut found = BTreeSet::new();
    let is_first: Vec<bool> =
        rows.iter().map(|row| row.rules.iter().filter(|rule| found.insert(**rule)).count() > 0).collect();
    let mut free = MOST.saturating_sub(is_first.iter().filter(|is_first| **is_first).count());
    let mut is_shown = is_first.into_iter().map(|is_first| {
        let has_room = is_first || free > 0;
        free -= usize::from(has_room && !is_first);
        has_room
    });
    rows.into_iter().partition(|_| is_shown.next().unwrap_or(false))
}

fn rows_of(rows: &[Row<'_>], review: &Review<'_>, has_rules: bool) -> Table {
    let columns = ["object"].into_iter().chain(has_rules.then_some("rules")).chain(["why"]);
    let rows = rows.iter().filter_map(|row| {
        let first = row.findings.first()?;
        let whole = match (first.finding.rule, review.plans) {
            (Rule::Exception, _) => "the policy",
            (_, [_]) => "the plan",
            _ => "the plans",
        };
        let object = first.finding.address.map_or_else(|| Text::words(whole), Text::name);
        let place = first.location.as_ref().map(|place| Text::name(format!("{}:{}", place.file, place.line)));
        let object = [object].into_iter().chain(in_plan(review, first.finding.plan)).chain(place).collect();
        let mut rules: Vec<&str> = row.rules.iter().map(|rule| rule.as_str()).collect();
        rules.extend(row.findings.iter().any(|judged| judged.lifted_by.is_some()).then_some("excepted"));
        let rules = has_rules.then(|| vec![Text::words(rules.join(", "))]);
        let why = Text::joined(row.findings.iter().map(|judged| why(&judged.finding)), "; ");
        Some([object].into_iter().chain(rules).chain([vec![why]]).collect())
    });
    Table { columns: columns.map(text).collect(), rows: rows.collect() }
}

/// The name of a plan among several.
fn in_plan(review: &Review<'_>, name: Option<&str>) -> Option<Text> {
    name.filter(|_| review.plans.len() > 1).map(|name| Text::words("in ").then(Text::name(name)))
}

impl Judged<'_> {
    /// The reason of the finding as a sentence: arbitrary text of the plan among it.
    #[must_use]
    pub fn message(&self) -> String {
        let until = self.lifted_by.map(|exception| format!(" (excepted until {})", exception.expires));
        why(&self.finding).plain() + &until.unwrap_or_default()
    }
}

/// Why this is a finding, in words for who must decide.
fn why(finding: &Finding<'_>) -> Text {
    match &finding.grounds {
        Grounds::Bought(term) => match &term.payment_type {
            None => Text::words("may be prepaid: its payment type is unknown"),
            Some(_) => {
                let price = term
                    .total
                    .as_ref()
                    .map_or_else(|| "at an unknown price".to_owned(), |total| format!("for {}", total.grouped()));
                let renewed = if term.auto_renew { ", renewed automatically" } else { "" };
                Text::words(format!("buys {} {price}{renewed}", periods(term)))
            }
        },
        Grounds::Check(check) => Text::words("the condition failed: ").then(Text::names(&check.problems)),
        Grounds::Destroyed(object) => destroyed(object),
        Grounds::Endless => Text::words("hourly instance without a known ").then(Text::name("max_age")),
        Grounds::Excess { sum, limit, matching, rows } => {
            let head = Text::words(format!("increases of {} a month, limit {}", sum.grouped(), limit.grouped()));
            let head = if matching.is_empty() { head } else { head.say(" of ").then(Text::name(matching)) };
            head.say(": ").then(Text::first(
                rows.iter()
                    .map(|(address, increase)| Text::name(address).say(format!(" {}", increase.signed())))
                    .collect(),
                LARGEST,
            ))
        }
        Grounds::Exception(exception) => {
            let what = match finding.kind {
                "expired" => format!(" expired on {}: ", exception.expires),
                "no-match" => " matches no object: ".to_owned(),
                _ => " covers objects of any name: ".to_owned(),
            };
            let head =
                Text::words("the exception ").then(patterns(exception)).say(" by ").then(Text::name(&exception.owner));
            head.say(what).then(Text::name(&exception.reason))
        }
        Grounds::Said(words, texts) if texts.is_empty() => Text::words(*words),
        Grounds::Said(words, texts) => Text::words(format!("{words}: ")).then(Text::names(texts)),
        Grounds::Secrets(secrets) => {
            let names = Text::names(&secrets.attributes);
            let again = if secrets.is_read_again {
                "is read on every run and stored in the state: "
            } else {
                "stores sensitive values in the state: "
            };
            Text::words(again).then(names)
        }
        Grounds::UnknownPrice(row) => Text::words(format!("price unknown: {}", row.change().err().unwrap_or_default())),
        Grounds::Unpriced(unpriced) => Text::words(format!("{} (no price)", without_price(unpriced))),
    }
}

fn destroyed(object: &Object) -> Text {
    let Some(loss) = &object.loss else { return Text::default() };
    if !object.action.replaces() {
        return Text::words("destroyed: ").then(losses(loss));
    }
    // What is unknown so far follows from another argument.
    let is_cause = |one: &&Argument| one.forces && one.after.as_ref().is_some_and(|after| after != UNKNOWN);
    let forced: Vec<Text> = object.arguments.iter().filter(is_cause).map(|one| argument(one, " ")).collect();
    let cause = match &object.reason {
        _ if !forced.is_empty() => Some(Text::first(forced, LARGEST)),
        reason => reason.as_deref().map(because),
    };
    let head = cause.map(|cause| Text::words("replaced (").then(cause).say("): destroys its "));
    head.unwrap_or_else(|| Text::words("replaced: destroys its ")).then(losses(loss))
}

/// The data that is lost, the cloud disks together.
fn losses(loss: &Loss) -> Text {
    let (disks, others): (Vec<&Item>, Vec<&Item>) = loss.data.iter().partition(|item| item.kind == ItemKind::CloudDisk);
    let mut texts: Vec<Text> = others.into_iter().map(item).collect();
    match disks.as_slice() {
        [] => {}
        [disk] => texts.push(item(disk)),
        disks => {
            let mut disks: Vec<Text> = disks
                .iter()
                .map(|disk| {
                    disk.name
                        .as_ref()
                        .map_or_else(|| Text::words("one without a known id"), Text::name)
                        .then(gigabytes(disk.size_gb))
                })
                .collect();
            let last = disks.pop().unwrap_or_default();
            texts.push(Text::words("cloud disks ").then(Text::joined(disks, ", ")).say(" and ").then(last));
        }
    }
    let last = texts.pop().unwrap_or_default();
    if texts.is_empty() { last } else { Text::joined(texts, ", ").say(" and ").then(last) }
}

fn item(item: &Item) -> Text {
    let text = Text::words(item.kind.word());
    item.shown_name()
        .into_iter()
        .fold(text, |text, name| text.say(" ").then(Text::name(name)))
        .then(gigabytes(item.size_gb))
}

fn gigabytes(size: Option<i64>) -> Text {
    size.map(|size| Text::words(format!(" ({} GB)", thousands(&size.to_string())))).unwrap_or_default()
}

fn because(code: &str) -> Text {
    reason(code).map_or_else(|| Text::name(code), Text::words)
}

fn without_price(unpriced: &Unpriced) -> String {
    let size = |size: &Option<i64>| {
        size.map_or_else(|| "unknown size".to_owned(), |size| format!("{} GB", thousands(&size.to_string())))
    };
    let sizes: Vec<String> = unpriced.sizes_gb.iter().map(size).collect();
    match (unpriced.kind, sizes.as_slice()) {
        ("grow", sizes) => format!("grows from {}", sizes.join(" to ")),
        ("new-disks", []) => "may create cloud disks".to_owned(),
        (_, []) => "creates an image".to_owned(),
        (_, [size]) => format!("creates a cloud disk of {size}"),
        (_, sizes) => format!("creates cloud disks of {}", sizes.join(", ")),
    }
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

/// The number of objects by what happens to them.
fn counts(review: &Review<'_>) -> String {
    let part = |of: fn(&Counts) -> usize, one: &str, several: &str| {
        let number = review.plans.iter().map(|plan| of(&plan.counts)).sum();
        let others: usize = review.plans.iter().map(|plan| of(&plan.of_others)).sum();
        let whose = match others {
            0 => String::new(),
            others => format!(" ({} of other providers)", thousands(&others.to_string())),
        };
        (number > 0).then(|| count(number, one, several) + &whose)
    };
    let done = |of: fn(&Counts) -> usize, word: &str| part(of, word, word);
    let objects = [
        done(|of| of.create, "created"),
        done(|of| of.update, "changed"),
        done(|of| of.replace, "replaced"),
        done(|of| of.destroy, "destroyed"),
        done(|of| of.import, "imported"),
        done(|of| of.moved, "moved"),
        done(|of| of.forget, "forgotten"),
    ];
    let others = [
        part(|of| of.actions, "action", "actions"),
        part(|of| of.outputs, "output changed", "outputs changed"),
        part(|of| of.drifted, "object changed outside of Terraform", "objects changed outside of Terraform"),
    ];
    let [objects, others] = [objects.as_slice(), others.as_slice()]
        .map(|parts| parts.iter().flatten().map(String::as_str).collect::<Vec<_>>().join(", "));
    let objects = if objects.is_empty() { "no changes".to_owned() } else { objects };
    [objects, others].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

/// What most readers do not need.
fn folds(review: &Review<'_>) -> Vec<Fold> {
    let of = Folds { review };
    let changes = |object: &&Object| object.is_touched();
    let unpriced = |judged: &&Judged<'_>| judged.finding.rule == Rule::Unpriced;
    let note = |judged: &&Judged<'_>| {
        judged.level == Level::Note && matches!(judged.finding.rule, Rule::Exception | Rule::Note)
    };
    vec![
        of.cost(),
        of.fold("change", "changes", &["action", "arguments"], |plan| plan.changes.iter().filter(changes), change),
        of.fold(
            "prepaid term",
            "prepaid terms",
            &["term", "total", "what"],
            |plan| plan.prepaid.iter(),
            |term| {
                let total = term.total.as_ref().map_or_else(|| "unknown".to_owned(), Money::grouped);
                let mut what = vec![Text::words(if term.is_bought {
                    "bought"
                } else {
                    "ended early; the release may be refused"
                })];
                what.extend(term.until.as_ref().map(|until| Text::words("until ").then(Text::name(until))));
                what.extend(term.auto_renew.then(|| Text::words("renewed automatically")));
                (&term.address, vec![vec![Text::words(periods(term))], vec![Text::words(total)], what])
            },
        ),
        of.fold(
            "object changed outside of Terraform",
            "objects changed outside of Terraform",
            &["what the refresh found"],
            |plan| plan.changes.iter().filter(|object| object.drift.is_some()),
            |object| {
                let drift = object.drift.iter();
                let lines = drift.flat_map(|drift| {
                    let gone = drift.gone.then(|| Text::words("no longer exists"));
                    gone.into_iter().chain(drift.attributes.iter().map(|one| argument(one, ": ")))
                });
                (&object.address, vec![lines.collect()])
            },
        ),
        of.fold(
            "check with problems",
            "checks with problems",
            &["status", "problems"],
            |plan| plan.failed_checks.iter(),
            |check| {
                let status = if check.status == "fail" { "failed" } else { "cannot be evaluated" };
                (&check.address, vec![vec![Text::words(status)], check.problems.iter().map(Text::name).collect()])
            },
        ),
        of.fold(
            "object that stores secrets in the state",
            "objects that store secrets in the state",
            &["attributes"],
            |plan| plan.secrets.iter().filter(|secrets| !secrets.is_read_again),
            |secrets| (&secrets.address, vec![secrets.attributes.iter().map(Text::name).collect()]),
        ),
        of.findings("disk or image without a price", "disks and images without a price", unpriced),
        of.fold(
            "deferred change",
            "deferred changes",
            &["reason"],
            |plan| plan.deferred.iter(),
            |deferred| (&deferred.address, vec![vec![because(&deferred.reason)]]),
        ),
        of.findings("note", "notes", note),
    ]
}

/// The folds with rows of all plans of a review.
struct Folds<'a> {
    review: &'a Review<'a>,
}

impl<'a> Folds<'a> {
    /// A fold about some objects, with the object in the first column.
    fn fold<T: 'a, I: Iterator<Item = &'a T>>(
        &self,
        one: &str,
        several: &str,
        columns: &[&'static str],
        entries: impl Fn(&'a Facts) -> I,
        cells: impl Fn(&'a T) -> (&'a Address, Vec<Vec<Text>>),
    ) -> Fold {
        let rows = self.review.plans.iter().flat_map(|plan| entries(plan).map(move |entry| (plan, entry))).map(
            |(plan, entry)| {
                let (address, cells) = cells(entry);
                let plan = in_plan(self.review, plan.name.as_deref());
                [[Text::name(address)].into_iter().chain(plan).collect()].into_iter().chain(cells).collect()
            },
        );
        let rows: Vec<_> = rows.collect();
        let columns = ["object"].iter().chain(columns).map(|title| text(title)).collect();
        Fold { summary: count(rows.len(), one, several), table: Table { columns, rows } }
    }

    /// A fold with the findings of a kind.
    fn findings(&self, one: &str, several: &str, is: impl Fn(&&Judged<'_>) -> bool) -> Fold {
        let rows = self.review.findings.iter().filter(is).map(|judged| {
            let object = judged.finding.address.map_or_else(|| Text::words("the policy"), Text::name);
            let plan = in_plan(self.review, judged.finding.plan);
            vec![[object].into_iter().chain(plan).collect(), vec![why(&judged.finding)]]
        });
        let rows: Vec<_> = rows.collect();
        Fold {
            summary: count(rows.len(), one, several),
            table: Table { columns: ["object", "what"].map(text).to_vec(), rows },
        }
    }

    fn cost(&self) -> Fold {
        let plans = self.review.plans;
        let instances = plans.iter().map(|plan| plan.cost.instances.len()).sum();
        let of_plans = plans.iter().filter(|_| plans.len() > 1 && instances > 0).map(|plan| {
            let Sums { now, after, monthly_change, .. } = &plan.cost.sums;
            let name = plan.name.as_ref().map_or_else(|| Text::words("the plan"), Text::name);
            let sums = [now.monthly.grouped(), after.monthly.grouped(), monthly_change.signed(), String::new()];
            [vec![name]].into_iter().chain(sums.map(|sum| vec![Text::words(sum)])).collect()
        });
        let rows = plans.iter().flat_map(|plan| plan.cost.instances.iter().map(move |row| (plan, row)));
        let rows = of_plans.chain(rows.map(|(plan, row)| cost(row, in_plan(self.review, plan.name.as_deref()))));
        let columns = [("instance", false), ("now", true), ("after", true), ("change", true), ("per hour", true)];
        let columns = columns.map(|(title, is_number)| Column { title, is_number }).to_vec();
        let summary = format!("Cost of {}", count(instances, "instance", "instances"));
        Fold { summary, table: Table { columns, rows: rows.collect() } }
    }
}

fn text(title: &'static str) -> Column {
    Column { title, is_number: false }
}

fn change(object: &Object) -> (&Address, Vec<Vec<Text>>) {
    let mut what = vec![Text::words(object.action.word())];
    what.extend(
        object
            .reason
            .as_deref()
            .filter(|code| *code != "replace_because_cannot_update" || object.arguments.iter().all(|one| !one.forces))
            .map(because),
    );
    what.extend(object.import.as_ref().map(|import| {
        let id = import.id.as_ref().map_or_else(|| Text::words("an id known after the apply"), Text::name);
        Text::words("imported as ").then(id)
    }));
    what.extend(object.previous_address.as_ref().map(|before| Text::words("moved from ").then(Text::name(before))));
    let arguments = object.arguments.iter().map(|one| argument(one, ": "));
    (&object.address, vec![what, arguments.collect()])
}

/// An argument with its value, or with the values before and after; between name and values stands `colon`.
fn argument(argument: &Argument, colon: &str) -> Text {
    let name = Text::name(&argument.name);
    match (&argument.before, &argument.after) {
        (Some(before), Some(after)) => name.say(colon).then(Text::name(before)).say(" → ").then(Text::name(after)),
        (None, Some(after)) if after == SENSITIVE => name.say(" (sensitive)"),
        (None, Some(after)) => name.say(" = ").then(Text::name(after)),
        (_, None) => name,
    }
}

fn cost(row: &CostRow, plan: Option<Text>) -> Vec<Vec<Text>> {
    let hour = match &row.after {
        Amount::Known { hourly, .. } => hourly.an_hour(),
        other => month(other),
    };
    let change = match (&row.now, &row.after) {
        (Amount::Unknown { .. }, _) | (_, Amount::Unknown { .. }) => "unknown".to_owned(),
        (now, after) => (after.monthly() - &now.monthly()).signed(),
    };
    let mut instance: Vec<Text> = [Text::name(&row.address)].into_iter().chain(plan).collect();
    let remark = match (&row.action, &row.now, &row.after) {
        (Some(action), ..) if action.forgets() => Some("forgotten, and still billed"),
        (Some(_), ..) if row.is_ceiling => Some("at most: its price_ceiling"),
        (_, _, Amount::Unknown { why }) | (_, Amount::Unknown { why }, _) => Some(&**why),
        (Some(ChangeAction::NoOp | ChangeAction::Read) | None, ..) => None,
        (Some(action), ..) => Some(action.word()),
    };
    instance.extend(remark.map(Text::words));
    instance.extend(row.candidates.as_ref().map(candidates));
    let sums = [month(&row.now), month(&row.after), change, hour];
    [instance].into_iter().chain(sums.map(|sum| vec![Text::words(sum)])).collect()
}

/// The cost of a month.
pub(super) fn month(amount: &Amount) -> String {
    match amount {
        Amount::Known { monthly, .. } => monthly.grouped(),
        Amount::Nothing => "–".to_owned(),
        Amount::Unknown { .. } => "unknown".to_owned(),
    }
}

fn candidates(candidates: &Candidates) -> Text {
    let options = &candidates.options;
    let head = Text::words(format!("{}: ", count(options.len(), "candidate", "candidates")));
    let options = head.then(Text::names(options));
    match &candidates.choice {
        Some(choice) => options.say("; chosen: ").then(Text::name(choice)),
        None => options.say("; chosen during the apply"),
    }
}

/// The program, the core and the time, and what is not in the sums.
fn small(review: &Review<'_>) -> Text {
    let mut text = Text::words(format!("terraform-provider-damodel {}", env!("CARGO_PKG_VERSION")));
    if let [plan] = review.plans {
        for (words, part) in
            [(", Terraform or OpenTofu ", &plan.head.core_version), (", planned ", &plan.head.planned_at)]
        {
            text = part.iter().fold(text, |text, part| text.say(words).then(Text::name(part)));
        }
    }
    text = text.say(
        ". A month has 730 hours. Cloud disks and images have no price and are not in the sums, nor are discounts. \
         Sensitive values are not shown.",
    );
    let mirrors: BTreeSet<&String> = review.plans.iter().flat_map(|plan| &plan.mirrors).collect();
    if !mirrors.is_empty() {
        text = text.say(" Provider: ").then(Text::names(mirrors)).say(".");
    }
    let is_unsure = |plan: &Facts| !plan.head.says_whether_complete && plan.head.incomplete.is_none();
    if review.plans.iter().any(is_unsure) {
        text = text.say(
            " Terraform before 1.8 and OpenTofu do not mark plans made with -target: objects may be missing here.",
        );
    }
    text
}
