//! The gRPC service: each call in a task of its own, with its span, its log line and its panics caught.

mod call;
mod rpc;
mod stream;

use std::sync::Arc;

use tokio_util::task::TaskTracker;
use tonic::service::Routes;

pub(super) use call::{Answer, Call};
pub(super) use stream::{Events, StreamCall};

use super::tfplugin6::provider_server::ProviderServer;
use crate::framework::{Ends, Provider, Server};

/// Largest message either way: what the usual servers take (plugin protocol, sizes and connection).
const LARGEST_MESSAGE: usize = 256 << 20;

/// The service that offers a provider, as routes for a gRPC server.
///
/// `work` counts the calls under way, so that they can be waited for.
///
/// A request may have a `CancellationToken` as an extension, which is cancelled when its caller is gone.
pub fn service<P: Provider>(provider: P, ends: Ends, work: TaskTracker) -> Routes {
    let service = Service { server: Arc::new(Server::new(provider, ends)), work };
    Routes::new(
        ProviderServer::new(service)
            .max_decoding_message_size(LARGEST_MESSAGE)
            .max_encoding_message_size(LARGEST_MESSAGE),
    )
}

struct Service<P: Provider> {
    server: Arc<Server<P>>,
    work: TaskTracker,
}
