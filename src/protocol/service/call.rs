//! Runs one call of the core in a task of its own.

use std::{future::Future, panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt as _;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use tracing::{Instrument as _, Span};

use crate::{
    framework::{
        Diagnostic, Diagnostics, Provider, Server,
        server::{Caller, answer_to},
    },
    protocol::{convert, tfplugin6},
};

/// A call of the core: the request is the implementor.
pub(in crate::protocol) trait Call: Send + Sync + Sized + 'static {
    /// What is answered.
    type Response: Answer;
    /// The call's name in the protocol.
    const NAME: &'static str;

    /// The type of thing that it is about, where there is one.
    fn type_name(&self) -> &str {
        ""
    }

    /// The answer when nothing could be done: the best-known state, without messages.
    fn fallback(&self) -> Self::Response {
        Self::Response::default()
    }

    /// Answers.
    fn answer<P: Provider>(
        &self,
        server: &Server<P>,
    ) -> impl Future<Output = Result<Self::Response, Diagnostics>> + Send;
}

/// An answer that can carry messages to the operator.
pub(in crate::protocol) trait Answer: Default + Send + 'static {
    /// Adds messages.
    fn say(&mut self, diagnostics: Diagnostics);

    /// How many errors and warnings there are.
    fn counts(&self) -> (usize, usize);
}

/// The id of a call, and the span of its log lines, which bear it.
pub(super) fn identified(name: &str, type_name: &str) -> (String, Span) {
    let id = format!("{:016x}", rand::random::<u64>());
    let span = tracing::error_span!("rpc", tf_rpc = name, tf_resource_type = type_name, tf_req_id = %id);
    (id, span)
}

/// Answers a call in a task of its own: a client that goes away does not end work under way
/// (plugin protocol, request cancellation), and a panic harms no other call.
pub(super) async fn run<P: Provider, C: Call>(
    server: Arc<Server<P>>,
    work: &TaskTracker,
    caller: Caller,
    call: C,
) -> C::Response {
    let (id, span) = identified(C::NAME, call.type_name());
    let answering = async move {
        let started = Instant::now();
        let response = answer(&server, &call, &id).await;
        log_answered(started, response.counts());
        response
    };
    // The core's connection takes this future with it when it breaks, long before the core's death is noticed
    // otherwise.
    let (gave_up, answered) = (caller.gone.clone().drop_guard(), caller.answered.clone());
    let response = work.spawn(answer_to(caller, answering).instrument(span)).await.unwrap_or_else(|_| {
        let mut response = C::Response::default();
        response.say(
            Diagnostic::error(
                "The operation was interrupted",
                "The provider is shutting down. Run the plan again to see the current state.",
            )
            .into(),
        );
        response
    });
    gave_up.disarm();
    answered.cancel();
    response
}

pub(super) fn log_answered(started: Instant, (errors, warnings): (usize, usize)) {
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    tracing::debug!(duration_ms, errors, warnings, "answered");
}

async fn answer<P: Provider, C: Call>(server: &Server<P>, call: &C, id: &str) -> C::Response {
    let diagnostics = match catch(id, call.answer(server)).await {
        Ok(Ok(response)) => return response,
        Ok(Err(diagnostics)) | Err(diagnostics) => diagnostics,
    };
    let mut response = call.fallback();
    response.say(diagnostics);
    response
}

/// Runs the work of the call with this id. The program's panic hook logs a panic of it with message, place and
/// backtrace, inside the span of the call and so beside the same id.
pub(super) async fn catch<T>(id: &str, work: impl Future<Output = T>) -> Result<T, Diagnostics> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|_| {
        let detail = format!(
            "Please report it with the id {id}; the provider's log has more under that id (TF_LOG=error). Other \
             operations were not affected. What this one had begun may exist: look at the service before trying again."
        );
        Diagnostic::error("The provider hit a bug", detail).into()
    })
}

macro_rules! answers {
    ($($message:ident)*) => {
        $(impl Answer for tfplugin6::$message::Response {
            fn say(&mut self, diagnostics: Diagnostics) {
                self.diagnostics.extend(convert::diagnostics(diagnostics));
            }

            fn counts(&self) -> (usize, usize) {
                counts(&self.diagnostics)
            }
        })*
    };
}

answers! {
    apply_resource_change close_ephemeral_resource configure_provider generate_resource_config get_functions get_metadata
    get_provider_schema get_resource_identity_schemas import_resource_state move_resource_state open_ephemeral_resource
    plan_action plan_resource_change read_data_source read_resource renew_ephemeral_resource upgrade_resource_identity
    upgrade_resource_state validate_action_config validate_data_resource_config validate_ephemeral_resource_config
    validate_list_resource_config validate_provider_config validate_resource_config
}

/// A function says one thing only, and no warnings.
impl Answer for tfplugin6::call_function::Response {
    fn say(&mut self, diagnostics: Diagnostics) {
        for diagnostic in diagnostics {
            if diagnostic.is_error() && self.error.is_none() {
                self.error = Some(tfplugin6::FunctionError {
                    text: format!("{}: {}", diagnostic.summary, diagnostic.detail),
                    function_argument: None,
                });
            }
        }
    }

    fn counts(&self) -> (usize, usize) {
        (usize::from(self.error.is_some()), 0)
    }
}

impl Answer for tfplugin6::list_resource::Event {
    fn say(&mut self, diagnostics: Diagnostics) {
        self.diagnostic.extend(convert::diagnostics(diagnostics));
    }

    fn counts(&self) -> (usize, usize) {
        counts(&self.diagnostic)
    }
}

/// Messages end an action: they are in its completed event.
impl Answer for tfplugin6::invoke_action::Event {
    fn say(&mut self, diagnostics: Diagnostics) {
        use tfplugin6::invoke_action::event::{Completed, Type};
        let mut said = match self.r#type.take() {
            Some(Type::Completed(completed)) => completed.diagnostics,
            Some(Type::Progress(_)) | None => Vec::new(),
        };
        said.extend(convert::diagnostics(diagnostics));
        self.r#type = Some(Type::Completed(Completed { diagnostics: said }));
    }

    fn counts(&self) -> (usize, usize) {
        use tfplugin6::invoke_action::event::Type;
        match &self.r#type {
            Some(Type::Completed(completed)) => counts(&completed.diagnostics),
            Some(Type::Progress(_)) | None => (0, 0),
        }
    }
}

fn counts(diagnostics: &[tfplugin6::Diagnostic]) -> (usize, usize) {
    let of = |severity| diagnostics.iter().filter(|diagnostic| diagnostic.severity() == severity).count();
    (of(tfplugin6::diagnostic::Severity::Error), of(tfplugin6::diagnostic::Severity::Warning))
}
