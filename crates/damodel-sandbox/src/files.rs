//! Model files for downloads, `/files/NAME.gguf`, with the faults of servers and networks. No part of the service.

use std::{ops::Range, time::Duration};

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
const PIECE: u64 = 1 << 16;

/// How the files are served. A request whose query begins with `direct` is answered as by a store to which the hub
/// redirects: without redirect, token and linked tag.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FileService {
    /// How many bytes follow each model.
    pub padding: u64,
    /// The content of these bytes: another version has other sums and tags.
    pub version: u8,
    /// The last byte is not the one that the tags stand for.
    pub is_corrupt: bool,
    /// The connection is closed after so many bytes of each answer.
    pub cut_after: Option<u64>,
    /// Nothing more is sent after so many bytes of each answer, until these settings change and the connection ends.
    pub stall_after: Option<u64>,
    /// Where a request is sent to.
    pub redirect: Option<String>,
    /// The token without which a request is refused.
    pub token: Option<String>,
    /// Whether the hub sends the SHA-256 (`X-Linked-ETag`).
    pub is_linked: bool,
    /// Whether answers have no tag.
    pub is_untagged: bool,
    /// Whether each answer has another tag, as of a balancer whose machines disagree.
    pub is_balanced: bool,
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
    let is_direct = uri.query().is_some_and(|query| query.starts_with("direct"));
    let answer = respond(&sandbox, files, &name, is_direct, &range, token);
    sandbox.lock().file_requests.push(FileRequest {
        address: uri.to_string(),
        range,
        has_token: !token.is_empty(),
        status: answer.status().as_u16(),
    });
    answer
}

fn respond(sandbox: &Sandbox, files: FileService, name: &str, is_direct: bool, range: &str, token: &str) -> Response {
    if let Some(status) = files.status.and_then(|status| StatusCode::from_u16(status).ok()) {
        let page = (status, [(header::CONTENT_TYPE, "text/html")], "<!doctype html>").into_response();
        return match files.retry_after {
            Some(seconds) => ([(header::RETRY_AFTER, seconds.to_string())], page).into_response(),
            None => page,
        };
    }
    let Some(content) = Content::of(name, &files) else { return StatusCode::NOT_FOUND.into_response() };
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
            insert("x-linked-etag", format!("\"{}\"", content.sum()));
        }
        if let Some(location) = files.redirect {
            insert("location", location);
            return (StatusCode::FOUND, headers).into_response();
        }
    }
    if !files.is_untagged {
        let machine = if files.is_balanced { sandbox.lock().file_requests.len() } else { 0 };
        insert("etag", format!("\"{}-{machine}\"", content.tag()));
    }
    let length = content.length;
    let asked = range.strip_prefix("bytes=").and_then(|range| range.split_once('-'));
    let asked = asked.filter(|_| !files.has_no_ranges).and_then(|(first, last)| {
        let end = last.parse::<u64>().map_or(length, |last| length.min(last.saturating_add(1)));
        Some(first.parse().ok().filter(|first| *first < length)?..end)
    });
    let status = if asked.is_some() { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
    let told = if files.has_no_length { "*".to_owned() } else { length.to_string() };
    if let Some(part) = &asked {
        insert("content-range", format!("bytes {}-{}/{told}", part.start, part.end - 1));
    }
    let part = asked.unwrap_or(0..length);
    if !files.has_no_length {
        insert("content-length", (part.end - part.start).to_string());
    }
    (status, headers, body(sandbox.clone(), content, part)).into_response()
}

/// The content of a file.
#[derive(Clone, Debug)]
struct Content {
    header: Vec<u8>,
    /// The length of the model; padding follows.
    model: u64,
    length: u64,
    version: u8,
    is_corrupt: bool,
}

impl Content {
    #[cfg(unix)]
    fn of(name: &str, files: &FileService) -> Option<Self> {
        let (header, model) = super::stand_in::gguf::of_name(name.strip_suffix(".gguf")?)?;
        let length = model + files.padding;
        Some(Self { header, model, length, version: files.version, is_corrupt: files.is_corrupt })
    }

    #[cfg(not(unix))]
    fn of(_: &str, _: &FileService) -> Option<Self> {
        None
    }

    fn piece(&self, part: Range<u64>) -> Vec<u8> {
        // A part lies in memory, whatever the length of the file.
        let at = |place: u64| usize::try_from(place.clamp(part.start, part.end) - part.start).unwrap_or_default();
        let mut bytes = vec![0; at(part.end)];
        let header = self.header.iter().skip(usize::try_from(part.start).unwrap_or(usize::MAX));
        bytes.iter_mut().zip(header).for_each(|(byte, of_header)| *byte = *of_header);
        if let Some(padding) = bytes.get_mut(at(self.model)..) {
            padding.fill(self.version);
        }
        if let Some(last) = bytes.last_mut().filter(|_| self.is_corrupt && part.end == self.length) {
            *last = !*last;
        }
        bytes
    }

    /// The SHA-256 of what is not corrupt.
    fn sum(&self) -> String {
        hex(&Self { is_corrupt: false, ..self.clone() }.piece(0..self.length))
    }

    /// Tells versions of a file apart.
    fn tag(&self) -> String {
        hex(&[&self.header[..], &self.length.to_be_bytes(), &[self.version]].concat())
    }
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Sends a part, as far as the settings let it.
fn body(sandbox: Sandbox, content: Content, part: Range<u64>) -> Body {
    let settings = sandbox.files();
    let limit = settings.cut_after.or(settings.stall_after).map_or(part.end, |limit| part.end.min(part.start + limit));
    let is_whole = limit == part.end;
    let pieces = stream::unfold(part.start, move |at| {
        let (sandbox, settings) = (sandbox.clone(), settings.clone());
        let end = limit.min(at + PIECE);
        let piece = content.piece(at..end);
        async move {
            if !piece.is_empty() {
                return Some((Ok(Bytes::from(piece)), end));
            }
            while !is_whole && settings.stall_after.is_some() && sandbox.files() == settings {
                sleep(Duration::from_millis(20)).await;
            }
            // A turn later, so that what was sent arrives.
            sleep(Duration::from_millis(20)).await;
            (!is_whole).then(|| (Err(std::io::Error::other("cut off")), end))
        }
    });
    Body::from_stream(pieces)
}
