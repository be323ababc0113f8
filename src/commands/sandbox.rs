//! `terraform-provider-damodel sandbox`: runs the simulated service until a signal ends it.

use std::{
    io::{self, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Parser;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use tempfile::NamedTempFile;
use terraform_plugin::process::told_to_end;

use super::Failure;
use crate::sandbox::{Error as SandboxError, Form, LifeClock, Options, Running, Sandbox};

/// Runs the simulated service on a loopback address.
///
/// The simulation has the chat, instances, cloud disks, images and specifications of the service API. Ctrl-C stops it.
///
/// Exit codes: 0 it was stopped; 1 it cannot listen or write a file; 2 wrong usage.
#[derive(Clone, Debug, Parser)]
#[command(name = "sandbox")]
pub struct Arguments {
    /// The loopback address to listen on. Port 0 selects a free one.
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    pub listen: SocketAddr,
    /// Appends one JSON line per request to this file.
    #[arg(long, value_name = "FILE")]
    pub ledger: Option<PathBuf>,
    /// Writes base_url, token, chat_key and registry_host to this file as JSON when it is listening.
    #[arg(long, value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
    /// The seed of all random values, tokens, keys and passwords included. Default: a random number, so that other
    /// users of this computer cannot guess them.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Variants that the service's document leaves open, such as `error_status=matched,integers=floats,extra_fields`.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "NAME=VALUE,…")]
    pub form: Form,
    /// Seconds from an accepted create of an instance to Running.
    #[arg(long, default_value = "2", value_name = "SECONDS", value_parser = seconds)]
    pub creation_seconds: Duration,
    /// Seconds from an accepted release of an instance or a cloud disk to Released.
    #[arg(long, default_value = "1", value_name = "SECONDS", value_parser = seconds)]
    pub release_seconds: Duration,
    /// Seconds from an accepted create of a cloud disk to Available, and from a resize to the new capacity.
    #[arg(long, default_value = "1", value_name = "SECONDS", value_parser = seconds)]
    pub disk_seconds: Duration,
    /// Seconds from an accepted save of a private image to ready.
    #[arg(long, default_value = "3", value_name = "SECONDS", value_parser = seconds)]
    pub image_seconds: Duration,
    /// Seconds from Running, or a reboot, until the instance accepts logins.
    #[arg(long, default_value = "0", value_name = "SECONDS", value_parser = seconds)]
    pub sshd_seconds: Duration,
    /// Seconds after a save in which another one is refused with 130003.
    #[arg(long, default_value = "0", value_name = "SECONDS", value_parser = seconds)]
    pub save_window_seconds: Duration,
    /// Saves in one day before 130008.
    #[arg(long, default_value_t = Options::default().daily_saves, value_name = "COUNT")]
    pub daily_saves: u32,
    /// Seconds by which X-Service-Timestamp may be off.
    #[arg(long, default_value = "300", value_name = "SECONDS", value_parser = seconds)]
    pub timestamp_tolerance: Duration,
    /// Stops the life clock at this Unix time; /sandbox/clock advances it.
    #[arg(long, value_name = "UNIX_SECONDS")]
    pub standing_clock: Option<i64>,
    /// The main account's token. Default: made from the seed.
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<SecretString>,
    /// The main account's chat key. Default: made from the seed.
    #[arg(long, value_name = "KEY")]
    pub chat_key: Option<SecretString>,
    /// The host of image addresses.
    #[arg(long, default_value_t = Options::default().registry_host, value_name = "HOST")]
    pub registry_host: String,
    /// An SSH key of the accounts: its name and the line of the public key. May be repeated.
    #[arg(long, value_name = "NAME=PUBLIC_KEY_LINE", value_parser = key)]
    pub ssh_key: Vec<(String, String)>,
    /// The number of Running instances at the start.
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    pub generate_instances: u32,
    /// The number of additional available cloud disks at the start.
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    pub generate_disks: u32,
    /// The number of additional ready private images at the start.
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    pub generate_images: u32,
}

/// Runs a sandbox until SIGINT or SIGTERM, and prints the provider's settings for it. `executable` is the file of this
/// program, which the instances need.
///
/// # Errors
///
/// If it cannot start, or its address cannot be written.
pub async fn run(arguments: Arguments, executable: PathBuf) -> Result<(), Failure> {
    run_until(arguments, executable, &mut io::stdout(), told_to_end()).await
}

/// Runs a sandbox until `end` is ready. Its text is written to `out`, with the line `sandbox listening on …` last.
///
/// # Errors
///
/// If it cannot start, or its address cannot be written.
pub async fn run_until(
    arguments: Arguments,
    executable: PathBuf,
    out: &mut (impl Write + Send),
    end: impl Future<Output = io::Result<()>> + Send,
) -> Result<(), Failure> {
    tokio::pin!(end);
    let running = tokio::select! {
        // First, so that signals are handled before the sandbox is announced.
        biased;
        ended = &mut end => return ended.map_err(Failure::terminal),
        running = announce(arguments, executable, out) => running?,
    };
    let ended = end.await;
    running.stop().await;
    ended.map_err(Failure::terminal)
}

/// Starts a sandbox and prints its address.
async fn announce(
    arguments: Arguments,
    executable: PathBuf,
    out: &mut (impl Write + Send),
) -> Result<Running, Failure> {
    let ready_file = arguments.ready_file.clone();
    let running = Sandbox::start(options(arguments, executable)).await.map_err(|error| match error {
        SandboxError::Listen { .. } => Failure::because(
            "cannot start the sandbox (--listen selects another address and port, such as 127.0.0.1:0)",
            error,
        ),
        error => Failure::because("cannot start the sandbox", error),
    })?;
    if let Some(path) = ready_file {
        write_ready_file(&path, &running).map_err(|error| Failure::writing(path.display(), error))?;
    }
    out.write_all(introduction(&running).as_bytes()).and_then(|()| out.flush()).map_err(Failure::terminal)?;
    Ok(running)
}

fn options(arguments: Arguments, executable: PathBuf) -> Options {
    Options {
        listen: arguments.listen,
        ledger: arguments.ledger,
        seed: arguments.seed.unwrap_or_else(rand::random),
        form: arguments.form,
        life_clock: arguments.standing_clock.map_or(LifeClock::Running, LifeClock::Standing),
        creation: arguments.creation_seconds,
        release: arguments.release_seconds,
        disk_change: arguments.disk_seconds,
        image_push: arguments.image_seconds,
        sshd_start: arguments.sshd_seconds,
        save_window: arguments.save_window_seconds,
        daily_saves: arguments.daily_saves,
        timestamp_tolerance: arguments.timestamp_tolerance,
        token: arguments.token,
        chat_key: arguments.chat_key,
        registry_host: arguments.registry_host,
        keys: arguments.ssh_key.into_iter().collect(),
        executable: Some(executable),
        generate_instances: arguments.generate_instances,
        generate_disks: arguments.generate_disks,
        generate_images: arguments.generate_images,
    }
}

/// `laptop=ssh-ed25519 AAAA…`.
fn key(text: &str) -> Result<(String, String), String> {
    let (name, line) = text.split_once('=').ok_or("= is missing between name and public key")?;
    Ok((name.to_owned(), line.to_owned()))
}

/// Seconds, with a fraction or without.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text:?} is not a number of seconds"))?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// The provider's settings for it. The secrets are valid only for this sandbox, so they are printed.
fn introduction(running: &Running) -> String {
    let base_url = &running.base_url;
    let (token, chat_key) = (running.token.expose_secret(), running.chat_key.expose_secret());
    format!(
        r#"export DAMODEL_BASE_URL='{base_url}'
export DAMODEL_API_TOKEN='{token}'
export DAMODEL_CHAT_API_KEY='{chat_key}'
export DAMODEL_REGION='cn-east-1'

provider "damodel" {{
  base_url     = "{base_url}"
  api_token    = "{token}"
  chat_api_key = "{chat_key}"
  region       = "cn-east-1"
}}

sandbox listening on {base_url}
"#
    )
}

/// Writes the file by a rename, so that readers see it complete.
fn write_ready_file(path: &Path, running: &Running) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let mut file = NamedTempFile::new_in(folder)?;
    let ready = json!({
        "base_url": running.base_url,
        "token": running.token.expose_secret(),
        "chat_key": running.chat_key.expose_secret(),
        "registry_host": running.registry_host,
    });
    serde_json::to_writer_pretty(&mut file, &ready)?;
    file.write_all(b"\n")?;
    file.persist(path)?;
    Ok(())
}
