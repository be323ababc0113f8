//! The review as data. A new field does not change the version of the format.

use serde::Serialize;
use serde_json::{Value, json};

use super::style::Style;
use crate::{
    address::{Address, Pattern},
    facts::{Facts, Sums},
    rules::HOURS_A_MONTH,
    verdict::Review,
};

#[derive(Serialize)]
struct Document<'a> {
    format_version: &'static str,
    plans: &'a [Facts],
    sum: Sum<'a>,
    findings: Vec<Value>,
    gate: Option<Value>,
}

#[derive(Serialize)]
struct Sum<'a> {
    #[serde(flatten)]
    sums: Sums,
    currency: Option<&'a str>,
    hours_per_month: u32,
}

/// Writes a review.
pub(super) fn write(review: &Review<'_>, style: &Style) -> serde_json::Result<String> {
    let findings = review.findings.iter().map(|judged| {
        json!({
            "rule": judged.finding.rule,
            "kind": judged.finding.kind,
            "level": judged.level,
            "plan": judged.finding.plan,
            "address": judged.finding.address.map(Address::as_str),
            "deposed": judged.finding.address.and_then(Address::deposed_key),
            "message": judged.message(),
            "location": judged.location,
        })
    });
    let exceptions = review.uses.iter().map(|used| {
        let (exception, (objects, monthly)) = (used.exception, used.extent());
        json!({
            "match": exception.matching.iter().map(Pattern::as_str).collect::<Vec<_>>(),
            "owner": exception.owner,
            "reason": exception.reason,
            "expires": exception.expires.to_string(),
            "objects": objects,
            "monthly": monthly,
        })
    });
    let exceptions: Vec<Value> = exceptions.collect();
    let gate = json!({"passed": review.violations().next().is_none(), "exceptions": exceptions});
    let document = Document {
        format_version: "2.0",
        plans: review.plans,
        sum: Sum { sums: review.sums(), currency: style.currency.as_deref(), hours_per_month: HOURS_A_MONTH },
        findings: findings.collect(),
        gate: review.is_gate.then_some(gate),
    };
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}
