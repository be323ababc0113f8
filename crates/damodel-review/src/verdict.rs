//! The verdict: which findings violate the limits of a policy, and what its exceptions let through.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{
    address::{Address, Pattern},
    facts::{Facts, Money, Sums},
    findings::{Finding, Grounds},
    policy::{Exception, Limits, Policy, Rule},
};

/// The effect of a finding on the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// It violates the gate.
    Error,
    /// A reviewer should check it.
    Warning,
    /// It is only reported.
    Note,
}

/// A place in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Location {
    /// The file, with `/` between its folders.
    pub file: String,
    /// The line, from 1 on.
    pub line: usize,
}

/// A finding with its effect.
#[derive(Clone, Debug)]
pub struct Judged<'a> {
    /// The finding.
    pub finding: Finding<'a>,
    /// The level: `Error` if and only if it violates the gate.
    pub level: Level,
    /// The place where the object is configured.
    pub location: Option<Location>,
    /// The exception that lets it through.
    pub(super) lifted_by: Option<&'a Exception>,
}

/// What an exception lets through.
#[derive(Clone, Debug)]
pub(super) struct Use<'a> {
    pub(super) exception: &'a Exception,
    objects: BTreeSet<(Option<&'a str>, &'a Address)>,
    increases: BTreeMap<(Option<&'a str>, &'a Address), Money>,
}

/// The review of all plans.
#[derive(Clone, Debug)]
pub struct Review<'a> {
    /// The plans.
    pub plans: &'a [Facts],
    /// All findings.
    pub findings: Vec<Judged<'a>>,
    /// Whether a gate was asked for, or a finding violates it without one.
    pub is_gate: bool,
    /// The exceptions that let something through.
    pub(super) uses: Vec<Use<'a>>,
}

impl<'a> Review<'a> {
    /// Applies a policy to plans. `locate` finds the place where an object of a plan is configured.
    #[must_use]
    pub fn new(plans: &'a [Facts], policy: &'a Policy, locate: impl Fn(&Finding<'_>) -> Option<Location>) -> Self {
        let mut uses: Vec<Use<'_>> = policy.exceptions.iter().map(Use::new).collect();
        let disks = addresses_of_disks(plans);
        let mut findings = Vec::new();
        for finding in plans.iter().flat_map(Finding::all) {
            let mut addresses = finding.addresses.clone();
            if let Grounds::Destroyed(object) = finding.grounds {
                let gone = object.loss.iter().flat_map(|loss| &loss.disks);
                addresses.extend(gone.filter_map(|id| disks.get(id.as_str())).flatten());
            }
            let (mut level, mut lifted_by) = (usual(finding.rule), None);
            if finding.kind == "unreadable" || policy.closes(finding.rule, &addresses) {
                match uses.iter_mut().find(|used| used.lifts(finding.rule, &addresses)) {
                    Some(used) => {
                        used.objects.extend(finding.address.map(|address| (finding.plan, address)));
                        (level, lifted_by) = (Level::Note, Some(used.exception));
                    }
                    None => level = Level::Error,
                }
            }
            findings.push(Judged { finding, level, location: None, lifted_by });
        }
        let rises = Rise::all(plans);
        let excesses: Vec<_> = policy.limits.iter().filter_map(|limits| limits.excess(&rises, &mut uses)).collect();
        let of_policy = excesses.into_iter().map(|excess| (excess, Level::Error));
        let of_policy = of_policy.chain(policy.exceptions.iter().flat_map(|exception| about(exception, plans)));
        let of_policy = of_policy.chain(policy.notes(plans).into_iter().map(|note| (note, Level::Note)));
        findings.extend(of_policy.map(|(finding, level)| Judged { finding, level, location: None, lifted_by: None }));
        for judged in &mut findings {
            judged.location = locate(&judged.finding);
        }
        uses.retain(|used| !(used.objects.is_empty() && used.increases.is_empty()));
        let is_gate = policy.is_gate || findings.iter().any(|judged| judged.level == Level::Error);
        Self { plans, findings, is_gate, uses }
    }

    /// The findings that violate the gate.
    pub fn violations(&self) -> impl Iterator<Item = &Judged<'a>> {
        self.findings.iter().filter(|judged| judged.level == Level::Error)
    }

    /// The costs of all instances.
    #[must_use]
    pub fn sums(&self) -> Sums {
        Sums::of(self.plans.iter().flat_map(|plan| &plan.cost.instances))
    }
}

/// The level of a finding that no limit forbids.
fn usual(rule: Rule) -> Level {
    match rule {
        Rule::Check | Rule::Exception | Rule::NoMaxAge | Rule::Note | Rule::SecretsInState | Rule::Unpriced => {
            Level::Note
        }
        Rule::DestroyData | Rule::MaxMonthlyIncrease | Rule::Plan | Rule::Prepaid => Level::Warning,
    }
}

/// The addresses under which any plan has a cloud disk, by its id.
fn addresses_of_disks(plans: &[Facts]) -> BTreeMap<&str, Vec<&Address>> {
    let mut addresses: BTreeMap<&str, Vec<&Address>> = BTreeMap::new();
    for (id, address) in plans.iter().flat_map(|plan| &plan.disks) {
        addresses.entry(id).or_default().push(address);
    }
    addresses
}

impl Policy {
    fn closes(&self, rule: Rule, addresses: &[&Address]) -> bool {
        let mut limits = self.limits.iter().filter(|limits| addresses.is_empty() || limits.mean(addresses));
        match rule {
            Rule::Plan => self.is_gate,
            Rule::MaxMonthlyIncrease => limits.any(|limits| limits.max_monthly_increase.is_some()),
            rule => limits.any(|limits| limits.deny.contains(&rule)),
        }
    }

    /// What a reviewer should know of the policy.
    fn notes<'a>(&'a self, plans: &'a [Facts]) -> Vec<Finding<'a>> {
        let note = |kind: &'static str, words: &'static str, texts: Vec<String>| {
            Finding::new(Rule::Note, kind, Grounds::Said(words, texts))
        };
        let unread = "not used: pass it with --policy";
        let mut notes: Vec<_> = self.not_read.iter().map(|file| note("not-read", unread, vec![file.clone()])).collect();
        let rules = self.limits.iter().filter_map(|limits| Some((limits, limits.matching.as_ref()?)));
        for (limits, patterns) in rules.clone() {
            if !plans.iter().flat_map(|plan| &plan.addresses).any(|address| limits.mean(&[address])) {
                notes.push(note("no-match", "a rule of the policy matches no object", written(patterns)));
            }
        }
        for plan in plans {
            for (now, before) in
                plan.changes.iter().filter_map(|object| Some((&object.address, object.previous_address.as_ref()?)))
            {
                let leaves = rules.clone().filter(|(limits, _)| limits.mean(&[before]) && !limits.mean(&[now]));
                let enters = self.exceptions.iter().filter(|one| one.means(&[now]) && !one.means(&[before]));
                let out = leaves.map(|(_, patterns)| ("moves out of a rule", patterns));
                let into = enters.map(|exception| ("moves into an exception", &exception.matching));
                notes.extend(out.chain(into).map(|(words, patterns)| Finding {
                    plan: plan.name.as_deref(),
                    ..note("move", words, written(patterns)).at(now, None)
                }));
            }
        }
        notes
    }
}

/// The findings about an exception itself.
fn about<'a>(exception: &'a Exception, plans: &[Facts]) -> Vec<(Finding<'a>, Level)> {
    let means = |address: &Address| exception.means(&[address]);
    let of = |kind: &'static str| Finding::new(Rule::Exception, kind, Grounds::Exception(exception));
    let mut found = Vec::new();
    if exception.is_expired {
        let is_used = plans.iter().flat_map(|plan| &plan.touched).any(means);
        found.push((of("expired"), if is_used { Level::Error } else { Level::Note }));
    } else if !plans.iter().flat_map(|plan| &plan.addresses).any(means) {
        found.push((of("no-match"), Level::Note));
    }
    if exception.matching.iter().any(Pattern::is_broad) {
        found.push((of("broad"), Level::Note));
    }
    found
}

/// The increase of one instance's monthly costs.
struct Rise<'a> {
    plan: Option<&'a str>,
    /// Its address, and the one that it had before.
    addresses: Vec<&'a Address>,
    /// The known increase; a decrease counts as 0.
    increase: Money,
}

impl<'a> Rise<'a> {
    fn all(plans: &'a [Facts]) -> Vec<Self> {
        let rows = plans.iter().flat_map(|plan| plan.cost.instances.iter().map(move |row| (plan, row)));
        rows.map(|(plan, row)| Self {
            plan: plan.name.as_deref(),
            addresses: [&row.address].into_iter().chain(&row.previous_address).collect(),
            increase: row.change().unwrap_or_default().max(Money::default()),
        })
        .filter(|rise| rise.increase > Money::default())
        .collect()
    }
}

impl<'a> Use<'a> {
    fn new(exception: &'a Exception) -> Self {
        Self { exception, objects: BTreeSet::new(), increases: BTreeMap::new() }
    }

    fn lifts(&self, rule: Rule, addresses: &[&Address]) -> bool {
        let Exception { rules, is_expired, .. } = self.exception;
        !is_expired && (rules.is_empty() || rules.contains(&rule)) && self.exception.means(addresses)
    }

    /// The number of objects, and the sum of their increases.
    pub(super) fn extent(&self) -> (usize, Money) {
        let mut sum = Money::default();
        self.increases.values().for_each(|increase| sum += increase);
        (self.objects.iter().chain(self.increases.keys()).collect::<BTreeSet<_>>().len(), sum)
    }
}

impl Limits {
    /// The finding if the monthly costs of the objects rise by more than is allowed.
    fn excess<'a>(&'a self, rises: &[Rise<'a>], uses: &mut [Use<'a>]) -> Option<Finding<'a>> {
        let limit = self.max_monthly_increase.as_ref()?;
        let (mut sum, mut rows) = (Money::default(), Vec::new());
        for rise in rises.iter().filter(|rise| self.mean(&rise.addresses)) {
            let Some(address) = rise.addresses.first() else { continue };
            match uses.iter_mut().find(|used| used.lifts(Rule::MaxMonthlyIncrease, &rise.addresses)) {
                Some(used) => drop(used.increases.insert((rise.plan, *address), rise.increase.clone())),
                None => {
                    sum += &rise.increase;
                    rows.push((*address, rise.increase.clone()));
                }
            }
        }
        rows.sort_by(|(_, one), (_, other)| other.cmp(one));
        let matching = written(self.matching.as_deref().unwrap_or_default()).join(", ");
        let grounds = Grounds::Excess { sum: sum.clone(), limit, matching, rows };
        (sum > *limit).then(|| Finding::new(Rule::MaxMonthlyIncrease, "sum", grounds))
    }
}

fn written(patterns: &[Pattern]) -> Vec<String> {
    patterns.iter().map(|pattern| pattern.as_str().to_owned()).collect()
}
