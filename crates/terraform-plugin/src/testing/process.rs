//! A plugin's program as a process, and a client for it: Terraform's half of go-plugin.
//!
//! ```ignore
//! let plugin = PluginProcess::start(program).await;
//! let mut client = ProviderClient::new(plugin.connect().await);
//! …
//! plugin.shut_down().await;
//! ```

use std::{
    io,
    path::{Path, PathBuf},
    pin::Pin,
    process::{ExitStatus, Stdio},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};
use hyper_util::rt::TokioIo;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use rustls::{
    ALL_VERSIONS, ClientConfig,
    pki_types::{CertificateDer, ServerName},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, BufReader},
    net::{TcpStream, UnixStream},
    process::{Child, ChildStdout, Command},
    task::JoinHandle,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tonic::{
    codegen::{Service, http::Uri},
    transport::{Channel, Endpoint},
};

use super::tls::{ClientIdentity, client_config};
use crate::plugin::proto::plugin::{Empty, grpc_controller_client::GrpcControllerClient};

/// The variable that Terraform sets when it starts a plugin.
pub const COOKIE: (&str, &str) =
    ("TF_PLUGIN_MAGIC_COOKIE", "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2");

/// A call takes longer only if it hangs.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// A running plugin, started like by Terraform, up to the handshake line. Killed when dropped.
#[derive(Debug)]
pub struct PluginProcess {
    /// Its handshake line.
    pub handshake: Handshake,
    /// The client's certificate; without one there is no TLS.
    pub identity: Option<ClientIdentity>,
    child: Child,
    /// The plugin's own directory for temporary files.
    temporary: TempDir,
    stderr: JoinHandle<String>,
    stdout: BufReader<ChildStdout>,
}

/// The output and files of a plugin that ended.
#[derive(Debug)]
pub struct Ended {
    /// How the process ended.
    pub status: ExitStatus,
    /// The files left in the directory for temporary files.
    pub leftovers: Vec<PathBuf>,
    /// The output on standard error.
    pub stderr: String,
    /// The output after the handshake line.
    pub stdout: String,
}

impl PluginProcess {
    /// Starts a program with mutual TLS.
    pub async fn start(program: &str) -> Self {
        Self::launch(Self::command(program), Some(ClientIdentity::generate())).await
    }

    /// The command that starts `program` like Terraform without TLS, in a clean environment.
    pub fn command(program: &str) -> Command {
        let mut command = Command::new(program);
        for (variable, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TF_LOG")) {
            command.env_remove(variable);
        }
        command
            .env(COOKIE.0, COOKIE.1)
            .env("PLUGIN_PROTOCOL_VERSIONS", "5,6")
            .env("PLUGIN_MIN_PORT", "10000")
            .env("PLUGIN_MAX_PORT", "25000");
        command
    }

    /// Runs `command` and reads its handshake line. With an `identity` there is mutual TLS.
    pub async fn launch(mut command: Command, identity: Option<ClientIdentity>) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        if let Some(identity) = &identity {
            command.env("PLUGIN_CLIENT_CERT", identity.pem());
        }
        command.env("TMPDIR", temporary.path()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        // Dropping the command closes our copies of its pipes.
        drop(command);
        let mut errors = child.stderr.take().unwrap();
        let stderr = tokio::spawn(async move {
            let mut text = Vec::new();
            errors.read_to_end(&mut text).await.unwrap();
            String::from_utf8(text).unwrap()
        });
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        timeout(DEADLINE, stdout.read_line(&mut line)).await.expect("a handshake in time").unwrap();
        Self { handshake: Handshake::parse(&line), identity, child, temporary, stderr, stdout }
    }

    /// Connects like Terraform.
    pub async fn connect(&self) -> Channel {
        connect(&self.handshake, self.identity.as_ref()).await.unwrap()
    }

    /// Calls Shutdown and waits for the end, which must be clean.
    pub async fn shut_down(self) -> Ended {
        let mut controller = GrpcControllerClient::new(self.connect().await);
        controller.shutdown(Empty {}).await.unwrap();
        let ended = self.ended().await;
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        assert!(ended.leftovers.is_empty(), "{ended:?}");
        ended
    }

    /// Waits for the end of the started process, and of all that have its output open.
    pub async fn ended(mut self) -> Ended {
        let mut stdout = String::new();
        let status = timeout(DEADLINE, async {
            self.stdout.read_to_string(&mut stdout).await.unwrap();
            self.child.wait().await.unwrap()
        });
        let status = status.await.expect("an end in time");
        Ended {
            status,
            leftovers: self.sockets(),
            stderr: timeout(DEADLINE, self.stderr).await.unwrap().unwrap(),
            stdout,
        }
    }

    /// Sends a signal to the started process.
    pub fn signal(&self, signal: Signal) {
        let id = self.child.id().expect("a running process");
        kill(Pid::from_raw(id.try_into().unwrap()), signal).unwrap();
    }

    /// The plugin's standard input, if the command has a pipe for it.
    pub fn take_stdin(&mut self) -> Option<tokio::process::ChildStdin> {
        self.child.stdin.take()
    }

    /// Closes the reading end of the plugin's standard error.
    pub async fn close_stderr(&mut self) {
        self.stderr.abort();
        let text = std::mem::replace(&mut self.stderr, tokio::spawn(async { String::new() })).await;
        assert!(text.is_err(), "the plugin closed it first");
    }

    /// The files in the plugin's directory for temporary files.
    pub fn sockets(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.temporary.path()).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// A TLS connection without HTTP/2; `config` may be wrong.
    pub async fn tls(&self, config: ClientConfig) -> io::Result<TlsStream<UnixStream>> {
        let stream = UnixStream::connect(self.handshake.socket()).await?;
        TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost").unwrap(), stream).await
    }
}

/// The handshake line.
#[derive(Clone, Debug)]
pub struct Handshake {
    /// The server's certificate, with TLS.
    pub certificate: Option<CertificateDer<'static>>,
    /// The fields between the separators.
    pub fields: Vec<String>,
}

impl Handshake {
    fn parse(line: &str) -> Self {
        let complete = line.strip_suffix('\n').expect("a whole handshake line");
        let fields: Vec<_> = complete.split('|').map(str::to_owned).collect();
        let certificate = fields.get(5).filter(|text| !text.is_empty());
        Self { certificate: certificate.map(|text| STANDARD_NO_PAD.decode(text).unwrap().into()), fields }
    }

    /// The path of the unix socket.
    pub fn socket(&self) -> &Path {
        assert_eq!(self.fields.get(2).map(String::as_str), Some("unix"));
        Path::new(self.fields.get(3).unwrap())
    }

    fn address(&self) -> Address {
        match self.fields.get(2).map(String::as_str) {
            Some("tcp") => Address::Tcp(self.fields.get(3).unwrap().clone()),
            _ => Address::Unix(self.socket().to_owned()),
        }
    }
}

/// Where a plugin listens.
#[derive(Clone)]
enum Address {
    Tcp(String),
    Unix(PathBuf),
}

/// Connects to the plugin of `handshake`, as `identity` if it has TLS.
pub async fn connect(
    handshake: &Handshake,
    identity: Option<&ClientIdentity>,
) -> Result<Channel, tonic::transport::Error> {
    let tls = handshake
        .certificate
        .as_ref()
        .map(|server| TlsConnector::from(Arc::new(client_config(server, identity, ALL_VERSIONS))));
    connect_through(Connector { address: handshake.address(), tls }).await
}

/// Connects to a server that is not encrypted.
pub async fn connect_plain(socket: &Path) -> Result<Channel, tonic::transport::Error> {
    connect_through(Connector { address: Address::Unix(socket.to_owned()), tls: None }).await
}

async fn connect_through(connector: Connector) -> Result<Channel, tonic::transport::Error> {
    Endpoint::from_static("http://localhost").connect_with_connector(connector).await
}

/// Opens the socket for any address.
#[derive(Clone)]
struct Connector {
    address: Address,
    tls: Option<TlsConnector>,
}

trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

impl Service<Uri> for Connector {
    type Response = TokioIo<Box<dyn Duplex>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let Self { address, tls } = self.clone();
        Box::pin(async move {
            let stream: Box<dyn Duplex> = match address {
                Address::Tcp(address) => Box::new(TcpStream::connect(address).await?),
                Address::Unix(socket) => Box::new(UnixStream::connect(socket).await?),
            };
            let stream: Box<dyn Duplex> = match tls {
                None => stream,
                Some(tls) => {
                    let name = ServerName::try_from("localhost").unwrap();
                    let stream = tls.connect(name, stream).await?;
                    // Terraform disconnects without it.
                    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
                    Box::new(stream)
                }
            };
            Ok(TokioIo::new(stream))
        })
    }
}
