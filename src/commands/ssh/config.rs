//! `terraform-provider-damodel ssh-config`: Host blocks for OpenSSH's configuration.

use std::{
    fmt::Write as _,
    io::{self, Write as _},
    path::PathBuf,
    process::ExitCode,
};

use clap::Parser;
use tokio_util::sync::CancellationToken;

use super::{
    PATIENCE, Place, SshService,
    authorize::PublicKey,
    login::{Login, path},
    target::{SshTarget, StateView},
};
use crate::{
    api::{Context, Instance, InstanceStatus},
    commands::{Failure, Surroundings, sentence},
    provider::login::USER,
    review::visible,
};

/// Prints Host blocks for OpenSSH's configuration, for scp, sftp, rsync, editors and Ansible.
///
/// Each block is for one Running instance; its names are the UID and the address in the state, with `-` instead of
/// brackets and quotes: damodel_instance.gpu["a"] becomes damodel_instance.gpu-a. Write the output to a file, and name
/// it in ~/.ssh/config with Include, before any Host. After a replacement print it again: address and UID are new.
///
/// Exit codes: 0 the blocks were printed; 1 an instance is unknown or not Running, or the key was not added (nothing is
/// printed); 2 wrong usage.
#[derive(Clone, Debug, Parser)]
#[command(name = "ssh-config")]
pub struct Arguments {
    /// Adds this public key to ~/.ssh/authorized_keys of each instance, and its private key to the blocks.
    #[arg(long, value_name = "KEY.pub")]
    pub authorize: Option<PathBuf>,
    /// Where targets are found.
    #[command(flatten)]
    pub place: Place,
    /// All Running instances of the account.
    #[arg(long)]
    pub all: bool,
    /// UIDs, or addresses of a damodel_instance or damodel_llama_server in the state.
    #[arg(value_name = "TARGET", required_unless_present = "all", conflicts_with = "all")]
    pub targets: Vec<String>,
}

/// Prints the blocks.
///
/// # Errors
///
/// A target cannot be logged in to, or the key cannot be added. Nothing is printed then.
pub async fn run(arguments: Arguments, surroundings: Surroundings) -> Result<ExitCode, Failure> {
    let key = arguments.authorize.as_deref().map(PublicKey::read).transpose()?;
    let service = SshService::new(&arguments.place.service, surroundings);
    let mut logins = Vec::new();
    for (target, names) in arguments.targets(&service).await? {
        let instance = service.running(&target.uid).await?;
        logins.push((Login::new(&target, &instance, &service.surroundings).await?, names));
    }
    let mut blocks = String::new();
    for (login, names) in &logins {
        if let Some(key) = &key {
            key.add(login, &service).await?;
        }
        blocks.push_str(&block(login, names, key.as_ref()));
    }
    io::stdout().write_all(blocks.as_bytes()).map_err(Failure::terminal)?;
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    /// The instances, each once, with its names in ssh's configuration.
    async fn targets(&self, service: &SshService) -> Result<Vec<(SshTarget, Vec<String>)>, Failure> {
        let mut found: Vec<(SshTarget, Vec<String>)> = Vec::new();
        let by_uid = |uid: &str| SshTarget { uid: uid.to_owned(), pins: Vec::new() };
        if self.all {
            let state = self.place.state(&service.surroundings).await.unwrap_or_else(|error| {
                let error = sentence(&error);
                let _ = writeln!(io::stderr(), "warning: only UIDs are printed, the state was not read: {error}");
                StateView::default()
            });
            let context = Context::within(PATIENCE, &CancellationToken::new());
            let failed = |error| Failure::because("cannot list the instances", error);
            let listing = service.client()?.objects::<Instance>().fresh(&context).await.map_err(failed)?;
            if !listing.complete {
                return Err(Failure::new("the list of instances is incomplete. Try again"));
            }
            for instance in listing.records.iter().filter(|it| it.status == Some(InstanceStatus::Running)) {
                let uid = instance.uid.as_str();
                add(&mut found, by_uid(uid), None);
                for address in state.addresses_of(uid) {
                    add(&mut found, state.find(address)?, Some(address));
                }
            }
        }
        let has_address = self.targets.iter().any(|target| target.contains('.'));
        let state = if has_address { self.place.state(&service.surroundings).await? } else { StateView::default() };
        for target in &self.targets {
            if target.contains('.') {
                add(&mut found, state.find(target)?, Some(target));
            } else {
                add(&mut found, by_uid(target), None);
            }
        }
        let names: Vec<_> = found.iter().flat_map(|(_, names)| names.clone()).collect();
        for (_, own) in &mut found {
            // Two instances with one name would be one for ssh.
            own.retain(|name| names.iter().filter(|other| *other == name).count() == 1);
        }
        Ok(found)
    }
}

/// Adds a target, or what is new about one that is there.
fn add(found: &mut Vec<(SshTarget, Vec<String>)>, target: SshTarget, address: Option<&str>) {
    let alias = address.map(host_name);
    match found.iter_mut().find(|(known, _)| known.uid == target.uid) {
        Some((known, names)) => {
            names.extend(alias.filter(|alias| !names.contains(alias)));
            if known.pins.is_empty() {
                known.pins = target.pins;
            }
        }
        None => {
            let names = std::iter::once(target.uid.clone()).chain(alias).collect();
            found.push((target, names));
        }
    }
}

/// An address in the characters of a host name.
fn host_name(address: &str) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let words = address.split(|c: char| !is_allowed(c)).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

/// The block of an instance.
fn block(login: &Login, names: &[String], key: Option<&PublicKey>) -> String {
    let mut lines = vec![("HostName", login.host.clone()), ("Port", login.port.to_string()), ("User", USER.to_owned())];
    lines.extend(login.host_key.iter().cloned());
    if let Some(key) = key {
        lines.extend([("IdentityFile", path(&key.identity)), ("IdentitiesOnly", "yes".to_owned())]);
    }
    let mut block = format!("Host {}\n", visible(&names.join(" "), usize::MAX));
    if key.is_none() && login.has_password {
        block.push_str(
            "  # Programs ask for this instance's password. To log in with a key instead, run ssh-config with\n",
        );
        block.push_str("  # --authorize ~/.ssh/id_ed25519.pub\n");
    }
    for (keyword, value) in lines {
        let _ = writeln!(block, "  {keyword} {value}");
    }
    block + "\n"
}
