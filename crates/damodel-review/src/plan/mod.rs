//! A plan (JSON output format, plan representation) of Terraform from 1.0 on or OpenTofu from 1.6 on.

mod read;
mod vocabulary;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

pub(super) use self::vocabulary::{CLOUD_DISK, INSTANCE, LLAMA_SERVER, PRIVATE_IMAGE, is_own, reason};
pub use self::{
    read::{DocumentError, NotAPlan, added_text, decoded},
    vocabulary::ChangeAction,
};
use super::{
    address::Address,
    values::{PathPart, Values},
};

/// A plan.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The plan itself.
    pub(super) head: Head,
    /// The addresses of changes that could not be read, as far as they are known.
    pub(super) unread: BTreeSet<Address>,
    /// The changes of objects, including no-ops.
    pub(super) changes: Vec<Change>,
    /// Changes outside of plans.
    pub(super) drift: Vec<Change>,
    /// The changes and actions that are deferred to a later plan (Terraform, deferred actions).
    pub(super) deferred: Vec<Deferred>,
    /// The actions that the apply invokes (Terraform 1.14).
    pub(super) invocations: Vec<Invocation>,
    /// The outputs of the root module.
    pub(super) outputs: Vec<Output>,
    /// The prior state: managed objects and data sources.
    pub(super) prior: Vec<Stated>,
    /// Failed conditions.
    pub(super) failed_checks: Vec<Check>,
    /// What the configuration has about each resource, by its address without keys.
    pub(super) configured: BTreeMap<String, Configured>,
}

/// A plan without its parts.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Head {
    /// The version of Terraform or OpenTofu that wrote it.
    pub core_version: Option<String>,
    /// When it was made (RFC 3339).
    pub planned_at: Option<String>,
    /// Whether planning stopped with an error.
    pub errored: bool,
    /// The reason why this plan alone does not reach the configuration.
    pub incomplete: Option<&'static str>,
    /// The objects that it leaves out, as far as they are known.
    pub left_out: Vec<String>,
    /// Whether it has the field that marks it as complete. Without it, an omission by `-target` may be invisible.
    pub says_whether_complete: bool,
    /// The parts that could not be read.
    pub unreadable: Vec<String>,
}

/// The change of one object.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) address: Address,
    /// The address that it had before, if that was another one.
    pub(super) moved_from: Option<Address>,
    /// The resource type.
    pub(super) kind: String,
    /// The source address of its provider, if the plan has it.
    pub(super) provider: Option<String>,
    pub(super) managed: bool,
    pub(super) action: ChangeAction,
    pub(super) reason: Option<String>,
    pub(super) importing: Option<Importing>,
    pub(super) replace_paths: Vec<Vec<PathPart>>,
    pub(super) before: Values,
    pub(super) after: Values,
}

/// An import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Importing {
    /// Its import id, or its identity as JSON; `None` if it is known only after the apply.
    pub id: Option<String>,
}

/// The change of an output.
#[derive(Clone, Debug)]
pub(super) struct Output {
    pub(super) address: Address,
    pub(super) action: ChangeAction,
    pub(super) before: Values,
    pub(super) after: Values,
}

/// A change that a later plan decides about.
#[derive(Clone, Debug, Serialize)]
pub struct Deferred {
    /// The object or action.
    #[serde(flatten)]
    pub address: Address,
    /// The core's code of the reason.
    pub reason: String,
}

/// An action that an apply invokes (JSON output format, action invocations).
#[derive(Clone, Debug)]
pub(super) struct Invocation {
    pub(super) address: Address,
    pub(super) kind: String,
    pub(super) trigger: Trigger,
    pub(super) arguments: Values,
}

/// The trigger of an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Trigger {
    /// It was requested directly (`-invoke`).
    Invoked {
        /// The resource that it is invoked for, if the plan names one (Terraform 1.17).
        #[serde(skip_serializing_if = "Option::is_none")]
        resource: Option<String>,
    },
    /// A change of a resource.
    Lifecycle {
        /// The resource.
        resource: String,
        /// The event in the configuration's form: `before_destroy`.
        event: String,
        /// The effect of an error of the action, in the configuration's form: `halt`, `taint` or `continue`.
        #[serde(skip_serializing_if = "Option::is_none")]
        on_failure: Option<String>,
    },
}

/// An object of the prior state.
#[derive(Clone, Debug)]
pub(super) struct Stated {
    pub(super) address: Address,
    pub(super) kind: String,
    pub(super) managed: bool,
    pub(super) values: Values,
}

/// A failed check, precondition or postcondition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The object that it belongs to.
    #[serde(flatten)]
    pub address: Address,
    /// `fail` or `error`.
    pub status: String,
    /// The messages of the configuration.
    pub problems: Vec<String>,
}

/// What the configuration has about a resource.
#[derive(Clone, Debug)]
pub(super) struct Configured {
    /// The names of its arguments.
    pub(super) arguments: BTreeSet<String>,
    /// The types of its provisioners.
    pub(super) provisioners: Vec<String>,
}

impl Change {
    /// Whether it is an object of this type that this plan manages.
    pub(super) fn is(&self, kind: &str) -> bool {
        self.managed && self.kind == kind
    }

    /// Its address, and the one that it had before.
    pub(super) fn addresses(&self) -> impl Iterator<Item = &Address> {
        [&self.address].into_iter().chain(&self.moved_from)
    }
}
