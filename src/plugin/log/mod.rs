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

mod layer;
mod line;

use std::{ffi::OsString, io::Write};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::{Layer as _, filter::Targets, layer::SubscriberExt, util::SubscriberInitExt};

use super::Traces;

/// Sends every event of the process that passes `settings` to standard error, and every span to `traces`. Call it once;
/// a second call changes nothing.
pub fn install(settings: &Settings, traces: Option<&Traces>) {
    let lines = layer::HclogLayer::new(write_to_stderr).with_filter(settings.filter.clone());
    let subscriber = tracing_subscriber::registry().with(lines).with(traces.map(Traces::layer));
    let _ = subscriber.try_init();
}

/// Writes a whole line at once, so that lines of several threads do not mix. A host that no longer listens is no
/// reason to fail.
fn write_to_stderr(line: &str) {
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

/// What is wanted in the log.
#[derive(Clone, Debug)]
pub struct Settings {
    filter: Targets,
}

impl Settings {
    /// Reads the wishes for the provider `name` (`damodel`, say) through `variable`, which gives the value of one
    /// environment variable. The [module's documentation](self) lists them.
    pub fn read(name: &str, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let text = |name: &str| {
            let value = variable(name).filter(|value| !value.is_empty())?;
            Some(value.to_string_lossy().into_owned())
        };
        let own = format!("TF_LOG_PROVIDER_{}", name.to_uppercase().replace('-', "_"));
        let wish = text(&own).or_else(|| text("TF_LOG_PROVIDER")).or_else(|| text("TF_LOG"));
        let level = wish.map_or(LevelFilter::WARN, |wish| parse(&wish));
        let mut filter = Targets::new().with_default(level.min(LevelFilter::WARN));
        filter.extend(own_crates().map(|name| (name, level)));
        // A typing error in the list is no reason not to start.
        let targets = text(&format!("{own}_TARGETS")).and_then(|list| list.parse::<Targets>().ok());
        filter.extend(targets.iter().flat_map(Targets::iter));
        Self { filter }
    }
}

/// The targets of the library's and the binary's own events.
fn own_crates() -> [String; 2] {
    let binary = env!("CARGO_PKG_NAME").replace('-', "_");
    [env!("CARGO_CRATE_NAME").to_owned(), binary]
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

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use tracing::Level;

    use super::*;

    fn settings(variables: &[(&str, &str)]) -> Settings {
        Settings::read("da-model", |name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        })
    }

    /// The lowest level that `target` may log at.
    fn level(settings: &Settings, target: &str) -> LevelFilter {
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
    #[case(&[("TF_LOG_PROVIDER", "warn"), ("TF_LOG_PROVIDER_DA_MODEL", "debug")], LevelFilter::DEBUG)]
    #[case(&[("TF_LOG_PROVIDER", "info"), ("TF_LOG_PROVIDER_DA_MODEL", "")], LevelFilter::INFO)]
    #[case(&[("TF_LOG_CORE", "trace"), ("TF_LOG_PROVIDER_OTHER", "trace")], LevelFilter::WARN)]
    fn the_most_specific_wish_counts(#[case] variables: &[(&str, &str)], #[case] expected: LevelFilter) {
        let settings = settings(variables);
        assert_eq!(level(&settings, module_path!()), expected);
        assert_eq!(level(&settings, "terraform_provider_damodel"), expected);
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
        let settings =
            settings(&[("TF_LOG", "info"), ("TF_LOG_PROVIDER_DA_MODEL_TARGETS", "h2=debug,damodel::plugin=off")]);
        assert_eq!(level(&settings, "h2::client"), LevelFilter::DEBUG);
        assert_eq!(level(&settings, "hyper"), LevelFilter::WARN);
        assert_eq!(level(&settings, "damodel::plugin::tls"), LevelFilter::OFF);
        assert_eq!(level(&settings, "damodel::other"), LevelFilter::INFO);
    }

    #[test]
    fn a_list_of_targets_that_is_none_is_passed_over() {
        let settings = settings(&[("TF_LOG_PROVIDER_DA_MODEL_TARGETS", "h2=loud=very")]);
        assert_eq!(level(&settings, "h2"), LevelFilter::WARN);
    }
}
