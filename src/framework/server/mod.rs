//! What each call of the core means, without its wire form: one file a group of calls. The protocol layer decodes,
//! calls in here, and encodes.

mod action;
mod apply;
mod configure;
mod data_source;
mod ephemeral;
#[cfg(test)]
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
    held::Holder,
    provider::Provider,
    registry::{Entry, Kind, Registry},
    resource::Context,
    schema::Schema,
    value::{Type, Value},
};

/// How long a step may take whose kind has no timeouts of its own.
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// A provider being served: what it offers, asked for once, and its current configuration.
pub struct Server<P: Provider> {
    provider: P,
    schema: Schema,
    config_type: Type,
    registry: Registry<P::Client>,
    held: Holder,
    /// Several cores may configure one process in debug mode; the last one counts (plugin protocol, debug mode).
    configuration: RwLock<Configuration<P::Client>>,
    /// Of the calls under way.
    stopping: Mutex<CancellationToken>,
    ends: Ends,
}

/// What ends the calls of a server before they are done.
#[derive(Clone, Debug, Default)]
pub struct Ends {
    /// Cancelled when the process is going to end. Waits end then, and what is known is answered.
    pub stopping: CancellationToken,
    /// Cancelled when the core is gone and nobody will hear the answers any more: what calls did then must be left
    /// where a later run finds it. A process that is told to end may have a core that goes on and stores what it hears,
    /// as one of the same process group does after SIGTERM.
    pub caller_gone: CancellationToken,
}

/// Who waits for the answer of a call.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Cancelled when nobody will store the answer of this call.
    pub gone: CancellationToken,
    /// Cancelled when the answer of this call went to the connection. Whether it was stored is never learned.
    pub answered: CancellationToken,
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

/// A thing and the client to work with it, or why there is none of them.
type Ready<'a, C> = Result<(&'a Entry<C>, Arc<C>), Diagnostics>;

impl<P: Provider> Server<P> {
    /// Serves a provider until `ends`.
    pub fn new(provider: P, ends: Ends) -> Self {
        let schema = provider.schema();
        Self {
            config_type: schema.ty(),
            schema,
            registry: provider.registry(),
            provider,
            held: Holder::default(),
            configuration: RwLock::new(Configuration::Missing),
            stopping: Mutex::new(ends.stopping.child_token()),
            ends,
        }
    }

    /// The schema of the provider's configuration.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The type of the provider's configuration.
    pub fn config_type(&self) -> &Type {
        &self.config_type
    }

    /// Everything that the provider offers.
    pub fn registry(&self) -> &Registry<P::Client> {
        &self.registry
    }

    /// The provider itself.
    pub fn provider(&self) -> &P {
        &self.provider
    }

    /// Ends the waits of all calls under way; later calls are not touched (plugin protocol, StopProvider).
    pub fn stop(&self) {
        let mut stopping = self.stopping.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *stopping, self.ends.stopping.child_token()).cancel();
    }

    /// The caller of one call, who is gone with its connection (`disconnected`), or else with the core.
    pub fn caller(&self, disconnected: Option<&CancellationToken>) -> Caller {
        let disconnected = disconnected.unwrap_or(&self.ends.caller_gone);
        Caller {
            gone: disconnected.child_token(),
            answered: CancellationToken::new(),
            disconnected: disconnected.clone(),
        }
    }

    /// The caller of the call that this task answers.
    fn current_caller(&self) -> Caller {
        CALLER.try_with(Caller::clone).unwrap_or_else(|_| self.caller(None))
    }

    /// The token that the next stop cancels.
    fn stopping(&self) -> CancellationToken {
        self.stopping.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What a step works with.
    fn context(&self, client: Arc<P::Client>, timeout: Duration) -> Context<P::Client> {
        let Caller { gone: unheard, answered, .. } = self.current_caller();
        Context { client, cancel: self.stopping(), unheard, answered, deadline: Instant::now() + timeout }
    }

    /// A thing and the client to work with it.
    fn ready(&self, kind: Kind, name: &str) -> Ready<'_, P::Client> {
        Ok((self.registry.find(kind, name)?, self.configuration().client()?))
    }

    fn resource(&self, name: &str) -> Result<&Entry<P::Client>, Diagnostics> {
        self.registry.find(Kind::Resource, name)
    }

    /// What identifies the object of a state, where its type has an identity.
    fn identity(&self, type_name: &str, state: &Value) -> Option<Value> {
        self.resource(type_name).ok()?.identity.as_ref()?.of(state)
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
        formatter.debug_struct("Server").field("registry", &self.registry).finish_non_exhaustive()
    }
}
