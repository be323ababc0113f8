//! The ledger: each request and its effect. It proves that a client created nothing twice and lost nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One request to the service. Requests to the control interface are not kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestEntry {
    /// Counts from 1 since the sandbox started.
    pub sequence: u64,
    /// The life clock in Unix milliseconds.
    pub at_ms: i64,
    /// The account's name; `None` if the token was refused.
    pub account: Option<String>,
    /// The HTTP method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The query string.
    pub query: String,
    /// The endpoint's name, such as `instance_create`; `None` for an unknown path.
    pub endpoint: Option<String>,
    /// The envelope's request_id.
    pub request_id: String,
    /// Whether the service acted on it (a refusal counts as acting).
    pub processed: bool,
    /// The HTTP status sent; `None` if the connection was closed without an answer.
    pub status: Option<u16>,
    /// The error's code; `None` on success, or if the request was not processed.
    pub code_n: Option<i64>,
    /// The faults that were applied, by name.
    pub faults: Vec<String>,
    /// The uids of instances and cloud disks, and the ids of private images, that it created.
    pub created: Vec<String>,
    /// The uids of instances and cloud disks whose release it began, and the ids of private images that it deleted.
    pub released: Vec<String>,
}

/// The kind of an object in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LedgerObject {
    /// A cloud disk.
    CloudDisk,
    /// An instance.
    Instance,
    /// A private image; its uid in the ledger is its image_id.
    PrivateImage,
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LifeKind {
    /// A create was accepted.
    Created,
    /// Its creation failed. It still exists.
    Failed,
    /// It is released; a private image is deleted.
    Released,
    /// It disappeared, by a mutation or a fault.
    Removed,
    /// It has another name.
    Renamed,
}

/// A creation, an end, or a new name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LifeEvent {
    /// Counts from 1 since the world began.
    pub sequence: u64,
    /// The life clock in Unix milliseconds.
    pub at_ms: i64,
    /// The kind of the object.
    pub object: LedgerObject,
    /// What happened.
    pub kind: LifeKind,
    /// The object's uid.
    pub uid: String,
    /// The object's name at that moment.
    pub name: String,
    /// The account's name.
    pub account: String,
}

/// All requests, and all events of objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// The requests since the sandbox started, in order.
    pub requests: Vec<RequestEntry>,
    /// The events of objects since the world began, in order.
    pub life: Vec<LifeEvent>,
}

/// The counts of one kind of object. Always `created == live + released + removed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Balance {
    /// How many creates were accepted.
    pub created: usize,
    /// How many were released.
    pub released: usize,
    /// How many disappeared.
    pub removed: usize,
    /// How many exist (Failed ones too).
    pub live: usize,
}

impl Ledger {
    /// Counts the objects of this kind.
    #[must_use]
    pub fn balance(&self, object: LedgerObject) -> Balance {
        let mut balance = Balance::default();
        for event in self.life.iter().filter(|event| event.object == object) {
            match event.kind {
                LifeKind::Created => balance.created += 1,
                LifeKind::Failed | LifeKind::Renamed => {}
                LifeKind::Released => balance.released += 1,
                LifeKind::Removed => balance.removed += 1,
            }
        }
        balance.live = self.live(object).len();
        balance
    }

    /// The uids of this kind that exist, in the order of their creation.
    #[must_use]
    pub fn live(&self, object: LedgerObject) -> Vec<String> {
        let mut live: Vec<String> = Vec::new();
        for event in self.life.iter().filter(|event| event.object == object) {
            match event.kind {
                LifeKind::Created => live.push(event.uid.clone()),
                LifeKind::Failed | LifeKind::Renamed => {}
                LifeKind::Released | LifeKind::Removed => live.retain(|uid| *uid != event.uid),
            }
        }
        live
    }

    /// The uids that were created in one account under one name, if there are several. A client that marks each create
    /// with a name of its own has no duplicates.
    #[must_use]
    pub fn duplicates(&self, object: LedgerObject) -> Vec<Vec<String>> {
        let mut by_name: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
        for event in self.life.iter().filter(|event| event.object == object && event.kind == LifeKind::Created) {
            by_name.entry((&event.account, &event.name)).or_default().push(event.uid.clone());
        }
        by_name.into_values().filter(|uids| uids.len() > 1).collect()
    }

    /// The requests to one endpoint, by its name.
    pub fn requests_to<'a>(&'a self, endpoint: &'a str) -> impl Iterator<Item = &'a RequestEntry> {
        self.requests.iter().filter(move |request| request.endpoint.as_deref() == Some(endpoint))
    }
}
