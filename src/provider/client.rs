//! The configured provider, as its resources and data sources use it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError, atomic::AtomicBool},
};

use super::{Environment, account_budget::AccountBudget};
use crate::{
    api::{self, Context, Creation, Object, ObjectKind},
    creation::{Journal, PendingRecord, Quotes, request_hash},
    framework::{self, Diagnostic, value::Number},
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
    /// The default `max_age` of hourly instances.
    pub(super) default_max_age: Option<String>,
    /// Whether plans are checked against the service.
    pub(super) preflight: bool,
    /// The budget of each instance.
    pub(super) max_hourly_price: Option<Number>,
    /// The budget of each prepaid term.
    pub(super) max_prepaid_total: Option<Number>,
    /// The budget of the whole account.
    pub(super) account_budget: Option<AccountBudget>,
    /// The environment's setting for instances that cannot be released.
    pub(super) on_unreleasable: Option<DestroyFallback>,
    /// The environment's setting for llama servers that cannot be reached.
    pub(super) on_unreachable: Option<DestroyFallback>,
    /// The handling of leftovers of the same configuration.
    pub(super) on_leftover: OnLeftover,
    /// Whether a create fails if a living object has its name.
    pub(super) unique_names: bool,
    /// The operator's environment: variables, files and SSH agent.
    pub(super) environment: Environment,
    pub(super) seen: Mutex<SeenObjects>,
    /// Whether the run has already reported that a name is shown in another spelling.
    pub(super) has_reported_spelling: AtomicBool,
    /// Whether the run has already reported that the provider's address or token is missing or wrong.
    pub(super) has_reported_misconfiguration: AtomicBool,
}

/// The objects and records that this run has met.
#[derive(Debug, Default)]
pub(super) struct SeenObjects {
    /// The objects that were refreshed, and whether they were planned with a state: a tainted one is planned as a new
    /// object (plugin protocol, planning).
    refreshed: BTreeMap<(ObjectKind, String), bool>,
    /// The objects that a state or a create of this run has shown.
    shown: BTreeSet<(ObjectKind, String)>,
    /// The objects of a state that keep their names in this plan.
    keep_names: BTreeSet<(ObjectKind, String)>,
    /// The leftovers that a create of this run has named, by id or sent name.
    named: BTreeSet<(ObjectKind, String)>,
    /// The host keys that were accepted without a pin, and whose they are.
    unpinned: BTreeSet<String>,
    /// The planned llama servers by instance and port: the owner, if it is in the state.
    servers: BTreeMap<(String, i64), Option<String>>,
    /// The titles of the cloud disks that their states protect, by number.
    protected_disks: BTreeMap<i64, String>,
    /// The titles of the instances that this plan ends, by the numbers of the cloud disks that they delete.
    ending_disks: BTreeMap<i64, String>,
}

/// The handling of what an earlier run may have left under the name of a create.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLeftover {
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
            "fail" => Some(Self::Fail),
            "warn" => Some(Self::Warn),
            _ => None,
        }
    }
}

/// What a destroy does if it cannot be carried out: the service forbids the release of an instance (service API,
/// 160012), or no login to stop a server is possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DestroyFallback {
    /// Removes the object from the state; it keeps running.
    Abandon,
    /// Fails with an error.
    Fail,
}

impl DestroyFallback {
    /// Parses the value in the configuration or the environment.
    pub(super) fn parse(word: &str) -> Option<Self> {
        match word {
            "abandon" => Some(Self::Abandon),
            "fail" => Some(Self::Fail),
            _ => None,
        }
    }

    /// The value, as the configuration has it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Abandon => "abandon",
            Self::Fail => "fail",
        }
    }
}

impl ProviderClient {
    /// A client that checks plans and has no budget.
    pub(super) fn new(api: api::Client, journal: Journal) -> Self {
        Self {
            api,
            quotes: Quotes::beside(&journal),
            journal,
            region: None,
            default_max_age: None,
            preflight: true,
            max_hourly_price: None,
            max_prepaid_total: None,
            account_budget: None,
            on_unreleasable: None,
            on_unreachable: None,
            on_leftover: OnLeftover::default(),
            unique_names: false,
            environment: Environment::default(),
            seen: Mutex::default(),
            has_reported_spelling: AtomicBool::new(false),
            has_reported_misconfiguration: AtomicBool::new(false),
        }
    }

    /// Records a host key that was accepted without a pin: whether it is the first time.
    pub(super) fn accepted_unpinned(&self, host_key: &str) -> bool {
        self.seen().unpinned.insert(host_key.to_owned())
    }

    /// Forgets an instance's host key whose warning, which ends with it, was not shown.
    pub(super) fn forget_unpinned(&self, warning: &Diagnostic) {
        let is_its = |key: &String| key.strip_prefix("instance ").is_some_and(|key| warning.detail.ends_with(key));
        self.seen().unpinned.retain(|key| !is_its(key));
    }

    /// Records a planned llama server: whether it is the only one for this instance and port. The plans of a
    /// replacement have the same owner.
    pub(super) fn is_alone_at(&self, instance_id: &str, port: i64, owner: Option<String>) -> bool {
        let before = self.seen().servers.insert((instance_id.to_owned(), port), owner.clone());
        before.is_none_or(|before| before.is_some() && before == owner)
    }

    /// Records that a state protects a cloud disk. Returns the instance of this plan whose release deletes it.
    pub(super) fn protects_disk(&self, disk: i64, title: String) -> Option<String> {
        let mut seen = self.seen();
        seen.protected_disks.insert(disk, title);
        seen.ending_disks.get(&disk).cloned()
    }

    /// Records that this plan ends an instance that deletes these cloud disks. Returns the protected one of them.
    pub(super) fn ends_disks(&self, instance: &str, disks: &[i64]) -> Option<(i64, String)> {
        self.seen().ending_disks.extend(disks.iter().map(|disk| (*disk, instance.to_owned())));
        self.protected_disk(disks)
    }

    /// The one of these cloud disks that a state protects.
    pub(super) fn protected_disk(&self, disks: &[i64]) -> Option<(i64, String)> {
        let seen = self.seen();
        disks.iter().find_map(|disk| Some((*disk, seen.protected_disks.get(disk)?.clone())))
    }

    /// Records that a refresh read an object of a state.
    pub(super) fn refreshed(&self, kind: ObjectKind, id: &str, uid: Option<&str>) {
        self.seen().refreshed.entry((kind, id.to_owned())).or_insert(false);
        self.in_a_state(kind, id, uid);
    }

    /// Records that an object is planned with its state.
    pub(super) fn planned_with_state(&self, kind: ObjectKind, id: &str, uid: Option<&str>) {
        self.seen().refreshed.insert((kind, id.to_owned()), true);
        self.in_a_state(kind, id, uid);
    }

    /// Records that an object is in a state. This proves that Terraform stored the result of its create, so the pending
    /// record is removed.
    pub(super) fn in_a_state(&self, kind: ObjectKind, id: &str, uid: Option<&str>) {
        self.shows(kind, id);
        let Some(base_url) = self.base_url() else { return };
        if let Err(error) = self.journal.seen(kind, id, uid, &base_url) {
            tracing::warn!(%error, "the pending record of a finished create could not be removed");
        }
    }

    /// Records that a create of this run returns an object.
    pub(super) fn shows(&self, kind: ObjectKind, id: &str) {
        self.seen().shown.insert((kind, id.to_owned()));
    }

    /// Whether a state or a create of this run has shown an object.
    pub(super) fn has_shown(&self, kind: ObjectKind, id: &str) -> bool {
        self.seen().shown.contains(&(kind, id.to_owned()))
    }

    /// Records that an object keeps its name in this plan.
    pub(super) fn keeps_name(&self, kind: ObjectKind, id: &str) {
        self.seen().keep_names.insert((kind, id.to_owned()));
    }

    /// Whether this run may free the name of an object: it is in the state, and no plan so far keeps its name.
    pub(super) fn may_free_name(&self, kind: ObjectKind, id: &str) -> bool {
        let (seen, key) = (self.seen(), (kind, id.to_owned()));
        seen.shown.contains(&key) && !seen.keep_names.contains(&key)
    }

    /// Whether an object is tainted in the state: a refresh read it, but no plan received its state.
    pub(super) fn is_tainted(&self, kind: ObjectKind, id: &str) -> bool {
        self.seen().refreshed.get(&(kind, id.to_owned())) == Some(&false)
    }

    /// Whether a diagnostic may name this leftover: each is named once in a run.
    pub(super) fn names(&self, kind: ObjectKind, leftover: &str) -> bool {
        self.seen().named.insert((kind, leftover.to_owned()))
    }

    /// Removes the pending record of an object that was released.
    pub(super) fn released(&self, kind: ObjectKind, id: &str, uid: Option<&str>) {
        if let (ObjectKind::Instance, Some(budget)) = (kind, &self.account_budget) {
            budget.released(id);
        }
        let Some(base_url) = self.base_url() else { return };
        if let Err(error) = self.journal.seen(kind, id, uid, &base_url) {
            tracing::warn!(%error, "the pending record of a released object could not be removed");
        }
    }

    /// The pending records of earlier runs that a create of one of these requests would resume, if they are of its
    /// account.
    pub(super) fn resumable<C: Creation>(&self, requests: &[C]) -> Vec<PendingRecord> {
        let (Some(first), Some(base_url)) = (requests.first(), self.base_url()) else { return Vec::new() };
        let candidates: Vec<String> = requests.iter().filter_map(Creation::candidate).collect();
        let (kind, name) = (C::Object::KIND, first.wanted_name());
        self.journal.resumable(kind, name, &request_hash(first), &candidates, &base_url).unwrap_or_default()
    }

    /// The service's base address, as stored in pending records and quotes.
    pub(super) fn base_url(&self) -> Option<String> {
        self.api.settings().base_url.as_ref().map(ToString::to_string)
    }

    fn seen(&self) -> MutexGuard<'_, SeenObjects> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The context of a step of this provider.
pub(super) type StepContext = framework::StepContext<ProviderClient>;

/// The context of a plan of this provider.
pub(super) type PlanContext<'a> = framework::PlanContext<'a, ProviderClient>;

/// The limits of a step for the service's client.
pub(super) fn limits(context: &StepContext) -> Context {
    Context { cancel: context.stopping.clone(), deadline: context.deadline }
}

/// The limits of a plan for the service's client.
pub(super) fn planning_limits(context: &PlanContext<'_>) -> Context {
    Context { cancel: context.stopping.clone(), deadline: context.deadline }
}
