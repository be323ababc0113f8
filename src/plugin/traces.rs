//! Export of spans to an OpenTelemetry collector (OTLP over HTTP, with protobuf).
//!
//! Terraform and OpenTofu read the same variables: OTEL_EXPORTER_OTLP_ENDPOINT names the collector, and TRACEPARENT the
//! parent span of all others. Without the first, no exporter exists. Only spans of this crate are exported, with their
//! own fields, without events and source locations.

use std::{collections::HashMap, ffi::OsString, fmt, sync::OnceLock, time::Duration};

use opentelemetry::{Context, propagation::TextMapPropagator, trace::TracerProvider};
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::{Resource, propagation::TraceContextPropagator, trace::SdkTracerProvider};
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::{Layer, filter::filter_fn, registry::LookupSpan};

/// The time limit for sending the last spans: Terraform kills a plugin 2 seconds after its Shutdown call.
const PATIENCE: Duration = Duration::from_millis(1500);

/// The only supported form (OTEL_EXPORTER_OTLP_PROTOCOL), which is the default of Terraform and OpenTofu.
const PROTOCOL: &str = "http/protobuf";

/// The span that TRACEPARENT names.
static PARENT: OnceLock<Context> = OnceLock::new();

/// The export of spans. The remaining ones are sent when this is dropped, which must happen outside of the runtime.
pub struct Traces {
    provider: SdkTracerProvider,
}

impl Traces {
    /// Starts the export if the environment asks for one.
    ///
    /// # Errors
    ///
    /// If the settings are not supported. Usual cause: a protocol other than http/protobuf.
    pub fn start(variable: impl Fn(&str) -> Option<OsString>) -> Result<Option<Self>, String> {
        let text = |name: &str| variable(name)?.into_string().ok().filter(|value| !value.is_empty());
        let signal = |name: &str| {
            text(&format!("OTEL_EXPORTER_OTLP_TRACES_{name}")).or_else(|| text(&format!("OTEL_EXPORTER_OTLP_{name}")))
        };
        let is_off = text("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
            || text("OTEL_TRACES_EXPORTER").is_some_and(|exporter| exporter == "none");
        if is_off || signal("ENDPOINT").is_none() {
            return Ok(None);
        }
        if let Some(protocol) = signal("PROTOCOL").filter(|protocol| protocol != PROTOCOL) {
            return Err(format!(
                "the protocol of the collector is {protocol}, and this provider speaks {PROTOCOL} only"
            ));
        }
        if let Some(parent) = text("TRACEPARENT") {
            let state = text("TRACESTATE").unwrap_or_default();
            let carrier = HashMap::from([("traceparent".to_owned(), parent), ("tracestate".to_owned(), state)]);
            let _ = PARENT.set(TraceContextPropagator::new().extract(&carrier));
        }
        let mut resource = Resource::builder();
        if text("OTEL_SERVICE_NAME").is_none() {
            resource = resource.with_service_name(env!("CARGO_PKG_NAME"));
        }
        // The exporter reads the endpoint, the headers, the timeout and the certificates from the environment.
        let exporter = SpanExporter::builder().with_http().build().map_err(|error| error.to_string())?;
        let provider =
            SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource.build()).build();
        Ok(Some(Self { provider }))
    }

    /// The layer that exports the spans of tracing.
    pub(super) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        let is_own = |metadata: &Metadata<'_>| {
            metadata.is_span()
                && *metadata.level() <= Level::INFO
                && metadata.target().starts_with(env!("CARGO_CRATE_NAME"))
        };
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer(env!("CARGO_PKG_NAME")))
            .with_level(false)
            .with_location(false)
            .with_target(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_filter(filter_fn(is_own))
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        if let Err(error) = self.provider.shutdown_with_timeout(PATIENCE) {
            tracing::warn!(%error, "the last spans could not be sent");
        }
    }
}

impl fmt::Debug for Traces {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Traces").finish_non_exhaustive()
    }
}

/// Makes TRACEPARENT's span the parent of this thread's root spans.
pub(super) fn join() {
    if let Some(parent) = PARENT.get() {
        // It applies until the thread ends.
        std::mem::forget(parent.clone().attach());
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn start(variables: &[(&str, &str)]) -> Result<Option<Traces>, String> {
        Traces::start(|name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value)))
    }

    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9");

    #[rstest]
    #[case(&[])]
    #[case(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")])]
    #[case(&[("TRACEPARENT", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")])]
    #[case(&[ENDPOINT, ("OTEL_SDK_DISABLED", "true")])]
    #[case(&[ENDPOINT, ("OTEL_TRACES_EXPORTER", "none")])]
    fn nothing_is_started_unless_asked_for(#[case] variables: &[(&str, &str)]) {
        assert!(start(variables).unwrap().is_none());
        assert!(PARENT.get().is_none());
    }

    #[test]
    fn another_protocol_is_told() {
        let error = start(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).unwrap_err();
        assert_eq!(error, "the protocol of the collector is grpc, and this provider speaks http/protobuf only");
        assert!(start(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")]).is_ok());
    }
}
