//! The journal of creates: what was sent and may not be known to anyone else yet.
//!
//! A directory with one file a create. A create writes its file before its request, so that a killed run leaves
//! a trace of everything it may have made; the next run's same create adopts it. Owners hold a lock on a file
//! beside it for as long as they run. Records that were handed over are kept apart, under a name made of their
//! id. What a state shows is cleared, handed over or not: that Terraform has stored it is the last word.

mod entry;
mod journal;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub(super) use self::journal::{Begin, Claim, Examined, Wanted};
pub use self::{
    entry::{Entry, HandedOver, Owner},
    journal::{Journal, Listed, Report, Unreadable},
};

/// The format that is written, and the newest that is read.
const VERSION: u32 = 1;

/// One create.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PendingRecord {
    /// The format of this file.
    pub version: u32,
    /// What is made.
    pub kind: ObjectKind,
    /// How far it is.
    pub phase: Phase,
    /// What identifies the wanted object between runs: a fingerprint that the caller made.
    pub key: String,
    /// The name that was sent.
    pub marker: String,
    /// The name that is wanted.
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
    /// The process that sent it.
    pub process: u32,
    /// The Terraform process that started it, where the system shows it: number and start time.
    #[serde(default)]
    pub core: Option<String>,
    /// `request_id` of the answer.
    #[serde(default)]
    pub request_id: Option<String>,
    /// Whether the service said that it took the request on, without naming what it makes.
    #[serde(default)]
    pub acknowledged: bool,
    /// Which candidate was asked for, by a create that has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<String>,
    /// Whether the service refused the last request: nothing was made.
    #[serde(default, skip_serializing_if = "is_false")]
    pub refused: bool,
    /// What the service calls it, once accepted.
    #[serde(default)]
    pub ids: Option<Ids>,
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

/// What can be made.
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

/// How far a create is, in the order that it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The request may have been sent; nothing is known of its outcome.
    Sent,
    /// The service accepted it, and its id is known.
    Accepted,
    /// It was answered to Terraform. Never adopted, only reported.
    HandedOver,
}

/// What the service calls an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ids {
    /// The id that operations use, as text.
    pub id: String,
    /// The database id, where it is another.
    #[serde(default)]
    pub database_id: Option<i64>,
}
