//! Findings: what plans do or are that may be unwanted. The policy decides which of them violate the gate.

use std::collections::BTreeMap;

use super::{
    address::Address,
    facts::{CostRow, Facts, Invoked, Money, Object, Secrets, Term, Unpriced},
    plan::{ChangeAction, Check, Head, is_own},
    policy::{Exception, Rule},
};

/// An action or a condition of a plan that may be unwanted.
#[derive(Clone, Debug)]
pub struct Finding<'a> {
    /// The rule.
    pub rule: Rule,
    /// Its kind within the rule.
    pub kind: &'static str,
    /// The plan, if it has a name.
    pub plan: Option<&'a str>,
    /// The object.
    pub address: Option<&'a Address>,
    /// The object's address and the one that it had before.
    pub(super) addresses: Vec<&'a Address>,
    /// The facts.
    pub(super) grounds: Grounds<'a>,
}

/// The facts of a finding.
#[derive(Clone, Debug)]
pub(super) enum Grounds<'a> {
    Bought(&'a Term),
    Check(&'a Check),
    Destroyed(&'a Object),
    Endless,
    /// Increases above a limit, the largest first.
    Excess {
        sum: Money,
        limit: &'a Money,
        matching: String,
        rows: Vec<(&'a Address, Money)>,
    },
    Exception(&'a Exception),
    /// A sentence, and texts of the plan or the policy.
    Said(&'static str, Vec<String>),
    Secrets(&'a Secrets),
    UnknownPrice(&'a CostRow),
    Unpriced(&'a Unpriced),
}

impl<'a> Finding<'a> {
    /// A finding about the whole plan, or about the policy.
    pub(super) fn new(rule: Rule, kind: &'static str, grounds: Grounds<'a>) -> Self {
        Self { rule, kind, plan: None, address: None, addresses: Vec::new(), grounds }
    }

    pub(super) fn at(self, address: &'a Address, before: Option<&'a Address>) -> Self {
        Self { address: Some(address), addresses: [address].into_iter().chain(before).collect(), ..self }
    }

    /// All findings about a plan, independent of the policy.
    pub(super) fn all(facts: &'a Facts) -> Vec<Self> {
        let mut found = not_whole(facts);
        facts.changes.iter().for_each(|object| of_object(object, &mut found));
        found.extend(facts.actions.iter().filter_map(of_action));
        found.extend(facts.cost.instances.iter().filter(|row| row.change().is_err()).map(|row| {
            let grounds = Grounds::UnknownPrice(row);
            Self::new(Rule::MaxMonthlyIncrease, "unknown-price", grounds)
                .at(&row.address, row.previous_address.as_ref())
        }));
        let moved =
            facts.changes.iter().filter_map(|object| Some((&object.address, object.previous_address.as_ref()?)));
        let moved: BTreeMap<&Address, &Address> = moved.collect();
        let before = |address: &Address| moved.get(address).copied();
        found.extend(facts.prepaid.iter().filter(|term| term.is_bought).map(|term| {
            Self::new(Rule::Prepaid, "term", Grounds::Bought(term)).at(&term.address, before(&term.address))
        }));
        found.extend(facts.secrets.iter().map(|secrets| {
            let (rule, kind) =
                if secrets.is_read_again { (Rule::Note, "read-again") } else { (Rule::SecretsInState, "secrets") };
            Self::new(rule, kind, Grounds::Secrets(secrets)).at(&secrets.address, before(&secrets.address))
        }));
        found.extend(
            facts
                .failed_checks
                .iter()
                .map(|check| Self::new(Rule::Check, "check", Grounds::Check(check)).at(&check.address, None)),
        );
        found.iter_mut().for_each(|finding| finding.plan = facts.name.as_deref());
        found
    }
}

/// The parts of a plan that cannot be judged.
fn not_whole(facts: &Facts) -> Vec<Finding<'_>> {
    let plan = |kind: &'static str, words: &'static str, texts: &[String]| {
        Finding::new(Rule::Plan, kind, Grounds::Said(words, texts.to_vec()))
    };
    let Head { errored, incomplete, left_out, unreadable, .. } = &facts.head;
    let errored = errored.then(|| plan("errored", "errored: the plan stopped early", &[]));
    let incomplete = incomplete.map(|why| plan("incomplete", why, left_out));
    let unreadable = (!unreadable.is_empty()).then(|| plan("unreadable", "parts cannot be read", unreadable));
    [errored, incomplete, unreadable].into_iter().flatten().collect()
}

fn of_object<'a>(object: &'a Object, found: &mut Vec<Finding<'a>>) {
    let mut find = |rule: Rule, kind: &'static str, grounds: Grounds<'a>| {
        found.push(Finding::new(rule, kind, grounds).at(&object.address, object.previous_address.as_ref()));
    };
    match &object.loss {
        Some(loss) if !loss.known => {
            find(Rule::Note, "destroy", Grounds::Said("destroyed; other provider, data loss not assessed", Vec::new()));
        }
        Some(loss) if !loss.data.is_empty() => find(Rule::DestroyData, "destroy", Grounds::Destroyed(object)),
        Some(_) | None => {}
    }
    if let Some(unpriced) = &object.unpriced {
        find(Rule::Unpriced, unpriced.kind, Grounds::Unpriced(unpriced));
    }
    if object.is_endless {
        find(Rule::NoMaxAge, "max-age", Grounds::Endless);
    }
    if object.action == ChangeAction::Unknown {
        find(Rule::Note, "unknown-action", Grounds::Said("unknown mode or action", Vec::new()));
    }
    if !object.provisioners.is_empty() {
        let grounds = Grounds::Said("provisioners, not assessed", object.provisioners.clone());
        find(Rule::Note, "provisioners", grounds);
    }
}

/// What the actions of other providers do is only noted.
fn of_action(action: &Invoked) -> Option<Finding<'_>> {
    let grounds = Grounds::Said("action of another provider, not assessed", Vec::new());
    let finding = Finding::new(Rule::Note, "action", grounds).at(&action.address, None);
    (!is_own(&action.kind)).then_some(finding)
}
