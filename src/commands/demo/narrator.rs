//! Prints the steps of the demo, with a progress bar on a terminal.

use std::{io::Write, time::Duration};

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use tokio::time::Instant;

use super::Error;
use crate::commands::terraform::Output;

/// How many steps the story has.
const STEPS: usize = 8;

/// How the bar below the story looks on a terminal.
const BAR: &str = "{spinner} [{bar:24}] {pos}/{len} {elapsed} {wide_msg}";

/// How often its spinner turns.
const TURN: Duration = Duration::from_millis(120);

/// Tells the story as it goes: a line for each step, and below it what it proves. On a terminal a bar below it shows
/// how far it is.
#[derive(Debug)]
pub(super) struct Narrator<'a, W> {
    out: &'a mut W,
    step: usize,
    start: Instant,
    /// Draws on standard error, and nothing where that is no terminal.
    bar: ProgressBar,
    /// Whether the whole output of each step is shown.
    pub(super) verbose: bool,
}

impl<'a, W: Write> Narrator<'a, W> {
    pub(super) fn new(out: &'a mut W) -> Self {
        // A template that could not be read leaves the bar as the library has it.
        let style = ProgressStyle::with_template(BAR).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::new(STEPS as u64).with_style(style).with_finish(ProgressFinish::AndClear);
        Self { out, step: 0, start: Instant::now(), bar, verbose: false }
    }

    pub(super) fn begin(&mut self, title: &str) -> Result<(), Error> {
        self.line(title)
    }

    /// Says what is done next.
    pub(super) fn step(&mut self, title: &str) -> Result<(), Error> {
        self.bar.set_position(self.step as u64);
        self.bar.set_message(title.to_owned());
        self.bar.enable_steady_tick(TURN);
        self.step += 1;
        self.line(&format!("\n[{}/{STEPS}] {title}", self.step))
    }

    /// Shows what a step said.
    pub(super) fn said(&mut self, output: &Output) -> Result<(), Error> {
        if self.verbose {
            for line in output.to_string().lines() {
                self.line(&format!("      | {line}"))?;
            }
        }
        Ok(())
    }

    /// Says what came of a step.
    pub(super) fn proves(&mut self, text: &str) -> Result<(), Error> {
        self.line(&format!("      {text}"))
    }

    pub(super) fn end(&mut self) -> Result<(), Error> {
        self.bar.finish_and_clear();
        let seconds = self.start.elapsed().as_secs();
        self.line(&format!("\nDone in {seconds} s. Nothing is left on this machine."))
    }

    fn line(&mut self, text: &str) -> Result<(), Error> {
        let out = &mut self.out;
        self.bar.suspend(|| writeln!(out, "{text}").and_then(|()| out.flush())).map_err(Error::Terminal)
    }
}
