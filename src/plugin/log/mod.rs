//! Log lines as the core reads them on standard error (plugin protocol, logging).
//!
//! The core reads and parses every line a plugin writes, whether anybody wants to see it or not, so silence is a
//! feature: nothing below a warning is written unless one of these asks for it, the first that is set:
//!
//! | Variable | Who else heeds it |
//! |---|---|
//! | `TF_LOG_PROVIDER_<NAME>` | nobody: the level of this provider alone |
//! | `TF_LOG_PROVIDER` | the core, for all providers |
//! | `TF_LOG` | the core, for everything |
//!
//! Values are `TRACE`, `DEBUG`, `INFO`, `WARN`, `ERROR`, `OFF`, and `JSON`, which is `TRACE`, in any case. Anything
//! else is `TRACE` too, as in the core.
//!
//! Libraries stay at warnings at any level, since what they say below is about themselves.
//! `TF_LOG_PROVIDER_<NAME>_TARGETS` lets them speak, and may quieten or raise single modules of ours, in
//! tracing's own form: `h2=debug,reqwest=trace`.

mod fields;
mod layer;
mod level;
mod line;

use std::io::Write;

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

pub use level::Settings;

/// Sends every event of the process that passes `settings` to standard error. Call it once; a second call
/// changes nothing.
pub fn install(settings: &Settings) {
    let layer = layer::HclogLayer::new(write_to_stderr);
    let subscriber = tracing_subscriber::registry().with(settings.filter().clone()).with(layer);
    let _ = subscriber.try_init();
}

/// Writes a whole line at once, so that lines of several threads do not mix. A host that no longer listens is no
/// reason to fail.
fn write_to_stderr(line: &str) {
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}
