//! Log lines on standard error in the core's format (plugin protocol, logging).
//!
//! The core parses every line of a plugin, even if it shows none of them, so only warnings and errors are written by
//! default. The first of these variables that is set changes the level:
//!
//! | Variable | Scope |
//! |---|---|
//! | `TF_LOG_PROVIDER_<NAME>` | this provider alone |
//! | `TF_LOG_PROVIDER` | all providers; the core reads it too |
//! | `TF_LOG` | everything; the core reads it too |
//!
//! Values are `TRACE`, `DEBUG`, `INFO`, `WARN`, `ERROR`, `OFF`, and `JSON`, which is `TRACE`, in any case. Anything
//! else is `TRACE` too, as in the core.
//!
//! Libraries log no line below a warning at any level, because such lines are about themselves.
//! `TF_LOG_PROVIDER_<NAME>_TARGETS` sets the levels of single libraries and modules, in tracing's form:
//! `h2=debug,reqwest=trace`.

mod line;

use std::{error::Error, ffi::OsString, fmt, io::Write};

use jiff::Timestamp;
use serde_json::{Map, Number, Value};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{
    Layer,
    filter::Targets,
    layer::{Context, SubscriberExt},
    registry::{LookupSpan, Scope},
    util::SubscriberInitExt,
};

use self::line::{LogLine, PROGRAM, THIS, module};
use super::error::with_causes;

/// Sends every event of the process that passes `settings` to standard error. Call it once; a second call changes
/// nothing.
pub fn install(settings: &LogSettings) {
    let lines = HclogLayer { write: write_to_stderr, own: settings.own.clone() }.with_filter(settings.filter.clone());
    let _ = tracing_subscriber::registry().with(lines).try_init();
}

/// Writes a whole line at once, so that lines of several threads do not mix. Errors are ignored: the host may have
/// closed its end.
fn write_to_stderr(line: &str) {
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

/// The levels of the log.
#[derive(Clone, Debug)]
pub struct LogSettings {
    filter: Targets,
    own: String,
}

impl LogSettings {
    /// Reads the settings of the provider `name` (such as `acme`) through `variable`, which returns the value of one
    /// environment variable. The [module's documentation](self) lists them.
    ///
    /// The provider's crates are the one of this name, those whose names begin with it, and
    /// `terraform_provider_<name>`.
    pub fn read(name: &str, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let text = |name: &str| {
            let value = variable(name).filter(|value| !value.is_empty())?;
            Some(value.to_string_lossy().into_owned())
        };
        let own = name.replace('-', "_");
        let prefix = format!("TF_LOG_PROVIDER_{}", own.to_uppercase());
        let wish = text(&prefix).or_else(|| text("TF_LOG_PROVIDER")).or_else(|| text("TF_LOG"));
        let level = wish.map_or(LevelFilter::WARN, |wish| parse(&wish));
        let mut filter = Targets::new().with_default(level.min(LevelFilter::WARN));
        filter.extend([own.clone(), format!("{PROGRAM}{own}"), THIS.to_owned()].map(|name| (name, level)));
        // A typing error in the list must not prevent the start.
        let targets = text(&format!("{prefix}_TARGETS")).and_then(|list| list.parse::<Targets>().ok());
        filter.extend(targets.iter().flat_map(Targets::iter));
        Self { filter, own }
    }
}

fn parse(wish: &str) -> LevelFilter {
    match wish.to_ascii_uppercase().as_str() {
        "OFF" => LevelFilter::OFF,
        "ERROR" => LevelFilter::ERROR,
        "WARN" => LevelFilter::WARN,
        "INFO" => LevelFilter::INFO,
        "DEBUG" => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    }
}

/// Passes every event to `write` as one whole line, with the fields of the spans around it.
#[derive(Debug)]
struct HclogLayer<W> {
    write: W,
    own: String,
}

impl<S, W> Layer<S> for HclogLayer<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: Fn(&str) + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        // Read before the span is locked: a value whose formatting panics logs that panic.
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
        let line = LogLine {
            fields,
            level: *event.metadata().level(),
            message,
            module: module(event.metadata().target(), &self.own),
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

/// Collects fields under their own names.
#[derive(Clone, Debug, Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
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

    use rstest::rstest;
    use serde_json::json;
    use tracing::{Level, field::Empty};
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    fn settings(variables: &[(&str, &str)]) -> LogSettings {
        LogSettings::read("ac-me", |name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        })
    }

    /// The lowest level that `target` may log at.
    fn level(settings: &LogSettings, target: &str) -> LevelFilter {
        let levels = [Level::TRACE, Level::DEBUG, Level::INFO, Level::WARN, Level::ERROR];
        levels
            .into_iter()
            .find(|level| settings.filter.would_enable(target, level))
            .map_or(LevelFilter::OFF, LevelFilter::from_level)
    }

    #[rstest]
    #[case(&[], LevelFilter::WARN)]
    #[case(&[("TF_LOG", "")], LevelFilter::WARN)]
    #[case(&[("TF_LOG", "trace")], LevelFilter::TRACE)]
    #[case(&[("TF_LOG", "JSON")], LevelFilter::TRACE)]
    #[case(&[("TF_LOG", "1")], LevelFilter::TRACE)]
    #[case(&[("TF_LOG", "Info")], LevelFilter::INFO)]
    #[case(&[("TF_LOG", "error")], LevelFilter::ERROR)]
    #[case(&[("TF_LOG", "trace"), ("TF_LOG_PROVIDER", "off")], LevelFilter::OFF)]
    #[case(&[("TF_LOG_PROVIDER", "warn"), ("TF_LOG_PROVIDER_AC_ME", "debug")], LevelFilter::DEBUG)]
    #[case(&[("TF_LOG_PROVIDER", "info"), ("TF_LOG_PROVIDER_AC_ME", "")], LevelFilter::INFO)]
    #[case(&[("TF_LOG_CORE", "trace"), ("TF_LOG_PROVIDER_OTHER", "trace")], LevelFilter::WARN)]
    fn the_most_specific_wish_counts(#[case] variables: &[(&str, &str)], #[case] expected: LevelFilter) {
        let settings = settings(variables);
        assert_eq!(level(&settings, module_path!()), expected);
        for own in ["ac_me", "ac_me_sandbox::server", "terraform_provider_ac_me"] {
            assert_eq!(level(&settings, own), expected, "{own}");
        }
    }

    #[rstest]
    #[case("trace", LevelFilter::WARN)]
    #[case("warn", LevelFilter::WARN)]
    #[case("error", LevelFilter::ERROR)]
    #[case("off", LevelFilter::OFF)]
    fn libraries_stay_at_warnings(#[case] wish: &str, #[case] expected: LevelFilter) {
        let settings = settings(&[("TF_LOG", wish)]);
        for library in ["h2", "hyper::proto", "rustls", "tonic", "reqwest", "tower"] {
            assert_eq!(level(&settings, library), expected, "{library}");
        }
    }

    #[test]
    fn single_targets_can_be_asked_for() {
        let settings = settings(&[("TF_LOG", "info"), ("TF_LOG_PROVIDER_AC_ME_TARGETS", "h2=debug,ac_me::api=off")]);
        assert_eq!(level(&settings, "h2::client"), LevelFilter::DEBUG);
        assert_eq!(level(&settings, "hyper"), LevelFilter::WARN);
        assert_eq!(level(&settings, "ac_me::api::client"), LevelFilter::OFF);
        assert_eq!(level(&settings, "ac_me::other"), LevelFilter::INFO);
    }

    #[test]
    fn a_list_of_targets_that_is_none_is_passed_over() {
        let settings = settings(&[("TF_LOG_PROVIDER_AC_ME_TARGETS", "h2=loud=very")]);
        assert_eq!(level(&settings, "h2"), LevelFilter::WARN);
    }

    /// The lines that `log` writes, parsed, without the timestamps.
    fn logged(log: impl FnOnce()) -> Vec<Value> {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&lines);
        let write = move |line: &str| {
            let mut value: Value = serde_json::from_str(line).unwrap();
            value.as_object_mut().unwrap().remove("@timestamp").unwrap();
            sink.lock().unwrap().push(value);
        };
        let subscriber = tracing_subscriber::registry().with(HclogLayer { write, own: "acme".to_owned() });
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
            tracing::warn!(target: "acme::api", wait_ms = 250_u64, "slow {}", "answer");
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
