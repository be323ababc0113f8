//! Serving a core that attaches to a running provider (plugin protocol, debug / reattach mode).

use std::io::{self, Write};

use serde_json::json;
use tonic::service::Routes;

use super::{
    Environment, Error, Options,
    handshake::PROTOCOL_VERSION,
    incoming::{Callers, incoming},
    listener::{self, Endpoint},
    server::{self, Ending},
    signals::Signals,
};

/// Serves `routes` to any core that is told where: no cookie, no TLS, no handshake line.
///
/// Prints on standard output how to tell it, for the provider with the short address `address`
/// (`namespace/type`). Of `environment` only the place of the socket is used. Returns after SIGINT or SIGTERM,
/// or when [`stopping`](Options::stopping) is cancelled, with the socket removed.
pub async fn serve_debug(
    routes: Routes,
    address: &str,
    environment: &Environment,
    options: Options,
) -> Result<(), Error> {
    let signals = Signals::by_hand().map_err(Error::Signals)?;
    let bound = listener::bind(environment)?;
    let reattach = reattach(address, &bound.endpoint, std::process::id());
    announce(&reattach, io::stdout().lock()).map_err(Error::Output)?;

    let end = async {
        signals.ended().await;
        Ending::Terminated
    };
    // Cores come and go, each with a connection of its own.
    let incoming = incoming(bound.listener, None, Callers::Each(options.caller_gone.clone()));
    server::run(incoming, routes, &options, end).await;
    drop(bound.directory);
    Ok(())
}

/// The value of `TF_REATTACH_PROVIDERS`, safe between single quotes.
///
/// A short address means the registry of the product that reads it; the full ones serve configurations that name
/// their registry. `Test` keeps the core from ending a server that it did not start.
fn reattach(address: &str, endpoint: &Endpoint, process: u32) -> String {
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

fn announce(reattach: &str, mut output: impl Write) -> io::Result<()> {
    let assignment = if cfg!(windows) {
        format!("$env:TF_REATTACH_PROVIDERS='{reattach}'")
    } else {
        format!("TF_REATTACH_PROVIDERS='{reattach}'")
    };
    writeln!(
        output,
        "Provider started. To attach Terraform CLI, set the TF_REATTACH_PROVIDERS environment variable with the \
         following:\n\n\t{assignment}\n"
    )?;
    output.flush()
}

const REGISTRIES: [&str; 2] = ["registry.terraform.io", "registry.opentofu.org"];

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use super::*;

    #[test]
    fn both_products_find_the_server_by_short_and_full_address() {
        let endpoint = Endpoint { network: "unix", address: "/tmp/it's here/socket".to_owned() };
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
}
