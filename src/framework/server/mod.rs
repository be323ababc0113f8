//! What each call of the core means, without its wire form: one file a group of calls. The protocol layer decodes, calls in here,
//! and encodes.

mod action;
mod apply;
mod configure;
mod data_source;
mod ephemeral;
mod faults;
mod function;
mod generate;
mod import;
mod list_resource;
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
pub use ephemeral::OpenResponse;
pub use function::CallError;
pub use import::{ImportResponse, ImportTarget};
pub use list_resource::ListRequest;
pub use plan::{PlanRequest, PlanResponse};
pub use read::{ReadRequest, ReadResponse};

use self::configure::Configuration;
use super::{
    diagnostics::Diagnostics,
    erased::{AnyAction, AnyDataSource, AnyEphemeralResource, AnyFunction, AnyListResource, AnyResource},
    function::Signature,
    held::Holder,
    identity::IdentitySchema,
    provider::Provider,
    resource::Context,
    schema::Schema,
};

/// How long a step may take whose kind has no timeouts of its own.
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// A provider being served: its schemas, built once, and its current configuration.
pub struct Server<P: Provider> {
    provider: P,
    schemas: Schemas,
    resources: BTreeMap<&'static str, Box<dyn AnyResource<P::Client>>>,
    data_sources: BTreeMap<&'static str, Box<dyn AnyDataSource<P::Client>>>,
    ephemeral_resources: BTreeMap<&'static str, Box<dyn AnyEphemeralResource<P::Client>>>,
    functions: BTreeMap<&'static str, Box<dyn AnyFunction>>,
    list_resources: BTreeMap<&'static str, Box<dyn AnyListResource<P::Client>>>,
    actions: BTreeMap<&'static str, Box<dyn AnyAction<P::Client>>>,
    held: Holder,
    /// Several cores may configure one process in debug mode; the last one counts (plugin protocol, debug mode).
    configuration: RwLock<Configuration<P::Client>>,
    stop: Mutex<CancellationToken>,
    ends: Ends,
}

/// What ends the calls of a server before they are done.
#[derive(Clone, Debug, Default)]
pub struct Ends {
    /// Cancelled when the process is going to end. Waits end then, and what is known is answered.
    pub process: CancellationToken,
    /// Cancelled when the core is gone and nobody will hear the answers any more: what calls did then must be left where a later run
    /// finds it. A process that is told to end may have a core that goes on and stores what it hears, as one of the same process
    /// group does after SIGTERM.
    pub core: CancellationToken,
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
    /// Of the ephemeral resources.
    pub ephemeral_resources: BTreeMap<&'static str, Schema>,
    /// Of the `config` blocks of the list resources.
    pub list_resources: BTreeMap<&'static str, Schema>,
    /// Of the `config` blocks of the actions.
    pub actions: BTreeMap<&'static str, Schema>,
    /// Of the identities of those resources that have one.
    pub identities: BTreeMap<&'static str, IdentitySchema>,
    /// The signatures of the functions, by name.
    pub functions: BTreeMap<&'static str, Signature>,
}

/// Who waits for the answer of a call.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Cancelled when nobody will store the answer of this call.
    pub gone: CancellationToken,
    /// Cancelled when there will be no further call of this caller.
    pub(super) disconnected: CancellationToken,
}

tokio::task_local! {
    /// Of the call that the task answers.
    static CALLER: Caller;
}

/// Answers a call of `caller`. The steps of the call learn from their [`Context::unheard`] that it is gone.
pub async fn answer_to<T>(caller: Caller, call: impl Future<Output = T>) -> T {
    CALLER.scope(caller, call).await
}

impl<P: Provider> Server<P> {
    /// Serves a provider until `ends`.
    pub fn new(provider: P, ends: Ends) -> Self {
        let registry = provider.registry();
        let resources: BTreeMap<_, _> =
            registry.resources.into_iter().map(|resource| (resource.type_name(), resource)).collect();
        let data_sources: BTreeMap<_, _> =
            registry.data_sources.into_iter().map(|source| (source.type_name(), source)).collect();
        let ephemeral_resources: BTreeMap<_, _> =
            registry.ephemeral_resources.into_iter().map(|resource| (resource.type_name(), resource)).collect();
        let functions: BTreeMap<_, _> =
            registry.functions.into_iter().map(|function| (function.name(), function)).collect();
        let list_resources: BTreeMap<_, _> =
            registry.list_resources.into_iter().map(|list| (list.type_name(), list)).collect();
        let actions: BTreeMap<_, _> = registry.actions.into_iter().map(|action| (action.type_name(), action)).collect();
        let schemas = Schemas {
            provider: provider.schema(),
            resources: resources.iter().map(|(name, resource)| (*name, resource.schema().clone())).collect(),
            data_sources: data_sources.iter().map(|(name, source)| (*name, source.schema().clone())).collect(),
            ephemeral_resources: ephemeral_resources
                .iter()
                .map(|(name, resource)| (*name, resource.schema().clone()))
                .collect(),
            list_resources: list_resources.iter().map(|(name, list)| (*name, list.schema().clone())).collect(),
            actions: actions.iter().map(|(name, action)| (*name, action.schema().clone())).collect(),
            identities: resources
                .iter()
                .filter_map(|(name, resource)| Some((*name, resource.identity()?.clone())))
                .collect(),
            functions: functions.iter().map(|(name, function)| (*name, function.signature())).collect(),
        };
        Self {
            provider,
            schemas,
            resources,
            data_sources,
            ephemeral_resources,
            functions,
            list_resources,
            actions,
            held: Holder::default(),
            configuration: RwLock::new(Configuration::Missing),
            stop: Mutex::new(ends.process.child_token()),
            ends,
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
        std::mem::replace(&mut *stop, self.ends.process.child_token()).cancel();
    }

    /// The caller of one call, who is gone with its connection (`disconnected`), or else with the core.
    pub fn caller(&self, disconnected: Option<&CancellationToken>) -> Caller {
        let disconnected = disconnected.unwrap_or(&self.ends.core);
        Caller { gone: disconnected.child_token(), disconnected: disconnected.clone() }
    }

    /// The caller of the call that this task answers.
    fn current_caller(&self) -> Caller {
        CALLER.try_with(Caller::clone).unwrap_or_else(|_| self.caller(None))
    }

    /// The token that the next stop cancels.
    fn cancel(&self) -> CancellationToken {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What a step works with.
    fn context(&self, client: Arc<P::Client>, timeout: Duration) -> Context<P::Client> {
        let unheard = self.current_caller().gone;
        Context { client, cancel: self.cancel(), unheard, deadline: Instant::now() + timeout }
    }

    fn resource(&self, type_name: &str) -> Result<&dyn AnyResource<P::Client>, Diagnostics> {
        self.resources.get(type_name).map(AsRef::as_ref).ok_or_else(|| unknown_type("resource", type_name))
    }

    fn any_data_source(&self, type_name: &str) -> Result<&dyn AnyDataSource<P::Client>, Diagnostics> {
        self.data_sources.get(type_name).map(AsRef::as_ref).ok_or_else(|| unknown_type("data source", type_name))
    }

    fn ephemeral_resource(&self, type_name: &str) -> Result<&dyn AnyEphemeralResource<P::Client>, Diagnostics> {
        let resource = self.ephemeral_resources.get(type_name);
        resource.map(AsRef::as_ref).ok_or_else(|| unknown_type("ephemeral resource", type_name))
    }

    fn list_resource(&self, type_name: &str) -> Result<&dyn AnyListResource<P::Client>, Diagnostics> {
        let list = self.list_resources.get(type_name);
        list.map(AsRef::as_ref).ok_or_else(|| unknown_type("list resource", type_name))
    }

    fn any_action(&self, type_name: &str) -> Result<&dyn AnyAction<P::Client>, Diagnostics> {
        self.actions.get(type_name).map(AsRef::as_ref).ok_or_else(|| unknown_type("action", type_name))
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
