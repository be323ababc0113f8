//! The run of a server: bind, load, serve, stop.

use std::{
    fs, io,
    net::SocketAddr,
    os::unix::net::UnixStream as Probe,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use hyper::server::conn::http1;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpSocket, UnixListener, lookup_host},
    runtime,
    signal::unix::{SignalKind, signal},
    time::sleep,
};
use tokio_util::task::TaskTracker;

use super::{
    context::{ServerContext, abort, killed},
    load::{self, LoadEnding, LoadFailure, LoadedModel},
    routes::{App, router},
};

/// How often a held server checks whether it may continue.
const HOLD_POLL: Duration = Duration::from_millis(20);

/// Runs a server to its end.
pub(super) fn run(context: ServerContext, ports: Option<PathBuf>) -> ExitCode {
    let runtime = match runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            context.log.error(&format!("srv  llama_server: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(serve(Arc::new(App::new(context)), ports.as_deref()));
    // Requests that still wait end with the process.
    runtime.shutdown_background();
    code
}

async fn serve(app: Arc<App>, ports: Option<&Path>) -> ExitCode {
    let ServerContext { build, settings, log, .. } = &app.context;
    log.info(&format!("build: {} with stand-in for Linux x86_64", build.info()));
    log.info("system info: n_threads = 2, n_threads_batch = 2, total_threads = 2");
    let (host, port) = (settings.host.as_str(), settings.port);
    let Ok(listening) = ServedPort::listen(ports, host, port).await else {
        // The same message for every reason.
        log.error(&format!("srv         start: couldn't bind HTTP server socket, hostname: {host}, port: {port}"));
        log.error("srv  llama_server: exiting due to HTTP server error");
        return ExitCode::FAILURE;
    };
    let connections = TaskTracker::new();
    let accepting = tokio::spawn(accept(listening, app.clone(), connections.clone()));
    log.info(&format!("srv  llama_server: HTTP server is listening, hostname: {host}, port: {port}"));
    match load_model(&app).await {
        Ok(model) => app.is_loaded(model),
        Err(failure) => return fail(&app, &failure),
    }
    log.info("srv  llama_server: model loaded");
    // Signals are handled from here on: before, they end the process at once.
    let signals = signal(SignalKind::terminate()).and_then(|term| Ok((term, signal(SignalKind::interrupt())?)));
    let Ok((mut term, mut interrupt)) = signals else { return ExitCode::FAILURE };
    log.info(&format!("srv  llama_server: server is listening on http://{host}:{port}"));
    log.info("srv  update_slots: all slots are idle");
    tokio::select! {
        _ = term.recv() => {}
        _ = interrupt.recv() => {}
    }
    log.info("srv    operator(): operator(): cleaning up before exit...");
    // The port closes at once; open requests keep the process running until their clients disconnect.
    accepting.abort();
    app.stopping.cancel();
    connections.close();
    let again = async {
        tokio::select! {
            _ = term.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    tokio::select! {
        () = again => {
            log.raw("Received second interrupt, terminating immediately.");
            ExitCode::FAILURE
        }
        () = connections.wait() => ExitCode::SUCCESS,
    }
}

async fn accept(port: ServedPort, app: Arc<App>, connections: TaskTracker) {
    let router = router(app.clone());
    loop {
        match port.accept().await {
            Ok(stream) => {
                connections.spawn(converse(stream, router.clone(), app.clone()));
            }
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn converse(stream: Box<dyn ServedStream>, router: axum::Router, app: Arc<App>) {
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::pin!(connection);
    // The result is ignored: the client sees how its connection ends.
    tokio::select! {
        _ = &mut connection => {}
        () = app.stopping.cancelled() => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

/// The model; `None` for a server that chooses models by request.
async fn load_model(app: &App) -> Result<Option<LoadedModel>, LoadFailure> {
    let context = &app.context;
    let Some(path) = context.settings.model.clone() else {
        context.log.info("srv  llama_server: starting router server, no model will be loaded in this process");
        return Ok(None);
    };
    context.log.info(&format!("srv    load_model: loading model '{}'", path.display()));
    let found = load::find(path)?;
    context.settings.projector.clone().map(load::find).transpose()?;
    if !context.is_on_gpu() && context.settings.gpu_layers != Some(0) {
        context.log.raw("warning: no usable GPU found, --gpu-layers option will be ignored");
        context.log.raw("warning: one possible reason is that llama.cpp was compiled without GPU support");
        context.log.raw("warning: consult docs/build.md for compilation instructions");
    }
    sleep(found.duration()).await;
    while found.is_held() {
        sleep(HOLD_POLL).await;
    }
    load::load(context, &found).map(Some)
}

fn fail(app: &App, failure: &LoadFailure) -> ExitCode {
    let log = &app.context.log;
    for line in &failure.lines {
        if failure.ending == LoadEnding::Aborted { log.raw(line) } else { log.error(line) }
    }
    match failure.ending {
        LoadEnding::Aborted => abort(),
        LoadEnding::Killed => killed(),
        LoadEnding::Exits => {}
    }
    ExitCode::FAILURE
}

/// A connection of any kind.
pub(super) trait ServedStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ServedStream for T {}

/// A listening port. Dropping it closes the port.
#[derive(Debug)]
pub(super) enum ServedPort {
    Tcp(TcpListener),
    Unix { listener: UnixListener, path: PathBuf },
}

impl ServedPort {
    /// Listens.
    pub(super) async fn listen(ports: Option<&Path>, host: &str, port: u64) -> io::Result<Self> {
        // As in the real one: the number is cut to 16 bits.
        let port = u16::try_from(port % 65_536).unwrap_or(0);
        match ports {
            Some(folder) if is_own(host) => unix(folder, port),
            Some(_) => Err(io::ErrorKind::AddrNotAvailable.into()),
            None => tcp(host, port).await,
        }
    }

    pub(super) async fn accept(&self) -> io::Result<Box<dyn ServedStream>> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Box::new(stream))
            }
            Self::Unix { listener, .. } => Ok(Box::new(listener.accept().await?.0)),
        }
    }
}

impl Drop for ServedPort {
    fn drop(&mut self) {
        if let Self::Unix { path, .. } = self {
            let _ = fs::remove_file(path);
        }
    }
}

/// Whether an address belongs to this computer.
fn is_own(host: &str) -> bool {
    ["0.0.0.0", "127.0.0.1", "::", "::1", "localhost"].contains(&host)
}

fn unix(folder: &Path, port: u16) -> io::Result<ServedPort> {
    let path = folder.join(format!("{port}.sock"));
    match UnixListener::bind(&path) {
        Ok(listener) => return Ok(ServedPort::Unix { listener, path }),
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => return Err(error),
        Err(_) => {}
    }
    if Probe::connect(&path).is_ok() {
        return Err(io::ErrorKind::AddrInUse.into());
    }
    // Left behind by a killed server.
    fs::remove_file(&path)?;
    Ok(ServedPort::Unix { listener: UnixListener::bind(&path)?, path })
}

async fn tcp(host: &str, port: u16) -> io::Result<ServedPort> {
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in lookup_host((host, port)).await? {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        socket.set_reuseaddr(true)?;
        match socket.bind(address).and_then(|()| socket.listen(512)) {
            Ok(listener) => return Ok(ServedPort::Tcp(listener)),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}
