//! A running sandbox, its handle for tests, and its state file: one JSON document, replaced by a rename, so that a
//! reader never sees half of it.

use std::{
    fs,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rand::{RngExt, SeedableRng, rngs::StdRng, seq::SliceRandom};
use secrecy::SecretString;
use serde_json::Value;
use tempfile::NamedTempFile;
use tokio::{net::TcpListener, task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{
    control::{Mutation, MutationError, redacted},
    fault::{ArmedFault, Fault},
    form::Form,
    ledger::Ledger,
    machines::{MachineView, Machines},
    options::{Error, Options},
    server,
    service::Service,
    world::{VERSION, World},
};

/// How long sessions may take to end after they were cut.
const END: Duration = Duration::from_secs(5);

/// A handle of the simulated service. Clones share the service.
#[derive(Clone, Debug)]
pub struct Sandbox {
    service: Arc<Mutex<Service>>,
}

/// An account of the sandbox, with the values that configure a client.
#[derive(Clone, Debug)]
pub struct SandboxAccount {
    /// Its name: `main`, `other` or `restricted`.
    pub name: String,
    /// X-Service-Token.
    pub token: SecretString,
    /// The bearer key of the chat endpoint.
    pub chat_key: SecretString,
}

/// A sandbox that listens. Dropping it stops it.
#[derive(Debug)]
pub struct Running {
    /// The service's base address, `http://127.0.0.1:<port>`.
    pub base_url: String,
    /// The main account's X-Service-Token.
    pub token: SecretString,
    /// The main account's chat key.
    pub chat_key: SecretString,
    /// The host of image addresses.
    pub registry_host: String,
    /// The handle that reads and changes it.
    pub sandbox: Sandbox,
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
}

impl Sandbox {
    /// Starts a sandbox and returns when it listens.
    ///
    /// # Errors
    ///
    /// When the address is not a loopback address or cannot be listened on, or the state file cannot be read or
    /// written.
    pub async fn start(options: Options) -> Result<Running, Error> {
        if !options.listen.ip().is_loopback() {
            return Err(Error::NotLoopback(options.listen));
        }
        let listen = |source| Error::Listen { address: options.listen, source };
        let listener = TcpListener::bind(options.listen).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let mut service = Service::new(&options)?;
        service.machines = Some(Machines::new(&options)?);
        let registry_host = service.world().registry_host.clone();
        let sandbox = Self { service: Arc::new(Mutex::new(service)) };
        let account = sandbox.accounts().into_iter().next();
        let (token, chat_key) = account.map_or_else(Default::default, |account| (account.token, account.chat_key));
        let stop = CancellationToken::new();
        let task = tokio::spawn(server::serve(listener, sandbox.clone(), stop.clone()));
        Ok(Running {
            base_url: format!("http://{address}"),
            token,
            chat_key,
            registry_host,
            sandbox,
            stop,
            task: Some(task),
        })
    }

    /// All accounts; the first is the main one.
    #[must_use]
    pub fn accounts(&self) -> Vec<SandboxAccount> {
        let account = |account: &super::world::Account| SandboxAccount {
            name: account.name.clone(),
            token: account.token.to_secret_string(),
            chat_key: account.chat_key.to_secret_string(),
        };
        self.lock().world().accounts.iter().map(account).collect()
    }

    /// The world as JSON, like the state file but without secrets.
    #[must_use]
    pub fn state(&self) -> Value {
        redacted(self.state_with_secrets())
    }

    /// The world as JSON, like the state file: passwords and tokens in clear.
    #[must_use]
    pub fn state_with_secrets(&self) -> Value {
        // A world holds strings, numbers and lists only, which always have a JSON form.
        serde_json::to_value(self.lock().world()).unwrap_or_default()
    }

    /// All requests, and all events of objects.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        self.lock().ledger()
    }

    /// The machines of the instances that accept logins.
    #[must_use]
    pub fn machines(&self) -> Vec<MachineView> {
        self.lock().machines()
    }

    /// Applies a mutation to the world.
    ///
    /// # Errors
    ///
    /// When it names something that does not exist.
    pub fn mutate(&self, mutation: Mutation) -> Result<(), MutationError> {
        self.lock().mutate(mutation)
    }

    /// Arms a fault and returns its number.
    pub fn arm(&self, fault: Fault) -> u64 {
        self.lock().faults.arm(fault)
    }

    /// All armed faults, with their counters.
    #[must_use]
    pub fn faults(&self) -> Vec<ArmedFault> {
        self.lock().faults.armed().to_vec()
    }

    /// Disarms all faults.
    pub fn clear_faults(&self) {
        self.lock().faults.clear();
    }

    /// The forms in use.
    #[must_use]
    pub fn form(&self) -> Form {
        self.lock().form.clone()
    }

    /// Changes the forms for the requests that follow.
    pub fn set_form(&self, form: Form) {
        self.lock().form = form;
    }

    /// The life clock in Unix milliseconds.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.lock().settle()
    }

    /// Advances the life clock and returns it in Unix milliseconds.
    ///
    /// # Errors
    ///
    /// When the state file cannot be written.
    pub fn advance(&self, by: Duration) -> Result<i64, Error> {
        self.lock().advance(by)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Service> {
        // A panic while the lock was held is a failed test already; other tests continue.
        self.service.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    /// Stops listening, cuts all connections, ends the processes of the instances, and returns when all have ended.
    pub async fn stop(mut self) {
        self.stop.cancel();
        let machines = self.sandbox.lock().machines.take();
        if let Some(machines) = machines
            && timeout(END, machines.end().wait()).await.is_err()
        {
            tracing::error!("an SSH session does not end");
        }
        if let Some(task) = self.task.take()
            && let Err(error) = task.await
        {
            tracing::error!(%error, "the sandbox did not end cleanly");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
        drop(self.sandbox.lock().machines.take());
    }
}

#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
}

impl Store {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The world of the state file; `None` if the file does not exist yet.
    pub(super) fn load(&self) -> Result<Option<World>, Error> {
        let text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => {
                return Err(Error::State { path: self.path.clone(), source });
            }
        };
        let unclear = |source| Error::StateContent { path: self.path.clone(), source };
        let document: Value = serde_json::from_slice(&text).map_err(unclear)?;
        match document.get("version").and_then(Value::as_u64) {
            Some(version) if version > VERSION => Err(Error::StateVersion { path: self.path.clone(), version }),
            Some(_) | None => {
                let world: World = serde_json::from_value(document).map_err(unclear)?;
                // Fields that an older version lacks have their defaults.
                Ok(Some(World { version: VERSION, ..world }))
            }
        }
    }

    /// Replaces the file. Readable by its owner only, since it holds the accounts' tokens.
    pub(super) fn save(&self, world: &World) -> Result<(), Error> {
        self.replace(world).map_err(|source| Error::State { path: self.path.clone(), source })
    }

    fn replace(&self, world: &World) -> io::Result<()> {
        let folder =
            self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        let mut writer = BufWriter::new(NamedTempFile::new_in(folder)?);
        serde_json::to_writer_pretty(&mut writer, world)?;
        writer.write_all(b"\n")?;
        let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.persist(&self.path)?;
        Ok(())
    }
}

const ALPHABET: &[u8] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// A source of random values, one for each (seed, stream).
#[derive(Debug)]
pub(super) struct RandomStream(StdRng);

impl RandomStream {
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        // The odd factor (Fibonacci hashing) keeps neighbouring streams of neighbouring seeds apart.
        Self(StdRng::seed_from_u64(seed ^ stream.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15)))
    }

    /// Letters and digits that are not easily confused.
    pub(super) fn text(&mut self, length: usize) -> String {
        (0..length)
            .map(|_| char::from(ALPHABET.get(self.0.random_range(0..ALPHABET.len())).copied().unwrap_or(b'x')))
            .collect()
    }

    /// True with this probability, which is cut to 0 … 1.
    pub(super) fn happens(&mut self, probability: f64) -> bool {
        self.0.random_bool(probability.clamp(0.0, 1.0))
    }

    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        items.shuffle(&mut self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::options::Options;

    #[test]
    fn the_world_comes_back_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().join("state.json"));
        assert!(store.load().unwrap().is_none());
        let options = Options { generate_instances: 2, generate_disks: 2, ..Options::default() };
        let world = World::seeded(&options, 1_770_000_000_000);
        store.save(&world).unwrap();
        let back = store.load().unwrap().unwrap();
        assert_eq!(serde_json::to_value(&back).unwrap(), serde_json::to_value(&world).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn a_state_of_version_1_is_read() {
        let options = Options { generate_instances: 1, ..Options::default() };
        let mut old = serde_json::to_value(World::seeded(&options, 1_770_000_000_000)).unwrap();
        let world = old.as_object_mut().unwrap();
        world.insert("version".to_owned(), 1.into());
        world.remove("models");
        for (list, fields) in [
            ("accounts", &["further_tokens", "may_use_images", "saves"][..]),
            ("disk_specs", &["sold_out"]),
            ("disks", &["next", "visibility"]),
            ("instances", &["host"]),
            ("private_images", &["push", "source", "visibility"]),
        ] {
            for record in world[list].as_array_mut().unwrap() {
                fields.iter().for_each(|&field| assert!(record.as_object_mut().unwrap().remove(field).is_some()));
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        fs::write(&path, old.to_string()).unwrap();
        let world = Store::new(path).load().unwrap().unwrap();
        assert_eq!((world.version, world.models.is_empty()), (VERSION, false));
        assert!(world.accounts.iter().all(|account| account.may_use_images));
    }

    #[test]
    fn a_newer_version_and_a_broken_file_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        fs::write(&path, r#"{"version": 4, "planets": 8}"#).unwrap();
        assert!(matches!(Store::new(path.clone()).load(), Err(Error::StateVersion { version: 4, .. })));
        fs::write(&path, r#"{"version": 1"#).unwrap();
        assert!(matches!(Store::new(path).load(), Err(Error::StateContent { .. })));
    }
}
