//! Sockets, routes and the delivery of answers.

use std::{convert::Infallible, time::Duration};

use axum::{
    Router,
    body::{self, Body},
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header},
    routing::{MethodFilter, get, on, post},
};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use hyper::{body::Incoming as IncomingBody, server::conn::http1, service::Service as _, service::service_fn};
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use jiff::{Timestamp, fmt::rfc2822::DateTimePrinter};
use tokio::{
    net::{TcpListener, TcpStream},
    task::{JoinSet, yield_now},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use super::{
    answer::{Content, Delivery, HttpAnswer},
    chat, control,
    endpoints::{ENDPOINTS, EndpointInput},
    files,
    handle::Sandbox,
    service::{IncomingRequest, RequestTarget},
};

/// The largest body that is read, far above any documented request.
const LARGEST_BODY: usize = 1 << 20;

/// Marks a response that must not be sent: its connection is closed instead.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("close the connection without an answer")]
struct Unanswered;

/// Serves until stopped; then cuts all connections.
pub(super) async fn serve(listener: TcpListener, sandbox: Sandbox, stop: CancellationToken) {
    let router = router(sandbox);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(converse(stream, router.clone()));
                }
                // Probably out of file descriptors: wait until connections end.
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    sleep(Duration::from_millis(50)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
    connections.shutdown().await;
}

/// Serves one connection. An answer marked [`Unanswered`] becomes an error of hyper's service, on which hyper closes
/// the connection and sends nothing.
async fn converse(stream: TcpStream, router: Router) {
    let answers = TowerToHyperService::new(router);
    let service = service_fn(move |request: hyper::Request<IncomingBody>| {
        let answer = answers.call(request);
        async move {
            let Ok(answer): Result<_, Infallible> = answer.await;
            match answer.extensions().get::<Unanswered>() {
                Some(&unanswered) => Err(unanswered),
                None => Ok(answer),
            }
        }
    });
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "the connection keeps its delay");
    }
    if let Err(error) = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "a connection ended");
    }
}

fn router(sandbox: Sandbox) -> Router {
    let control = control::router(&sandbox);
    // The second is the alias base address (service API, What the service does, 1).
    ["", "/v1"]
        .into_iter()
        .fold(Router::new(), service)
        .method_not_allowed_fallback(|sandbox: State<Sandbox>, request: Request| {
            answer(sandbox, RequestTarget::OtherMethod, request)
        })
        .nest("/sandbox", control)
        .route("/files/{name}", get(files::answer))
        .fallback(|sandbox: State<Sandbox>, request: Request| answer(sandbox, RequestTarget::UnknownPath, request))
        .with_state(sandbox)
}

/// The routes of the service under one base address.
fn service(router: Router<Sandbox>, base: &str) -> Router<Sandbox> {
    let chat = |sandbox: State<Sandbox>, request: Request| answer(sandbox, RequestTarget::Chat, request);
    let router = router.route(&format!("{base}{}", chat::PATH), post(chat));
    ENDPOINTS.iter().fold(router, |router, &endpoint| {
        let Ok(method) = MethodFilter::try_from(endpoint.method.clone()) else {
            return router;
        };
        router.route(
            &format!("{base}{}", endpoint.path),
            on(method, move |sandbox, request| answer(sandbox, RequestTarget::Endpoint(endpoint), request)),
        )
    })
}

async fn answer(State(sandbox): State<Sandbox>, target: RequestTarget, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let Ok(body) = body::to_bytes(body, LARGEST_BODY).await else {
        return status_only(StatusCode::PAYLOAD_TOO_LARGE);
    };
    let incoming = IncomingRequest {
        method: parts.method.as_str(),
        token: text(&parts.headers, "x-service-token"),
        timestamp: text(&parts.headers, "x-service-timestamp"),
        authorization: text(&parts.headers, header::AUTHORIZATION.as_str()),
        input: EndpointInput {
            path: parts.uri.path(),
            query: parts.uri.query().unwrap_or_default(),
            content_type: text(&parts.headers, header::CONTENT_TYPE.as_str()),
            body: &body,
        },
    };
    let answer = sandbox.lock().answer(target, &incoming);
    deliver(answer).await
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

async fn deliver(answer: HttpAnswer) -> Response<Body> {
    if !answer.delay.is_zero() {
        sleep(answer.delay).await;
    }
    match answer.delivery {
        Delivery::Drop => return unanswered(),
        Delivery::Hang(limit) => {
            sleep(limit).await;
            return unanswered();
        }
        Delivery::Send | Delivery::Truncate => {}
    }
    let mut response = status_only(StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(answer.content_type));
    insert(headers, header::DATE, date(answer.date));
    if let Some(seconds) = answer.retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    let is_whole = answer.delivery == Delivery::Send;
    match answer.body {
        Content::Stream { pieces, pause } => *response.body_mut() = stream(pieces, pause, is_whole),
        Content::Whole(bytes) => {
            response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(bytes.len()));
            *response.body_mut() = if is_whole { Body::from(bytes) } else { half(bytes) };
        }
    }
    response
}

/// Sends the portions with a pause before each. If `is_whole` is false, it breaks off in the middle, as in [`half`].
fn stream(mut pieces: Vec<Vec<u8>>, pause: Duration, is_whole: bool) -> Body {
    if !is_whole {
        pieces.truncate(pieces.len() / 2);
    }
    let portions = stream::iter(pieces).then(move |piece| async move {
        if !pause.is_zero() {
            sleep(pause).await;
        }
        // One turn each, so that hyper sends a portion before the next one, instead of gathering them.
        yield_now().await;
        Ok(Bytes::from(piece))
    });
    let end = stream::iter((!is_whole).then_some(())).then(|()| async {
        yield_now().await;
        Err(Unanswered)
    });
    Body::from_stream(portions.chain(end))
}

/// The first half, then an error: hyper closes the connection before the announced length is reached. The error comes a
/// turn later, since hyper sends what it has only when the body lets it wait.
fn half(mut body: Vec<u8>) -> Body {
    body.truncate(body.len() / 2);
    let end = stream::once(async {
        yield_now().await;
        Err(Unanswered)
    });
    Body::from_stream(stream::iter([Ok(Bytes::from(body))]).chain(end))
}

fn unanswered() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    response.extensions_mut().insert(Unanswered);
    response
}

fn status_only(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// The form of a Date header in HTTP; `None` for a time beyond the calendar.
fn date(seconds: i64) -> Option<String> {
    let timestamp = Timestamp::from_second(seconds).ok()?;
    DateTimePrinter::new().timestamp_to_rfc9110_string(&timestamp).ok()
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: Option<String>) {
    if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
        headers.insert(name, value);
    }
}
