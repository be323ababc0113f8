//! A provider of the tests, served in this process to a real command line (plugin protocol, debug / reattach mode).

use damodel::{
    framework::{Ends, Provider},
    protocol::service,
};
use serde_json::json;
use tempfile::TempDir;
use tokio::{net::UnixListener, runtime::Runtime};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;

/// A running provider. It ends when dropped.
pub(crate) struct Reattached {
    /// The value of `TF_REATTACH_PROVIDERS`.
    pub(crate) variable: String,
    _runtime: Runtime,
    _directory: TempDir,
}

impl Reattached {
    /// Serves a provider under a short address, such as `damodel/echo`, in the registries of both products.
    pub(crate) fn serve(provider: impl Provider, address: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
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
        Self { variable, _runtime: runtime, _directory: directory }
    }
}
