//! A provider, served in this process to a real command line (plugin protocol, debug / reattach mode).

use std::{
    cell::RefCell,
    fs::File,
    io::{self, Write},
    path::Path,
    sync::Once,
};

use tempfile::TempDir;
use tokio::{
    net::UnixListener,
    runtime::{Builder, Runtime},
};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;

use crate::{
    framework::{Ends, Provider},
    plugin::{PluginAddress, reattach},
    protocol::service,
};

thread_local! {
    /// The log of the provider whose thread this is.
    static LOG: RefCell<Option<File>> = const { RefCell::new(None) };
}

/// Writes a line of the log of this thread's provider.
struct LogOfThread;

impl Write for LogOfThread {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        LOG.with_borrow_mut(|log| log.as_mut().map_or(Ok(line.len()), |log| log.write(line)))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A running provider. It ends when dropped.
#[derive(Debug)]
pub struct Reattached {
    /// The value of `TF_REATTACH_PROVIDERS`.
    pub variable: String,
    /// The threads that serve it.
    pub runtime: Runtime,
    _directory: TempDir,
}

impl Reattached {
    /// Serves a provider under a short address, such as `acme/echo`, in the registries of both products.
    pub fn serve(provider: impl Provider, address: &str) -> Self {
        Self::serve_on(&mut Builder::new_multi_thread(), provider, address)
    }

    /// The same, and appends its warnings and errors to a file.
    pub fn serve_logged(provider: impl Provider, address: &str, log: &Path) -> Self {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let lines = tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).with_ansi(false);
            lines.with_writer(|| LogOfThread).init();
        });
        let log = log.to_owned();
        let open = move || LOG.set(File::options().create(true).append(true).open(&log).ok());
        Self::serve_on(Builder::new_multi_thread().on_thread_start(open), provider, address)
    }

    fn serve_on(runtime: &mut Builder, provider: impl Provider, address: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
        let listener = {
            let _inside = runtime.enter();
            UnixListener::bind(&socket).unwrap()
        };
        let routes = service(provider, Ends::default());
        runtime.spawn(Server::builder().add_routes(routes).serve_with_incoming(UnixListenerStream::new(listener)));
        let endpoint = PluginAddress { network: "unix", address: socket.display().to_string() };
        let variable = reattach(address, &endpoint, std::process::id());
        Self { variable, runtime, _directory: directory }
    }
}
