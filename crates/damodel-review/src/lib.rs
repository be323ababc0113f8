//! What plans say, and whether a policy allows it: reviews of the output of `terraform show -json PLAN` or `tofu show
//! -json PLAN`. It depends on no other crate of ours.
//!
//! The pipeline: [`Plan::read`] reads a plan, [`Facts::of`] finds out what it does, and `findings` what of it may be
//! unwanted; [`Review::new`] is the verdict under a [`Policy`]; `document` makes the page, and [`render`] writes it in
//! a [`Format`]. Each step names only those before it; below all are `address` and `values`.
//!
//! No report has a value that the plan marks as sensitive: values are read through `values::Values`, which keeps the
//! masks with them.
#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test that cannot go on has failed"))]

mod address;
mod document;
mod facts;
mod findings;
mod plan;
mod policy;
mod render;
pub mod rules;
mod values;
mod verdict;

pub use self::{
    address::{Address, Pattern},
    facts::*,
    findings::Finding,
    plan::{
        ChangeAction, Check, Deferred, DocumentError, Head, Importing, NotAPlan, Plan, Trigger, added_text, decoded,
    },
    policy::{Exception, Limits, NotAPolicy, Policy, Rule},
    render::{Format, Style, render, visible},
    verdict::{Judged, Level, Location, Review},
};

#[cfg(test)]
mod tests;
