//! A running sandbox, and the handle by which tests look at it and alter it.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use secrecy::SecretString;
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{
    control::redacted,
    fault::{ArmedFault, Fault},
    form::Form,
    ledger::Ledger,
    machines::{MachineView, Machines},
    mutation::{Mutation, MutationError},
    options::{Error, Options},
    server,
    service::Service,
};

/// How long sessions may take to end after they were cut.
const END: Duration = Duration::from_secs(5);

/// A handle on the simulated service. Clones are handles on the same one.
#[derive(Clone, Debug)]
pub struct Sandbox {
    service: Arc<Mutex<Service>>,
}

/// An account of the sandbox, as a client is configured with it.
#[derive(Clone, Debug)]
pub struct Account {
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
    /// The handle to look at it and to alter it.
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
    pub fn accounts(&self) -> Vec<Account> {
        let account = |account: &super::world::Account| Account {
            name: account.name.clone(),
            token: account.token.to_secret_string(),
            chat_key: account.chat_key.to_secret_string(),
        };
        self.lock().world().accounts.iter().map(account).collect()
    }

    /// The world as JSON, as the state file has it but without secrets.
    #[must_use]
    pub fn state(&self) -> Value {
        redacted(self.state_with_secrets())
    }

    /// The world as JSON, as the state file has it: passwords and tokens in clear.
    #[must_use]
    pub fn state_with_secrets(&self) -> Value {
        // A world holds strings, numbers and lists only, which always have a JSON form.
        serde_json::to_value(self.lock().world()).unwrap_or_default()
    }

    /// What was asked, and what lived.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        self.lock().ledger()
    }

    /// The machines of the instances that can be logged into.
    #[must_use]
    pub fn machines(&self) -> Vec<MachineView> {
        self.lock().machines()
    }

    /// Changes the world behind the client's back.
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

    /// All armed faults, with how often they struck.
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
        // A panic while the lock was held is a failed test already; the others go on.
        self.service.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    /// Stops listening, cuts all connections, ends what runs in the instances, and returns when that is done.
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
            tracing::error!(%error, "the sandbox did not end as it should");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
        drop(self.sandbox.lock().machines.take());
    }
}
