//! Reports of plans for reviewers, from the output of `terraform show -json PLAN` or `tofu show -json PLAN`.
//!
//! [`ReviewedPlan::read`] reads a plan, [`Reviewed::new`] reports its costs, destroys, replacements, prepaid terms and
//! secrets in the state, [`Review::new`] applies a [`Policy`] to one or several, and [`render`] writes them in a
//! [`Format`]. This layer uses the attribute names of the provider's resources, and of `provider`
//! the hours of a period and the nearest word.
//!
//! No report has a value that the plan marks as sensitive: values are read through `values::ChangeSide`, which keeps
//! the masks with them.

mod changes;
mod cost;
mod document;
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
    changes::{Change, ChangeAction, Line, PlannedDisk},
    cost::{Amount, Candidates, Cost, CostRow, Sums, Term, TermKind, Total, Unpriced},
    document::{DocumentError, decoded, is_wrapped},
    findings::{Finding, Level, Location, Rule},
    gate::{Deny, Exception, Limits, Policy, Verdict},
    losses::{Item, ItemKind, Loss},
    money::Money,
    plan::{Check, Importing, NotAPlan, ReviewedPlan, Trigger},
    policy_file::{NotAPolicy, Pattern, names},
    render::{Format, Style, render},
    report::{Counts, Report, Review, Reviewed, visible},
    values::Secrets,
};

#[cfg(test)]
mod tests;
