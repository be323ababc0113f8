//! The journal of creates: the requests that were sent and whose objects may be in no state yet.
//!
//! A directory with one file per run and one pending record per create. The record is written before the request, so
//! that a killed run leaves a trace of every object that it may have created; the next run's same create resumes it.
//! The file of a run is locked while the run lasts, and the name of a record contains its run: so a record is left if
//! its run is gone, and taken by renaming it. A finished record, whose object was returned to Terraform, is renamed
//! too. It is removed as soon as a state shows the object: Terraform has stored it then.

mod entry;
mod files;
mod journal;
mod run;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::api::{AccountFingerprints, Ids, Object, ObjectKind, is_same_name};

pub use self::files::Unreadable;
pub use self::{
    entry::Entry,
    journal::{Journal, JournalReport, PendingCreate},
    run::Maker,
};
pub(super) use self::{journal::Begin, run::lasts as run_lasts};

/// The version of the format that is written, and the only one that is read.
const VERSION: u32 = 1;

/// The pending record of one create.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingRecord {
    /// The version of the file's format.
    pub version: u32,
    /// The kind of the object.
    pub kind: ObjectKind,
    /// The phase of the create.
    pub phase: CreatePhase,
    /// The configuration that it belongs to. With kind and configured name it is the family of the create.
    pub scope: Scope,
    /// The configured name.
    #[serde(default)]
    pub wanted_name: Option<String>,
    /// A hash of the configured object, which is the same in each run.
    pub request: String,
    /// The name that was sent.
    pub marker: String,
    /// The base address of the service.
    pub base_url: String,
    /// The account that made it.
    #[serde(flatten)]
    pub account: AccountFingerprints,
    /// When the create began, in Unix seconds.
    pub begun_at: i64,
    /// When this file was written, in Unix seconds.
    pub updated_at: i64,
    /// The process of the create.
    #[serde(flatten)]
    pub maker: Maker,
    /// `request_id` of the answer.
    #[serde(default)]
    pub request_id: Option<String>,
    /// Whether the service accepted the request without returning an id.
    #[serde(default)]
    pub acknowledged: bool,
    /// The requested candidate, if the create has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<String>,
    /// Whether the service refused the last request, which created nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
    /// The ids of the object, once accepted.
    #[serde(default)]
    pub ids: Option<Ids>,
}

impl PendingRecord {
    /// Whether an object is shown under the name that was sent.
    pub fn sent_name_of<K: Object>(&self, object: &K) -> bool {
        object.name().is_some_and(|name| is_same_name(name, &self.marker))
    }

    /// Whether its ids are those of an object. A number without a uid counts at its address only.
    pub fn names<K: Object>(&self, object: &K, base_url: &str) -> bool {
        let is_sure = |ids: &Ids| self.base_url == base_url || object.uid().is_none() || ids.uid.is_some();
        self.ids.as_ref().is_some_and(|ids| ids.is(&object.key().to_string(), object.uid()) && is_sure(ids))
    }
}

/// A configuration and the state that it is applied to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// The name of the stack, or the working directory.
    pub stack: String,
    /// The workspace.
    pub workspace: String,
    /// The working directory.
    pub directory: String,
    /// A hash of what identifies the backend.
    pub backend: String,
    /// Whether the backend is local or not known: then the same one is in the same directory.
    pub is_local: bool,
}

impl Scope {
    /// Whether both are one configuration. Their states may differ.
    pub(super) fn is_family(&self, other: &Self) -> bool {
        self.stack == other.stack && self.workspace == other.workspace
    }

    /// Where it is, for a create of `own`.
    pub(super) fn place(&self, own: &Self) -> Place {
        let is_same_directory = self.directory == own.directory;
        if self.backend != own.backend || (self.is_local && !is_same_directory) {
            Place::OtherState
        } else if is_same_directory {
            Place::Here
        } else {
            Place::OtherDirectory
        }
    }

    /// The part of a marker that identifies family and backend.
    pub(super) fn digits(&self, kind: ObjectKind, name: Option<&str>) -> String {
        let parts = [&self.stack, &self.workspace, kind.as_str(), name.unwrap_or_default(), &self.backend];
        fingerprint(&parts).chars().take(4).collect()
    }
}

/// Where a record of the same configuration was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In this directory, for this state.
    Here,
    /// In another directory, for this state.
    OtherDirectory,
    /// For another state.
    OtherState,
}

/// A hash of texts, as 32 hexadecimal digits.
#[must_use]
pub fn fingerprint(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.as_bytes());
        hash.update(b"\0");
    }
    hash.finalize().get(..16).map(hex::encode).unwrap_or_default()
}

/// The phase of a create, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CreatePhase {
    /// The request may have been sent; its outcome is unknown.
    Sent,
    /// The service accepted it, and its id is known.
    Accepted,
    /// It was returned to Terraform. It is never adopted. The name of the file contains this phase.
    #[serde(skip)]
    Finished,
}
