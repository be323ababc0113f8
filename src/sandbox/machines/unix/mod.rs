//! The machines where the system is a Unix.

mod exec;
mod guard;
mod guest;
mod listener;
mod machine;
mod ports;
mod processes;
mod session;

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::Arc,
};

use russh::keys::PublicKey;
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

pub(in crate::sandbox) use self::guard::{NAME as GUARD, main as guard};
use self::{guard::Guard, machine::Machine, ports::Neighbours};
use super::MachineView;
use crate::sandbox::{
    clock::LifeClock,
    options::{Error, Options},
    world::{Instance, World},
};

/// How many instances have an sshd at most: beyond it ports are invented, so that a load test does not run out of file
/// descriptors.
const MOST: usize = 256;

/// What all machines of a sandbox share.
#[derive(Clone, Debug)]
struct Site {
    folder: PathBuf,
    keys: BTreeMap<String, PublicKey>,
    executable: Option<PathBuf>,
    runtime: Handle,
    tasks: TaskTracker,
    neighbours: Arc<Neighbours>,
    /// Whether time stands still between requests, so that nothing may come to pass by itself.
    is_standing: bool,
}

/// The machines of a sandbox.
#[derive(Debug)]
pub(in crate::sandbox) struct Machines {
    site: Site,
    machines: HashMap<String, Machine>,
    /// Removed when the sandbox ends; after the machines, which end what runs there.
    _folder: TempDir,
    /// From the first machine on.
    guard: Option<Guard>,
}

impl Machines {
    /// None yet. Must be called on a runtime, where they will live.
    pub(in crate::sandbox) fn new(options: &Options) -> Result<Self, Error> {
        let folder = tempfile::Builder::new().prefix(guard::FOLDER).tempdir().map_err(Error::Homes)?;
        let read = |(name, line): (&String, &String)| match PublicKey::from_openssh(line) {
            Ok(key) => Ok((name.clone(), key)),
            Err(error) => Err(Error::Key { name: name.clone(), reason: error.to_string() }),
        };
        let site = Site {
            folder: folder.path().to_owned(),
            keys: options.keys.iter().map(read).collect::<Result<_, _>>()?,
            executable: options.executable.clone(),
            runtime: Handle::current(),
            tasks: TaskTracker::new(),
            neighbours: Arc::default(),
            is_standing: matches!(options.life_clock, LifeClock::Standing(_)),
        };
        Ok(Self { site, machines: HashMap::new(), _folder: folder, guard: None })
    }

    /// Makes the machines what the world says at this moment, and gives the instances their ports.
    pub(in crate::sandbox) fn follow(&mut self, world: &mut World, sshd_start_ms: i64, now_ms: i64) {
        let seed = world.seed;
        let mut kept = 0;
        for instance in &mut world.instances {
            if let Some(machine) = self.machines.get_mut(&instance.uid) {
                if !is_gone(instance) {
                    kept += 1;
                    machine.follow(instance, seed, sshd_start_ms, now_ms);
                }
            } else if instance.status == "Running" && self.machines.len() < MOST {
                self.start_guard();
                match Machine::start(&self.site, instance, seed, sshd_start_ms, now_ms) {
                    Ok(machine) => {
                        kept += 1;
                        self.machines.insert(instance.uid.clone(), machine);
                    }
                    Err(error) => tracing::error!(%error, uid = instance.uid, "an instance has no sshd"),
                }
            }
        }
        if kept < self.machines.len() {
            let stays = |uid: &str| world.instances.iter().any(|instance| instance.uid == uid && !is_gone(instance));
            self.machines.retain(|uid, _| stays(uid));
        }
    }

    /// Whoever kills the sandbox leaves nothing running.
    fn start_guard(&mut self) {
        if let (None, Some(executable)) = (&self.guard, &self.site.executable) {
            match Guard::start(executable, &self.site.folder) {
                Ok(guard) => self.guard = Some(guard),
                Err(error) => tracing::error!(%error, "the instances are not guarded"),
            }
        }
    }

    pub(in crate::sandbox) fn view(&self) -> Vec<MachineView> {
        let mut views: Vec<MachineView> = self.machines.values().map(Machine::view).collect();
        views.sort_by(|one, other| one.uid.cmp(&other.uid));
        views
    }

    /// Ends all machines; what is returned tells when the last connection has ended.
    pub(in crate::sandbox) fn end(mut self) -> TaskTracker {
        self.machines.clear();
        self.site.tasks.close();
        self.site.tasks.clone()
    }
}

/// Whether nothing is left of the instance's machine (service API, POST /api/instance/release: system and data disk are
/// deleted).
fn is_gone(instance: &Instance) -> bool {
    instance.status == "Failed" || instance.is_released()
}
