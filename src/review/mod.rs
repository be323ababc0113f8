//! Plans as a report: what `terraform show -json PLAN` or `tofu show -json PLAN` writes, told to who reviews the
//! change.
//!
//! [`Plan::read`] reads one, [`Reviewed::new`] says what it costs, destroys, replaces, buys ahead and puts into the
//! state, [`Review::new`] judges one or several by their [`Policy`], and [`render`] writes them down in a [`Format`].
//! This layer knows the resources of the provider by their attribute names alone and depends on no other layer.
//!
//! Nothing here prints a value that the plan marks as sensitive: values come out of a plan through `values::Values`,
//! which holds the masks beside them.

mod actions;
mod arrivals;
mod baseline;
mod candidates;
mod cost;
mod drift;
mod findings;
mod gate;
mod invocations;
mod losses;
mod money;
mod pattern;
mod plan;
mod policy_file;
mod prepaid;
mod render;
mod replacements;
mod report;
mod reviewed;
mod secrets;
mod text;
mod values;

pub use self::{
    actions::Action,
    arrivals::{Argument, Created, Imported, Moved, PlannedDisk},
    baseline::Baseline,
    candidates::Candidates,
    cost::{Amount, Cost, CostRow, Sums, Total, Unpriced},
    drift::{Drift, Drifted},
    findings::{Finding, Level, Location, Rule},
    gate::{Deny, Exception, Limits, Policy, Verdict},
    invocations::Invoked,
    losses::{Item, ItemKind, Loss},
    money::Money,
    pattern::{Pattern, names},
    plan::{Check, Deferred, NotAPlan, Plan, Trigger},
    policy_file::NotAPolicy,
    prepaid::{Term, TermKind},
    render::{Format, Style, code, render},
    replacements::{Forced, Replacement, Updated},
    report::{Counts, Forgotten, Report},
    reviewed::{Review, Reviewed},
    secrets::Secrets,
    text::visible,
};

#[cfg(test)]
mod tests;
