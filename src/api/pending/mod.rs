//! The journal of creates: the requests that were sent and whose objects may be in no state yet.
//!
//! A directory with one pending record per create. The record is written before the request, so that a killed run
//! leaves a trace of every object that it may have created; the next run's same create adopts the object. The owner of
//! a record locks a file beside it while it runs. Handed-over records have names made of the object's id. A record is
//! removed as soon as a state shows the object, handed over or not: Terraform has stored it then.

mod entry;
mod journal;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub(super) use self::journal::{Begin, Claim, Examined, Wanted};
pub use self::{
    entry::{Entry, HandedOver, Owner},
    journal::{Journal, JournalReport, PendingCreate, Unreadable},
};

/// The version of the format that is written, and the newest that is read.
const VERSION: u32 = 1;

/// The pending record of one create.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PendingRecord {
    /// The version of the file's format.
    pub version: u32,
    /// The kind of the object.
    pub kind: ObjectKind,
    /// The phase of the create.
    pub phase: CreatePhase,
    /// The fingerprint of the configured object, which is the same in each run.
    pub key: String,
    /// The name that was sent.
    pub marker: String,
    /// The configured name.
    #[serde(default)]
    pub wanted_name: Option<String>,
    /// The base address of the service.
    pub base_url: String,
    /// The fingerprint of base address and token.
    pub account: String,
    /// When the create began, in Unix seconds.
    pub begun_at: i64,
    /// When this file was written, in Unix seconds.
    pub updated_at: i64,
    /// The id of the process that sent the request.
    pub process: u32,
    /// The Terraform process that started it, if the system shows it: id and start time.
    #[serde(default)]
    pub core: Option<String>,
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
    #[serde(default, skip_serializing_if = "is_false")]
    pub refused: bool,
    /// The ids of the object, once accepted.
    #[serde(default)]
    pub ids: Option<Ids>,
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

/// The kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObjectKind {
    /// A cloud disk.
    CloudDisk,
    /// An instance.
    Instance,
    /// A private image.
    PrivateImage,
}

impl ObjectKind {
    /// The word in file names and texts.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CloudDisk => "cloud_disk",
            Self::Instance => "instance",
            Self::PrivateImage => "private_image",
        }
    }

    /// The noun in texts.
    #[must_use]
    pub fn noun(self) -> &'static str {
        match self {
            Self::CloudDisk => "cloud disk",
            Self::Instance => "instance",
            Self::PrivateImage => "private image",
        }
    }
}

/// The phase of a create, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CreatePhase {
    /// The request may have been sent; its outcome is unknown.
    Sent,
    /// The service accepted it, and its id is known.
    Accepted,
    /// It was returned to Terraform. It is never adopted, only reported.
    HandedOver,
}

/// The ids of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ids {
    /// The id that operations use, as text.
    pub id: String,
    /// The database id, if it is a different one.
    #[serde(default)]
    pub database_id: Option<i64>,
}
