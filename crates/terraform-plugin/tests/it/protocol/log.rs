//! The log lines of a call, which never contain secrets.

use std::{
    io,
    sync::{Arc, Mutex, OnceLock},
};

use terraform_plugin::{framework::Value, testing::Core};
use tracing::level_filters::LevelFilter;

use crate::echo::{Echo, THING};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Collects the log of this thread until the guard is dropped.
    fn collect(&self, level: LevelFilter) -> tracing::subscriber::DefaultGuard {
        // The interest in an event is cached for all threads: without a permanent collector, others could disable ours.
        static EVERYTHING: OnceLock<tracing::Dispatch> = OnceLock::new();
        EVERYTHING.get_or_init(|| {
            let sink = tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE).with_writer(io::sink).finish();
            tracing::Dispatch::new(sink)
        });
        let log = self.clone();
        let subscriber =
            tracing_subscriber::fmt().with_max_level(level).with_ansi(false).with_writer(move || log.clone()).finish();
        tracing::subscriber::set_default(subscriber)
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

async fn core() -> Core {
    let mut core = Core::new(Echo(Arc::default()), THING);
    let said = core.configure(&Value::object([("region", Value::Null)])).await;
    assert!(said.is_empty());
    core
}

fn planned(core: &Core, name: &str) -> Value {
    let terraform_plugin::framework::Type::Object(types) = &core.ty else { panic!("a schema is an object") };
    let mut planned = Value::object(types.keys().map(|name| (name.clone(), Value::Null)));
    planned.set_attribute("name", name.into());
    planned
}

#[tokio::test]
async fn a_call_is_one_line_without_values() {
    let log = Log::default();
    let guard = log.collect(LevelFilter::TRACE);
    let mut core = core().await;
    let planned = planned(&core, "planted-name");
    log.0.lock().unwrap().clear();
    let mut config = planned.clone();
    config.set_attribute("password", "planted-password".into());
    core.apply(&config, &Value::Null, &planned, b"planted-private").await;
    drop(guard);
    let text = log.text();
    let ours: Vec<&str> = text.lines().filter(|line| line.contains("terraform_plugin::")).collect();
    assert_eq!(ours.len(), 1, "{text}");
    for part in ["DEBUG", "answered", "duration_ms=", "errors=0", "warnings=0"] {
        assert!(ours[0].contains(part), "{part} in {text}");
    }
    assert!(!text.contains("planted"), "{text}");
}

#[tokio::test]
async fn nothing_is_said_where_all_is_well() {
    let log = Log::default();
    let guard = log.collect(LevelFilter::WARN);
    let mut core = core().await;
    let planned = planned(&core, "a");
    core.apply(&planned, &Value::Null, &planned, b"").await;
    drop(guard);
    assert_eq!(log.text(), "");
}
