//! A provider, served in this process to a real command line (plugin protocol, debug / reattach mode).

use std::{
    cell::RefCell,
    fs::File,
    io::{self, Write},
    path::Path,
    sync::Once,
};

use damodel::{
    framework::{Ends, Provider},
    protocol::service,
};
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    net::UnixListener,
    runtime::{Builder, Runtime},
};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;

use crate::framework::example::Acme;

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
pub(crate) struct Reattached {
    /// The value of `TF_REATTACH_PROVIDERS`.
    pub(crate) variable: String,
    runtime: Runtime,
    _directory: TempDir,
}

impl Reattached {
    /// Serves a provider under a short address, such as `damodel/echo`, in the registries of both products.
    pub(crate) fn serve(provider: impl Provider, address: &str) -> Self {
        Self::serve_on(&mut Builder::new_multi_thread(), provider, address)
    }

    /// The same, and appends its warnings and errors to a file.
    pub(crate) fn serve_logged(provider: impl Provider, address: &str, log: &Path) -> Self {
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
        let server = json!({
            "Protocol": "grpc",
            "ProtocolVersion": 6,
            "Pid": std::process::id(),
            "Test": true,
            "Addr": { "Network": "unix", "String": socket },
        });
        let key = |host: &str| format!("{host}/{address}");
        let variable =
            json!({ key("registry.terraform.io"): server, key("registry.opentofu.org"): server }).to_string();
        Self { variable, runtime, _directory: directory }
    }
}

#[test]
fn each_provider_has_a_log_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| {
        let log = folder.path().join(name);
        let served = Reattached::serve_logged(Acme::default(), "acme/acme", &log);
        served.runtime.block_on(served.runtime.spawn(async move { tracing::warn!("of {name}") })).unwrap();
        std::fs::read_to_string(log).unwrap()
    });
    assert!(one.contains("of one") && !one.contains("of other"), "{one}");
    assert!(other.contains("of other") && !other.contains("of one"), "{other}");
}
