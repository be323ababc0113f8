//! The progress of the work, for the operator.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};

use super::bootstrap::{Download, JobFailure, JobReport, Phase};
use crate::api::{self, Task};

/// The first wait between two looks, and the longest: of a start, and of a compile or a download.
const FIRST: Duration = Duration::from_millis(200);
const MAX: Duration = Duration::from_secs(2);
const MAX_OF_A_COMPILE: Duration = Duration::from_secs(5);

/// Reports the progress of the work, and paces the looks at it.
#[expect(missing_debug_implementations, reason = "a function has none")]
pub struct WorkProgress<'a> {
    task: Task,
    /// Called with each new phase.
    on_phase: Box<dyn FnMut(&JobReport) + Send + 'a>,
    waits: Option<backon::ExponentialBackoff>,
    phase: Option<Phase>,
    percent: Option<u8>,
}

impl<'a> WorkProgress<'a> {
    /// Shows the progress as that of this task.
    pub fn new(task: Task) -> Self {
        Self { task, on_phase: Box::new(|_| ()), waits: None, phase: None, percent: None }
    }

    /// Calls this with each new phase.
    pub fn on_phase(self, on_phase: impl FnMut(&JobReport) + Send + 'a) -> Self {
        Self { on_phase: Box::new(on_phase), ..self }
    }

    /// Shows why a build from source is tried, before it begins.
    pub fn compiles_because(&mut self, failure: &JobFailure) {
        let detail = format!("the prebuilt server failed: {}. {}", failure.kind.title(), failure.kind.advice());
        tracing::info!(reason = failure.text, detail, "a build from source is tried");
        self.task.sees(api::Stage { detail: Some(detail), ..api::Stage::new("trying a build from source") }, None);
    }

    /// Shows the progress. Each phase begins with short waits.
    pub fn shows(&mut self, report: &JobReport) {
        let percent = percent(report);
        let is_new = self.phase != Some(report.phase);
        if is_new {
            self.phase = Some(report.phase);
            self.waits = None;
            (self.on_phase)(report);
        }
        if is_new || percent != self.percent {
            self.percent = percent;
            let Download { bytes, total, rate } = report.download.unwrap_or_default();
            tracing::info!(phase = ?report.phase, percent, bytes, total, rate, "the work in the instance");
        }
        self.task.sees(stage(report), None);
    }

    /// The wait until the next look.
    pub fn wait(&mut self) -> Duration {
        let max = if matches!(self.phase, Some(Phase::Compile | Phase::Download)) { MAX_OF_A_COMPILE } else { MAX };
        let waits = self.waits.get_or_insert_with(|| {
            ExponentialBuilder::default()
                .with_min_delay(FIRST)
                .with_max_delay(max)
                .with_factor(1.3)
                .without_max_times()
                .build()
        });
        waits.next().unwrap_or(max)
    }

    /// Shows that the server serves.
    pub fn done(self, report: &JobReport) {
        self.task.done(Some(stage(report)));
    }
}

/// The progress in a word or two.
pub fn stage(report: &JobReport) -> api::Stage {
    let compile = report.compile.as_ref().filter(|_| report.phase == Phase::Compile);
    let line = compile.map(|compile| compile.line.clone()).filter(|line| !line.is_empty());
    let detail = line.or_else(|| report.download.as_ref().map(ToString::to_string));
    api::Stage { percent: percent(report), detail, ..api::Stage::new(report.phase.title()) }
}

/// How much of a compile or a download is done.
fn percent(report: &JobReport) -> Option<u8> {
    match (&report.compile, &report.download) {
        (Some(compile), _) if report.phase == Phase::Compile => compile.percent,
        (_, Some(download)) => u8::try_from(download.bytes.saturating_mul(100).checked_div(download.total)?).ok(),
        _ => None,
    }
}
