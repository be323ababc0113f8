//! One log line: a flat JSON object in go-hclog's form.

use jiff::Timestamp;
use serde_json::{Map, Value};
use tracing::Level;

/// The content of a line.
#[derive(Debug)]
pub(super) struct LogLine {
    /// Fields of the event and of the spans around it, under their own names.
    pub(super) fields: Map<String, Value>,
    pub(super) level: Level,
    pub(super) message: String,
    /// What speaks: [`module`].
    pub(super) module: String,
    /// The names of the spans around the event, outermost first, separated by colons; empty outside of spans.
    pub(super) span: String,
}

impl LogLine {
    /// The line with its line break, in at most [`MAX_BYTES`].
    ///
    /// A line that is too long is shortened inside its strings, so that it stays JSON with level and message; if that
    /// is not enough, the fields are omitted.
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
        object.insert("@module".to_owned(), self.module.as_str().into());
        // Exactly six digits: the host cannot parse any other number of them.
        let timestamp = at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
        object.insert("@timestamp".to_owned(), timestamp.into());
        Value::Object(object).to_string()
    }

    fn cut(&mut self, longest: usize) {
        cut(&mut self.message, longest);
        cut(&mut self.span, longest);
        cut(&mut self.module, longest);
        for value in self.fields.values_mut() {
            if let Value::String(text) = value {
                cut(text, longest);
            }
        }
    }
}

/// The host reads lines through a buffer of 64 KiB, and splits longer ones.
pub(super) const MAX_BYTES: usize = 60 << 10;

const SHORTEST_CUT: usize = 64;
const SPAN: &str = "span";
const ELLIPSIS: char = '…';

/// A key that differs from the line's own keys. Under a key with an @, a value other than a string would crash the
/// host.
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

/// The speaker of an event with this target, a path of modules: `provider`, the SDK's name for a provider's own log,
/// with the layer of the crate `own`; a crate whose name begins with this one is a layer. Libraries keep their names.
pub(super) fn module(target: &str, own: &str) -> String {
    let mut path = target.split("::").filter(|name| !name.is_empty());
    let (name, inner) = (path.next().unwrap_or(own), path.next());
    let layer = match name.strip_prefix(own).and_then(|rest| rest.strip_prefix('_')) {
        None if [own, THIS].contains(&name) || name.strip_prefix(PROGRAM) == Some(own) => inner,
        None => return name.to_owned(),
        layer => layer,
    };
    let layer = layer.filter(|layer| *layer != PROVIDER);
    layer.map_or_else(|| PROVIDER.to_owned(), |layer| format!("{PROVIDER}.{layer}"))
}

const PROVIDER: &str = "provider";

/// What the crate of a provider's program is called before the provider's name.
pub(super) const PROGRAM: &str = "terraform_provider_";

/// This crate.
pub(super) const THIS: &str = env!("CARGO_CRATE_NAME");

/// Shortens `text` to at most `longest` bytes and a mark, between two characters.
fn cut(text: &mut String, longest: usize) {
    if text.len() > longest {
        let end = (0..=longest).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or_default());
        text.push(ELLIPSIS);
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn line(message: &str, fields: Value) -> LogLine {
        let Value::Object(fields) = fields else {
            panic!("fields are an object");
        };
        LogLine {
            fields,
            level: Level::INFO,
            message: message.to_owned(),
            module: "provider.api".to_owned(),
            span: String::new(),
        }
    }

    fn parsed(line: LogLine) -> Value {
        let text = line.render("2026-01-02T15:04:05.123456789Z".parse().unwrap());
        assert!(text.ends_with('\n'));
        assert_eq!(text.matches('\n').count(), 1);
        assert!(text.len() <= MAX_BYTES + 1);
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_line_has_the_four_keys_of_hclog_and_flat_fields() {
        let mut line = line("hello", json!({"tf_rpc": "Plan", "attempt": 3}));
        line.span = "rpc:plan".to_owned();
        assert_eq!(
            parsed(line),
            json!({
                "@level": "info",
                "@message": "hello",
                "@module": "provider.api",
                "@timestamp": "2026-01-02T15:04:05.123456Z",
                "attempt": 3,
                "span": "rpc:plan",
                "tf_rpc": "Plan",
            })
        );
    }

    #[rstest]
    #[case("2026-01-02T15:04:05Z", "2026-01-02T15:04:05.000000Z")]
    #[case("2026-01-02T15:04:05.1Z", "2026-01-02T15:04:05.100000Z")]
    #[case("2026-01-02T17:04:05.999999999+02:00", "2026-01-02T15:04:05.999999Z")]
    fn a_timestamp_always_has_six_digits_and_is_in_utc(#[case] at: &str, #[case] expected: &str) {
        let text = line("", json!({})).render(at.parse().unwrap());
        assert!(text.contains(&format!("\"@timestamp\":\"{expected}\"")), "{text}");
    }

    #[test]
    fn fields_cannot_pose_as_the_keys_of_the_line() {
        let hostile = json!({"@level": 5, "@message": null, "@timestamp": 1.5, "@module": [], "span": 7, "@": 1});
        let mut line = line("real", hostile);
        line.span = "outer".to_owned();
        let value = parsed(line);
        for (key, value) in value.as_object().unwrap() {
            assert!(!key.starts_with('@') || value.is_string(), "{key}");
        }
        assert_eq!(value["@message"], "real");
        assert_eq!(value["_@level"], 5);
        assert_eq!(value["_@"], 1);
        assert_eq!(value["span"], "outer");
        assert_eq!(value["_span"], 7);
    }

    #[rstest]
    #[case("acme", "provider")]
    #[case("acme::provider::instance", "provider")]
    #[case("acme::api::client", "provider.api")]
    #[case("acme_sandbox::server", "provider.sandbox")]
    #[case("terraform_plugin::plugin::server", "provider.plugin")]
    #[case("terraform_provider_acme", "provider")]
    #[case("acmeist::api", "acmeist")]
    #[case("h2::client", "h2")]
    #[case("", "provider")]
    fn a_module_is_the_layer_that_speaks(#[case] target: &str, #[case] expected: &str) {
        assert_eq!(module(target, "acme"), expected);
    }

    #[test]
    fn a_long_line_is_cut_inside_its_strings() {
        let value = parsed(line(&"é".repeat(100_000), json!({"body": "\u{1}".repeat(100_000), "attempt": 3})));
        assert!(value["@message"].as_str().unwrap().ends_with("é…"));
        assert!(value["body"].as_str().unwrap().ends_with("\u{1}…"));
        assert_eq!(value["attempt"], 3);
    }

    #[test]
    fn a_short_string_beside_a_long_one_is_left_alone() {
        let value = parsed(line("short", json!({"body": "x".repeat(100_000)})));
        assert_eq!(value["@message"], "short");
        assert!(value["body"].as_str().unwrap().len() > 20_000);
    }

    #[test]
    fn too_many_fields_are_left_out() {
        let fields: Map<_, _> = (0..10_000).map(|n| (format!("field{n}"), n.into())).collect();
        let value = parsed(line("still here", fields.into()));
        assert_eq!(value["@message"], "still here");
        assert_eq!(value["fields_dropped"], 10_000);
    }

    proptest! {
        #[test]
        fn any_line_is_json_in_bounds_with_strings_under_at_keys(
            message in ".{0,300}",
            repeat in 0_usize..400,
            fields in proptest::collection::hash_map("(@|)[a-z@]{0,8}", ".{0,200}", 0..30),
        ) {
            let fields: Map<_, _> = fields.into_iter().map(|(key, value)| (key, value.into())).collect();
            let value = parsed(line(&message.repeat(repeat), fields.into()));
            for (key, value) in value.as_object().unwrap() {
                prop_assert!(!key.starts_with('@') || value.is_string());
            }
        }
    }
}
