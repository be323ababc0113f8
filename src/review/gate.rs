//! The gate: the limits of a policy and its exceptions.

use std::collections::{BTreeMap, BTreeSet};

use clap::ValueEnum;
use serde::Serialize;

use super::{
    findings::{Finding, Level, Observation, Rule, fingerprint},
    money::Money,
    policy_file::{Pattern, plain},
    report::Reviewed,
};

/// The rules for plans. Without limits, every plan passes that is read without faults.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// The limits, each for a part of the objects.
    pub limits: Vec<Limits>,
    /// The exceptions from the limits.
    pub exceptions: Vec<Exception>,
    /// Files beside the plans that have the name of a policy and count for nothing, because they are not named.
    pub not_read: Vec<String>,
}

/// The limits for some objects.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// The objects; `None` for all.
    pub matching: Option<Vec<Pattern>>,
    /// The maximum increase of their monthly costs, in the service's currency.
    pub max_monthly_increase: Option<Money>,
    /// The denied actions.
    pub deny: Vec<Deny>,
}

/// An exception from rules for some objects, until a date.
#[derive(Clone, Debug)]
pub struct Exception {
    /// The objects.
    pub matching: Vec<Pattern>,
    /// The rules; `None` for all rules about an object.
    pub rules: Option<Vec<Rule>>,
    /// The responsible person or team.
    pub owner: String,
    /// The reason.
    pub reason: String,
    /// The last day of the exception, such as `2026-12-31`.
    pub expires: String,
    /// Whether that day has passed.
    pub is_expired: bool,
}

/// An action that a policy can deny.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Deny {
    /// Destroy an instance's disks, a cloud disk or an image.
    DestroyData,
    /// Buy an instance by the day, the week or the month.
    Prepaid,
    /// Create or enlarge a cloud disk, or create an image: they have no price.
    Unpriced,
    /// Store a value that is marked as sensitive.
    SecretsInState,
}

/// The result of the gate.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// Whether no violation was found.
    pub passed: bool,
    /// The violations.
    pub violations: Vec<Finding>,
}

impl Deny {
    /// The rule that checks it.
    #[must_use]
    pub fn rule(self) -> Rule {
        match self {
            Self::DestroyData => Rule::DestroyData,
            Self::Prepaid => Rule::Prepaid,
            Self::SecretsInState => Rule::SecretsInState,
            Self::Unpriced => Rule::Unpriced,
        }
    }
}

impl Policy {
    /// Whether the policy has a limit.
    #[must_use]
    pub fn asks(&self) -> bool {
        !self.exceptions.is_empty()
            || self.limits.iter().any(|limits| limits.max_monthly_increase.is_some() || !limits.deny.is_empty())
    }

    /// The findings of these plans; those that close the gate have the level `error`.
    pub(super) fn judge(&self, plans: &[Reviewed]) -> Vec<Finding> {
        let rises = Rise::all(plans);
        let mut uses: Vec<Use<'_>> = self.exceptions.iter().map(Use::new).collect();
        let disks = addresses_of_disks(plans);
        let mut findings = Vec::new();
        for plan in plans {
            for observation in &plan.observations {
                let mut finding = finding(plan, observation);
                let own = observation.addresses.iter();
                let of_disks = observation.disks.iter().filter_map(|id| disks.get(id.as_str())).flatten().copied();
                let addresses: Vec<&str> = own.map(String::as_str).chain(of_disks).collect();
                if observation.is_blind || self.closes(observation.rule, &addresses) {
                    if let Some(lifting) = lifting(&mut uses, observation.rule, &addresses) {
                        lifting.objects.insert((plan.name.as_deref(), &observation.addresses));
                        let exception = lifting.exception;
                        finding.level = Level::Note;
                        finding.accepted = true;
                        finding.message = format!("{} (excepted until {})", finding.message, exception.expires);
                        finding.details.extend([exception.owner.clone(), exception.reason.clone()]);
                    } else {
                        finding.level = Level::Error;
                    }
                }
                findings.push(finding);
            }
        }
        findings.extend(self.limits.iter().filter_map(|limits| limits.sum(&rises, &mut uses)));
        findings.extend(uses.iter().map(|used| used.finding(plans)));
        findings.extend(self.notes(plans));
        findings
    }

    fn closes(&self, rule: Rule, addresses: &[&str]) -> bool {
        let mut limits = self.limits.iter().filter(|limits| addresses.is_empty() || limits.mean(addresses));
        match rule {
            Rule::Plan => self.asks(),
            Rule::MaxMonthlyIncrease => limits.any(|limits| limits.max_monthly_increase.is_some()),
            Rule::DestroyData | Rule::Prepaid | Rule::SecretsInState | Rule::Unpriced => {
                limits.any(|limits| limits.deny.iter().any(|deny| deny.rule() == rule))
            }
            Rule::Check | Rule::Exception | Rule::Note => false,
        }
    }

    /// What a reviewer should know of the policy.
    fn notes(&self, plans: &[Reviewed]) -> Vec<Finding> {
        let mut notes = Vec::new();
        for file in &self.not_read {
            let message = "this file is not read: a policy counts only if --policy names it";
            notes.push(Finding { details: vec![file.clone()], ..Finding::of_policy(Rule::Note, "not-read", message) });
        }
        let rules = self.limits.iter().filter_map(|limits| limits.matching.as_ref());
        for patterns in rules.clone() {
            if !plans.iter().any(|plan| plan.addresses.iter().any(|address| any(patterns, address))) {
                let message = "a rule of the policy matches no object";
                notes.push(Finding::of_policy(Rule::Note, "no-match", message).about(patterns));
            }
        }
        for plan in plans {
            for (address, before) in &plan.moves {
                let leaves = |patterns: &&Vec<Pattern>| any(patterns, before) && !any(patterns, address);
                let enters = |patterns: &&Vec<Pattern>| any(patterns, address) && !any(patterns, before);
                let exceptions = self.exceptions.iter().map(|exception| &exception.matching);
                let out =
                    rules.clone().filter(leaves).map(|patterns| ("it moves out of a rule of the policy", patterns));
                let into = exceptions.filter(enters).map(|patterns| ("it moves into an exception", patterns));
                notes.extend(out.chain(into).map(|(message, patterns)| Finding {
                    plan: plan.name.clone(),
                    address: Some(address.clone()),
                    ..Finding::of_policy(Rule::Note, "move", message).about(patterns)
                }));
            }
        }
        notes
    }
}

/// The addresses under which any plan has a cloud disk, by its id.
fn addresses_of_disks(plans: &[Reviewed]) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut addresses: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (id, address) in plans.iter().flat_map(|plan| &plan.disks) {
        addresses.entry(id).or_default().insert(address);
    }
    addresses
}

/// The increase of one instance's monthly costs.
struct Rise<'a> {
    plan: Option<&'a str>,
    /// Its address, and the one that it had before.
    addresses: Vec<&'a str>,
    /// The change of its monthly costs; `None` if it is unknown.
    change: Option<Money>,
}

impl<'a> Rise<'a> {
    fn all(plans: &'a [Reviewed]) -> Vec<Self> {
        let rows = plans.iter().flat_map(|plan| plan.report.cost.resources.iter().map(move |row| (plan, row)));
        rows.map(|(plan, row)| Self {
            plan: plan.name.as_deref(),
            addresses: [plain(&row.address)].into_iter().chain(row.previous_address.as_deref()).collect(),
            change: row.change().ok(),
        })
        .collect()
    }

    /// The known increase; a decrease counts as 0.
    fn increase(&self) -> Money {
        self.change.clone().unwrap_or_default().max(Money::default())
    }

    fn id(&self) -> (Option<&'a str>, &'a str) {
        (self.plan, self.addresses.first().copied().unwrap_or_default())
    }
}

/// What an exception lets through.
struct Use<'a> {
    exception: &'a Exception,
    /// The objects by plan and addresses.
    objects: BTreeSet<(Option<&'a str>, &'a Vec<String>)>,
    /// The increases by plan and address.
    increases: BTreeMap<(Option<&'a str>, &'a str), Money>,
}

impl<'a> Use<'a> {
    fn new(exception: &'a Exception) -> Self {
        Self { exception, objects: BTreeSet::new(), increases: BTreeMap::new() }
    }

    fn lifts(&self, rule: Rule, addresses: &[&str]) -> bool {
        let is_of_rule = self.exception.rules.as_ref().is_none_or(|rules| rules.contains(&rule));
        is_of_rule && !self.exception.is_expired && self.exception.means(addresses)
    }

    /// The finding about the exception itself.
    fn finding(&self, plans: &[Reviewed]) -> Finding {
        let exception = self.exception;
        let of = |level: Level, kind: &'static str, message: String| Finding {
            level,
            ..Finding::of_policy(Rule::Exception, kind, message).about(&exception.matching)
        };
        let mut addresses = plans.iter().flat_map(|plan| &plan.addresses);
        let mut finding = if exception.is_expired {
            of(Level::Error, "expired", format!("an exception of the policy expired on {}", exception.expires))
        } else if !addresses.any(|address| any(&exception.matching, address)) {
            of(Level::Note, "no-match", "an exception of the policy matches no object".to_owned())
        } else {
            let count =
                self.objects.iter().map(|(plan, addresses)| (*plan, addresses.first().map_or("", String::as_str)));
            let count = count.chain(self.increases.keys().copied()).collect::<BTreeSet<_>>().len();
            let mut sum = Money::default();
            self.increases.values().for_each(|increase| sum += increase);
            let objects = if count == 1 { "object" } else { "objects" };
            let sum = sum.with_digits(2);
            of(Level::Note, "use", format!("an exception lets through {count} {objects} and {sum} a month"))
        };
        finding.details.extend([exception.owner.clone(), exception.reason.clone()]);
        finding
    }
}

/// The first exception that lifts a rule for an object.
fn lifting<'a, 'b>(uses: &'b mut [Use<'a>], rule: Rule, addresses: &[&str]) -> Option<&'b mut Use<'a>> {
    uses.iter_mut().find(|used| used.lifts(rule, addresses))
}

impl Limits {
    /// Whether they hold for an object: one of its addresses suffices.
    fn mean(&self, addresses: &[&str]) -> bool {
        self.matching.as_ref().is_none_or(|patterns| addresses.iter().any(|address| any(patterns, address)))
    }

    /// The finding if the monthly costs of the objects rise by more than is allowed.
    fn sum<'a>(&self, rises: &[Rise<'a>], uses: &mut [Use<'a>]) -> Option<Finding> {
        let most = self.max_monthly_increase.as_ref()?;
        let (mut increases, mut decreases) = (Money::default(), Money::default());
        for rise in rises.iter().filter(|rise| self.mean(&rise.addresses)) {
            let increase = rise.increase();
            match lifting(uses, Rule::MaxMonthlyIncrease, &rise.addresses) {
                Some(_) if increase == Money::default() => {}
                Some(used) => drop(used.increases.insert(rise.id(), increase)),
                None => {
                    increases += &increase;
                    decreases += &(increase - &rise.change.clone().unwrap_or_default());
                }
            }
        }
        if increases <= *most {
            return None;
        }
        let [increases, most, decreases] = [&increases, most, &decreases].map(|sum| sum.with_digits(2));
        let message =
            format!("increases add up to {increases} a month (limit {most}); decreases of {decreases} do not count");
        let finding = Finding::of_policy(Rule::MaxMonthlyIncrease, "sum", message);
        Some(Finding { level: Level::Error, ..finding.about(self.matching.as_deref().unwrap_or_default()) })
    }
}

impl Exception {
    /// Whether it holds for an object: all its addresses must match.
    fn means(&self, addresses: &[&str]) -> bool {
        !addresses.is_empty() && addresses.iter().all(|address| any(&self.matching, address))
    }
}

/// Whether one of the patterns matches an address.
fn any(patterns: &[Pattern], address: &str) -> bool {
    patterns.iter().any(|pattern| pattern.matches(address))
}

impl Finding {
    /// A finding about the policy and not about one object.
    fn of_policy(rule: Rule, kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            rule,
            kind,
            level: Level::Note,
            plan: None,
            address: None,
            message: message.into(),
            details: Vec::new(),
            fingerprint: fingerprint(rule, None, "", kind),
            accepted: false,
            location: None,
        }
    }

    /// The same about a table of the policy: its patterns identify it.
    fn about(self, matching: &[Pattern]) -> Self {
        let patterns: Vec<&str> = matching.iter().map(Pattern::as_str).collect();
        let fingerprint = fingerprint(self.rule, None, &patterns.join("\0"), self.kind);
        let details = patterns.into_iter().map(str::to_owned).collect();
        Self { fingerprint, details, ..self }
    }
}

fn finding(plan: &Reviewed, observation: &Observation) -> Finding {
    let level = match observation.rule {
        Rule::Check | Rule::Exception | Rule::Note | Rule::SecretsInState | Rule::Unpriced => Level::Note,
        Rule::DestroyData | Rule::MaxMonthlyIncrease | Rule::Plan | Rule::Prepaid => Level::Warning,
    };
    let object = observation.addresses.first().map_or("", String::as_str);
    Finding {
        rule: observation.rule,
        kind: observation.kind,
        level,
        plan: plan.name.clone(),
        address: observation.address.clone(),
        message: observation.message.clone(),
        details: observation.details.clone(),
        fingerprint: fingerprint(observation.rule, plan.name.as_deref(), object, observation.kind),
        accepted: false,
        location: None,
    }
}
