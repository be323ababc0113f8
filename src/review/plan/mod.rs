//! A plan (JSON output format, plan representation) of Terraform from 1.0 on or OpenTofu from 1.6 on.

mod read;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{
    changes::ChangeAction,
    document::DocumentError,
    values::{ChangeSide, PathPart},
};

/// A plan.
#[derive(Clone, Debug, Default)]
pub struct ReviewedPlan {
    /// The version of Terraform or OpenTofu that wrote it.
    pub(super) core: Option<String>,
    /// Whether planning stopped with an error.
    pub(super) errored: bool,
    /// The reason why this plan alone does not reach the configuration.
    pub(super) incomplete: Option<&'static str>,
    /// Whether the plan has the field that marks it as complete: Terraform writes it from 1.8 on, OpenTofu does not.
    pub(super) says_whether_complete: bool,
    /// The parts that could not be read.
    pub(super) faults: Vec<String>,
    /// The addresses of changes that could not be read, as far as they are known.
    pub(super) unread: BTreeSet<String>,
    /// The changes of objects, including no-ops.
    pub(super) changes: Vec<ResourceChange>,
    /// The address and the core's reason of each change and action that is deferred to a later plan (Terraform,
    /// deferred actions).
    pub(super) deferred: Vec<(String, String)>,
    /// The actions that the apply invokes (Terraform 1.14).
    pub(super) invocations: Vec<Invocation>,
    /// Changes outside of plans.
    pub(super) drift: Vec<ResourceChange>,
    /// The outputs of the root module.
    pub(super) outputs: Vec<(String, Side)>,
    /// The prior state: managed objects and data sources.
    pub(super) prior: Vec<Stated>,
    /// Failed conditions.
    pub(super) failed_checks: Vec<Check>,
    /// The types of the provisioners of each resource that has some, by its address without keys.
    pub(super) provisioners: BTreeMap<String, Vec<String>>,
}

/// The change of one object.
#[derive(Clone, Debug)]
pub(super) struct ResourceChange {
    pub(super) address: String,
    pub(super) previous_address: Option<String>,
    /// The key of an object that a replacement left behind.
    pub(super) deposed: Option<String>,
    /// The resource type.
    pub(super) kind: String,
    /// The source address of its provider, if the plan has it.
    pub(super) provider: Option<String>,
    pub(super) managed: bool,
    pub(super) action: ChangeAction,
    pub(super) reason: Option<String>,
    pub(super) importing: Option<Importing>,
    pub(super) replace_paths: Vec<Vec<PathPart>>,
    pub(super) side: Side,
}

/// An import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Importing {
    /// Its import id, or its identity as JSON; `None` if it is known only after the apply.
    pub id: Option<String>,
}

/// The values before and after a change.
#[derive(Clone, Debug)]
pub(super) struct Side {
    pub(super) action: ChangeAction,
    pub(super) before: ChangeSide,
    pub(super) after: ChangeSide,
}

/// An action that an apply invokes (JSON output format, action invocations).
#[derive(Clone, Debug)]
pub(super) struct Invocation {
    pub(super) address: String,
    pub(super) kind: String,
    pub(super) trigger: Trigger,
    pub(super) arguments: ChangeSide,
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
    pub(super) address: String,
    pub(super) kind: String,
    pub(super) managed: bool,
    pub(super) values: ChangeSide,
}

/// A failed check, precondition or postcondition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The object that it belongs to.
    pub address: String,
    /// `fail` or `error`.
    pub status: String,
    /// The messages of the configuration.
    pub problems: Vec<String>,
}

/// The reason why a document is not a readable plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotAPlan {
    /// It is not the bare output of a program.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// OpenTofu encrypted it: a saved plan, or a state.
    #[error("OpenTofu encrypted it. Run `tofu show -json PLANFILE` and pass its output")]
    Encrypted,
    /// It is empty. Usual cause: the command before the pipe failed.
    #[error("it is empty. Check the command before the pipe, or the one that wrote the file")]
    Empty,
    /// It is the log of a plan or an apply.
    #[error(
        "it is the log of a run with -json. Save the plan with `plan -out=FILE`, run `terraform show -json FILE` and \
         pass its output"
    )]
    Log,
    /// It is another document.
    #[error("it is JSON, but not the output of `terraform show -json PLANFILE`")]
    Other,
    /// It is a plan file of `plan -out`.
    #[error("it is a saved plan file. Run `terraform show -json FILE` or `tofu show -json FILE` and pass its output")]
    Saved,
    /// It is a state.
    #[error("it is a state. Save a plan with `plan -out=FILE`, run `terraform show -json FILE` and pass its output")]
    State,
    /// It is not JSON. Usual cause: it is truncated.
    #[error("it is not JSON ({0}). Pass the output of `terraform show -json PLANFILE`")]
    Syntax(String),
    /// Its format is newer than this program.
    #[error("its format is {0:?}, and this version reads 0.x and 1.x. Install a newer version of the provider")]
    Version(String),
}

impl ResourceChange {
    /// The address, with the key of a deposed object.
    pub(super) fn title(&self) -> String {
        match &self.deposed {
            Some(key) => format!("{} (deposed {key})", self.address),
            None => self.address.clone(),
        }
    }

    /// Whether it is an object of this type that this plan manages.
    pub(super) fn is(&self, kind: &str) -> bool {
        self.managed && self.kind == kind
    }

    /// The address that it had before, if that was another one.
    pub(super) fn moved_from(&self) -> Option<&String> {
        self.previous_address.as_ref().filter(|old| **old != self.address)
    }

    /// Its address, and the one that it had before.
    pub(super) fn addresses(&self) -> Vec<String> {
        [&self.address].into_iter().chain(self.moved_from()).cloned().collect()
    }
}

/// Whether a type of resource or action belongs to this provider, which a mirror may have under any source address.
pub(super) fn is_own(kind: &str) -> bool {
    kind.starts_with("damodel_")
}
