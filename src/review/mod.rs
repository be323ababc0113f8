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
mod cost;
mod findings;
mod gate;
mod losses;
mod money;
mod plan;
mod policy_file;
mod render;
mod report;
mod values;

pub use self::{
    actions::{
        Action, Argument, Created, Drift, Drifted, Forced, Imported, Invoked, Moved, PlannedDisk, Replacement, Updated,
    },
    cost::{Amount, Candidates, Cost, CostRow, Sums, Term, TermKind, Total, Unpriced},
    findings::{Finding, Level, Location, Rule},
    gate::{Baseline, Deny, Exception, Limits, Policy, Verdict},
    losses::{Item, ItemKind, Loss},
    money::Money,
    plan::{Check, Deferred, NotAPlan, Plan, Trigger},
    policy_file::{NotAPolicy, Pattern, names},
    render::{Format, Style, code, render},
    report::{Counts, Forgotten, Report, Review, Reviewed, visible},
    values::Secrets,
};

#[cfg(test)]
mod tests;
