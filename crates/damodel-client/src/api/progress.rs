//! The progress of waits: what each wait reports, and to whom.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The version of the format.
const VERSION: u32 = 1;

/// The progress of a wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The version of the format.
    pub version: u32,
    /// When it was written, in Unix milliseconds.
    pub at: i64,
    /// The number of the wait within its run.
    pub task: u64,
    /// When the wait began, in Unix milliseconds.
    pub since: i64,
    /// The kind of the object, as a noun.
    pub kind: String,
    /// Its id; the sent name until the id is known.
    pub id: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its phase.
    pub phase: String,
    /// The progress of the phase, 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
    /// The current step of the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// How the wait ended; `None` until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<WaitEnding>,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitEnding {
    /// Its run ended without it, as when the process is killed. No run writes this: readers find it out.
    BrokenOff,
    /// The condition was met.
    Done,
    /// It ended early: by an error, a timeout, or the caller.
    Stopped,
}

impl Event {
    /// Reads an event from JSON; `None` for a newer format.
    #[must_use]
    pub fn parse(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok().filter(|event: &Self| event.version == VERSION)
    }
}

/// The longest text of an event, in characters.
const LONGEST: usize = 160;

/// Where waits report their progress. Cheap to clone. The default reports nothing.
#[derive(Clone, Default)]
pub struct Progress {
    shared: Option<Arc<Shared>>,
}

struct Shared {
    report: Box<dyn Fn(Event) + Send + Sync>,
    tasks: AtomicU64,
}

/// The progress of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    /// The phase, in a word or two.
    pub phase: String,
    /// The progress of the phase, 0 to 100.
    pub percent: Option<u8>,
    /// The current step of the phase. It contains no secret.
    pub detail: Option<String>,
}

impl Stage {
    /// A phase without percentage and detail.
    pub fn new(phase: impl Into<String>) -> Self {
        Self { phase: phase.into(), ..Self::default() }
    }
}

/// One wait. It reports nothing before its first phase, and its end when it is dropped.
#[derive(Debug)]
pub struct Task {
    progress: Progress,
    event: Event,
    is_told: bool,
}

impl Progress {
    /// Passes each event to `report`, which must not block.
    #[must_use]
    pub fn new(report: impl Fn(Event) + Send + Sync + 'static) -> Self {
        Self { shared: Some(Arc::new(Shared { report: Box::new(report), tasks: AtomicU64::new(0) })) }
    }

    /// Begins a wait for an object: the noun of its kind, and its id or name.
    #[must_use]
    pub fn task(&self, kind: &str, id: impl fmt::Display) -> Task {
        let number = self.shared.as_ref().map_or(0, |shared| shared.tasks.fetch_add(1, Ordering::Relaxed));
        let now = now();
        let event = Event {
            version: VERSION,
            at: now,
            task: number,
            since: now,
            kind: kind.to_owned(),
            id: id.to_string(),
            name: None,
            phase: String::new(),
            percent: None,
            detail: None,
            ended: None,
        };
        Task { progress: self.clone(), event, is_told: false }
    }

    fn report(&self, event: &Event) {
        if let Some(shared) = &self.shared {
            (shared.report)(event.clone());
        }
    }
}

impl Task {
    /// Reports the progress and name of the object if they have changed.
    pub fn sees(&mut self, step: Stage, name: Option<&str>) {
        let next = Event { name: name.map(short).or_else(|| self.event.name.clone()), ..self.at(step) };
        if !self.is_told || next != self.event {
            self.event = Event { at: now(), ..next };
            self.is_told = true;
            self.progress.report(&self.event);
        }
    }

    /// Reports that the condition was met, and the last phase. A wait without any event reports no end.
    pub fn done(mut self, last: Option<Stage>) {
        if let Some(last) = last {
            self.event = self.at(last);
        }
        self.end(WaitEnding::Done);
    }

    fn at(&self, step: Stage) -> Event {
        let Stage { phase, percent, detail } = step;
        Event {
            phase: short(&phase),
            percent: percent.map(|percent| percent.min(100)),
            detail: detail.as_deref().map(short),
            ..self.event.clone()
        }
    }

    fn end(&mut self, ending: WaitEnding) {
        if self.is_told && self.event.ended.is_none() {
            self.event.at = now();
            self.event.ended = Some(ending);
            self.progress.report(&self.event);
            let Event { kind, id, phase, at, since, .. } = &self.event;
            tracing::info!(kind, id, phase, waited_ms = at - since, ?ending, "waited");
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.end(WaitEnding::Stopped);
    }
}

fn short(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

fn now() -> i64 {
    Timestamp::now().as_millisecond()
}

impl fmt::Debug for Progress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Progress").finish_non_exhaustive()
    }
}
