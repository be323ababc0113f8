//! HTTP/1.1 through a channel: a question to a server that listens in the machine, without a port here.

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

use crate::ssh::{Error, Session, error::said, handler::PeerFacts};

impl Session {
    /// Asks the HTTP server that listens on `127.0.0.1:port` of the machine.
    ///
    /// Of the request's address only the path and the query are used; `Host` is added. The answer is there when its
    /// head is; the body is read from it as it comes. Each question has a channel of its own, which the body closes
    /// when it is dropped. No status is an error here.
    ///
    /// # Errors
    ///
    /// Those of [`Session::open`]; [`Error::BadAnswer`]; [`Error::TimedOut`] when the head does not come within
    /// [`SessionLimits::idle`](crate::ssh::SessionLimits), [`Error::Cancelled`].
    pub async fn http(&self, port: u16, request: Request<Bytes>) -> Result<Response<Body>, Error> {
        self.http_within(self.limits.idle, port, request).await
    }

    /// The same with an answer that may be silent for `idle`, before its head and between the pieces of its body.
    /// However long that is, a connection that is lost ends it: the keepalives notice.
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
                // Its error is the sender's or the body's, too.
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

/// The body of an answer, piece by piece: a stream of [`Bytes`]. It fails with [`Error::TimedOut`] when nothing comes
/// for as long as it may be silent, and with [`Error::BadAnswer`] or [`Error::Lost`] when it breaks off.
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
        // The connection lives as long as its answer is read.
        let state = Some((incoming, exchange, sender, connection));
        let pieces = stream::unfold(state, async |state| {
            let (mut incoming, exchange, sender, connection) = state?;
            match exchange.next(&mut incoming).await? {
                Ok(piece) => Some((Ok(piece), Some((incoming, exchange, sender, connection)))),
                // Nothing comes after an error.
                Err(error) => Some((Err(error), None)),
            }
        });
        Self { pieces: Box::pin(pieces), port }
    }

    /// All of it, when it has at most `limit` bytes.
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

/// What is known of a question while its answer comes.
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
                // Trailers say nothing that is asked for.
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

/// The request as HTTP/1.1 sends it to a server, not to a proxy.
fn addressed(request: Request<Bytes>, port: u16) -> Request<Full<Bytes>> {
    let (mut head, body) = request.into_parts();
    let path = head.uri.path_and_query().cloned();
    head.uri = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
    // A port and digits are a valid header always.
    if let Ok(host) = header::HeaderValue::from_str(&format!("127.0.0.1:{port}")) {
        head.headers.entry(HOST).or_insert(host);
    }
    Request::from_parts(head, Full::new(body))
}
