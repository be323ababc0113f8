//! The calls of the core on plain values, one file for each group of calls. The protocol layer decodes a request, calls
//! this module, and encodes the answer.

mod offers;
mod resource;

use std::{
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};

use tokio::time::Instant;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use self::offers::ConfigureRequest;
pub use self::resource::ResourceAnswer;
pub use offers::ListRequest;
pub use resource::{ApplyRequest, PlanRequest};

use self::offers::ConfigurationState;
use super::{
    diagnostics::Diagnostics,
    ephemeral::HeldObjects,
    registry::{Provider, Registry},
    resource::{PlanContext, StepContext},
    schema::Schema,
};

/// The time for the live checks of one plan together, and for a configure, in case the service does not answer.
const PLANNING: Duration = Duration::from_secs(60);

/// A served provider: its schema and registry, built once, and its current configuration.
pub struct Server<P: Provider> {
    provider: P,
    schema: Schema,
    registry: Registry<P::Client>,
    held: HeldObjects,
    /// In debug mode several cores may configure one process: the last one counts (plugin protocol, debug mode).
    configuration: RwLock<ConfigurationState<P::Client>>,
    /// Stops the calls in progress.
    stopping: Mutex<CancellationToken>,
    ends: Ends,
}

/// The events that end calls of a server early.
#[derive(Clone, Debug, Default)]
pub struct Ends {
    /// Cancelled when the process is about to exit. Waits end, and calls answer with what is known.
    pub stopping: CancellationToken,
    /// Cancelled when the core has exited: answers are lost, and the calls' work must be recorded for a later run.
    /// After a SIGTERM to the process group only `stopping` is cancelled: the core may continue and store answers.
    pub caller_gone: CancellationToken,
    /// The calls in progress and what changes something beside them: the end waits for these tasks.
    pub work: TaskTracker,
}

/// The caller that waits for the answer of a call.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Cancelled when the answer of this call will not be stored.
    pub caller_gone: CancellationToken,
    /// Cancelled when this caller cannot send further calls.
    pub(super) disconnected: CancellationToken,
}

tokio::task_local! {
    /// The caller of the call that the task answers.
    static CALLER: Caller;
}

/// Answers a call of `caller`, whose tokens the [`StepContext`] of its steps gets.
pub async fn answer_to<T>(caller: Caller, call: impl Future<Output = T>) -> T {
    CALLER.scope(caller, call).await
}

impl<P: Provider> Server<P> {
    /// Serves a provider until `ends`.
    pub fn new(provider: P, ends: Ends) -> Self {
        let schema = provider.schema().described();
        Self {
            schema,
            registry: provider.registry(),
            provider,
            held: HeldObjects::default(),
            configuration: RwLock::new(ConfigurationState::Missing),
            stopping: Mutex::new(ends.stopping.child_token()),
            ends,
        }
    }

    /// The schema of the provider's configuration.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The provider's registry.
    pub fn registry(&self) -> &Registry<P::Client> {
        &self.registry
    }

    /// Ends the waits of all calls in progress, but not of later calls (plugin protocol, StopProvider).
    pub fn stop(&self) {
        let mut stopping = self.stopping.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *stopping, self.ends.stopping.child_token()).cancel();
    }

    /// The caller of one call. It is gone when its connection closes (`disconnected`); without that token, when the
    /// core exits.
    pub fn caller(&self, disconnected: Option<&CancellationToken>) -> Caller {
        let disconnected = disconnected.unwrap_or(&self.ends.caller_gone);
        Caller { caller_gone: disconnected.child_token(), disconnected: disconnected.clone() }
    }

    /// The caller of the call that this task answers.
    fn current_caller(&self) -> Caller {
        CALLER.try_with(Caller::clone).unwrap_or_else(|_| self.caller(None))
    }

    /// The token that the next stop cancels.
    fn stopping(&self) -> CancellationToken {
        self.stopping.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The context of a step.
    fn context(&self, client: Arc<P::Client>, timeout: Duration) -> StepContext<P::Client> {
        let Caller { caller_gone, .. } = self.current_caller();
        StepContext { client, stopping: self.stopping(), caller_gone, deadline: Instant::now() + timeout }
    }

    /// The context of a plan, without a client unless the provider is configured.
    fn plan_context<'a>(&self, configuration: &'a ConfigurationState<P::Client>) -> PlanContext<'a, P::Client> {
        let client = if let ConfigurationState::Ready(client) = configuration { Some(client) } else { None };
        PlanContext { client, stopping: self.stopping(), deadline: Instant::now() + PLANNING }
    }

    /// The client, or the reason why it is missing.
    fn client(&self) -> Result<Arc<P::Client>, Diagnostics> {
        self.configuration().client()
    }

    fn configuration(&self) -> ConfigurationState<P::Client> {
        match &*self.configuration.read().unwrap_or_else(PoisonError::into_inner) {
            ConfigurationState::Missing => ConfigurationState::Missing,
            ConfigurationState::Ready(client) => ConfigurationState::Ready(Arc::clone(client)),
            ConfigurationState::Unknown(arguments) => ConfigurationState::Unknown(arguments.clone()),
        }
    }
}

impl<P: Provider> std::fmt::Debug for Server<P> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Server").field("registry", &self.registry).finish_non_exhaustive()
    }
}
