//! HTTPS in front of a server.

use std::sync::Arc;

use terraform_plugin::testing::ClientIdentity;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    runtime::Runtime,
};
use tokio_rustls::TlsAcceptor;

/// A port that decrypts and forwards, as `https://localhost:PORT`. Ends when dropped.
#[derive(Debug)]
pub(crate) struct TlsFront {
    pub(crate) url: String,
    /// The root certificate that a client must trust.
    pub(crate) pem: String,
    _runtime: Runtime,
}

impl TlsFront {
    /// Before the server at an address such as `http://127.0.0.1:8080`.
    pub(crate) fn before(address: &str) -> Self {
        let to = address.trim_start_matches("http://").to_owned();
        let identity = ClientIdentity::generate();
        let acceptor = TlsAcceptor::from(Arc::new(identity.web_server()));
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        runtime.spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let (acceptor, to) = (acceptor.clone(), to.clone());
                tokio::spawn(async move {
                    if let (Ok(mut near), Ok(mut far)) = (acceptor.accept(near).await, TcpStream::connect(to).await) {
                        let _ = copy_bidirectional(&mut near, &mut far).await;
                    }
                });
            }
        });
        Self { url, pem: identity.pem(), _runtime: runtime }
    }
}
