//! Shows waits on a terminal, in plain lines, or as JSON.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    time::Duration,
};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::{Timestamp, tz::TimeZone};
use serde::Serialize;

use super::line;
use crate::api::{ProgressEvent, Told};

/// In plain lines only so large a part more is worth a line of its own, in percent.
const WORTH_A_LINE: u8 = 10;

/// Where the lines are shown.
pub(super) enum View<W> {
    /// On a terminal: a line a wait, drawn in place.
    Drawn { lines: MultiProgress, waits: BTreeMap<(String, u64), Drawn> },
    /// For programs: a line of JSON for each step.
    Json { out: W },
    /// Anywhere else: a line for each change.
    Plain { out: W, last: BTreeMap<(String, u64), Told> },
}

/// A wait on a terminal.
pub(super) struct Drawn {
    bar: ProgressBar,
    told: Told,
}

impl View<io::Sink> {
    pub(super) fn drawn() -> View<io::Stdout> {
        View::Drawn { lines: MultiProgress::with_draw_target(ProgressDrawTarget::stdout()), waits: BTreeMap::new() }
    }
}

/// A step as programs read it.
#[derive(Serialize)]
struct Line<'a> {
    /// The run: a task is one of its numbers.
    run: &'a str,
    /// How long such waits took in earlier runs.
    usual_ms: Option<u128>,
    #[serde(flatten)]
    event: &'a ProgressEvent,
}

impl<W: Write> View<W> {
    pub(super) fn json(out: W) -> Self {
        Self::Json { out }
    }

    pub(super) fn plain(out: W) -> Self {
        Self::Plain { out, last: BTreeMap::new() }
    }

    /// Shows what is new, and how long all that goes on has taken by now.
    pub(super) fn show(&mut self, news: &[Told]) -> io::Result<()> {
        let now = Timestamp::now().as_millisecond();
        match self {
            Self::Drawn { lines, waits } => {
                for told in news {
                    let key = (told.run.clone(), told.event.task);
                    let wait = waits.entry(key).or_insert_with(|| Drawn { bar: lines.add(bar()), told: told.clone() });
                    wait.told = told.clone();
                }
                // What has ended scrolls up, and the lines below are those that go on.
                let mut over = Vec::new();
                waits.retain(|_, wait| {
                    let text = line(&wait.told, now);
                    if wait.told.event.ended.is_some() {
                        wait.bar.finish_and_clear();
                        lines.remove(&wait.bar);
                        over.push(text);
                        return false;
                    }
                    wait.bar.set_message(text);
                    true
                });
                over.iter().try_for_each(|text| lines.println(text))?;
                Ok(())
            }
            Self::Json { out } => {
                for told in news {
                    let usual_ms = told.usual.map(|usual| usual.as_millis());
                    serde_json::to_writer(&mut *out, &Line { run: &told.run, usual_ms, event: &told.event })?;
                    out.write_all(b"\n")?;
                }
                out.flush()
            }
            Self::Plain { out, last } => {
                for told in news {
                    let key = (told.run.clone(), told.event.task);
                    if last.get(&key).is_none_or(|before| is_worth_a_line(before, told)) {
                        writeln!(out, "{} {}", clock(told.event.at), line(told, told.event.at))?;
                        last.insert(key, told.clone());
                    }
                }
                out.flush()
            }
        }
    }

    /// Says something that is no wait.
    pub(super) fn say(&mut self, text: &str) -> io::Result<()> {
        match self {
            Self::Drawn { lines, .. } => lines.println(text),
            Self::Json { .. } => Ok(()),
            Self::Plain { out, .. } => writeln!(out, "{text}").and_then(|()| out.flush()),
        }
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

fn is_worth_a_line(before: &Told, now: &Told) -> bool {
    let (before, now) = (&before.event, &now.event);
    let grown = now.percent.unwrap_or(0).abs_diff(before.percent.unwrap_or(0));
    before.phase != now.phase || now.ended.is_some() || grown >= WORTH_A_LINE
}

/// The time of day, where the person is.
fn clock(at: i64) -> String {
    let time = Timestamp::from_millisecond(at).unwrap_or_default();
    time.to_zoned(TimeZone::system()).strftime("%H:%M:%S").to_string()
}
