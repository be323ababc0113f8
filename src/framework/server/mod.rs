//! What each call of the core means, without its wire form: one file a group of calls. The protocol layer decodes, calls in here,
//! and encodes.

mod apply;
mod configure;
mod data_source;
mod faults;
mod import;
mod plan;
mod read;
mod upgrade;
mod validate;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use apply::{ApplyRequest, ApplyResponse};
pub use configure::ConfigureRequest;
pub use data_source::{DataSourceResponse, Deferral};
pub use import::ImportResponse;
pub use plan::{PlanRequest, PlanResponse};
pub use read::{ReadRequest, ReadResponse};

use self::configure::Configuration;
use super::{
    diagnostics::Diagnostics,
    erased::{AnyDataSource, AnyResource},
    provider::Provider,
    resource::Context,
    schema::Schema,
};

/// A provider being served: its schemas, built once, and its current configuration.
pub struct Server<P: Provider> {
    provider: P,
    schemas: Schemas,
    resources: BTreeMap<&'static str, Box<dyn AnyResource<P::Client>>>,
    data_sources: BTreeMap<&'static str, Box<dyn AnyDataSource<P::Client>>>,
    /// Several cores may configure one process in debug mode; the last one counts (plugin protocol, debug mode).
    configuration: RwLock<Configuration<P::Client>>,
    stop: Mutex<CancellationToken>,
    unheard: CancellationToken,
}

/// The schemas of everything that a provider offers, by full type name.
#[derive(Debug)]
pub struct Schemas {
    /// Of the provider's configuration.
    pub provider: Schema,
    /// Of the resources, with their `timeouts` blocks.
    pub resources: BTreeMap<&'static str, Schema>,
    /// Of the data sources.
    pub data_sources: BTreeMap<&'static str, Schema>,
}

tokio::task_local! {
    /// Of the call that the task answers.
    static UNHEARD: CancellationToken;
}

/// Answers a call whose answer reaches nobody once `unheard` is cancelled. The steps of the call are told by their
/// [`Context::unheard`].
pub async fn heard_until<T>(unheard: CancellationToken, call: impl Future<Output = T>) -> T {
    UNHEARD.scope(unheard, call).await
}

impl<P: Provider> Server<P> {
    /// Serves a provider. `unheard` is cancelled when the core is gone and nobody will hear the answers any more: that ends the
    /// waits of all calls, and what they did then must be left where a later run finds it.
    pub fn new(provider: P, unheard: CancellationToken) -> Self {
        let registry = provider.registry();
        let resources: BTreeMap<_, _> =
            registry.resources.into_iter().map(|resource| (resource.type_name(), resource)).collect();
        let data_sources: BTreeMap<_, _> =
            registry.data_sources.into_iter().map(|source| (source.type_name(), source)).collect();
        let schemas = Schemas {
            provider: provider.schema(),
            resources: resources.iter().map(|(name, resource)| (*name, resource.schema().clone())).collect(),
            data_sources: data_sources.iter().map(|(name, source)| (*name, source.schema().clone())).collect(),
        };
        Self {
            provider,
            schemas,
            resources,
            data_sources,
            configuration: RwLock::new(Configuration::Missing),
            stop: Mutex::new(unheard.child_token()),
            unheard,
        }
    }

    /// The schemas of everything.
    pub fn schemas(&self) -> &Schemas {
        &self.schemas
    }

    /// The provider itself.
    pub fn provider(&self) -> &P {
        &self.provider
    }

    /// Ends the waits of all calls under way; later calls are not touched (plugin protocol, StopProvider).
    pub fn stop(&self) {
        let mut stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *stop, self.unheard.child_token()).cancel();
    }

    /// A token that is cancelled when the core is gone, for a call that may lose its listener before (see [`heard_until`]).
    pub fn unheard(&self) -> CancellationToken {
        self.unheard.child_token()
    }

    /// The token that the next stop cancels.
    fn cancel(&self) -> CancellationToken {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What a step works with.
    fn context(&self, client: Arc<P::Client>, timeout: Duration) -> Context<P::Client> {
        let unheard = UNHEARD.try_with(CancellationToken::clone).unwrap_or_else(|_| self.unheard.clone());
        Context { client, cancel: self.cancel(), unheard, deadline: Instant::now() + timeout }
    }

    fn resource(&self, type_name: &str) -> Result<&dyn AnyResource<P::Client>, Diagnostics> {
        self.resources.get(type_name).map(AsRef::as_ref).ok_or_else(|| unknown_type("resource", type_name))
    }

    fn any_data_source(&self, type_name: &str) -> Result<&dyn AnyDataSource<P::Client>, Diagnostics> {
        self.data_sources.get(type_name).map(AsRef::as_ref).ok_or_else(|| unknown_type("data source", type_name))
    }

    fn configuration(&self) -> Configuration<P::Client> {
        match &*self.configuration.read().unwrap_or_else(PoisonError::into_inner) {
            Configuration::Missing => Configuration::Missing,
            Configuration::Ready(client) => Configuration::Ready(Arc::clone(client)),
            Configuration::Unknown(arguments) => Configuration::Unknown(arguments.clone()),
        }
    }
}

impl<P: Provider> std::fmt::Debug for Server<P> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Server").field("schemas", &self.schemas).finish_non_exhaustive()
    }
}

fn unknown_type(kind: &str, type_name: &str) -> Diagnostics {
    let mut diagnostics = Diagnostics::new();
    diagnostics
        .error(format!("No such {kind}"), format!("This version of the provider has no {kind} of type {type_name:?}."));
    diagnostics
}
