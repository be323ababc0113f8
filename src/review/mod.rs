//! A plan as a report: what `terraform show -json PLAN` or `tofu show -json PLAN` writes, told to who reviews the change.
//!
//! [`Plan::read`] reads it, [`Report::of`] says what it costs, destroys, replaces, buys ahead and puts into the state, [`Policy`]
//! judges it, and [`render`] writes it as Markdown, HTML or JSON. It knows the resources of this provider by their attribute
//! names alone and depends on no other layer.
//!
//! Nothing here prints a value that the plan marks as sensitive: values come out of a plan through `values::Values`, which holds
//! the masks beside them.

mod actions;
mod cost;
mod drift;
mod gate;
mod losses;
mod money;
mod plan;
mod prepaid;
mod render;
mod replacements;
mod report;
mod secrets;
mod text;
mod values;

pub use self::{
    actions::Action,
    cost::{Amount, Cost, CostRow, Total, Unpriced},
    drift::{Drift, Drifted},
    gate::{Deny, Policy, Rule, Verdict, Violation},
    losses::{Item, ItemKind, Loss},
    money::Money,
    plan::{Check, NotAPlan, Plan},
    prepaid::{Term, TermKind},
    render::{Format, render},
    replacements::{Forced, Replacement},
    report::{Counts, Forgotten, Report},
    secrets::Secrets,
    text::visible,
};

#[cfg(test)]
mod tests;
