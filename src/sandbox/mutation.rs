//! What a test can do to the world behind the client's back: what a person does in the console, or the service by
//! itself.

use serde::{Deserialize, Serialize};

/// A change behind the client's back. As JSON (`POST /sandbox/mutate`): `{"release_instance": {"uid": "ins-…"}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Mutation {
    /// An instance's sshd shows another host key from now on. Open sessions stay.
    ChangeHostKey {
        /// Its uid.
        uid: String,
    },
    /// An instance's sshd listens so long after its being Running, or after its next reboot.
    DelaySshd {
        /// Its uid.
        uid: String,
        /// The milliseconds.
        ms: u32,
    },
    /// What lists and details showed of an instance, cloud disk or private image is unseen for a number of reads, as by
    /// a replica that lags.
    Hide {
        /// The uid, or the image_id of a private image.
        uid: String,
        /// The number of reads that would have shown it.
        reads: u32,
    },
    /// An account has one token more; those that it has stay valid.
    IssueToken {
        /// Its name, such as `main`.
        account: String,
        /// The token.
        token: String,
    },
    /// An instance's machine reboots: all its processes end, all sessions are cut, and its sshd is back after its
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
    /// An instance is Released at once, with the disks that die with it.
    ReleaseInstance {
        /// Its uid.
        uid: String,
    },
    /// A cloud disk vanishes without a trace, even from lists.
    RemoveDisk {
        /// Its database id.
        id: i64,
    },
    /// An instance vanishes without a trace, even from lists. Its disks stay.
    RemoveInstance {
        /// Its uid.
        uid: String,
    },
    /// A private image vanishes without a trace.
    RemoveImage {
        /// Its image_id.
        id: i64,
    },
    /// A cloud disk gets another name.
    RenameDisk {
        /// Its database id.
        id: i64,
        /// The name.
        name: String,
    },
    /// A private image gets another name; nobody asks whether it is unique.
    RenameImage {
        /// Its image_id.
        id: i64,
        /// The name.
        name: String,
    },
    /// An instance gets another name.
    RenameInstance {
        /// Its uid.
        uid: String,
        /// The name.
        name: String,
    },
    /// A cloud disk has another capacity at once, smaller or larger.
    ResizeDisk {
        /// Its database id.
        id: i64,
        /// The capacity in GB.
        size_gb: i64,
    },
    /// A token is not valid any more. An account keeps its last one.
    RevokeToken {
        /// The account's name.
        account: String,
        /// The token.
        token: String,
    },
    /// An account may do other things; what is left out stays.
    SetAccount {
        /// Its name, such as `main`.
        account: String,
        /// The balance.
        balance: Option<f64>,
        /// Whether it is certified.
        certified: Option<bool>,
        /// Whether its risk state forbids creating instances.
        at_risk: Option<bool>,
        /// Whether cloud disks are permitted.
        may_use_disks: Option<bool>,
        /// Whether private images may be renamed and deleted.
        may_use_images: Option<bool>,
    },
    /// A cloud disk specification changes; what is left out stays.
    SetDiskSpec {
        /// Its id.
        id: i64,
        /// The largest capacity of one disk.
        max_size_g: Option<i64>,
        /// Whether no more disk of it can be created.
        sold_out: Option<bool>,
    },
    /// A cloud disk has another status, and nothing more happens to it by itself. 7 has its usual effects.
    SetDiskStatus {
        /// Its database id.
        id: i64,
        /// The service's number, 1 … 8.
        status: i64,
    },
    /// An instance has another status, and nothing more happens to it by itself. `Failed` and `Released` have their
    /// usual effects; any other word is set as it is, documented or not.
    SetInstanceStatus {
        /// Its uid.
        uid: String,
        /// The word.
        status: String,
    },
    /// An instance's machine changes; what is left out stays. Programs that run there are not told.
    SetMachine {
        /// Its uid.
        uid: String,
        /// The version of its CUDA toolkit, such as `13.0`; an empty text removes it.
        toolkit: Option<String>,
        /// Whether its driver finds the GPU.
        driver: Option<bool>,
    },
    /// An instance's sshd listens, or refuses connections. Open sessions stay.
    SetSshd {
        /// Its uid.
        uid: String,
        /// Whether it listens.
        up: bool,
    },
    /// An instance refuses its release with 160012, or no longer.
    SetUnreleasable {
        /// Its uid.
        uid: String,
        /// Whether it refuses.
        unreleasable: bool,
    },
    /// A hosted model is enabled or disabled; one that there is not is added.
    SetModel {
        /// Its name.
        name: String,
        /// Whether it is enabled.
        enabled: bool,
    },
    /// A private image is ready, or is not; its push ends.
    SetPrivateImage {
        /// Its id.
        id: i64,
        /// Whether it is ready.
        ready: bool,
        /// Its push_progress, 0 … 100.
        push_progress: i64,
    },
    /// A public image changes; what is left out stays.
    SetPublicImage {
        /// Its id.
        id: i64,
        /// Whether it is enabled.
        enabled: Option<bool>,
        /// The labels.
        labels: Option<Vec<String>>,
        /// The preinstalled software.
        softwares: Option<Vec<String>>,
        /// The CUDA version that a create is held to; an empty text removes it.
        cuda: Option<String>,
    },
    /// A specification changes; what is left out stays.
    SetSpec {
        /// Its spec_id.
        spec_id: i64,
        /// The price of an hour.
        hourly_price: Option<f64>,
        /// The price of a day.
        daily_price: Option<f64>,
        /// The price of a month.
        monthly_price: Option<f64>,
        /// How many GPUs are free in all.
        stock: Option<i64>,
        /// How many are free on the node that has most.
        node_limit: Option<i64>,
        /// The highest CUDA version.
        highest_cuda: Option<String>,
        /// Whether it is enabled.
        enabled: Option<bool>,
    },
}

/// Why a mutation cannot be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MutationError {
    /// There is nothing of this name or number.
    #[error("find the {kind} {name:?}")]
    Unknown {
        /// What was looked for.
        kind: &'static str,
        /// Its name or number.
        name: String,
    },
    /// The account has no such token, or no other.
    #[error("revoke that token of the account {0:?}")]
    Token(String),
    /// The number is no cloud disk status.
    #[error("understand the cloud disk status {0}")]
    DiskStatus(i64),
}
