//! The inference server: its start, its life and its ends, as measured on two builds of the real one.

mod answers;
mod chat;
mod fate;
mod generate;
mod load;
mod log;
mod metrics;
mod options;
mod port;
mod routes;
mod serve;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use self::{
    log::Log,
    options::{Asked, Settings},
};
use super::{Call, build::Build, machine::Machine};

/// What is true for the life of a server.
#[derive(Debug)]
struct Context {
    build: Build,
    settings: Settings,
    machine: Machine,
    log: Log,
}

impl Context {
    /// Whether the model is put on a GPU.
    fn is_on_gpu(&self) -> bool {
        self.has_cuda() && self.machine.usable_gpu().is_some() && self.settings.gpu_layers != Some(0)
    }

    fn has_cuda(&self) -> bool {
        !self.build.architectures.is_empty()
    }
}

/// Runs the server, or answers what was asked of the program.
pub(super) fn main(call: &Call<'_>) -> ExitCode {
    let build = Build::of(call);
    let machine = call.machine();
    let settings = match options::read(call, &build) {
        Ok(Asked::Devices) => {
            greet(&build, &machine);
            return print(&devices(&build, &machine));
        }
        Ok(Asked::Help) => return print(&options::help(&build)),
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
    let log = Log::new(build.generation);
    let ports = call.path(super::PORTS);
    serve::run(Context { build, settings, machine, log }, ports)
}

/// What a build with CUDA says whatever it is asked.
fn greet(build: &Build, machine: &Machine) {
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

fn devices(build: &Build, machine: &Machine) -> String {
    let devices = match machine.usable_gpu().filter(|_| !build.architectures.is_empty()) {
        Some(gpu) => {
            let (name, all, free) = (&gpu.name, gpu.memory_mib, gpu.memory_mib - 400);
            (0..machine.gpu_count)
                .map(|index| format!("  CUDA{index}: {name} ({all} MiB, {free} MiB free)\n"))
                .collect()
        }
        None if build.is_old() => String::new(),
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
