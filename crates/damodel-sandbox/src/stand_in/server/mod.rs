//! The inference server: start, run and ends, as measured on the real one.

mod chat;
mod embed;
mod load;
mod options;
mod routes;
mod serve;

use std::{
    io::{self, Write},
    process::ExitCode,
    time::Instant,
};

use nix::sys::signal::{Signal, raise};

use self::options::{Asked, StandInSettings};
use super::{Call, Machine, build::StandInBuild};

/// The constants of a server's run.
#[derive(Debug)]
struct ServerContext {
    build: StandInBuild,
    settings: StandInSettings,
    machine: Machine,
    log: Log,
}

impl ServerContext {
    /// Whether the model is put on a GPU.
    fn is_on_gpu(&self) -> bool {
        self.has_cuda() && self.machine.usable_gpu().is_some() && self.settings.gpu_layers != Some(0)
    }

    fn has_cuda(&self) -> bool {
        !self.build.architectures.is_empty()
    }
}

/// Runs the server, or answers `--help`, `--version` and similar options.
pub(super) fn main(call: &Call<'_>) -> ExitCode {
    let build = StandInBuild::of(call);
    let machine = call.machine();
    let settings = match options::read(call) {
        Ok(Asked::Devices) => {
            greet(&build, &machine);
            return print(&devices(&build, &machine));
        }
        Ok(Asked::Help) => return print(&options::help()),
        Ok(Asked::Serve(settings)) => *settings,
        Ok(Asked::Version) => {
            greet(&build, &machine);
            let _ = io::stderr().write_all(build.version().as_bytes());
            return ExitCode::SUCCESS;
        }
        Err(text) => {
            let _ = io::stderr().write_all(text.as_bytes());
            return ExitCode::FAILURE;
        }
    };
    greet(&build, &machine);
    let log = Log { begun: Instant::now() };
    let ports = call.path(super::PORTS);
    serve::run(ServerContext { build, settings, machine, log }, ports)
}

/// The lines that a build with CUDA prints at each start.
fn greet(build: &StandInBuild, machine: &Machine) {
    if build.architectures.is_empty() {
        return;
    }
    let text = match machine.usable_gpu() {
        None => "ggml_cuda_init: failed to initialize CUDA: no CUDA-capable device is detected\n".to_owned(),
        Some(gpu) => {
            let (name, major, minor) = (&gpu.name, gpu.architecture / 10, gpu.architecture % 10);
            let device = |index| format!("  Device {index}: {name}, compute capability {major}.{minor}, VMM: yes\n");
            let devices: String = (0..machine.gpu_count).map(device).collect();
            format!("ggml_cuda_init: found {} CUDA devices:\n{devices}", machine.gpu_count)
        }
    };
    let _ = io::stderr().write_all(text.as_bytes());
}

fn devices(build: &StandInBuild, machine: &Machine) -> String {
    let devices = match machine.usable_gpu().filter(|_| !build.architectures.is_empty()) {
        Some(gpu) => {
            let (name, all, free) = (&gpu.name, gpu.memory_mib, gpu.memory_mib - 400);
            (0..machine.gpu_count)
                .map(|index| format!("  CUDA{index}: {name} ({all} MiB, {free} MiB free)\n"))
                .collect()
        }
        None => "  (none)\n".to_owned(),
    };
    format!("Available devices:\n{devices}")
}

fn print(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Ends like `abort`: 134 for a shell.
fn abort() {
    let _ = raise(Signal::SIGABRT);
}

/// Ends like a process that the kernel kills for its memory: 137, without a log line.
fn killed() {
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
struct Log {
    begun: Instant,
}

impl Log {
    fn info(&self, text: &str) {
        self.line(Level::Info, text);
    }

    fn warn(&self, text: &str) {
        self.line(Level::Warning, text);
    }

    fn error(&self, text: &str) {
        self.line(Level::Error, text);
    }

    /// A line without level or time, as libraries below the server write it.
    fn raw(&self, text: &str) {
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
