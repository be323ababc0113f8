//! HTTP/1.1 through a channel: requests to a server that listens in the instance, without a local port.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use futures_util::{Stream as Pieces, StreamExt, stream};
use http_body_util::{BodyExt, Full};
pub use hyper::{HeaderMap, Method, Request, Response, StatusCode, Uri, header};
use hyper::{
    body::Incoming,
    client::conn::http1::{self, SendRequest},
    header::HOST,
    http::uri::PathAndQuery,
};
use hyper_util::rt::TokioIo;
use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{Error, Session, error::said, handler::PeerFacts};

impl Session {
    /// Sends a request to the HTTP server that listens on `127.0.0.1:port` of the instance.
    ///
    /// Only path and query of the request's address are used; `Host` is added. The answer is returned when its head has
    /// arrived, and its body is read as a stream. Each request has its own channel, which is closed when the body is
    /// dropped. A status is never an error.
    ///
    /// # Errors
    ///
    /// Those of [`Session::open`]; [`Error::BadAnswer`]; [`Error::TimedOut`] if the head does not arrive within
    /// [`SessionLimits::idle`](crate::SessionLimits), [`Error::Cancelled`].
    pub async fn http(&self, port: u16, request: Request<Bytes>) -> Result<Response<Body>, Error> {
        self.http_within(self.limits.idle, port, request).await
    }

    /// The same with another limit of silence, before the head of the answer and between the pieces of its body. A lost
    /// connection ends it earlier, because of the keepalives.
    ///
    /// # Errors
    ///
    /// Those of [`Session::http`].
    pub async fn http_within(
        &self,
        idle: Duration,
        port: u16,
        request: Request<Bytes>,
    ) -> Result<Response<Body>, Error> {
        let stream = self.open("127.0.0.1", port).await?;
        let exchange = Exchange {
            port,
            address: self.connection.address.clone(),
            facts: self.connection.facts.clone(),
            idle,
            cancel: self.cancel.clone(),
        };
        let asked = async {
            let shaken = http1::handshake(TokioIo::new(stream)).await;
            let (mut sender, connection) = shaken.map_err(|error| exchange.broken(&error))?;
            let connection = AbortOnDropHandle::new(tokio::spawn(async move {
                // The sender or the body returns the same error.
                let _ = connection.await;
            }));
            let answer = sender.send_request(addressed(request, port)).await;
            let answer = answer.map_err(|error| exchange.broken(&error))?;
            Ok((answer, sender, connection))
        };
        let (answer, sender, connection) = self.within(idle, &doing(port), asked).await?;
        let (head, incoming) = answer.into_parts();
        Ok(Response::from_parts(head, Body::new(incoming, exchange, sender, connection)))
    }
}

/// The body of an answer, as a stream of [`Bytes`]. It fails with [`Error::TimedOut`] after the longest allowed
/// silence, and with [`Error::BadAnswer`] or [`Error::Lost`] if it is incomplete.
pub struct Body {
    pieces: Pin<Box<dyn Pieces<Item = Result<Bytes, Error>> + Send>>,
    port: u16,
}

impl Body {
    fn new(
        incoming: Incoming,
        exchange: Exchange,
        sender: SendRequest<Full<Bytes>>,
        connection: AbortOnDropHandle<()>,
    ) -> Self {
        let port = exchange.port;
        // The connection is open as long as its answer is read.
        let state = Some((incoming, exchange, sender, connection));
        let pieces = stream::unfold(state, async |state| {
            let (mut incoming, exchange, sender, connection) = state?;
            match exchange.next(&mut incoming).await? {
                Ok(piece) => Some((Ok(piece), Some((incoming, exchange, sender, connection)))),
                // The stream ends with an error.
                Err(error) => Some((Err(error), None)),
            }
        });
        Self { pieces: Box::pin(pieces), port }
    }

    /// The whole body, if it has at most `limit` bytes.
    ///
    /// # Errors
    ///
    /// [`Error::TooLong`], and those of the stream.
    pub async fn collect(mut self, limit: usize) -> Result<Bytes, Error> {
        let mut whole = BytesMut::new();
        while let Some(piece) = self.pieces.next().await {
            let piece = piece?;
            if whole.len() + piece.len() > limit {
                return Err(Error::TooLong { port: self.port, limit });
            }
            whole.extend_from_slice(&piece);
        }
        Ok(whole.freeze())
    }
}

impl Pieces for Body {
    type Item = Result<Bytes, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.pieces.as_mut().poll_next(context)
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Body").field("port", &self.port).finish_non_exhaustive()
    }
}

/// A request whose answer is arriving.
struct Exchange {
    port: u16,
    address: String,
    facts: Arc<PeerFacts>,
    idle: Duration,
    cancel: CancellationToken,
}

impl Exchange {
    async fn next(&self, incoming: &mut Incoming) -> Option<Result<Bytes, Error>> {
        loop {
            let frame = tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Some(Err(Error::Cancelled { doing: doing(self.port) })),
                frame = timeout(self.idle, incoming.frame()) => frame,
            };
            let Ok(frame) = frame else {
                let doing = format!("{}, which began and then stalled,", doing(self.port));
                return Some(Err(Error::TimedOut { doing, last: None }));
            };
            match frame?.map(hyper::body::Frame::into_data) {
                Ok(Ok(data)) => return Some(Ok(data)),
                // Trailers are not needed.
                Ok(Err(_)) => {}
                Err(error) => return Some(Err(self.broken(&error))),
            }
        }
    }

    fn broken(&self, error: &hyper::Error) -> Error {
        if self.facts.is_gone() {
            return Error::Lost { address: self.address.clone(), reason: self.facts.end() };
        }
        Error::BadAnswer { port: self.port, reason: said(&error.to_string()) }
    }
}

fn doing(port: u16) -> String {
    format!("the answer on port {port}")
}

/// The request in the form for a server, not for a proxy.
fn addressed(request: Request<Bytes>, port: u16) -> Request<Full<Bytes>> {
    let (mut head, body) = request.into_parts();
    let path = head.uri.path_and_query().cloned();
    head.uri = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
    // An address with a port is always a valid header.
    if let Ok(host) = header::HeaderValue::from_str(&format!("127.0.0.1:{port}")) {
        head.headers.entry(HOST).or_insert(host);
    }
    Request::from_parts(head, Full::new(body))
}
