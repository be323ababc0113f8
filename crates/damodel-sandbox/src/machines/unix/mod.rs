//! Machines on Unix systems.

mod exec;
mod guest;
mod listener;
mod session;
mod site;
mod terminal;

use std::{
    collections::HashMap,
    fs, io,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command, ExitCode, Stdio},
    sync::Arc,
    time::Duration,
};

use russh::{
    MethodSet, SshId,
    keys::{PrivateKey, PublicKey, ssh_key::private::Ed25519Keypair},
    server::Config,
};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::{runtime::Handle, sync::watch, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    guest::Guest,
    listener::{Port, Sshd, Up, serve},
    site::Site,
};
use super::MachineView;
use crate::{
    options::{Error, LifeClock, Options},
    world::{Instance, World},
};

/// The most instances with an sshd: further ones have invented ports, so that a load test does not run out of file
/// descriptors.
const MOST: usize = 256;

/// The machines of a sandbox.
#[derive(Debug)]
pub(crate) struct Machines {
    site: Site,
    machines: HashMap<String, Machine>,
    /// Removed when the sandbox ends, after the machines, which end their processes.
    _folder: TempDir,
    /// `Some` from the first machine on.
    guard: Option<Guard>,
}

impl Machines {
    /// An empty set. Must be called on the runtime that will run the machines.
    pub(crate) fn new(options: &Options) -> Result<Self, Error> {
        let folder = tempfile::Builder::new().prefix(FOLDER).tempdir().map_err(Error::Homes)?;
        let site = Site {
            folder: folder.path().to_owned(),
            keys: options
                .keys
                .iter()
                .map(|(name, line)| match PublicKey::from_openssh(line) {
                    Ok(key) => Ok((name.clone(), key)),
                    Err(error) => Err(Error::Key { name: name.clone(), reason: error.to_string() }),
                })
                .collect::<Result<_, _>>()?,
            executable: options.executable.clone(),
            runtime: Handle::current(),
            tasks: TaskTracker::new(),
            neighbours: Arc::default(),
            is_standing: matches!(options.life_clock, LifeClock::Standing(_)),
        };
        Ok(Self { site, machines: HashMap::new(), _folder: folder, guard: None })
    }

    /// Brings the machines in line with the world at this moment, and gives the instances their ports.
    pub(crate) fn follow(&mut self, world: &mut World, sshd_start_ms: i64, now_ms: i64) {
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

    /// A sandbox that is killed leaves no process running.
    fn start_guard(&mut self) {
        if let (None, Some(executable)) = (&self.guard, &self.site.executable) {
            match Guard::start(executable, &self.site.folder) {
                Ok(guard) => self.guard = Some(guard),
                Err(error) => tracing::error!(%error, "the processes of the instances are not guarded"),
            }
        }
    }

    pub(crate) fn view(&self) -> Vec<MachineView> {
        let mut views: Vec<MachineView> = self.machines.values().map(Machine::view).collect();
        views.sort_by(|one, other| one.uid.cmp(&other.uid));
        views
    }

    /// Ends all machines. The returned tracker waits for the last connection.
    pub(crate) fn end(mut self) -> TaskTracker {
        self.machines.clear();
        self.site.tasks.close();
        self.site.tasks.clone()
    }
}

/// Whether the instance's machine is removed (service API, POST /api/instance/release: system and data disk are
/// deleted).
fn is_gone(instance: &Instance) -> bool {
    instance.status == "Failed" || instance.is_released()
}

/// A machine, on or off. Dropping it ends its processes and sessions, and removes its files.
#[derive(Debug)]
struct Machine {
    site: Site,
    guest: Arc<Guest>,
    port: u16,
    internal_ip: String,
    host_key: PrivateKey,
    key_generation: u64,
    reboots: u64,
    is_on: bool,
    /// Cuts the sessions of this boot.
    boot: CancellationToken,
    sshd: watch::Sender<Sshd>,
}

impl Machine {
    /// Switches the machine of a Running instance on, and gives the instance its port.
    fn start(site: &Site, instance: &mut Instance, seed: u64, sshd_start_ms: i64, now_ms: i64) -> io::Result<Self> {
        let (mut held, port) = Port::reserve(0)?;
        instance.ssh_port = i64::from(port);
        site.neighbours.add(&instance.internal_ip, port);
        let (sshd, changes) = watch::channel(Sshd::Down);
        let guest = Arc::new(Guest::new(site, instance));
        let mut machine = Self {
            site: site.clone(),
            guest: guest.clone(),
            port,
            internal_ip: instance.internal_ip.clone(),
            host_key: host_key(seed, instance),
            key_generation: instance.host.key_generation,
            reboots: instance.host.reboots,
            is_on: true,
            boot: CancellationToken::new(),
            sshd,
        };
        machine.follow(instance, seed, sshd_start_ms, now_ms);
        if let Sshd::Up(up) = &*changes.borrow()
            && up.from <= Instant::now()
        {
            // At once, so that a client that reads Running is not refused.
            let _runtime = site.runtime.enter();
            held = Port::Listening(held.listen()?);
        }
        site.tasks.spawn_on(serve(Some(held), port, changes, guest, site.tasks.clone()), &site.runtime);
        Ok(machine)
    }

    /// Brings the machine in line with its instance.
    fn follow(&mut self, instance: &Instance, seed: u64, sshd_start_ms: i64, now_ms: i64) {
        let is_on = instance.status == "Running";
        if (self.is_on && !is_on) || self.reboots != instance.host.reboots {
            self.power_off();
        }
        self.is_on = is_on;
        self.reboots = instance.host.reboots;
        if self.key_generation != instance.host.key_generation {
            self.key_generation = instance.host.key_generation;
            self.host_key = host_key(seed, instance);
            self.sshd.send_replace(Sshd::Down);
        }
        self.guest.equip(instance.machine());
        let delay = u64::try_from(instance.sshd_from_ms(sshd_start_ms).saturating_sub(now_ms)).unwrap_or(0);
        let is_up = is_on && !instance.host.is_sshd_down && (delay == 0 || !self.site.is_standing);
        let was_up = matches!(*self.sshd.borrow(), Sshd::Up(_));
        if was_up && !is_up {
            self.sshd.send_replace(Sshd::Down);
        }
        if was_up || !is_up {
            return;
        }
        let config = Arc::new(config(&self.host_key, self.guest.methods()));
        let from = Instant::now() + Duration::from_millis(delay);
        self.sshd.send_replace(Sshd::Up(Up { from, config, boot: self.boot.clone() }));
    }

    fn view(&self) -> MachineView {
        MachineView {
            uid: self.guest.uid.clone(),
            ssh_port: self.port,
            host_key: self.host_key.public_key().to_openssh().unwrap_or_default(),
            home: self.guest.home(),
            processes: exec::of(&self.guest.marker),
        }
    }

    /// Ends all processes and cuts all sessions.
    fn power_off(&mut self) {
        self.sshd.send_replace(Sshd::Down);
        self.boot.cancel();
        self.boot = CancellationToken::new();
        self.guest.power_off();
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.power_off();
        self.sshd.send_replace(Sshd::Gone);
        self.site.neighbours.remove(&self.internal_ip, self.port);
        self.guest.remove();
    }
}

/// The host key: the same for the same seed, instance and generation, so that it outlives a restart of the sandbox.
fn host_key(seed: u64, instance: &Instance) -> PrivateKey {
    let text = format!("host key {} of {} in {seed}", instance.host.key_generation, instance.uid);
    PrivateKey::from(Ed25519Keypair::from_seed(&Sha256::digest(text.as_bytes()).into()))
}

fn config(host_key: &PrivateKey, methods: MethodSet) -> Config {
    Config {
        server_id: SshId::Standard("SSH-2.0-damodel_sandbox".into()),
        methods,
        auth_rejection_time: Duration::from_millis(50),
        auth_rejection_time_initial: Some(Duration::ZERO),
        // OpenSSH's MaxAuthTries.
        max_auth_attempts: 6,
        keys: vec![host_key.clone()],
        inactivity_timeout: None,
        nodelay: true,
        ..Config::default()
    }
}

/// The name under which this program runs as the guard.
pub(crate) const GUARD: &str = "sandbox-guard";

/// The prefix of the names of folders with instances. The guard removes no other folder.
const FOLDER: &str = "sandbox-";

/// The guard process of a sandbox. Dropping it waits until the process has ended.
#[derive(Debug)]
struct Guard(Child);

impl Guard {
    /// Guards the processes and files of the instances in this folder.
    fn start(executable: &Path, folder: &Path) -> io::Result<Self> {
        let mut command = Command::new(executable);
        // A process group of its own, so that Ctrl-C ends only the sandbox.
        command.arg0(GUARD).arg(folder).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().map(Self)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        if let Err(error) = self.0.wait() {
            tracing::debug!(%error, "the guard was not waited for");
        }
    }
}

/// The guard process: waits for the end of the sandbox, then ends the remaining processes and removes the folder.
pub(crate) fn guard(folder: Option<&str>) -> ExitCode {
    let Some(folder) = folder.map(Path::new).filter(|folder| is_ours(folder)) else { return ExitCode::FAILURE };
    // It closes with the sandbox, and carries no data.
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
    for instance in fs::read_dir(folder).into_iter().flatten().flatten() {
        exec::end(&instance.path().display().to_string());
    }
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

fn is_ours(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(FOLDER))
}
