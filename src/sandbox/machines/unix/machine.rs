//! One machine: what was last seen of its instance, and what follows from a difference.

use std::{io, sync::Arc, time::Duration};

use russh::{
    MethodSet, SshId,
    keys::{PrivateKey, ssh_key::private::Ed25519Keypair},
    server::Config,
};
use sha2::{Digest, Sha256};
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    Site,
    guest::Guest,
    listener::{Port, Sshd, Up, serve},
    processes,
};
use crate::sandbox::{machines::MachineView, world::Instance};

/// A machine that is switched on, or off. Dropping it ends all of it.
#[derive(Debug)]
pub(super) struct Machine {
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
    pub(super) fn start(
        site: &Site,
        instance: &mut Instance,
        seed: u64,
        sshd_start_ms: i64,
        now_ms: i64,
    ) -> io::Result<Self> {
        // After a restart of the sandbox the port is what it was, where it is still free.
        let kept = if instance.host.has_port { u16::try_from(instance.ssh_port).unwrap_or(0) } else { 0 };
        let (mut held, port) = Port::reserve(kept).or_else(|_| Port::reserve(0))?;
        instance.ssh_port = i64::from(port);
        instance.host.has_port = true;
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
            // At once, so that whoever reads that it is Running is not refused.
            let _runtime = site.runtime.enter();
            held = Port::Listening(held.listen()?);
        }
        site.tasks.spawn_on(serve(Some(held), port, changes, guest, site.tasks.clone()), &site.runtime);
        Ok(machine)
    }

    /// Makes it what its instance is now.
    pub(super) fn follow(&mut self, instance: &Instance, seed: u64, sshd_start_ms: i64, now_ms: i64) {
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

    pub(super) fn view(&self) -> MachineView {
        MachineView {
            uid: self.guest.uid.clone(),
            ssh_port: self.port,
            host_key: self.host_key.public_key().to_openssh().unwrap_or_default(),
            home: self.guest.home(),
            processes: processes::of(&self.guest.marker),
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
