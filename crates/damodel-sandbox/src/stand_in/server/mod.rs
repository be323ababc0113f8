//! The inference server: start, run and ends, as measured on the real one.

mod chat;
mod context;
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

use self::{
    context::{Log, ServerContext},
    options::Asked,
};
use super::{
    build::StandInBuild,
    machine::{Call, Machine, PORTS},
};

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
    let ports = call.path(PORTS);
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
