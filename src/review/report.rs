//! The report of a review, before it is written in a format.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    changes::{Change, ChangeAction},
    cost::{CLOUD_DISK, Cost, Sums, Term},
    findings::{Finding, Level, Location, Observation, observe},
    gate::{Policy, Verdict},
    plan::{Check, ReviewedPlan, Side, is_own},
    values::{ChangeSide, Secrets},
};

/// The version of the JSON format. A new field does not change it.
const FORMAT: &str = "1.1";

/// The report of one plan.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The version of the JSON format.
    pub format_version: &'static str,
    /// The name of the plan: its path below the named folder, or as it was named beside others.
    pub name: Option<String>,
    /// The version of the core that wrote the plan.
    pub core_version: Option<String>,
    /// Whether planning stopped with an error.
    pub errored: bool,
    /// The reason why this plan alone does not reach the configuration.
    pub incomplete: Option<&'static str>,
    /// Whether the plan has the field that marks it as complete. Without it, an omission by `-target` is not visible.
    pub says_whether_complete: bool,
    /// The parts of the plan that could not be read.
    pub unreadable: Vec<String>,
    /// The number of objects of all providers.
    pub counts: Counts,
    /// The costs of the instances.
    pub cost: Cost,
    /// The changes of objects: planned, deferred and invoked ones, and those outside of plans.
    pub changes: Vec<Change>,
    /// The prepaid terms.
    pub prepaid: Vec<Term>,
    /// The secrets that the state would have in clear.
    pub secrets: Vec<Secrets>,
    /// Failed conditions.
    pub failed_checks: Vec<Check>,
}

/// The number of objects by action.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Counts {
    /// Created.
    pub create: usize,
    /// Changed in place.
    pub update: usize,
    /// Replaced.
    pub replace: usize,
    /// Destroyed without a replacement.
    pub destroy: usize,
    /// Removed from the state.
    pub forget: usize,
    /// Imported into the state.
    pub import: usize,
    /// Moved to another address.
    pub moved: usize,
    /// Unchanged.
    pub unchanged: usize,
    /// Changes of objects of other providers.
    pub other_providers: usize,
    /// Outputs of the root module that change.
    pub outputs: usize,
    /// Actions that the apply invokes.
    pub actions: usize,
}

impl Report {
    /// Makes the report of a plan.
    #[must_use]
    pub fn of(name: Option<String>, plan: &ReviewedPlan) -> Self {
        Self {
            format_version: FORMAT,
            name,
            core_version: plan.core.clone(),
            errored: plan.errored,
            incomplete: plan.incomplete,
            says_whether_complete: plan.says_whether_complete,
            unreadable: plan.faults.clone(),
            counts: Counts::of(plan),
            cost: Cost::of(plan),
            changes: Change::all(plan),
            prepaid: Term::all(plan),
            secrets: Secrets::all(plan),
            failed_checks: plan.failed_checks.clone(),
        }
    }
}

impl Counts {
    fn of(plan: &ReviewedPlan) -> Self {
        let changes = |side: &Side| !matches!(side.action, ChangeAction::NoOp | ChangeAction::Read);
        let outputs = plan.outputs.iter().filter(|(_, side)| changes(side)).count();
        let mut counts = Self { outputs, actions: plan.invocations.len(), ..Self::default() };
        for change in plan.changes.iter().filter(|change| change.managed) {
            match change.action {
                ChangeAction::Create => counts.create += 1,
                ChangeAction::CreateThenDestroy
                | ChangeAction::CreateThenForget
                | ChangeAction::DestroyThenCreate
                | ChangeAction::ForgetThenCreate => counts.replace += 1,
                ChangeAction::Destroy => counts.destroy += 1,
                ChangeAction::Forget => counts.forget += 1,
                ChangeAction::NoOp | ChangeAction::Read => counts.unchanged += 1,
                ChangeAction::Update => counts.update += 1,
                // These are no actions of a plan's objects.
                ChangeAction::Defer | ChangeAction::Drift | ChangeAction::Gone | ChangeAction::Invoke => {}
            }
            counts.import += usize::from(change.importing.is_some());
            counts.moved += usize::from(change.moved_from().is_some());
            counts.other_providers += usize::from(changes(&change.side) && !is_own(&change.kind));
        }
        counts
    }

    /// The counts of two plans.
    #[must_use]
    pub(super) fn and(&self, other: &Self) -> Self {
        Self {
            create: self.create + other.create,
            update: self.update + other.update,
            replace: self.replace + other.replace,
            destroy: self.destroy + other.destroy,
            forget: self.forget + other.forget,
            import: self.import + other.import,
            moved: self.moved + other.moved,
            unchanged: self.unchanged + other.unchanged,
            other_providers: self.other_providers + other.other_providers,
            outputs: self.outputs + other.outputs,
            actions: self.actions + other.actions,
        }
    }

    /// The counts other than 0, in words.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let all = [
            (self.create, "to create"),
            (self.update, "to update in place"),
            (self.replace, "to replace"),
            (self.destroy, "to destroy"),
            (self.forget, "to forget"),
            (self.import, "to import"),
            (self.moved, "moved"),
            (self.unchanged, "unchanged"),
            (self.actions, if self.actions == 1 { "action to invoke" } else { "actions to invoke" }),
            (self.outputs, if self.outputs == 1 { "output changes" } else { "outputs change" }),
        ];
        all.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect()
    }
}

/// Makes text safe for a terminal: characters that would move the cursor, or hide or reverse others, are shown as
/// replacement characters. Text of more than `most` characters is cut in the middle.
#[must_use]
pub fn visible(text: &str, most: usize) -> String {
    let shown = |c: char| if is_hidden(c) { '\u{fffd}' } else { c };
    let count = text.chars().count();
    if count <= most {
        return text.chars().map(shown).collect();
    }
    // The end of an address distinguishes similar resources.
    let end = most / 3;
    let begin = most.saturating_sub(end + 1);
    let first = text.chars().take(begin);
    let last = text.chars().skip(count - end);
    first.map(shown).chain(['…']).chain(last.map(shown)).collect()
}

/// Whether this is a control character, or a character of Unicode that only affects others.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A plan with its report, and what a policy needs to know of it.
#[derive(Clone, Debug)]
pub struct Reviewed {
    /// Its name, if it needs one.
    pub name: Option<String>,
    /// Its report.
    pub report: Report,
    pub(super) observations: Vec<Observation>,
    /// The addresses of all its objects, before and after it.
    pub(super) addresses: Vec<String>,
    /// The address of each moved object, and the one that it had before.
    pub(super) moves: Vec<(String, String)>,
    /// The id of each cloud disk with an address of it, hidden ids too: to compare, never to show.
    pub(super) disks: Vec<(String, String)>,
}

/// The review of all plans.
#[derive(Clone, Debug)]
pub struct Review {
    /// The plans.
    pub plans: Vec<Reviewed>,
    /// All findings, including those that close the gate.
    pub findings: Vec<Finding>,
    /// The result of the gate, if the policy has a limit or a finding closes the gate without one.
    pub gate: Option<Verdict>,
}

impl Reviewed {
    /// Makes the report of a plan.
    #[must_use]
    pub fn new(name: Option<String>, plan: &ReviewedPlan) -> Self {
        let report = Report::of(name.clone(), plan);
        let (mut addresses, mut moves, mut disks) = (Vec::new(), Vec::new(), Vec::new());
        let mut disk = |kind: &str, sides: &[&ChangeSide], addresses: &[String]| {
            let ids = sides.iter().filter_map(|side| side.raw(&["id"])?.as_str()).filter(|_| kind == CLOUD_DISK);
            disks.extend(ids.flat_map(|id| addresses.iter().map(|address| (id.to_owned(), address.clone()))));
        };
        for change in &plan.changes {
            let own = change.addresses();
            disk(&change.kind, &[&change.side.before, &change.side.after], &own);
            moves.extend(change.moved_from().map(|before| (change.address.clone(), before.clone())));
            addresses.extend(own);
        }
        for stated in &plan.prior {
            disk(&stated.kind, &[&stated.values], std::slice::from_ref(&stated.address));
            addresses.push(stated.address.clone());
        }
        addresses.extend(plan.outputs.iter().map(|(name, _)| format!("output.{name}")));
        addresses.extend(plan.invocations.iter().map(|invocation| invocation.address.clone()));
        Self { name, observations: observe(plan, &report), report, addresses, moves, disks }
    }
}

impl Review {
    /// Applies a policy to plans. `locate` finds the place where an object of a plan is configured.
    #[must_use]
    pub fn new(plans: Vec<Reviewed>, policy: &Policy, locate: impl Fn(&Finding) -> Option<Location>) -> Self {
        let mut findings = policy.judge(&plans);
        for finding in &mut findings {
            finding.location = locate(finding);
        }
        let violations: Vec<Finding> =
            findings.iter().filter(|finding| finding.level == Level::Error).cloned().collect();
        let is_asked = policy.asks() || !violations.is_empty();
        let gate = is_asked.then_some(Verdict { passed: violations.is_empty(), violations });
        Self { plans, findings, gate }
    }

    /// The costs of all instances.
    #[must_use]
    pub fn sums(&self) -> Sums {
        Sums::of(self.plans.iter().flat_map(|plan| &plan.report.cost.resources))
    }

    /// The number of all objects.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.plans.iter().fold(Counts::default(), |counts, plan| counts.and(&plan.report.counts))
    }

    /// The costs of each module's instances; the root module is "".
    #[must_use]
    pub fn modules(&self) -> BTreeMap<&str, Sums> {
        let mut modules = BTreeMap::<&str, Sums>::new();
        for (module, sums) in self.plans.iter().flat_map(|plan| &plan.report.cost.modules) {
            modules.entry(module).or_default().add(sums);
        }
        modules
    }

    /// Whether there is more than one plan.
    #[must_use]
    pub fn is_of_several(&self) -> bool {
        self.plans.len() > 1
    }
}

/// The JSON form of one plan.
#[derive(Serialize)]
struct OfOne<'a> {
    #[serde(flatten)]
    report: &'a Report,
    findings: &'a [Finding],
    gate: &'a Option<Verdict>,
}

/// The JSON form of several plans.
#[derive(Serialize)]
struct OfSeveral<'a> {
    format_version: &'static str,
    counts: Counts,
    cost: Sums,
    modules: BTreeMap<&'a str, Sums>,
    plans: Vec<&'a Report>,
    findings: &'a [Finding],
    gate: &'a Option<Verdict>,
}

impl Review {
    /// The review as JSON.
    pub(super) fn to_json(&self) -> serde_json::Result<String> {
        let Self { plans, findings, gate } = self;
        match plans.as_slice() {
            [Reviewed { report, .. }] => serde_json::to_string_pretty(&OfOne { report, findings, gate }),
            plans => serde_json::to_string_pretty(&OfSeveral {
                format_version: FORMAT,
                counts: self.counts(),
                cost: self.sums(),
                modules: self.modules(),
                plans: plans.iter().map(|plan| &plan.report).collect(),
                findings,
                gate,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_is_shown() {
        assert_eq!(visible("a\u{1b}[2J\nb\u{202e}c\u{200b}", 99), "a\u{fffd}[2J\u{fffd}b\u{fffd}c\u{fffd}");
        assert_eq!(visible("Straße 名前", 99), "Straße 名前");
    }

    #[test]
    fn what_is_long_keeps_its_ends() {
        assert_eq!(visible("0123456789", 10), "0123456789");
        let cut = visible(&"0123456789".repeat(9), 10);
        assert_eq!(cut, "012345…789");
        assert_eq!(cut.chars().count(), 10);
    }
}
