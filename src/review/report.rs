use serde::Serialize;

use super::{
    actions::Action,
    cost::Cost,
    drift::Drift,
    gate::Verdict,
    losses::Loss,
    plan::{Change, Check, Plan},
    prepaid::Term,
    replacements::Replacement,
    secrets::Secrets,
};

/// The version of the JSON form. A new field is no new version.
const FORMAT: &str = "1.0";

/// What there is to say of a plan.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The version of the JSON form.
    pub format_version: &'static str,
    /// The version of the core that made the plan.
    pub core_version: Option<String>,
    /// Whether planning failed on the way.
    pub errored: bool,
    /// Why more than this plan is needed.
    pub incomplete: Option<&'static str>,
    /// Whether the core says if the plan is complete. Where it does not, what `-target` left out shows nowhere.
    pub says_whether_complete: bool,
    /// The parts of the plan that could not be made out.
    pub unreadable: Vec<String>,
    /// How many objects, of all providers.
    pub counts: Counts,
    /// What the machines cost.
    pub cost: Cost,
    /// What is destroyed.
    pub destroyed: Vec<Loss>,
    /// What is replaced.
    pub replaced: Vec<Replacement>,
    /// What leaves the state and stays.
    pub forgotten: Vec<Forgotten>,
    /// What is paid ahead.
    pub prepaid: Vec<Term>,
    /// What the state would hold in clear.
    pub secrets: Vec<Secrets>,
    /// What changed outside of plans.
    pub drift: Vec<Drift>,
    /// Conditions that do not hold.
    pub failed_checks: Vec<Check>,
    /// What the gate says, where one was asked for.
    pub gate: Option<Verdict>,
}

/// How many objects, by what is done to them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Counts {
    /// Made.
    pub create: usize,
    /// Changed in place.
    pub update: usize,
    /// Replaced.
    pub replace: usize,
    /// Destroyed without a successor.
    pub destroy: usize,
    /// Dropped from the state.
    pub forget: usize,
    /// Taken into the state.
    pub import: usize,
    /// Given another address.
    pub moved: usize,
    /// Left as they are.
    pub unchanged: usize,
    /// How many of those that change belong to other providers.
    pub other_providers: usize,
}

/// An object that leaves the state and stays in the service.
#[derive(Clone, Debug, Serialize)]
pub struct Forgotten {
    /// Its address.
    pub address: String,
    /// Its resource type.
    #[serde(rename = "type")]
    pub kind: String,
}

impl Report {
    /// Says what a plan does.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        let forgotten = plan.changes.iter().filter(|change| change.managed && change.action.forgets());
        Self {
            format_version: FORMAT,
            core_version: plan.core.clone(),
            errored: plan.errored,
            incomplete: plan.incomplete,
            says_whether_complete: plan.says_whether_complete,
            unreadable: plan.faults.clone(),
            counts: Counts::of(&plan.changes),
            cost: Cost::of(plan),
            destroyed: Loss::all(plan),
            replaced: Replacement::all(plan),
            forgotten: forgotten
                .map(|change| Forgotten { address: change.title(), kind: change.kind.clone() })
                .collect(),
            prepaid: Term::all(plan),
            secrets: Secrets::all(plan),
            drift: Drift::all(plan),
            failed_checks: plan.failed_checks.clone(),
            gate: None,
        }
    }
}

impl Counts {
    fn of(changes: &[Change]) -> Self {
        let mut counts = Self::default();
        for change in changes.iter().filter(|change| change.managed) {
            match change.action {
                Action::Create => counts.create += 1,
                Action::CreateThenDestroy | Action::CreateThenForget | Action::DestroyThenCreate => counts.replace += 1,
                Action::Destroy => counts.destroy += 1,
                Action::Forget => counts.forget += 1,
                Action::NoOp | Action::Read => counts.unchanged += 1,
                Action::Update => counts.update += 1,
            }
            counts.import += usize::from(change.importing);
            counts.moved += usize::from(change.previous_address.as_ref().is_some_and(|old| *old != change.address));
            let changes = !matches!(change.action, Action::NoOp | Action::Read);
            counts.other_providers += usize::from(changes && !change.kind.starts_with("damodel_"));
        }
        counts
    }

    /// Those that are not 0, for people.
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
        ];
        all.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect()
    }
}
