//! Model files for downloads, `/files/NAME.gguf`, with the faults of servers and networks. No part of the service.

use std::time::Duration;

use axum::{
    body::Body,
    extract::{Path, State},
    http::{HeaderMap, HeaderName, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::stream;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::time::sleep;

use super::handle::Sandbox;

/// How many bytes are sent at once.
const PIECE: usize = 1 << 16;

/// How the files are served. A request whose query is `direct` meets the hub of a redirect no more: it is answered
/// without redirect, token and linked tag.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Files {
    /// How many bytes follow each model.
    pub padding: usize,
    /// The content of these bytes: another version has other sums and tags.
    pub version: u8,
    /// The last byte is not the one that the tags stand for.
    pub is_corrupt: bool,
    /// The connection is closed after so many bytes of each answer.
    pub cut_after: Option<usize>,
    /// Nothing more is sent after so many bytes of each answer, until these settings change and the connection ends.
    pub stall_after: Option<usize>,
    /// Where a request is sent to.
    pub redirect: Option<String>,
    /// The token without which a request is refused.
    pub token: Option<String>,
    /// Whether the hub tells the SHA-256 (`X-Linked-ETag`).
    pub is_linked: bool,
    /// Whether answers have no tag.
    pub is_untagged: bool,
    /// Whether ranges are ignored.
    pub has_no_ranges: bool,
    /// Whether no length is told.
    pub has_no_length: bool,
    /// Each request is answered with this status and a web page.
    pub status: Option<u16>,
    /// And with this Retry-After, in seconds.
    pub retry_after: Option<u64>,
}

/// A request for a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileRequest {
    /// The path and the query.
    pub address: String,
    /// The header Range.
    pub range: String,
    /// Whether it had a header Authorization.
    pub has_token: bool,
    /// The status of the answer.
    pub status: u16,
}

/// Answers a request, and records it.
pub(super) async fn answer(
    State(sandbox): State<Sandbox>,
    Path(name): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let range = text(header::RANGE).to_owned();
    let token = text(header::AUTHORIZATION);
    let files = sandbox.files();
    let answer = respond(&sandbox, files, &name, uri.query() == Some("direct"), &range, token);
    sandbox.lock().file_requests.push(FileRequest {
        address: uri.to_string(),
        range,
        has_token: !token.is_empty(),
        status: answer.status().as_u16(),
    });
    answer
}

fn respond(sandbox: &Sandbox, files: Files, name: &str, is_direct: bool, range: &str, token: &str) -> Response {
    if let Some(status) = files.status.and_then(|status| StatusCode::from_u16(status).ok()) {
        let page = (status, [(header::CONTENT_TYPE, "text/html")], "<!doctype html>").into_response();
        return match files.retry_after {
            Some(seconds) => ([(header::RETRY_AFTER, seconds.to_string())], page).into_response(),
            None => page,
        };
    }
    let Some(mut bytes) = model(name) else { return StatusCode::NOT_FOUND.into_response() };
    bytes.resize(bytes.len() + files.padding, files.version);
    let sum = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let mut headers = HeaderMap::new();
    let mut insert = |name: &'static str, value: String| {
        if let Ok(value) = value.try_into() {
            headers.insert(name, value);
        }
    };
    if !is_direct {
        if files.token.as_ref().is_some_and(|expected| token != format!("Bearer {expected}")) {
            return StatusCode::UNAUTHORIZED.into_response();
        }
        if files.is_linked {
            insert("x-linked-etag", format!("\"{sum}\""));
        }
        if let Some(location) = files.redirect {
            insert("location", location);
            return (StatusCode::FOUND, headers).into_response();
        }
    }
    if !files.is_untagged {
        insert("etag", format!("\"{}\"", sum.get(..16).unwrap_or_default()));
    }
    if let Some(last) = bytes.last_mut().filter(|_| files.is_corrupt) {
        *last = !*last;
    }
    let length = bytes.len();
    let asked = range.strip_prefix("bytes=").and_then(|range| range.split_once('-'));
    let asked = asked.filter(|_| !files.has_no_ranges).and_then(|(first, last)| {
        let last = last.parse().unwrap_or(length.saturating_sub(1)).min(length.saturating_sub(1));
        Some((first.parse::<usize>().ok().filter(|first| *first < length)?, last))
    });
    let (status, part) = match asked {
        Some((first, last)) => {
            let total = if files.has_no_length { "*".to_owned() } else { length.to_string() };
            insert("content-range", format!("bytes {first}-{last}/{total}"));
            (StatusCode::PARTIAL_CONTENT, bytes.get(first..=last).unwrap_or_default().to_vec())
        }
        None => (StatusCode::OK, bytes),
    };
    if !files.has_no_length {
        insert("content-length", part.len().to_string());
    }
    (status, headers, body(sandbox.clone(), part)).into_response()
}

#[cfg(unix)]
fn model(name: &str) -> Option<Vec<u8>> {
    super::stand_in::gguf::bytes(name.strip_suffix(".gguf")?)
}

#[cfg(not(unix))]
fn model(_: &str) -> Option<Vec<u8>> {
    None
}

/// Sends the bytes, as far as the settings let it.
fn body(sandbox: Sandbox, bytes: Vec<u8>) -> Body {
    let settings = sandbox.files();
    let limit = settings.cut_after.or(settings.stall_after).map_or(bytes.len(), |limit| limit.min(bytes.len()));
    let is_whole = limit == bytes.len();
    let bytes = Bytes::from(bytes).slice(..limit);
    let pieces = stream::unfold(bytes, move |mut rest| {
        let (sandbox, settings) = (sandbox.clone(), settings.clone());
        async move {
            if !rest.is_empty() {
                let piece = rest.split_to(PIECE.min(rest.len()));
                return Some((Ok(piece), rest));
            }
            while !is_whole && settings.stall_after.is_some() && sandbox.files() == settings {
                sleep(Duration::from_millis(20)).await;
            }
            // A turn later, so that what was sent arrives.
            sleep(Duration::from_millis(20)).await;
            (!is_whole).then(|| (Err(std::io::Error::other("cut off")), rest))
        }
    });
    Body::from_stream(pieces)
}
