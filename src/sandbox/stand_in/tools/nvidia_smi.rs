//! `nvidia-smi`: the GPUs of the machine, and who uses them.

use std::{fs, path::Path, process::ExitCode};

use super::{processes, say};
use crate::sandbox::stand_in::{Call, Gpu, Machine};

/// What it says where it does not reach the driver; on standard output, as the real one.
const NO_DRIVER: &str = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that \
                         the latest NVIDIA driver is installed and running.\n\n";

/// The first branch of drivers that tells the compute capability.
const TELLS_CAPABILITY: u32 = 510;

/// The memory that a server uses, in MiB.
const USED_MIB: i64 = 512;

pub(in super::super) fn main(call: &Call<'_>) -> ExitCode {
    let machine = call.machine();
    let Some(gpu) = machine.usable_gpu() else {
        return say(NO_DRIVER, 9);
    };
    let option = |name: &str| call.arguments.iter().find_map(|argument| argument.strip_prefix(name));
    let form = Form::read(option("--format=").unwrap_or_default());
    let users = users(call);
    if let Some(fields) = option("--query-gpu=") {
        return query_gpus(&machine, gpu, fields, &form, &users);
    }
    if let Some(fields) = option("--query-compute-apps=") {
        return query_users(fields, &form, &users);
    }
    if call.arguments.iter().any(|argument| argument == "-L" || argument == "--list-gpus") {
        let line = |index| format!("GPU {index}: {} (UUID: {})\n", gpu.name, uuid(index));
        return say(&(0..machine.gpu_count).map(line).collect::<String>(), 0);
    }
    say(&table(&machine, gpu), 0)
}

/// How a query is to be answered.
#[derive(Debug)]
struct Form {
    has_header: bool,
    has_units: bool,
}

impl Form {
    fn read(text: &str) -> Self {
        let has = |word| text.split(',').any(|own| own == word);
        Self { has_header: !has("noheader"), has_units: !has("nounits") }
    }

    fn mib(&self, number: i64) -> String {
        if self.has_units { format!("{number} MiB") } else { number.to_string() }
    }
}

fn query_gpus(machine: &Machine, gpu: &Gpu, fields: &str, form: &Form, users: &[u32]) -> ExitCode {
    let fields: Vec<&str> = fields.split(',').map(str::trim).collect();
    let used = if users.is_empty() { 0 } else { USED_MIB };
    let value = |field: &str, index: u32| {
        Some(match field {
            "index" => index.to_string(),
            "name" | "gpu_name" => gpu.name.clone(),
            "compute_cap" if tells_capability(gpu) => format!("{}.{}", gpu.architecture / 10, gpu.architecture % 10),
            "count" => machine.gpu_count.to_string(),
            "driver_version" => gpu.driver.clone(),
            "memory.total" => form.mib(gpu.memory_mib),
            "memory.used" => form.mib(used),
            "memory.free" => form.mib(gpu.memory_mib - used),
            "utilization.gpu" => if form.has_units { "0 %" } else { "0" }.to_owned(),
            "uuid" | "gpu_uuid" => uuid(index),
            _ => return None,
        })
    };
    if let Some(unknown) = fields.iter().find(|field| value(field, 0).is_none()) {
        return say(&format!("Field \"{unknown}\" is not a valid field to query.\n\n"), 2);
    }
    let mut lines = Vec::new();
    if form.has_header {
        lines.push(fields.join(", "));
    }
    for index in 0..machine.gpu_count {
        lines.push(fields.iter().filter_map(|field| value(field, index)).collect::<Vec<_>>().join(", "));
    }
    say(&(lines.join("\n") + "\n"), 0)
}

fn query_users(fields: &str, form: &Form, users: &[u32]) -> ExitCode {
    let fields: Vec<&str> = fields.split(',').map(str::trim).collect();
    let value = |field: &str, id: u32| {
        Some(match field {
            "gpu_uuid" => uuid(0),
            "pid" => id.to_string(),
            "process_name" | "name" => "llama-server".to_owned(),
            "used_memory" | "used_gpu_memory" => form.mib(USED_MIB),
            _ => return None,
        })
    };
    if let Some(unknown) = fields.iter().find(|field| value(field, 0).is_none()) {
        return say(&format!("Field \"{unknown}\" is not a valid field to query.\n\n"), 2);
    }
    let mut text = if form.has_header { fields.join(", ") + "\n" } else { String::new() };
    for id in users {
        text.push_str(&fields.iter().filter_map(|field| value(field, *id)).collect::<Vec<_>>().join(", "));
        text.push('\n');
    }
    say(&text, 0)
}

fn tells_capability(gpu: &Gpu) -> bool {
    let branch = gpu.driver.split('.').next().and_then(|text| text.parse::<u32>().ok());
    branch.is_some_and(|branch| branch >= TELLS_CAPABILITY)
}

/// The servers of this home.
fn users(call: &Call<'_>) -> Vec<u32> {
    let home = call.text("HOME").map(|home| format!("HOME={home}")).unwrap_or_default();
    let is_user = |id: &u32| {
        let command = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let program = String::from_utf8_lossy(command.split(|&byte| byte == 0).next().unwrap_or_default()).into_owned();
        let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        Path::new(&program).file_name().is_some_and(|name| name == "llama-server")
            && environment.split(|&byte| byte == 0).any(|variable| variable == home.as_bytes())
    };
    processes().into_iter().filter(is_user).collect()
}

fn uuid(index: u32) -> String {
    format!("GPU-5a4d0b0c-0000-4000-8000-{index:012x}")
}

fn table(machine: &Machine, gpu: &Gpu) -> String {
    let line = "+-----------------------------------------------------------------------------------------+\n";
    let cuda = machine.toolkit.as_deref().unwrap_or("12.4");
    let mut text = format!(
        "{line}| NVIDIA-SMI {:<22} Driver Version: {:<14} CUDA Version: {cuda:<8} |\n{line}",
        gpu.driver, gpu.driver
    );
    for index in 0..machine.gpu_count {
        text.push_str(&format_line(index, gpu));
    }
    text + line
}

fn format_line(index: u32, gpu: &Gpu) -> String {
    format!("|  {index:>2}  {:<40} 0MiB / {:>6}MiB              Default |\n", gpu.name, gpu.memory_mib)
}
