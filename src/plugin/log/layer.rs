//! From tracing's events to lines.

use std::{error::Error, fmt};

use jiff::Timestamp;
use serde_json::{Map, Number, Value};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{
    Layer,
    layer::Context,
    registry::{LookupSpan, Scope},
};

use super::line::Line;
use crate::plugin::error::with_causes;

/// Gives every event to `write` as one whole line, with the fields of the spans around it.
#[derive(Debug)]
pub(super) struct HclogLayer<W> {
    write: W,
}

impl<W> HclogLayer<W> {
    pub(super) fn new(write: W) -> Self {
        Self { write }
    }
}

impl<S, W> Layer<S> for HclogLayer<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: Fn(&str) + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        // Read before the span is locked: a value that panics on being shown logs the panic.
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let mut added = Fields::default();
        values.record(&mut added);
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            fields.0.extend(added.0);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut own = Fields::default();
        event.record(&mut own);
        let message = match own.0.remove("message") {
            Some(Value::String(text)) => text,
            Some(other) => other.to_string(),
            None => String::new(),
        };
        let (span, mut fields) = surroundings(context.event_scope(event));
        fields.extend(own.0);
        let line = Line {
            fields,
            level: *event.metadata().level(),
            message,
            target: event.metadata().target().to_owned(),
            span,
        };
        (self.write)(&line.render(Timestamp::now()));
    }
}

/// The path of the spans and their fields; an inner span's field hides an outer one's.
fn surroundings<'a, S>(scope: Option<Scope<'a, S>>) -> (String, Map<String, Value>)
where
    S: LookupSpan<'a>,
{
    let mut path = String::new();
    let mut all = Map::new();
    for span in scope.into_iter().flat_map(Scope::from_root) {
        if !path.is_empty() {
            path.push(':');
        }
        path.push_str(span.name());
        if let Some(fields) = span.extensions().get::<Fields>() {
            all.extend(fields.0.clone());
        }
    }
    (path, all)
}

/// Collects fields under the names they were given.
#[derive(Clone, Debug, Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        // What names a span for OpenTelemetry, or is its status, says nothing new here.
        if field.name().starts_with("otel.") {
            return;
        }
        self.0.insert(field.name().to_owned(), value);
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON has no infinities.
        let number = Number::from_f64(value).map(Value::Number);
        self.put(field, number.unwrap_or_else(|| value.to_string().into()));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.put(field, with_causes(value).into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}").into());
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use std::sync::{Arc, Mutex};

    use serde_json::json;
    use tracing::field::Empty;
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    /// What `log` writes, parsed, without the timestamps.
    fn logged(log: impl FnOnce()) -> Vec<Value> {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&lines);
        let write = move |line: &str| {
            let mut value: Value = serde_json::from_str(line).unwrap();
            value.as_object_mut().unwrap().remove("@timestamp").unwrap();
            sink.lock().unwrap().push(value);
        };
        let subscriber = tracing_subscriber::registry().with(HclogLayer::new(write));
        tracing::subscriber::with_default(subscriber, log);
        let lines = lines.lock().unwrap();
        lines.clone()
    }

    #[test]
    fn an_event_carries_the_fields_of_its_spans() {
        let lines = logged(|| {
            let outer = tracing::info_span!("rpc", tf_rpc = "Apply", attempt = 1, id = Empty);
            let _outer = outer.enter();
            outer.record("id", "abc");
            let _inner = tracing::info_span!("create", attempt = 2).entered();
            tracing::warn!(target: "damodel::api", wait_ms = 250_u64, "slow {}", "answer");
        });
        assert_eq!(
            lines,
            [json!({
                "@level": "warn",
                "@message": "slow answer",
                "@module": "provider.api",
                "attempt": 2,
                "id": "abc",
                "span": "rpc:create",
                "tf_rpc": "Apply",
                "wait_ms": 250,
            })]
        );
    }

    #[test]
    fn a_message_is_a_string_whatever_it_was() {
        let lines = logged(|| {
            tracing::info!(message = 5);
            tracing::info!(message = true);
            tracing::info!(count = 1);
        });
        let messages: Vec<_> = lines.iter().map(|line| &line["@message"]).collect();
        assert_eq!(messages, ["5", "true", ""]);
    }

    #[test]
    fn values_keep_their_kind_where_json_has_it() {
        let lines = logged(|| {
            let cause = std::io::Error::other("the cause");
            let error: &(dyn Error + 'static) = &cause;
            tracing::info!(
                float = 1.5,
                infinite = f64::INFINITY,
                large = u128::MAX,
                negative = -3,
                shown = ?Some(1),
                error,
            );
        });
        let line = lines.first().unwrap();
        assert_eq!(line["float"], 1.5);
        assert_eq!(line["infinite"], "inf");
        assert_eq!(line["large"], u128::MAX.to_string());
        assert_eq!(line["negative"], -3);
        assert_eq!(line["shown"], "Some(1)");
        assert_eq!(line["error"], "the cause");
    }
}
