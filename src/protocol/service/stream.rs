//! Runs calls that answer with a stream of events.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::{sync::mpsc, time::Instant};
use tokio_stream::Stream;
use tokio_util::{sync::DropGuard, task::TaskTracker};
use tonic::Status;
use tracing::Instrument as _;

use super::call::{Answer, catch, identified, log_answered};
use crate::framework::{
    Diagnostics, Provider, Server,
    server::{Caller, answer_to},
};

/// How many events may wait for the core.
const WAITING: usize = 16;

/// A call of the core that is answered by a stream of events: the request is the implementor.
pub(in crate::protocol) trait StreamCall: Send + Sync + Sized + 'static {
    /// What the stream is made of.
    type Event: Answer;
    /// The call's name in the protocol.
    const NAME: &'static str;

    /// The type of thing that it is about.
    fn type_name(&self) -> &str;

    /// Answers. What is returned goes into the last event.
    fn answer<P: Provider>(
        &self,
        server: &Server<P>,
        events: &Events<Self::Event>,
    ) -> impl Future<Output = Diagnostics> + Send;

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

/// Answers a call in a task of its own, as single answers are. A panic, too, ends in a last event.
pub(super) fn stream<P: Provider, C: StreamCall>(
    server: Arc<Server<P>>,
    work: &TaskTracker,
    caller: Caller,
    call: C,
) -> impl Stream<Item = Result<C::Event, Status>> + Send + 'static {
    let (id, span) = identified(C::NAME, call.type_name());
    let (sender, receiver) = mpsc::channel(WAITING);
    let answering = async move {
        let (started, events) = (Instant::now(), Events(sender));
        let diagnostics = catch(&id, call.answer(&server, &events)).await.unwrap_or_else(|panic| panic);
        let last = C::last(diagnostics);
        let counts = last.as_ref().map_or((0, 0), Answer::counts);
        if let Some(last) = last {
            events.send(last).await;
        }
        log_answered(started, counts);
    };
    let gave_up = Some(caller.gone.clone().drop_guard());
    work.spawn(answer_to(caller, answering).instrument(span));
    EventStream { events: receiver, gave_up }
}
