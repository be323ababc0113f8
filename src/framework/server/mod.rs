//! What each call of the core means, without its wire form: one file a group of calls. The protocol layer decodes,
//! calls in here, and encodes.

mod offers;
mod resource;

use std::{
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use self::offers::ConfigureRequest;
pub use self::resource::ResourceAnswer;
pub use offers::ListRequest;
pub use resource::{ApplyRequest, PlanRequest};

use self::offers::Configuration;
use super::{
    diagnostics::Diagnostics,
    ephemeral::Holder,
    registry::{Provider, Registry},
    resource::StepContext,
    schema::Schema,
};

/// How long a step may take whose kind has no timeouts of its own.
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// A provider being served: what it offers, asked for once, and its current configuration.
pub struct Server<P: Provider> {
    provider: P,
    schema: Schema,
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
    pub caller_gone: CancellationToken,
    /// Cancelled when the answer of this call went to the connection. Whether it was stored is never learned.
    pub answered: CancellationToken,
    /// Cancelled when there will be no further call of this caller.
    pub(super) disconnected: CancellationToken,
}

tokio::task_local! {
    /// Of the call that the task answers.
    static CALLER: Caller;
}

/// Answers a call of `caller`. The steps of the call learn from their [`StepContext::caller_gone`] that it is gone.
pub async fn answer_to<T>(caller: Caller, call: impl Future<Output = T>) -> T {
    CALLER.scope(caller, call).await
}

impl<P: Provider> Server<P> {
    /// Serves a provider until `ends`.
    pub fn new(provider: P, ends: Ends) -> Self {
        let schema = provider.schema();
        Self {
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

    /// Everything that the provider offers.
    pub fn registry(&self) -> &Registry<P::Client> {
        &self.registry
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
            caller_gone: disconnected.child_token(),
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
    fn context(&self, client: Arc<P::Client>, timeout: Duration) -> StepContext<P::Client> {
        let Caller { caller_gone, answered, .. } = self.current_caller();
        StepContext { client, stopping: self.stopping(), caller_gone, answered, deadline: Instant::now() + timeout }
    }

    /// The client, or why it is missing.
    fn client(&self) -> Result<Arc<P::Client>, Diagnostics> {
        self.configuration().client()
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
