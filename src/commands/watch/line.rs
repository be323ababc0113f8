//! The text of one wait: what, how far, how long.

use jiff::SignedDuration;

use crate::{
    api::{Ending, ProgressEvent, Told},
    review::visible,
};

/// The longest part of a line that others wrote, in characters.
const LONGEST: usize = 80;

/// From this part on, what is done tells how long the rest takes.
const TELLING: u8 = 5;

/// What is waited for and how far it is, at a time in Unix milliseconds: `instance ins-1 "web": Creating, 12s of about 40s`.
#[must_use]
pub fn line(told: &Told, now: i64) -> String {
    let event = &told.event;
    let mut title = format!("{} {}", event.kind, visible(&event.id, LONGEST));
    if let Some(name) = event.name.as_deref().filter(|name| !name.is_empty() && *name != event.id) {
        title = format!("{title} \"{}\"", visible(name, LONGEST));
    }
    let took = elapsed(event, event.at);
    match event.ended {
        Some(Ending::Done) => {
            return format!("{title}: {}, done after {}", visible(&event.phase, LONGEST), spoken(took));
        }
        Some(Ending::Stopped) => {
            return format!(
                "{title}: {}, not waited for any longer after {}",
                visible(&event.phase, LONGEST),
                spoken(took)
            );
        }
        None => {}
    }
    let percent = event.percent.map(|percent| format!(" {percent} %")).unwrap_or_default();
    let detail = event.detail.as_deref().map(|detail| format!(" ({})", visible(detail, LONGEST))).unwrap_or_default();
    let elapsed = elapsed(event, now);
    let expected =
        expected(told, elapsed).map(|expected| format!(" of about {}", spoken(expected))).unwrap_or_default();
    format!("{title}: {}{percent}{detail}, {}{expected}", visible(&event.phase, LONGEST), spoken(elapsed))
}

/// How long it takes in all: by what is done, or by what earlier ones took while that is not over.
fn expected(told: &Told, elapsed: SignedDuration) -> Option<SignedDuration> {
    let by_part = told
        .event
        .percent
        .filter(|percent| (TELLING..100).contains(percent))
        .map(|percent| elapsed * 100 / i32::from(percent));
    let usual = told.usual.and_then(|usual| SignedDuration::try_from(usual).ok());
    by_part.or(usual).filter(|expected| *expected > elapsed)
}

fn elapsed(event: &ProgressEvent, now: i64) -> SignedDuration {
    SignedDuration::from_millis(now.saturating_sub(event.since).max(0))
}

fn spoken(duration: SignedDuration) -> String {
    format!("{:#}", SignedDuration::from_secs(duration.as_secs()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn told(phase: &str, percent: Option<u8>, ended: Option<Ending>) -> Told {
        let event = ProgressEvent {
            version: 1,
            at: 65_000,
            task: 0,
            since: 1_000,
            kind: "private image".to_owned(),
            id: "951".to_owned(),
            name: Some("base\u{1b}[2J".to_owned()),
            phase: phase.to_owned(),
            percent,
            detail: None,
            ended,
        };
        Told { run: "run".to_owned(), event, usual: Some(Duration::from_secs(90)) }
    }

    #[test]
    fn a_line_says_how_far_it_is_and_how_long_it_takes() {
        let title = "private image 951 \"base\u{fffd}[2J\"";
        let line = |percent, ended, now| line(&told("creating", percent, ended), now);
        assert_eq!(line(None, None, 31_500), format!("{title}: creating, 30s of about 1m 30s"));
        assert_eq!(line(Some(25), None, 31_000), format!("{title}: creating 25 %, 30s of about 2m"));
        assert_eq!(line(Some(2), None, 31_000), format!("{title}: creating 2 %, 30s of about 1m 30s"));
        // What takes longer than usual is not said to be over.
        assert_eq!(line(None, None, 201_000), format!("{title}: creating, 3m 20s"));
        assert_eq!(line(None, Some(Ending::Done), 0), format!("{title}: creating, done after 1m 4s"));
        let stopped = line(None, Some(Ending::Stopped), 0);
        assert_eq!(stopped, format!("{title}: creating, not waited for any longer after 1m 4s"));
    }
}
