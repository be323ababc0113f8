//! The tools beside the server.

pub(super) mod nvcc;
pub(super) mod nvidia_smi;
pub(super) mod ss;

use std::{
    fs,
    io::{self, Write},
    process::ExitCode,
};

/// Says it on standard output, and ends with this code.
fn say(text: &str, code: u8) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::from(code),
        Err(_) => ExitCode::FAILURE,
    }
}

/// Says it on standard error, and ends with this code.
fn complain(text: &str, code: u8) -> ExitCode {
    let _ = io::stderr().write_all(text.as_bytes());
    ExitCode::from(code)
}

/// The ids of all processes.
fn processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut ids: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    ids.sort_unstable();
    ids
}
