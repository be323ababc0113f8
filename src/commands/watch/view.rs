//! Output of waits with their progress and duration: on a terminal, or in plain lines.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    time::Duration,
};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::{SignedDuration, Timestamp};

use crate::{
    api::{ProgressEvent, WaitEnding},
    creation::progress::RunEvent,
    review::visible,
};

/// The progress, in percent, after which plain output gets a new line.
const WORTH_A_LINE: u8 = 10;

/// The form of the output.
pub(super) enum View {
    /// On a terminal: one line for each wait, drawn in place.
    Drawn { lines: MultiProgress, waits: BTreeMap<(String, u64), Drawn> },
    /// Elsewhere: a line for each change.
    Plain { last: BTreeMap<(String, u64), ProgressEvent> },
}

/// A wait on a terminal.
pub(super) struct Drawn {
    bar: ProgressBar,
    event: ProgressEvent,
}

impl View {
    pub(super) fn drawn() -> Self {
        Self::Drawn { lines: MultiProgress::with_draw_target(ProgressDrawTarget::stdout()), waits: BTreeMap::new() }
    }

    pub(super) fn plain() -> Self {
        Self::Plain { last: BTreeMap::new() }
    }

    /// Shows new events, and the time that current waits have taken so far.
    pub(super) fn show(&mut self, news: &[RunEvent]) -> io::Result<()> {
        let now = Timestamp::now().as_millisecond();
        match self {
            Self::Drawn { lines, waits } => {
                for RunEvent { run, event } in news {
                    let new = || Drawn { bar: lines.add(bar()), event: event.clone() };
                    waits.entry((run.clone(), event.task)).or_insert_with(new).event = event.clone();
                }
                // Finished waits scroll up, and current ones stay below.
                let mut over = Vec::new();
                waits.retain(|_, wait| {
                    let text = line(&wait.event, now);
                    if wait.event.ended.is_some() {
                        wait.bar.finish_and_clear();
                        lines.remove(&wait.bar);
                        over.push(text);
                        return false;
                    }
                    wait.bar.set_message(text);
                    true
                });
                over.iter().try_for_each(|text| above(lines, text))
            }
            Self::Plain { last } => {
                let mut out = io::stdout();
                for RunEvent { run, event } in news {
                    let key = (run.clone(), event.task);
                    if last.get(&key).is_none_or(|before| is_worth_a_line(before, event)) {
                        writeln!(out, "{} {}", clock(event.at), line(event, event.at))?;
                        last.insert(key, event.clone());
                    }
                }
                out.flush()
            }
        }
    }

    /// Prints a text that is not a wait.
    pub(super) fn say(&mut self, text: &str) -> io::Result<()> {
        match self {
            Self::Drawn { lines, .. } => above(lines, text),
            Self::Plain { .. } => writeln!(io::stdout(), "{text}").and_then(|()| io::stdout().flush()),
        }
    }
}

/// Writes a line above the drawn ones; `MultiProgress::println` would pad it with spaces and omit the line break.
fn above(lines: &MultiProgress, text: &str) -> io::Result<()> {
    lines.suspend(|| writeln!(io::stdout(), "{text}"))
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

fn is_worth_a_line(before: &ProgressEvent, now: &ProgressEvent) -> bool {
    let grown = now.percent.unwrap_or(0).abs_diff(before.percent.unwrap_or(0));
    before.phase != now.phase || now.ended.is_some() || grown >= WORTH_A_LINE
}

/// The time of day. The program has no time zones.
fn clock(at: i64) -> String {
    Timestamp::from_millisecond(at).unwrap_or_default().strftime("%H:%M:%S UTC").to_string()
}

/// The longest text of an event in a line, in characters.
const LONGEST: usize = 80;

/// The percentage from which the elapsed time suffices to estimate the rest.
const ESTIMATED_FROM: u8 = 5;

/// A wait and its progress, at a time in Unix milliseconds: `private image 951 "base": creating 25 %, 30s of about 2m`.
#[must_use]
pub fn line(event: &ProgressEvent, now: i64) -> String {
    let mut title = format!("{} {}", event.kind, visible(&event.id, LONGEST));
    if let Some(name) = event.name.as_deref().filter(|name| !name.is_empty() && *name != event.id) {
        title = format!("{title} \"{}\"", visible(name, LONGEST));
    }
    let took = elapsed(event, event.at);
    let ended = event.ended.map(|ended| match ended {
        WaitEnding::BrokenOff => "interrupted: its run ended after",
        WaitEnding::Done => "done after",
        WaitEnding::Stopped => "stopped waiting after",
    });
    if let Some(ended) = ended {
        return format!("{title}: {}, {ended} {}", visible(&event.phase, LONGEST), spoken(took));
    }
    let percent = event.percent.map(|percent| format!(" {percent} %")).unwrap_or_default();
    let detail = event.detail.as_deref().map(|detail| format!(" ({})", visible(detail, LONGEST))).unwrap_or_default();
    let elapsed = elapsed(event, now);
    let expected = expected(event, elapsed).map(|expected| format!(" of about {}", spoken(expected)));
    let expected = expected.unwrap_or_default();
    format!("{title}: {}{percent}{detail}, {}{expected}", visible(&event.phase, LONGEST), spoken(elapsed))
}

/// The expected total duration, from the percentage. A download may have begun long before this wait; its rate is
/// shown.
fn expected(event: &ProgressEvent, elapsed: SignedDuration) -> Option<SignedDuration> {
    let percent = event
        .percent
        .filter(|percent| (ESTIMATED_FROM..100).contains(percent) && !event.phase.starts_with("downloading"))?;
    Some(elapsed * 100 / i32::from(percent))
}

fn elapsed(event: &ProgressEvent, now: i64) -> SignedDuration {
    SignedDuration::from_millis(now.saturating_sub(event.since).max(0))
}

fn spoken(duration: SignedDuration) -> String {
    format!("{:#}", SignedDuration::from_secs(duration.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(phase: &str, percent: Option<u8>, ended: Option<WaitEnding>) -> ProgressEvent {
        ProgressEvent {
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
        }
    }

    #[test]
    fn a_time_of_day_names_its_zone() {
        assert_eq!(clock(1_700_000_000_000), "22:13:20 UTC");
    }

    #[test]
    fn a_line_says_how_far_it_is_and_how_long_it_takes() {
        let title = "private image 951 \"base\u{fffd}[2J\"";
        let line = |percent, ended, now| line(&event("creating", percent, ended), now);
        assert_eq!(line(None, None, 31_500), format!("{title}: creating, 30s"));
        assert_eq!(line(Some(25), None, 31_000), format!("{title}: creating 25 %, 30s of about 2m"));
        let download = event("downloading", Some(50), None);
        assert_eq!(super::line(&download, 31_000), format!("{title}: downloading 50 %, 30s"));
        assert_eq!(line(Some(2), None, 31_000), format!("{title}: creating 2 %, 30s"));
        assert_eq!(line(None, Some(WaitEnding::Done), 0), format!("{title}: creating, done after 1m 4s"));
        let stopped = line(None, Some(WaitEnding::Stopped), 0);
        assert_eq!(stopped, format!("{title}: creating, stopped waiting after 1m 4s"));
        let broken = line(None, Some(WaitEnding::BrokenOff), 0);
        assert_eq!(broken, format!("{title}: creating, interrupted: its run ended after 1m 4s"));
    }
}
