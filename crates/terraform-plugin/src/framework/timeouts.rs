//! Timeouts of steps: the `timeouts` block, and durations in the form of Terraform configurations.

use std::time::Duration;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::{
    attr::Attr,
    diagnostics::Diagnostics,
    schema::{Attribute, Block, Validator},
    value::Type,
};

/// The name of the one block that a schema may have.
pub const TIMEOUTS: &str = "timeouts";

/// The timeout of a step whose kind has no timeouts of its own.
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// The timeout of each step of a resource without a configured one.
#[derive(Clone, Copy, Debug)]
pub struct DefaultTimeouts {
    /// Of a create, waits included.
    pub create: Duration,
    /// Of one refresh.
    pub read: Duration,
    /// Of an update in place.
    pub update: Duration,
    /// Of a destroy, waits included.
    pub delete: Duration,
}

/// The customary `timeouts` block, as configured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeouts {
    /// Of a create.
    pub create: Attr<String>,
    /// Of a refresh.
    pub read: Attr<String>,
    /// Of an update.
    pub update: Attr<String>,
    /// Of a destroy.
    pub delete: Attr<String>,
}

/// So many minutes.
pub const fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(minutes * 60)
}

impl DefaultTimeouts {
    /// The same time for each step.
    pub(super) fn all(timeout: Duration) -> Self {
        Self { create: timeout, read: timeout, update: timeout, delete: timeout }
    }

    /// The block's schema.
    pub fn block(&self) -> Block {
        let attribute = |name: &'static str, step: &str, default: Duration| {
            Attribute::optional(
                name,
                Type::String,
                format!("How long {step} may take. Default: `{}`.", print_duration(default)),
            )
            .validate(Validator::duration())
        };
        Block {
            name: TIMEOUTS.into(),
            description: "Timeouts of the operations.".to_owned(),
            attributes: vec![
                attribute("create", "the creation, with all its waiting,", self.create),
                attribute("read", "a refresh", self.read),
                attribute("update", "an update in place", self.update),
                attribute("delete", "the deletion, with all its waiting,", self.delete),
            ],
        }
    }

    /// The configured durations, with the defaults for those that are not configured.
    pub(super) fn with(&self, configured: &Timeouts) -> Self {
        let or = |value: &Attr<String>, default| value.known().and_then(|text| parse_duration(text)).unwrap_or(default);
        Self {
            create: or(&configured.create, self.create),
            read: or(&configured.read, self.read),
            update: or(&configured.update, self.update),
            delete: or(&configured.delete, self.delete),
        }
    }
}

/// Adds advice on raising the timeout to a step that failed after its deadline, unless its errors already contain it.
pub(super) fn tell_overrun(step: &str, timeout: Duration, deadline: Instant, diagnostics: &mut Diagnostics) {
    if Instant::now() < deadline {
        return;
    }
    let (note, then) = match step {
        "delete" => (" It uses the timeouts in the state.", ", apply only this change, and destroy again"),
        "read" => (" It uses the timeouts in the state.", " and run terraform apply -refresh=false"),
        _ => ("", ""),
    };
    let advice = format!(
        "The {step} has used up its {}.{note} To wait longer set timeouts {{ {step} = \"…\" }}{then}.",
        print_duration(timeout)
    );
    for error in diagnostics.errors_mut().filter(|error| !error.detail.contains("timeouts {")) {
        if !error.detail.is_empty() {
            error.detail.push_str("\n\n");
        }
        error.detail.push_str(&advice);
    }
}

/// The longest duration that can be configured: ten years. Adding an arbitrary duration to a clock could overflow.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// Reads a duration above zero and of at most ten years: `90s`, `30m`, `1h30m`.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let duration: SignedDuration = text.parse().ok()?;
    Duration::try_from(duration).ok().filter(|duration| !duration.is_zero() && *duration <= LONGEST)
}

/// Writes a duration: `30m`, `1h30m`.
pub fn print_duration(duration: Duration) -> String {
    let printer = jiff::fmt::friendly::SpanPrinter::new();
    SignedDuration::try_from(duration).map_or_else(
        |_| format!("{}s", duration.as_secs()),
        |duration| printer.duration_to_string(&duration).replace(' ', ""),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        assert_eq!(parse_duration("90s"), Some(Duration::from_secs(90)));
        assert_eq!(parse_duration("1h30m"), Some(Duration::from_secs(5400)));
        assert_eq!(parse_duration("87600h"), Some(LONGEST));
        for text in ["", "30", "-5m", "0s", "soon", "87600h1s", "2562047788015215h"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_step_that_used_up_its_time_is_told_of_more() {
        let minute = Duration::from_secs(60);
        let (deadline, mut said) = (Instant::now() + minute, Diagnostics::new());
        said.error("Failed", "Planted.");
        tell_overrun("create", minute, deadline, &mut said);
        assert!(said.iter().all(|said| said.detail == "Planted."));
        tokio::time::advance(minute).await;
        tell_overrun("create", minute, deadline, &mut said);
        assert!(
            said.iter().all(|said| said.detail.ends_with("its 1m. To wait longer set timeouts { create = \"…\" }."))
        );
    }

    #[test]
    fn durations_are_written_as_they_are_read() {
        for text in ["30m", "2h", "1h30m", "90s"] {
            let duration = parse_duration(text).unwrap();
            assert_eq!(parse_duration(&print_duration(duration)), Some(duration), "{text}");
        }
        assert_eq!(print_duration(Duration::from_secs(1800)), "30m");
    }
}
