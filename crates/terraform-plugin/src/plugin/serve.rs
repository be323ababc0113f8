//! Serving the core that started this process, or cores that attach to it; its threads; and its end by signals or by
//! the exit of the parent process (plugin protocol, signals and orphans).

use std::{
    ffi::OsString,
    future::{Future, pending},
    io::{self, Write},
    process::ExitCode,
};

use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};
use serde_json::json;
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

use super::{
    Error, PluginEnvironment, ServeOptions,
    error::with_causes,
    incoming::{Callers, incoming},
    listener::{self, PluginAddress},
    server::{self, Ending},
    tls::TlsIdentity,
};
use crate::process::{Parent, Signals};

/// The version of the handshake itself.
const HANDSHAKE_VERSION: u32 = 1;

/// The only supported major version of the provider protocol. A host without it reports an error with the versions that
/// it supports (plugin protocol, Version negotiation).
const PROTOCOL_VERSION: u32 = 6;

/// The registries under whose addresses a core may look up a provider to attach to.
const REGISTRIES: [&str; 2] = ["registry.terraform.io", "registry.opentofu.org"];

/// Serves the routes of `routes` to the core that started this process: listens, writes the handshake line on standard
/// output, and returns the exit code of the process, with the socket removed (plugin protocol, minimal server recipe).
/// `variable` returns the value of one environment variable.
///
/// It ends on the host's Shutdown call, on the exit of the host, on SIGTERM, or when
/// [`stopping`](ServeOptions::stopping) is cancelled. The interrupts of a terminal or console are ignored.
///
/// It can only fail before the handshake line is complete.
pub fn serve(
    variable: impl Fn(&str) -> Option<OsString>,
    routes: impl FnOnce(&ServeOptions) -> Routes + Send + 'static,
) -> ExitCode {
    exit_code(PluginEnvironment::read(variable).and_then(|environment| {
        attended(Signals::under_core, Some(Parent::current()), move |options, grace_over| async move {
            let identity = environment.client_certificate.as_ref();
            let identity = identity.map(TlsIdentity::for_client).transpose()?;
            let bound = listener::bind(&environment)?;
            let certificate = identity.as_ref().map_or(&[][..], |own| &own.certificate);
            write(&handshake(certificate, &bound.endpoint, environment.multiplex), io::stdout().lock())
                .map_err(Error::Output)?;
            // The core may close an idle connection and reconnect: the caller is gone only when the core exits.
            let callers = Callers::One(options.caller_gone.clone());
            let incoming = incoming(bound.listener, identity.map(|own| own.acceptor), callers);
            server::run(incoming, routes(&options), &options, &grace_over).await;
            drop(bound.directory);
            Ok(())
        })
    }))
}

/// The one line that a plugin writes on standard output (plugin protocol, the handshake line), with the server's
/// certificate in DER form, empty without TLS. The server must already listen. Only a host that asks for the seventh
/// field gets it: an older one would read it as a part of the certificate.
fn handshake(certificate: &[u8], PluginAddress { network, address }: &PluginAddress, multiplex: bool) -> String {
    // The host decodes the standard alphabet without padding, and fails with it.
    let certificate = STANDARD_NO_PAD.encode(certificate);
    let multiplex = if multiplex { "|false" } else { "" };
    format!("{HANDSHAKE_VERSION}|{PROTOCOL_VERSION}|{network}|{address}|grpc|{certificate}{multiplex}\n")
}

/// Writes a text in one piece and flushes it.
fn write(text: &str, mut output: impl Write) -> io::Result<()> {
    output.write_all(text.as_bytes())?;
    output.flush()
}

/// Serves the routes of `routes` to any core that is given the address: no cookie, no TLS, no handshake line (plugin
/// protocol, debug / reattach mode).
///
/// Prints the setting for the core on standard output, for the provider with the short address `address`
/// (`namespace/type`). It uses only the place of the socket from the environment. Returns after SIGINT or SIGTERM, or
/// when [`stopping`](ServeOptions::stopping) is cancelled, with the socket removed.
pub fn serve_debug(
    address: &'static str,
    variable: impl Fn(&str) -> Option<OsString>,
    routes: impl FnOnce(&ServeOptions) -> Routes + Send + 'static,
) -> ExitCode {
    exit_code(PluginEnvironment::read(variable).and_then(|environment| {
        attended(Signals::by_hand, None, move |options, grace_over| async move {
            let bound = listener::bind(&environment)?;
            let reattach = reattach(address, &bound.endpoint, std::process::id());
            write(&announcement(&reattach), io::stdout().lock()).map_err(Error::Output)?;
            // Each core has a connection of its own.
            let incoming = incoming(bound.listener, None, Callers::Each(options.caller_gone.clone()));
            server::run(incoming, routes(&options), &options, &grace_over).await;
            drop(bound.directory);
            Ok(())
        })
    }))
}

/// The value of `TF_REATTACH_PROVIDERS`, safe between single quotes.
///
/// A short address means the default registry of the core that reads it; the full ones are for configurations that name
/// a registry. `Test` keeps the core from ending a server that it did not start.
pub(crate) fn reattach(address: &str, endpoint: &PluginAddress, process: u32) -> String {
    let server = json!({
        "Protocol": "grpc",
        "ProtocolVersion": PROTOCOL_VERSION,
        "Pid": process,
        "Test": true,
        "Addr": { "Network": endpoint.network, "String": endpoint.address },
    });
    let keys = REGISTRIES.iter().map(|host| format!("{host}/{address}"));
    let servers: serde_json::Map<_, _> = keys.chain([address.to_owned()]).map(|key| (key, server.clone())).collect();
    serde_json::Value::from(servers).to_string().replace('\'', r"\u0027")
}

fn announcement(reattach: &str) -> String {
    let shell = if cfg!(windows) { "$env:" } else { "" };
    format!(
        "Provider started. To attach Terraform CLI, set the TF_REATTACH_PROVIDERS environment variable with the \
         following:\n\n\t{shell}TF_REATTACH_PROVIDERS='{reattach}'\n\n"
    )
}

/// Runs `serving` on a runtime of its own, while this thread waits for its end, signals and the end of the parent, on
/// another runtime: a call that stalls cannot keep the process alive.
///
/// Unfinished tasks are left behind, and end with the process.
fn attended<F: Future<Output = Result<(), Error>> + Send + 'static>(
    signals: fn() -> io::Result<Signals>,
    parent: Option<Parent>,
    serving: impl FnOnce(ServeOptions, CancellationToken) -> F,
) -> Result<(), Error> {
    let attending = Builder::new_current_thread().enable_all().build().map_err(Error::Runtime)?;
    // Calls mostly wait for the service, and threads that wake each other cost more than they share.
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(Error::Runtime)?;
    let (options, grace_over) = (ServeOptions::default(), CancellationToken::new());
    let result = attending.block_on(async {
        // These come first: the exit of the host must be noticed, and a Ctrl-C ignored, from the start.
        let signals = signals().map_err(Error::Signals)?;
        let end = async {
            tokio::select! {
                () = gone(parent) => Ending::Orphaned,
                () = signals.ended() => Ending::Terminated,
            }
        };
        let serving = runtime.spawn(serving(options.clone(), grace_over.clone()));
        server::attend(serving, end, &options, &grace_over).await
    });
    runtime.shutdown_background();
    result
}

async fn gone(parent: Option<Parent>) {
    match parent {
        Some(parent) => parent.gone().await,
        None => pending().await,
    }
}

/// The exit code of the process; an error is printed on standard error.
fn exit_code(served: Result<(), Error>) -> ExitCode {
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Plain text: the core shows the output of a plugin that exits before the handshake.
            let _ = writeln!(io::stderr(), "failed to {}", with_causes(&error));
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use super::*;

    #[test]
    fn both_products_find_the_server_by_short_and_full_address() {
        let endpoint = PluginAddress { network: "unix", address: "/tmp/it's here/socket".to_owned() };
        let text = reattach("acme/widget", &endpoint, 4242);
        assert!(!text.contains('\''), "{text}");
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let expected = json!({
            "Protocol": "grpc",
            "ProtocolVersion": 6,
            "Pid": 4242,
            "Test": true,
            "Addr": { "Network": "unix", "String": "/tmp/it's here/socket" },
        });
        assert_eq!(
            value,
            json!({
                "acme/widget": expected,
                "registry.opentofu.org/acme/widget": expected,
                "registry.terraform.io/acme/widget": expected,
            })
        );
    }

    #[test]
    fn the_certificate_has_the_standard_alphabet_and_no_padding() {
        let endpoint = PluginAddress { network: "unix", address: "/tmp/plugin1/socket".to_owned() };
        assert_eq!(handshake(&[0], &endpoint, true), "1|6|unix|/tmp/plugin1/socket|grpc|AA|false\n");
        assert_eq!(handshake(b"", &endpoint, false), "1|6|unix|/tmp/plugin1/socket|grpc|\n");
        assert_eq!(
            handshake(&[0xfb, 0xff, 0xfe, 0xff], &endpoint, false),
            "1|6|unix|/tmp/plugin1/socket|grpc|+//+/w\n"
        );
    }
}
