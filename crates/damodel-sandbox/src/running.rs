//! A sandbox that listens: its start and its end.

use std::time::Duration;

use secrecy::SecretString;
use tokio::{net::TcpListener, task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{
    handle::Sandbox,
    machines::Machines,
    options::{Error, Options},
    server,
    service::Service,
};

/// How long sessions may take to end after they were cut.
const END: Duration = Duration::from_secs(5);

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
    /// When the address is not a loopback address or cannot be listened on.
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
        let sandbox = Self::new(service);
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
