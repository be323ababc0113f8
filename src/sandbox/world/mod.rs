//! What the simulated service knows: accounts, catalogue, instances, disks, images. Its serialized form is the state
//! file.
//!
//! Nothing runs in the background: a change that takes time is noted with the moment it is due, and [`World::settle`],
//! called before each request, brings everything up to date in the order of those moments. So the same requests at the
//! same times give the same world.

mod account;
mod catalogue;
mod disk;
mod host;
mod image;
mod instance;
mod model;
mod mutate;
mod path;
mod settle;
mod spec;

use serde::{Deserialize, Serialize};

pub(super) use self::{
    account::Account,
    disk::{Binding, Disk, DiskNext, DiskSpec, DiskStatus, DiskStep, NewDisk},
    host::Host,
    image::{ImageKind, PrivateImage, PublicImage, Push, uuid, version_of},
    instance::{Instance, InstanceImage, Mount, Next, Payment, Step, Visibility, internal_ip, ssh_port},
    model::ChatModel,
    path::{disk_path_problem, path_problem},
    spec::{Prices, Spec},
};
use super::{
    ledger::{LifeEvent, LifeKind, Thing},
    options::Options,
    random::Random,
    secret::Secret,
};

/// The version of the state file.
pub(super) const VERSION: u64 = 3;

/// Everything the simulated service knows.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct World {
    pub(super) version: u64,
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
    #[serde(default = "catalogue::models")]
    pub(super) models: Vec<ChatModel>,
    /// Births and deaths of everything, in order.
    pub(super) life: Vec<LifeEvent>,
}

impl World {
    /// The seed catalogue, with what the options add.
    pub(super) fn seeded(options: &Options, now_ms: i64) -> Self {
        let mut world = catalogue::world(options.seed, &options.registry_host, now_ms);
        world.set_main_secrets(options);
        for number in 1..=options.generate_instances {
            world.generate_instance(number, now_ms);
        }
        for number in 1..=options.generate_disks {
            world.generate_disk(number, now_ms);
        }
        for number in 1..=options.generate_images {
            world.generate_image(number, now_ms);
        }
        world
    }

    /// Gives the main account the secrets that the options name.
    pub(super) fn set_main_secrets(&mut self, options: &Options) {
        use secrecy::ExposeSecret;

        if let Some(main) = self.accounts.first_mut() {
            if let Some(token) = &options.token {
                main.token = Secret::new(token.expose_secret());
            }
            if let Some(key) = &options.chat_key {
                main.chat_key = Secret::new(key.expose_secret());
            }
        }
    }

    /// A stream of random values that was not drawn from before.
    pub(super) fn draw(&mut self) -> Random {
        self.draws += 1;
        Random::new(self.seed, self.draws)
    }

    /// A new database id.
    pub(super) fn next_id(&mut self) -> i64 {
        self.last_id += 1;
        self.last_id
    }

    pub(super) fn account(&self, name: &str) -> Option<&Account> {
        self.accounts.iter().find(|account| account.name == name)
    }

    /// The account's cloud disks, by id.
    pub(super) fn disks_of<'a>(&'a self, account: &'a str) -> impl Iterator<Item = &'a Disk> {
        self.disks.iter().filter(move |disk| disk.account == account)
    }

    pub(super) fn spec(&self, id: i64) -> Option<&Spec> {
        self.specs.iter().find(|spec| spec.id == id)
    }

    /// Gives GPUs back to the stock of a specification.
    pub(super) fn give_back(&mut self, spec_id: i64, gpus: i64) {
        if let Some(spec) = self.specs.iter_mut().find(|spec| spec.id == spec_id) {
            spec.stock += gpus;
        }
    }

    /// Writes a birth or death into the ledger.
    pub(super) fn record(&mut self, at_ms: i64, thing: Thing, kind: LifeKind, uid: &str, name: &str, account: &str) {
        self.life.push(LifeEvent {
            sequence: u64::try_from(self.life.len()).unwrap_or(u64::MAX).saturating_add(1),
            at_ms,
            thing,
            kind,
            uid: uid.to_owned(),
            name: name.to_owned(),
            account: account.to_owned(),
        });
    }
}
