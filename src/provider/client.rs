//! The configured provider, as its resources and data sources use it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool},
};

use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use super::{Environment, account_budget::AccountBudget};
use crate::{
    api::{self, CloudDisk, Instance, Journal, Listing, ObjectKind, PendingRecord, PrivateImage, Quotes},
    framework::{self, value::Number},
};

/// The configured provider, as its resources and data sources use it.
#[derive(Debug)]
pub struct ProviderClient {
    /// The client of the service.
    pub(super) api: api::Client,
    /// The journal of creates.
    pub(super) journal: Journal,
    /// The quotes of plans, for the plan inside the apply.
    pub(super) quotes: Quotes,
    /// The default region.
    pub(super) region: Option<String>,
    /// The image registry.
    pub(super) registry_host: Option<String>,
    /// Whether plans are checked against the service.
    pub(super) preflight: bool,
    /// The budget of each instance.
    pub(super) max_hourly_price: Option<Number>,
    /// The budget of the whole account.
    pub(super) account_budget: Option<AccountBudget>,
    /// The environment's setting for instances that cannot be released.
    pub(super) on_unreleasable: Option<OnUnreleasable>,
    /// The handling of leftovers of the same configuration.
    pub(super) on_leftover: OnLeftover,
    /// Stack (or working directory) and workspace.
    pub(super) place: String,
    /// The operator's environment: variables, files and SSH agent.
    pub(super) environment: Environment,
    /// The objects that existed before this run created any.
    pub(super) before: Before,
    pub(super) seen: Mutex<SeenStates>,
    /// Whether the run has already reported that the provider's address or token is missing or wrong.
    pub(super) has_reported_misconfiguration: AtomicBool,
}

/// The objects that existed before this run created any, requested once: only leftovers of earlier runs matter.
#[derive(Debug, Default)]
pub(super) struct Before {
    pub(super) instances: OnceCell<Arc<Listing<Instance>>>,
    pub(super) cloud_disks: OnceCell<Arc<Listing<CloudDisk>>>,
    pub(super) private_images: OnceCell<Arc<Listing<PrivateImage>>>,
}

/// The parts of the state that this run has seen.
#[derive(Debug, Default)]
pub(super) struct SeenStates {
    /// The objects in a state, and whether they were planned with it: a tainted one is planned as a new object (plugin
    /// protocol, planning).
    in_a_state: BTreeMap<(&'static str, String), bool>,
    /// The leftovers that a create has adopted.
    adopted: BTreeSet<String>,
}

/// The handling of an object that has the marker of the same configuration and no pending record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLeftover {
    /// Adopts it.
    Adopt,
    /// Fails with an error.
    #[default]
    Fail,
    /// Warns, and creates another.
    Warn,
}

impl OnLeftover {
    /// Parses the value in the configuration.
    pub(super) fn parse(word: &str) -> Option<Self> {
        match word {
            "adopt" => Some(Self::Adopt),
            "fail" => Some(Self::Fail),
            "warn" => Some(Self::Warn),
            _ => None,
        }
    }
}

/// The handling of an instance whose release the service forbids (service API, 160012).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnUnreleasable {
    /// Removes the instance from the state; it keeps running until the end of its term.
    Abandon,
    /// Fails with an error.
    Fail,
}

impl OnUnreleasable {
    /// Parses the value in the configuration or the environment.
    pub(super) fn parse(word: &str) -> Option<Self> {
        match word {
            "abandon" => Some(Self::Abandon),
            "fail" => Some(Self::Fail),
            _ => None,
        }
    }
}

impl ProviderClient {
    /// A client that checks plans and has no budget.
    pub(super) fn new(api: api::Client, journal: Journal, place: String) -> Self {
        Self {
            api,
            quotes: Quotes::beside(&journal),
            journal,
            region: None,
            registry_host: None,
            preflight: true,
            max_hourly_price: None,
            account_budget: None,
            on_unreleasable: None,
            on_leftover: OnLeftover::default(),
            place,
            environment: Environment::default(),
            before: Before::default(),
            seen: Mutex::default(),
            has_reported_misconfiguration: AtomicBool::new(false),
        }
    }

    /// The key that identifies a create between runs: the same working directory, workspace and configuration have the
    /// same key.
    pub(super) fn create_key(&self, configuration: &str) -> String {
        let mut hash = Sha256::new();
        for part in [self.place.as_str(), configuration] {
            hash.update(part.as_bytes());
            hash.update(b"\0");
        }
        hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }

    /// Records that an object is in a state. This proves that Terraform stored the result of its create, so the pending
    /// record is removed.
    pub(super) fn in_a_state(&self, kind: ObjectKind, id: &str) {
        self.seen().in_a_state.entry((kind.as_str(), id.to_owned())).or_insert(false);
        let Some(base_url) = self.base_url() else { return };
        if let Err(error) = self.journal.seen(kind, id, &base_url) {
            tracing::warn!(%error, "the pending record of a finished create could not be cleared");
        }
    }

    /// Like [`Self::in_a_state`], for an object that is planned with its state.
    pub(super) fn planned_with_state(&self, kind: ObjectKind, id: &str) {
        self.in_a_state(kind, id);
        self.seen().in_a_state.insert((kind.as_str(), id.to_owned()), true);
    }

    /// Whether an object is tainted in the state: a refresh read it, but no plan received its state.
    pub(super) fn is_tainted(&self, kind: ObjectKind, id: &str) -> bool {
        self.seen().in_a_state.get(&(kind.as_str(), id.to_owned())) == Some(&false)
    }

    /// Stores for the apply that an object with a name like a leftover's is in the state.
    pub(super) fn keep_marked_name(&self, kind: ObjectKind, id: &str, name: Option<&str>) {
        let is_hex = |text: &str| matches!(text.len(), 8 | 12) && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        if name.and_then(|name| name.rsplit_once('-')).is_some_and(|(_, end)| is_hex(end)) {
            self.quotes.keep(&self.shown_key(kind, id), &true, jiff::Timestamp::now().as_second());
        }
    }

    /// Whether the plan or apply of this run saw an object in a state.
    pub(super) fn was_in_a_state(&self, kind: ObjectKind, id: &str) -> bool {
        let is_here = self.seen().in_a_state.contains_key(&(kind.as_str(), id.to_owned()));
        is_here || self.quotes.find(&self.shown_key(kind, id), jiff::Timestamp::now().as_second()) == Some(true)
    }

    fn shown_key(&self, kind: ObjectKind, id: &str) -> String {
        format!("{}|in a state|{}|{id}", self.base_url().unwrap_or_default(), kind.as_str())
    }

    /// Whether a create may adopt a leftover. Each is adopted only once.
    pub(super) fn adopts(&self, id: &str) -> bool {
        self.seen().adopted.insert(id.to_owned())
    }

    /// Removes the pending record of an object that was released.
    pub(super) fn released(&self, kind: ObjectKind, id: &str) {
        if let (ObjectKind::Instance, Some(budget)) = (kind, &self.account_budget) {
            budget.released(id);
        }
        let Some(base_url) = self.base_url() else { return };
        if let Err(error) = self.journal.released(kind, id, &base_url) {
            tracing::warn!(%error, "the pending record of a released object could not be cleared");
        }
    }

    /// The pending record that a create with this key (and one of these candidates, if it has several) would adopt.
    pub(super) fn resumable(&self, kind: ObjectKind, key: &str, candidates: &[String]) -> Option<PendingRecord> {
        self.journal.left_for(kind, key, &self.base_url()?, candidates).ok()?.into_iter().next()
    }

    /// The service's base address, as stored in pending records and quotes.
    pub(super) fn base_url(&self) -> Option<String> {
        self.api.settings().base_url.as_ref().map(ToString::to_string)
    }

    fn seen(&self) -> MutexGuard<'_, SeenStates> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The limits of a step for the service's client.
pub(super) fn limits<C>(context: &framework::StepContext<C>) -> api::Context {
    api::Context { cancel: context.stopping.clone(), deadline: context.deadline }
}

/// The limits of a plan for the service's client.
pub(super) fn planning_limits<C>(context: &framework::PlanContext<'_, C>) -> api::Context {
    api::Context { cancel: context.stopping.clone(), deadline: context.deadline }
}
