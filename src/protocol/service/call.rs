use std::{future::Future, sync::Arc};

use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::{
    driver::Driver,
    panics::{Panic, catch},
};
use crate::{
    framework::{Diagnostic, Diagnostics, Provider, server::heard_until},
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
        driver: &Driver<P>,
    ) -> impl Future<Output = Result<Self::Response, Diagnostics>> + Send;
}

/// An answer that can carry messages to the operator.
pub(in crate::protocol) trait Answer: Default + Send + 'static {
    /// Adds messages.
    fn say(&mut self, diagnostics: Diagnostics);

    /// How many errors and warnings there are.
    fn counts(&self) -> (usize, usize);
}

/// Answers a call in a task of its own: a client that goes away does not end work under way
/// (plugin protocol, request cancellation), and a panic harms no other call.
pub(super) async fn run<P: Provider, C: Call>(driver: Arc<Driver<P>>, work: &TaskTracker, call: C) -> C::Response {
    let span = tracing::error_span!(
        "rpc",
        tf_rpc = C::NAME,
        tf_resource_type = call.type_name(),
        tf_req_id = %random_id(),
    );
    let unheard = driver.server.unheard();
    let answering = async move {
        let started = Instant::now();
        let response = answer(&driver, &call).await;
        let (errors, warnings) = response.counts();
        tracing::debug!(
            duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            errors,
            warnings,
            "answered"
        );
        response
    };
    // The core's connection takes this future with it when it breaks, long before the core's death is noticed otherwise.
    let gone = unheard.clone().drop_guard();
    let answered = work.spawn(heard_until(unheard, answering).instrument(span)).await;
    gone.disarm();
    answered.unwrap_or_else(|_| {
        let mut response = C::Response::default();
        response.say(
            Diagnostic::error(
                "The provider is ending",
                "The call was cut off. What it was about is as it was, or as the service says.",
            )
            .into(),
        );
        response
    })
}

async fn answer<P: Provider, C: Call>(driver: &Driver<P>, call: &C) -> C::Response {
    let diagnostics = match catch(call.answer(driver)).await {
        Ok(Ok(response)) => return response,
        Ok(Err(diagnostics)) => diagnostics,
        Err(panic) => report(&panic),
    };
    let mut response = call.fallback();
    response.say(diagnostics);
    response
}

pub(super) fn report(panic: &Panic) -> Diagnostics {
    let report_id = random_id();
    tracing::error!(report_id, panic.message, panic.location, "a call ended in a panic");
    Diagnostic::error(
        "The provider hit a bug",
        format!(
            "Please report it with the id {report_id}; the provider's log has more under that id (TF_LOG=error). \
             Other operations were not touched. What this one had begun may exist: look at the service before trying again."
        ),
    )
    .into()
}

/// 16 hex digits that tell one call or report from another in a log.
pub(super) fn random_id() -> String {
    format!("{:016x}", rand::random::<u64>())
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
    apply_resource_change close_ephemeral_resource configure_provider configure_state_store delete_state
    generate_resource_config get_functions get_metadata get_provider_schema get_resource_identity_schemas get_states
    import_resource_state lock_state move_resource_state open_ephemeral_resource plan_action plan_resource_change
    read_data_source read_resource read_state_bytes renew_ephemeral_resource unlock_state upgrade_resource_identity
    upgrade_resource_state validate_action_config validate_data_resource_config validate_ephemeral_resource_config
    validate_list_resource_config validate_provider_config validate_resource_config validate_state_store
    write_state_bytes
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
