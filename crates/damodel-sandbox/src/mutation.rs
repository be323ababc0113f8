//! Changes of the world that no client made, as the control interface and tests name them.

use serde::{Deserialize, Serialize};

/// A list of the state whose records have fields that can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateList {
    /// By name.
    Accounts,
    /// Cloud disk specifications, by id.
    DiskSpecs,
    /// Cloud disks, by id.
    Disks,
    /// By uid.
    Instances,
    /// Hosted models, by name.
    Models,
    /// By id.
    PrivateImages,
    /// By id.
    PublicImages,
    /// Specifications of instances, by id.
    Specs,
}

/// A change that no client made, with more effects than a field that is set. As JSON (`POST /sandbox/mutate`):
/// `{"release_instance": {"uid": "ins-…"}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Mutation {
    /// An instance's sshd shows another host key from now on. Open sessions stay.
    ChangeHostKey {
        /// Its uid.
        uid: String,
    },
    /// Lists and details hide an existing instance, cloud disk or private image for a number of reads, like a replica
    /// that lags.
    Hide {
        /// The uid, or the image_id of a private image.
        uid: String,
        /// The number of reads that would have shown it.
        reads: u32,
    },
    /// An account gets a further token; its other tokens stay valid.
    IssueToken {
        /// Its name, such as `main`.
        account: String,
        /// The token.
        token: String,
    },
    /// An instance's machine reboots: all its processes end, all sessions are cut, and its sshd listens again after its
    /// delay.
    RebootInstance {
        /// Its uid.
        uid: String,
    },
    /// A cloud disk is Released at once, mounted or not.
    ReleaseDisk {
        /// Its database id.
        id: i64,
    },
    /// An instance is Released at once, with the disks that are released with it.
    ReleaseInstance {
        /// Its uid.
        uid: String,
    },
    /// A cloud disk disappears, from lists too.
    RemoveDisk {
        /// Its database id.
        id: i64,
    },
    /// An instance disappears, from lists too. Its disks stay.
    RemoveInstance {
        /// Its uid.
        uid: String,
    },
    /// A private image disappears.
    RemoveImage {
        /// Its image_id.
        id: i64,
    },
    /// A token becomes invalid. The last token of an account cannot be revoked.
    RevokeToken {
        /// The account's name.
        account: String,
        /// The token.
        token: String,
    },
    /// A cloud disk gets another status, and its pending changes are dropped. 7 has its usual effects.
    SetDiskStatus {
        /// Its database id.
        id: i64,
        /// The service's number, 1 … 8.
        status: i64,
    },
    /// An instance gets another status, and its pending changes are dropped. `Failed` and `Released` have their
    /// usual effects; any other word is set as it is, documented or not.
    SetInstanceStatus {
        /// Its uid.
        uid: String,
        /// The word.
        status: String,
    },
}

/// Why a mutation cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MutationError {
    /// No object has this name or number.
    #[error("find the {kind} {name:?}")]
    Unknown {
        /// The kind of object.
        kind: &'static str,
        /// Its name or number.
        name: String,
    },
    /// The token is not one of the account's, or is its last.
    #[error("revoke that token of the account {0:?}")]
    Token(String),
    /// A field is unknown, has another type, or identifies the record.
    #[error("set the field: {0}")]
    Field(String),
    /// The number is not a cloud disk status.
    #[error("understand the cloud disk status {0}")]
    DiskStatus(i64),
}
