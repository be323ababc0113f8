//! The data of the simulated service: accounts, catalogue, instances, disks, images.
//!
//! There are no background tasks: a change that takes time is stored with its due time, and [`World::apply_due`],
//! called before each request, applies the due changes in order. So the same requests at the same times give the same
//! world.

mod catalogue;
mod disk;
mod due;
mod image;
mod instance;
mod mutate;

use serde::{Deserialize, Serialize};

use super::{
    ledger::{LedgerObject, LifeEvent, LifeKind},
    options::SandboxSecret,
    random::RandomStream,
};

pub(super) use self::{
    catalogue::{ChatModel, Spec},
    disk::{Binding, Disk, DiskNext, DiskOrder, DiskSpec, DiskStatus, DiskStep, disk_path_problem, path_problem},
    image::{ImageKind, PrivateImage, PublicImage, Push, uuid, version_of},
    instance::{BillingType, Host, Instance, InstanceImage, Mount, Next, ScheduledChange, internal_ip, ssh_port},
};

/// All data of the simulated service.
#[derive(Clone, Debug, Serialize)]
pub(super) struct World {
    pub(super) seed: u64,
    /// How many random streams were drawn.
    pub(super) draws: u64,
    /// The last database id given out.
    pub(super) last_id: i64,
    /// How far the life clock was advanced by hand.
    pub(super) advanced_ms: i64,
    pub(super) registry_host: String,
    pub(super) accounts: Vec<Account>,
    pub(super) specs: Vec<Spec>,
    pub(super) disk_specs: Vec<DiskSpec>,
    pub(super) public_images: Vec<PublicImage>,
    pub(super) private_images: Vec<PrivateImage>,
    pub(super) instances: Vec<Instance>,
    pub(super) disks: Vec<Disk>,
    /// The hosted models.
    pub(super) models: Vec<ChatModel>,
    /// The events of all objects, in order.
    pub(super) life: Vec<LifeEvent>,
}

impl World {
    /// A new stream of random values.
    pub(super) fn draw(&mut self) -> RandomStream {
        self.draws += 1;
        RandomStream::new(self.seed, self.draws)
    }

    /// A new database id.
    pub(super) fn next_id(&mut self) -> i64 {
        self.last_id += 1;
        self.last_id
    }

    pub(super) fn account(&self, name: &str) -> Option<&Account> {
        self.accounts.iter().find(|account| account.name == name)
    }

    pub(super) fn spec(&self, id: i64) -> Option<&Spec> {
        self.specs.iter().find(|spec| spec.id == id)
    }

    /// Returns GPUs to the stock of a specification.
    pub(super) fn give_back(&mut self, spec_id: i64, gpus: i64) {
        if let Some(spec) = self.specs.iter_mut().find(|spec| spec.id == spec_id) {
            spec.stock += gpus;
        }
    }

    /// Adds an event to the ledger.
    pub(super) fn record(
        &mut self,
        at_ms: i64,
        object: LedgerObject,
        kind: LifeKind,
        uid: &str,
        name: &str,
        account: &str,
    ) {
        self.life.push(LifeEvent {
            sequence: u64::try_from(self.life.len()).unwrap_or(u64::MAX).saturating_add(1),
            at_ms,
            object,
            kind,
            uid: uid.to_owned(),
            name: name.to_owned(),
            account: account.to_owned(),
        });
    }
}

/// When lists and details show a new object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Visibility {
    /// Not before this moment.
    pub(crate) from_ms: i64,
    /// Not before this many reads that would have shown it.
    pub(crate) after_reads: u32,
}

impl Visibility {
    /// Whether a read shows the object; the read counts.
    pub(crate) fn is_seen(&mut self, now_ms: i64) -> bool {
        if self.after_reads > 0 {
            self.after_reads -= 1;
            return false;
        }
        now_ms >= self.from_ms
    }
}

/// An account of the service (service API, Authentication).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Account {
    pub(crate) name: String,
    /// X-Service-Token.
    pub(crate) token: SandboxSecret,
    /// Further valid tokens, oldest first.
    pub(crate) further_tokens: Vec<SandboxSecret>,
    /// The bearer key of the chat endpoint.
    pub(crate) chat_key: SandboxSecret,
    /// The balance of the main account.
    pub(crate) balance: f64,
    /// Whether the main account has real-name certification.
    pub(crate) certified: bool,
    /// Whether the account or its risk state forbids creating instances.
    pub(crate) at_risk: bool,
    /// Whether cloud disk operations and storage specification queries are permitted.
    pub(crate) may_use_disks: bool,
    /// Whether private images may be renamed and deleted.
    pub(crate) may_use_images: bool,
    pub(crate) saves: Saves,
}

impl Account {
    /// Whether this is one of its tokens.
    pub(crate) fn accepts(&self, token: &str) -> bool {
        [&self.token].into_iter().chain(&self.further_tokens).any(|known| known.reveal() == token)
    }

    /// Makes a token invalid; the oldest further one replaces the first. Returns false if the account does not have the
    /// token, or has no other.
    pub(crate) fn revoke(&mut self, token: &str) -> bool {
        if let Some(index) = self.further_tokens.iter().position(|known| known.reveal() == token) {
            self.further_tokens.remove(index);
            return true;
        }
        if self.token.reveal() != token || self.further_tokens.is_empty() {
            return false;
        }
        self.token = self.further_tokens.remove(0);
        true
    }
}

/// The accepted image saves of an account, as the limits count them (service API, Limits).
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Saves {
    /// When the last one was accepted.
    last_ms: Option<i64>,
    /// The number of saves on the day of the last one.
    on_last_day: u32,
}

impl Saves {
    /// Whether the last one is less than this long ago.
    pub(crate) fn is_busy(&self, now_ms: i64, window_ms: i64) -> bool {
        self.last_ms.is_some_and(|last_ms| now_ms.saturating_sub(last_ms) < window_ms)
    }

    /// The number of saves today. A day begins at midnight UTC here.
    pub(crate) fn today(&self, now_ms: i64) -> u32 {
        let is_today = self.last_ms.is_some_and(|last_ms| day(last_ms) == day(now_ms));
        if is_today { self.on_last_day } else { 0 }
    }

    pub(crate) fn count(&mut self, now_ms: i64) {
        self.on_last_day = self.today(now_ms).saturating_add(1);
        self.last_ms = Some(now_ms);
    }
}

fn day(ms: i64) -> i64 {
    ms.div_euclid(86_400_000)
}
