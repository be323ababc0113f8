//! The constants of a server's run, its log, and its abrupt ends.

use std::{
    io::{self, Write},
    time::Instant,
};

use nix::sys::signal::{Signal, raise};

use super::options::StandInSettings;
use crate::stand_in::{build::StandInBuild, machine::Machine};

/// The constants of a server's run.
#[derive(Debug)]
pub(super) struct ServerContext {
    pub(super) build: StandInBuild,
    pub(super) settings: StandInSettings,
    pub(super) machine: Machine,
    pub(super) log: Log,
}

impl ServerContext {
    /// Whether the model is put on a GPU.
    pub(super) fn is_on_gpu(&self) -> bool {
        let has_cuda = !self.build.architectures.is_empty();
        has_cuda && self.machine.usable_gpu().is_some() && self.settings.gpu_layers != Some(0)
    }
}

/// Ends like `abort`: 134 for a shell.
pub(super) fn abort() {
    let _ = raise(Signal::SIGABRT);
}

/// Ends like a process that the kernel kills for its memory: 137, without a log line.
pub(super) fn killed() {
    let _ = raise(Signal::SIGKILL);
}

/// The level of a line, which begins with its letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Error,
    Info,
    Warning,
}

/// The log.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) begun: Instant,
}

impl Log {
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
        let letter = match level {
            Level::Error => 'E',
            Level::Info => 'I',
            Level::Warning => 'W',
        };
        write(&format!("{} {letter} {text}\n", stamp(self.begun.elapsed().as_micros())));
    }
}

/// `0.00.012.290`: minutes, seconds, thousandths, millionths.
fn stamp(micros: u128) -> String {
    let (minutes, seconds) = (micros / 60_000_000, micros / 1_000_000 % 60);
    format!("{minutes}.{seconds:02}.{:03}.{:03}", micros / 1000 % 1000, micros % 1000)
}

fn write(text: &str) {
    // On a full disk later lines are lost, and the server continues.
    let _ = io::stderr().write_all(text.as_bytes());
}
