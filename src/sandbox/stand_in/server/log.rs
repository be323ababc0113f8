//! The lines on standard error.

use std::{
    io::{self, Write},
    time::Instant,
};

use super::super::build::Generation;

/// How much a line matters; the new generation writes the letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Error,
    Info,
    Warning,
}

/// Writes lines as a generation does.
#[derive(Debug)]
pub(super) struct Log {
    generation: Generation,
    begun: Instant,
}

impl Log {
    pub(super) fn new(generation: Generation) -> Self {
        Self { generation, begun: Instant::now() }
    }

    pub(super) fn info(&self, text: &str) {
        self.line(Level::Info, text);
    }

    pub(super) fn warn(&self, text: &str) {
        self.line(Level::Warning, text);
    }

    pub(super) fn error(&self, text: &str) {
        self.line(Level::Error, text);
    }

    /// A line without level or time, as libraries below the server write it.
    pub(super) fn raw(&self, text: &str) {
        write(&format!("{text}\n"));
    }

    fn line(&self, level: Level, text: &str) {
        write(&match self.generation {
            Generation::New => {
                let letter = match level {
                    Level::Error => 'E',
                    Level::Info => 'I',
                    Level::Warning => 'W',
                };
                format!("{} {letter} {text}\n", stamp(self.begun.elapsed().as_micros()))
            }
            Generation::Old => format!("{text}\n"),
        });
    }
}

/// `0.00.012.290`: minutes, seconds, thousandths, millionths.
fn stamp(micros: u128) -> String {
    let (minutes, seconds) = (micros / 60_000_000, micros / 1_000_000 % 60);
    format!("{minutes}.{seconds:02}.{:03}.{:03}", micros / 1000 % 1000, micros % 1000)
}

fn write(text: &str) {
    // On a full disk later lines are lost, and the server goes on.
    let _ = io::stderr().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_counts_from_the_start() {
        assert_eq!(stamp(12_290), "0.00.012.290");
        assert_eq!(stamp(75_000_001), "1.15.000.001");
    }
}
