//! Serving under the core.

use std::io;

use tonic::service::Routes;

use super::{
    Environment, Error, Options,
    handshake::Handshake,
    incoming::{Callers, incoming},
    listener,
    parent::Parent,
    server::{self, Ending},
    signals::Signals,
    tls::Identity,
};

/// Serves `routes` to the core that started this process: listens, writes the handshake line on standard output,
/// and returns when it is time to exit with code 0, with the socket removed (plugin protocol, minimal server
/// recipe).
///
/// The end comes by the host's Shutdown call, by the death of the host, by SIGTERM, or when
/// [`stopping`](Options::stopping) is cancelled. SIGINT and SIGHUP are swallowed.
///
/// Fails before the handshake line is complete, or not at all.
pub async fn serve(routes: Routes, environment: &Environment, options: Options) -> Result<(), Error> {
    // First, so that a host that dies at once is noticed, and a Ctrl-C at once is not.
    let parent = Parent::current();
    let signals = Signals::under_core().map_err(Error::Signals)?;

    let identity = environment.client_certificate.as_ref();
    let identity = identity.map(Identity::for_client).transpose()?;
    let bound = listener::bind(environment)?;
    let handshake = Handshake {
        certificate: identity.as_ref().map_or(&[], |own| &own.certificate),
        endpoint: &bound.endpoint,
        multiplex: environment.multiplex,
    };
    handshake.write(io::stdout().lock()).map_err(Error::Output)?;

    let end = async {
        tokio::select! {
            () = parent.gone() => Ending::Orphaned,
            () = signals.ended() => Ending::Terminated,
        }
    };
    // The core may drop an idle connection and come back: only its own end is the caller's.
    let caller_gone = options.caller_gone.clone();
    let incoming = incoming(bound.listener, identity.map(|own| own.acceptor), Callers::One(caller_gone));
    server::run(incoming, routes, &options, end).await;
    drop(bound.directory);
    Ok(())
}
