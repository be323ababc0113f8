use std::{sync::Arc, time::Duration};

use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use super::Environment;
use crate::{
    api::{self, CloudDisk, Instance, Journal, Kind, Listing, Witness},
    framework::{self, value::Number},
};

/// What a configured provider hands to its resources and data sources.
#[derive(Debug)]
pub struct Client {
    /// The service.
    pub(super) api: api::Client,
    /// Creates in flight.
    pub(super) journal: Journal,
    /// The region of what does not name its own.
    pub(super) region: Option<String>,
    /// The image registry.
    pub(super) registry_host: Option<String>,
    /// Whether plans are checked against the service.
    pub(super) preflight: bool,
    /// The budget of each instance.
    pub(super) max_hourly_price: Option<Number>,
    /// What the environment says about instances that cannot be released.
    pub(super) on_unreleasable: Option<OnUnreleasable>,
    /// Working directory and workspace.
    pub(super) place: String,
    /// Where files and the SSH agent of the operator are.
    pub(super) environment: Environment,
    /// The instances there were before this run made any.
    pub(super) before: OnceCell<Arc<Listing<Instance>>>,
    /// The disks there were before this run made any.
    pub(super) disks_before: OnceCell<Arc<Listing<CloudDisk>>>,
}

/// What a destroy does when the service forbids the release (service API, 160012).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnUnreleasable {
    /// Drops the instance from the state and leaves it to its term.
    Abandon,
    /// Is an error.
    Fail,
}

impl OnUnreleasable {
    /// Reads the word of a configuration or the environment.
    pub(super) fn parse(word: &str) -> Option<Self> {
        match word {
            "abandon" => Some(Self::Abandon),
            "fail" => Some(Self::Fail),
            _ => None,
        }
    }
}

impl Client {
    /// A client that checks plans and has no budget.
    pub(super) fn new(api: api::Client, journal: Journal, place: String) -> Self {
        Self {
            api,
            journal,
            region: None,
            registry_host: None,
            preflight: true,
            max_hourly_price: None,
            on_unreleasable: None,
            place,
            environment: Environment::default(),
            before: OnceCell::new(),
            disks_before: OnceCell::new(),
        }
    }

    /// The key under which a create that a killed run left behind is found again: the same working directory, workspace and
    /// configuration.
    pub(super) fn create_key(&self, configuration: &str) -> String {
        let mut hash = Sha256::new();
        for part in [self.place.as_str(), configuration] {
            hash.update(part.as_bytes());
            hash.update(b"\0");
        }
        hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }

    /// The instances there were when this run made its first one. Asked for once, since only what earlier runs left behind matters.
    pub(super) async fn instances_before(&self, context: &api::Context) -> Result<&Listing<Instance>, api::Error> {
        let listing = self.before.get_or_try_init(|| async { self.api.instances().snapshot(context).await });
        listing.await.map(AsRef::as_ref)
    }

    /// The disks there were when this run made its first one.
    pub(super) async fn disks_before(&self, context: &api::Context) -> Result<&Listing<CloudDisk>, api::Error> {
        let listing = self.disks_before.get_or_try_init(|| async { self.api.cloud_disks().snapshot(context).await });
        listing.await.map(AsRef::as_ref)
    }

    /// Notes that a state shows a thing, which proves that the core stored what its create answered, whatever the provider then
    /// believed.
    pub(super) fn known_in_a_state(&self, kind: Kind, id: &str) {
        let Some(base_url) = self.api.settings().base_url.as_ref() else { return };
        if let Err(error) = self.journal.seen(kind, id, &base_url.to_string()) {
            tracing::warn!(%error, "the note of a finished create could not be cleared");
        }
    }

    /// What was seen to exist in this run.
    pub(super) fn witness(&self) -> &Witness {
        self.api.witness()
    }
}

/// The framework's end of a step, as the service's client takes it.
pub(super) fn limits<C>(context: &framework::Context<C>) -> api::Context {
    api::Context { cancel: context.cancel.clone(), deadline: context.deadline }
}

/// How long the checks of one plan may take: a service that does not answer must not keep a reviewer.
const PLANNING: Duration = Duration::from_secs(60);

/// The end of planning, as the service's client takes it.
pub(super) fn planning_limits<C>(context: &framework::PlanContext<'_, C>) -> api::Context {
    api::Context::within(PLANNING, &context.cancel)
}
