//! The spans of an apply, as an OpenTelemetry collector receives them.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use axum::{Router, body::Bytes, routing::post};
use damodel::sandbox::Options;
use opentelemetry_proto::tonic::{collector::trace::v1::ExportTraceServiceRequest, trace::v1::Span};
use prost::Message as _;
use tokio::{
    net::TcpListener,
    runtime::{Builder, Runtime},
};

use super::llama::{self, Server};
use crate::support::terraform::{Cli, Instance, Site, Workspace, config, each_cli};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// A collector that keeps everything it receives.
struct Collector {
    endpoint: String,
    bodies: Arc<Mutex<Vec<Bytes>>>,
    _runtime: Runtime,
}

impl Collector {
    fn start() -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&bodies);
        let keep = async move |body: Bytes| kept.lock().unwrap().push(body);
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().route("/v1/traces", post(keep));
        runtime.spawn(async { axum::serve(listener, router).await.unwrap() });
        Self { endpoint, bodies, _runtime: runtime }
    }

    fn spans(&self) -> Vec<Span> {
        let bodies = self.bodies.lock().unwrap();
        let requests = bodies.iter().map(|body| ExportTraceServiceRequest::decode(body.clone()).unwrap());
        let scopes = requests.flat_map(|request| request.resource_spans).flat_map(|resource| resource.scope_spans);
        scopes.flat_map(|scope| scope.spans).collect()
    }
}

/// The share of a time that is in one of the spans, from 0 to 1.
fn covered(begin: u64, end: u64, spans: &[Span]) -> f64 {
    let mut times: Vec<(u64, u64)> = spans
        .iter()
        .map(|span| (span.start_time_unix_nano.max(begin), span.end_time_unix_nano.min(end)))
        .filter(|(from, to)| from < to)
        .collect();
    times.sort_unstable();
    let (mut sum, mut reached) = (0, begin);
    for (from, to) in times {
        sum += to.saturating_sub(from.max(reached));
        reached = reached.max(to);
    }
    sum as f64 / (end - begin) as f64
}

/// Nanoseconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn calls_requests_waits_and_ssh_steps_are_spans_of_the_callers_trace() {
    each_cli(|cli| {
        // Most of each call is in a span below it: the rest is time of the disk and the processor. Other tests that
        // keep them busy only lower the share, so that the best of three applies is closest to the provider's own.
        let mut shares = Vec::new();
        while shares.len() < 3 && shares.last().is_none_or(|share| *share < 0.8) {
            shares.push(lowest_share(cli));
        }
        assert!(shares.last().is_some_and(|share| *share >= 0.8), "{shares:?} of a call are in a span below it");
    });
}

/// Applies an instance with a server, and checks the spans. The result is the share of the call with the smallest one
/// that is in a span below it.
fn lowest_share(cli: &Cli) -> f64 {
    // No span of the provider contains Terraform's own start and end. The service takes minutes for an instance;
    // with the sandbox's usual speed they would count for too much.
    let site = Site::with(Options { creation: Duration::from_secs(20), ..llama::options() });
    let collector = Collector::start();
    let workspace = Workspace::new(cli, &site);
    workspace.write(&Server::new().config());
    workspace.plan(&[]);
    workspace.set_env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint);
    workspace.set_env("TRACEPARENT", &format!("00-{TRACE}-{PARENT}-01"));
    let begin = now();
    workspace.apply_plan();
    let end = now();

    let spans = collector.spans();
    let of = |name: &str| spans.iter().filter(|span| span.name == name).cloned().collect::<Vec<_>>();
    let ids: BTreeSet<_> = spans.iter().map(|span| hex(&span.span_id)).chain([PARENT.to_owned()]).collect();
    for span in &spans {
        assert_eq!(hex(&span.trace_id), TRACE, "{span:?}");
        assert!(ids.contains(&hex(&span.parent_span_id)), "{span:?}");
    }
    assert_eq!(of("ApplyResourceChange").len(), 2);
    for name in ["ConfigureProvider", "request", "wait", "ssh"] {
        assert!(!of(name).is_empty(), "{name} is not among {:?}", spans.iter().map(|span| &span.name));
    }

    let whole = covered(begin, end, &spans);
    assert!(whole >= 0.95, "{whole} of the apply is in a span");
    let inner: Vec<Span> = ["request", "wait", "ssh"].iter().flat_map(|name| of(name)).collect();
    let share = |call: Span| covered(call.start_time_unix_nano, call.end_time_unix_nano, &inner);
    let lowest = of("ApplyResourceChange").into_iter().map(share).fold(1.0, f64::min);

    let sent = collector.bodies.lock().unwrap().concat();
    let sent = String::from_utf8_lossy(&sent);
    let secrets = site.secrets();
    assert!(!secrets.is_empty() && !secrets.iter().any(|secret| sent.contains(secret)));
    assert!(!sent.contains(".rs"), "a place in the source");
    workspace.remove_env("OTEL_EXPORTER_OTLP_ENDPOINT");
    workspace.finish();
    assert_eq!(collector.spans().len(), spans.len(), "spans without a collector in the environment");
    lowest
}

#[test]
fn an_apply_succeeds_without_its_collector() {
    each_cli(|cli| {
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
        workspace.set_env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9");
        workspace.apply_ok(&config(Instance::new("a")));
        workspace.set_env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
        workspace.settled();
        let log = std::fs::read_to_string(workspace.beside("log")).unwrap();
        assert!(log.contains("no spans are sent") && log.contains("http/protobuf only"), "{log}");
        workspace.finish();
    });
}
