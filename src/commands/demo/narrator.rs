use std::io::Write;

use tokio::time::Instant;

use super::Error;
use crate::commands::terraform::Output;

/// How many steps the story has.
const STEPS: usize = 8;

/// Tells the story as it goes: a line for each step, and below it what it proves.
#[derive(Debug)]
pub(super) struct Narrator<'a, W> {
    out: &'a mut W,
    step: usize,
    start: Instant,
    /// Whether the whole output of each step is shown.
    pub(super) verbose: bool,
}

impl<'a, W: Write> Narrator<'a, W> {
    pub(super) fn new(out: &'a mut W) -> Self {
        Self { out, step: 0, start: Instant::now(), verbose: false }
    }

    pub(super) fn begin(&mut self, title: &str) -> Result<(), Error> {
        self.line(title)
    }

    /// Says what is done next.
    pub(super) fn step(&mut self, title: &str) -> Result<(), Error> {
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
        let seconds = self.start.elapsed().as_secs();
        self.line(&format!("\nDone in {seconds} s. Nothing is left on this machine."))
    }

    fn line(&mut self, text: &str) -> Result<(), Error> {
        writeln!(self.out, "{text}").and_then(|()| self.out.flush()).map_err(Error::Terminal)
    }
}
