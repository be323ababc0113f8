//! Runs one call of the core in a task of its own.

use std::{
    future::Future,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::FutureExt as _;
use tokio::{sync::mpsc, time::Instant};
use tokio_stream::Stream;
use tokio_util::{sync::DropGuard, task::TaskTracker};
use tonic::Status;
use tracing::{Instrument as _, Span, field::Empty};

use crate::{
    framework::{
        Diagnostic, Diagnostics, Provider, Server,
        server::{Caller, answer_to},
    },
    protocol::{
        convert,
        tfplugin6::{
            self, call_function, invoke_action,
            invoke_action::event::{self, Completed},
            list_resource,
        },
    },
};

/// How many events may wait for the core.
const WAITING: usize = 16;

/// A request, as the table of the calls describes it.
pub(in crate::protocol) trait Message: Send + Sync + Sized + 'static {
    /// What is answered.
    type Response: Answer;
    /// The call's name in the protocol.
    const NAME: &'static str;

    /// The type of object that it is about; empty where there is none.
    fn subject(&self) -> &str {
        ""
    }
}

/// A call of the core with one answer: the request is the implementor.
pub(in crate::protocol) trait Call: Message {
    /// The answer when nothing could be done: the best-known state, without messages.
    fn fallback(&self) -> Self::Response {
        Self::Response::default()
    }

    /// Answers.
    fn answer<P: Provider>(&self, server: &Server<P>) -> impl Future<Output = Answered<Self>> + Send;
}

/// An answer and the messages with it, or why nothing could be done.
pub(in crate::protocol) type Answered<C> = Result<(<C as Message>::Response, Diagnostics), Diagnostics>;

/// An answer that can carry messages to the operator.
pub(in crate::protocol) trait Answer: Default + Send + 'static {
    /// Adds messages.
    fn say(&mut self, diagnostics: Diagnostics);
}

/// A call of the core that is answered by a stream of events: the request is the implementor.
pub(in crate::protocol) trait StreamCall: Send + Sync + Sized + 'static {
    /// What the stream is made of.
    type Event: Answer;
    /// The call's name in the protocol.
    const NAME: &'static str;

    /// The type of object that it is about.
    fn subject(&self) -> &str;

    /// Answers. What is returned goes into the last event.
    fn answer<P: Provider>(
        &self,
        server: &Server<P>,
        events: &Events<Self::Event>,
    ) -> impl Future<Output = Result<Diagnostics, Diagnostics>> + Send;

    /// The last event, with these messages; none where nothing needs to be said.
    fn last(diagnostics: Diagnostics) -> Option<Self::Event>;
}

/// Where a call sends its events.
#[derive(Debug)]
pub(in crate::protocol) struct Events<E>(mpsc::Sender<Result<E, Status>>);

impl<E> Events<E> {
    /// Sends an event, unless the core has heard enough.
    pub(in crate::protocol) async fn send(&self, event: E) {
        let _ = self.0.send(Ok(event)).await;
    }

    /// Waits until the core has heard enough.
    pub(in crate::protocol) async fn closed(&self) {
        self.0.closed().await;
    }
}

/// Answers a call in a task of its own: a client that goes away does not end work under way
/// (plugin protocol, request cancellation), and a panic harms no other call.
pub(super) async fn run<P: Provider, C: Call>(
    server: Arc<Server<P>>,
    work: &TaskTracker,
    caller: Caller,
    call: C,
) -> C::Response {
    let (id, span) = identified(C::NAME, call.subject());
    let answering = async move {
        let started = Instant::now();
        let (mut response, diagnostics) = match catch(&id, call.answer(&server)).await.and_then(|answered| answered) {
            Ok(answered) => answered,
            Err(diagnostics) => (call.fallback(), diagnostics),
        };
        log_answered(started, &diagnostics);
        response.say(diagnostics);
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

/// Answers a call with events, in a task of its own as single answers are. A panic, too, ends in a last event.
pub(super) fn stream<P: Provider, C: StreamCall>(
    server: Arc<Server<P>>,
    work: &TaskTracker,
    caller: Caller,
    call: C,
) -> impl Stream<Item = Result<C::Event, Status>> + Send + 'static {
    let (id, span) = identified(C::NAME, call.subject());
    let (sender, receiver) = mpsc::channel(WAITING);
    let answering = async move {
        let (started, events) = (Instant::now(), Events(sender));
        let answered = catch(&id, call.answer(&server, &events)).await.and_then(|answered| answered);
        let diagnostics = answered.unwrap_or_else(|diagnostics| diagnostics);
        log_answered(started, &diagnostics);
        if let Some(last) = C::last(diagnostics) {
            events.send(last).await;
        }
    };
    let gave_up = Some(caller.gone.clone().drop_guard());
    work.spawn(answer_to(caller, answering).instrument(span));
    EventStream { events: receiver, gave_up }
}

/// The events on their way to the core. When the core stops reading before their end, the caller is gone.
#[derive(Debug)]
struct EventStream<E> {
    events: mpsc::Receiver<Result<E, Status>>,
    gave_up: Option<DropGuard>,
}

impl<E> Stream for EventStream<E> {
    type Item = Result<E, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let event = self.events.poll_recv(context);
        if let Poll::Ready(None) = event {
            self.gave_up.take().map(DropGuard::disarm);
        }
        event
    }
}

/// The id of a call, and the span of its log lines, which bear it.
fn identified(name: &str, subject: &str) -> (String, Span) {
    let id = format!("{:016x}", rand::random::<u64>());
    let span = tracing::error_span!(
        "rpc",
        tf_rpc = name,
        tf_resource_type = subject,
        tf_req_id = %id,
        otel.name = name,
        otel.status_code = Empty
    );
    (id, span)
}

fn log_answered(started: Instant, diagnostics: &Diagnostics) {
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
    let warnings = diagnostics.iter().count() - errors;
    if errors > 0 {
        Span::current().record("otel.status_code", "ERROR");
    }
    tracing::debug!(duration_ms, errors, warnings, "answered");
}

/// Runs the work of the call with this id. The program's panic hook logs a panic of it with message, place and
/// backtrace, inside the span of the call and so beside the same id.
async fn catch<T>(id: &str, work: impl Future<Output = T>) -> Result<T, Diagnostics> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|_| {
        let detail = format!(
            "Please report it with the id {id}; the provider's log has more under that id (TF_LOG=error). Other \
             operations were not affected. What this one had begun may exist: look at the service before trying again."
        );
        Diagnostic::error("The provider hit a bug", detail).into()
    })
}

impl Message for call_function::Request {
    type Response = call_function::Response;
    const NAME: &'static str = "CallFunction";

    fn subject(&self) -> &str {
        &self.name
    }
}

/// A function says one thing only, and no warnings.
impl Answer for call_function::Response {
    fn say(&mut self, diagnostics: Diagnostics) {
        if let Some(error) = diagnostics.into_iter().find(Diagnostic::is_error) {
            let text = format!("{}: {}", error.summary, error.detail);
            self.error = Some(tfplugin6::FunctionError { text, function_argument: None });
        }
    }
}

impl Answer for list_resource::Event {
    fn say(&mut self, diagnostics: Diagnostics) {
        self.diagnostic.extend(convert::diagnostics(diagnostics));
    }
}

/// Messages end an action: they are in its completed event.
impl Answer for invoke_action::Event {
    fn say(&mut self, diagnostics: Diagnostics) {
        let diagnostics = convert::diagnostics(diagnostics);
        self.r#type = Some(event::Type::Completed(Completed { diagnostics }));
    }
}
