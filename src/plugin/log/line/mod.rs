//! One log line: a flat JSON object in go-hclog's words.

use jiff::Timestamp;
use serde_json::{Map, Value};
use tracing::Level;

/// What a line says.
#[derive(Debug)]
pub(super) struct Line {
    /// Fields of the event and of the spans around it, under the names they were given.
    pub(super) fields: Map<String, Value>,
    pub(super) level: Level,
    pub(super) message: String,
    /// Tracing's target: a path of modules.
    pub(super) target: String,
    /// The names of the spans around the event, outermost first, parted by colons; empty outside of any.
    pub(super) span: String,
}

impl Line {
    /// The line with its line break, in at most [`MAX_BYTES`].
    ///
    /// What is too long is cut inside its strings, so that the line stays JSON and the host can still tell level
    /// and message; when even that is not enough, the fields are left out.
    pub(super) fn render(mut self, at: Timestamp) -> String {
        let mut text = self.object(at);
        let mut longest = MAX_BYTES;
        while text.len() > MAX_BYTES && longest > SHORTEST_CUT {
            longest /= 2;
            self.cut(longest);
            text = self.object(at);
        }
        if text.len() > MAX_BYTES {
            self.fields = Map::from_iter([("fields_dropped".to_owned(), self.fields.len().into())]);
            text = self.object(at);
        }
        text.push('\n');
        text
    }

    fn object(&self, at: Timestamp) -> String {
        let mut object = Map::new();
        for (name, value) in &self.fields {
            object.insert(key(name), value.clone());
        }
        if !self.span.is_empty() {
            object.insert(SPAN.to_owned(), self.span.as_str().into());
        }
        object.insert("@level".to_owned(), level(self.level).into());
        object.insert("@message".to_owned(), self.message.as_str().into());
        object.insert("@module".to_owned(), module(&self.target).into());
        // Exactly six digits: with any other number the host does not understand the line.
        let timestamp = at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
        object.insert("@timestamp".to_owned(), timestamp.into());
        Value::Object(object).to_string()
    }

    fn cut(&mut self, longest: usize) {
        cut(&mut self.message, longest);
        cut(&mut self.span, longest);
        cut(&mut self.target, longest);
        for value in self.fields.values_mut() {
            if let Value::String(text) = value {
                cut(text, longest);
            }
        }
    }
}

/// The host reads lines through a buffer of 64 KiB, and takes a longer one for several.
pub(super) const MAX_BYTES: usize = 60 << 10;

const SHORTEST_CUT: usize = 64;
const SPAN: &str = "span";
const ELLIPSIS: char = '…';

/// A key that cannot be taken for one of the line's own. A value that is no string under a key with an @ would
/// crash the host.
fn key(name: &str) -> String {
    if name.starts_with('@') || name == SPAN { format!("_{name}") } else { name.to_owned() }
}

fn level(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    }
}

/// The SDK's name for a provider's own log, `provider`, with the layer that speaks; a library has its own name.
fn module(target: &str) -> String {
    let mut path = target.split("::").filter(|name| !name.is_empty());
    match (path.next(), path.next()) {
        (Some(OWN_CRATE), Some(PROVIDER) | None) | (None, _) => PROVIDER.to_owned(),
        (Some(OWN_CRATE), Some(layer)) => format!("{PROVIDER}.{layer}"),
        (Some(library), _) => library.to_owned(),
    }
}

const OWN_CRATE: &str = env!("CARGO_CRATE_NAME");
const PROVIDER: &str = "provider";

/// Shortens `text` to at most `longest` bytes and a mark, between two characters.
fn cut(text: &mut String, longest: usize) {
    if text.len() > longest {
        let end = (0..=longest).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or_default());
        text.push(ELLIPSIS);
    }
}

#[cfg(test)]
mod tests;
