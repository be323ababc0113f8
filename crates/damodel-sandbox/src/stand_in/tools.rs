//! The tools of a GPU and of the network: `nvcc`, `nvidia-smi`, `ss`.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, ExitCode},
};

use super::machine::{Call, Gpu, Machine, PORTS};

/// Prints the text on standard output, and returns this exit code.
fn say(text: &str, code: u8) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::from(code),
        Err(_) => ExitCode::FAILURE,
    }
}

/// Prints the text on standard error, and returns this exit code.
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

/// The flag of a listening socket in /proc/net/unix (`__SO_ACCEPTCON`).
const LISTENS: u32 = 0x0001_0000;

/// The paths of the system's `ss`.
const SYSTEM: [&str; 4] = ["/usr/bin/ss", "/bin/ss", "/usr/sbin/ss", "/sbin/ss"];

pub(super) fn ss(call: &Call<'_>) -> ExitCode {
    let Some(folder) = call.path(PORTS) else {
        let Some(system) = SYSTEM.into_iter().find(|path| Path::new(path).exists()) else {
            return complain("ss: command not found\n", 127);
        };
        let error = Command::new(system).args(&call.arguments).exec();
        return complain(&format!("ss: {error}\n"), 126);
    };
    let flags: String = call.arguments.iter().filter_map(|word| word.strip_prefix('-')).collect();
    let wanted = wanted(&call.arguments);
    let mut text = String::new();
    if !flags.contains('H') {
        text.push_str("State  Recv-Q Send-Q Local Address:Port  Peer Address:Port Process\n");
    }
    for listener in listeners(&folder) {
        if wanted.is_none_or(|port| port == listener.port) {
            let users = if flags.contains('p') { listener.users() } else { String::new() };
            text.push_str(&line(listener.port, &users));
        }
    }
    say(&text, 0)
}

fn line(port: u16, users: &str) -> String {
    format!("LISTEN 0      512          0.0.0.0:{port:<6} 0.0.0.0:*    {users}\n")
}

/// The port of a filter such as `sport = :8000`; `None` without a filter.
fn wanted(arguments: &[String]) -> Option<u16> {
    let words = arguments.iter().filter(|word| !word.starts_with('-')).flat_map(|word| word.split_whitespace());
    words.filter_map(|word| word.rsplit_once(':')?.1.parse().ok()).next()
}

#[derive(Debug)]
struct Listener {
    port: u16,
    inode: String,
}

impl Listener {
    /// `users:(("llama-server",pid=77,fd=9))`.
    fn users(&self) -> String {
        let target = format!("socket:[{}]", self.inode);
        let mut users = Vec::new();
        for id in processes() {
            for entry in fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten().flatten() {
                if fs::read_link(entry.path()).is_ok_and(|link| link.as_os_str() == target.as_str()) {
                    let name = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
                    let fd = entry.file_name().to_string_lossy().into_owned();
                    users.push(format!("(\"{}\",pid={id},fd={fd})", name.trim_end()));
                }
            }
        }
        if users.is_empty() { String::new() } else { format!("users:({})", users.join(",")) }
    }
}

/// The listening sockets of the folder, by port.
fn listeners(folder: &Path) -> Vec<Listener> {
    let table = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let mut listeners = BTreeMap::new();
    for row in table.lines().skip(1) {
        let fields: Vec<&str> = row.split_whitespace().collect();
        let [_, _, _, flags, _, _, inode, path] = fields.as_slice() else { continue };
        let path = Path::new(path);
        let listens = u32::from_str_radix(flags, 16).is_ok_and(|flags| flags & LISTENS != 0);
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if listens
            && path.parent() == Some(folder)
            && name.ends_with(".sock")
            && let Some(port) = name.split('.').next().and_then(|port| port.parse().ok())
        {
            listeners.insert((port, (*inode).to_owned()), Listener { port, inode: (*inode).to_owned() });
        }
    }
    listeners.into_values().collect()
}

/// The output of `--list-gpu-arch` by the toolkit's major version. 11 and 13 were measured, 12 is from NVIDIA's release
/// notes.
const KNOWN: [(u32, &[u32]); 3] = [
    (11, &[35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90]),
    (12, &[50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90]),
    (13, &[75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121]),
];

pub(super) fn nvcc(call: &Call<'_>) -> ExitCode {
    let Machine { toolkit: Some(version), .. } = call.machine() else {
        return complain("nvcc: command not found\n", 127);
    };
    let known = known(&version);
    let has = |names: &[&str]| call.arguments.iter().any(|argument| names.contains(&argument.as_str()));
    if has(&["--version", "-V"]) {
        return say(&about(&version), 0);
    }
    if has(&["--list-gpu-arch", "-arch-ls"]) {
        return say(&known.iter().map(|number| format!("compute_{number}\n")).collect::<String>(), 0);
    }
    if has(&["--list-gpu-code", "-code-ls"]) {
        return say(&known.iter().map(|number| format!("sm_{number}\n")).collect::<String>(), 0);
    }
    let job = Job::read(&call.arguments);
    if let Some(unknown) = job.architectures.iter().find(|number| !known.contains(number)) {
        return complain(&format!("nvcc fatal   : Unsupported gpu architecture 'compute_{unknown}'\n"), 1);
    }
    if job.inputs.is_empty() {
        return complain("nvcc fatal   : No input files specified; use option --help for more information\n", 1);
    }
    job.compile()
}

fn known(version: &str) -> &'static [u32] {
    let major = version.split('.').next().and_then(|text| text.parse().ok()).unwrap_or(12);
    let fitting = KNOWN.iter().rev().find(|(own, _)| *own <= major).or(KNOWN.first());
    fitting.map_or(&[], |(_, architectures)| architectures)
}

fn about(version: &str) -> String {
    format!(
        "nvcc: NVIDIA (R) Cuda compiler driver\nCopyright (c) 2005-2025 NVIDIA Corporation\n\
         Built on Thu_Mar_28_02:18:24_PDT_2025\nCuda compilation tools, release {version}, V{version}.99\n\
         Build cuda_{version}.r{version}/compiler.34097967_0\n"
    )
}

/// A compile.
#[derive(Debug, Default, PartialEq, Eq)]
struct Job {
    architectures: Vec<u32>,
    compiler: Option<String>,
    /// Options that are passed on to the C++ compiler.
    options: Vec<String>,
    inputs: Vec<String>,
}

impl Job {
    fn read(arguments: &[String]) -> Self {
        let mut job = Self::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let (name, value) = match argument.split_once('=') {
                Some((name, value)) if name.starts_with('-') => (name, Some(value.to_owned())),
                _ => (argument.as_str(), None),
            };
            let mut value = || value.clone().or_else(|| arguments.next().cloned()).unwrap_or_default();
            match name {
                "-gencode" | "--generate-code" | "-arch" | "--gpu-architecture" => job.target(&value()),
                "-ccbin" | "--compiler-bindir" => job.compiler = Some(value()),
                "-Xcompiler" | "--compiler-options" => job.options.extend(value().split(',').map(str::to_owned)),
                "-o" | "-I" | "-D" | "-L" => job.options.extend([name.to_owned(), value()]),
                "-x" => drop(value()),
                _ if argument.starts_with("-std=") || ["-c", "-g", "-w"].contains(&name) => {
                    job.options.push(argument.clone());
                }
                _ if ["-O", "-I", "-D", "-L", "-l"].iter().any(|start| name.starts_with(start)) => {
                    job.options.push(argument.clone());
                }
                // Options that tune the code of a GPU have no effect here.
                _ if name.starts_with('-') => {}
                _ => job.inputs.push(argument.clone()),
            }
        }
        job
    }

    /// `arch=compute_70,code=[compute_70,sm_70]`, `sm_70`, `compute_70`.
    fn target(&mut self, text: &str) {
        for word in text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
            let number = word.strip_prefix("compute_").or_else(|| word.strip_prefix("sm_"));
            if let Some(number) = number.and_then(|number| number.parse().ok())
                && !self.architectures.contains(&number)
            {
                self.architectures.push(number);
            }
        }
    }

    fn compile(&self) -> ExitCode {
        let compiler = self.compiler.as_deref().unwrap_or("c++");
        // The macro that nvcc defines for the code that it compiles.
        let list: Vec<String> = self.architectures.iter().map(|number| format!("{number}0")).collect();
        let mut command = Command::new(compiler);
        command.arg(format!("-D__CUDA_ARCH_LIST__={}", list.join(","))).args(&self.options).args(["-x", "c++"]);
        match command.args(&self.inputs).status() {
            Ok(status) => ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)),
            Err(_) => {
                complain(&format!("nvcc fatal   : Failed to preprocess host compiler properties: {compiler}\n"), 1)
            }
        }
    }
}

/// The message if the driver is not reached; on standard output, like the real one.
const NO_DRIVER: &str = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that \
                         the latest NVIDIA driver is installed and running.\n\n";

/// The first branch of drivers whose `nvidia-smi` prints the compute capability.
const TELLS_CAPABILITY: u32 = 510;

/// The memory that a server uses, in MiB.
const USED_MIB: i64 = 512;

pub(super) fn nvidia_smi(call: &Call<'_>) -> ExitCode {
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

/// The format of a query's output.
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
    processes()
        .into_iter()
        .filter(|id| {
            let command = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            let program =
                String::from_utf8_lossy(command.split(|&byte| byte == 0).next().unwrap_or_default()).into_owned();
            let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
            Path::new(&program).file_name().is_some_and(|name| name == "llama-server")
                && environment.split(|&byte| byte == 0).any(|variable| variable == home.as_bytes())
        })
        .collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_that_people_write_are_understood() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(wanted(&words(&["-ltnpH", "sport = :8000"])), Some(8000));
        assert_eq!(wanted(&words(&["-ltn", "sport", "=", ":8001"])), Some(8001));
        assert_eq!(wanted(&words(&["-ltn", "( sport = :8002 )"])), Some(8002));
        assert_eq!(wanted(&words(&["-ltn"])), None);
    }

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_compile_is_read_as_cmake_writes_it() {
        let line = "-O2 -gencode arch=compute_70,code=[compute_70,sm_70] --generate-code=arch=compute_61,code=sm_61 \
                    -ccbin g++ -Xcompiler -fPIC -c in.cu -o out.o -x cu --use_fast_math";
        let job = Job::read(&words(line));
        assert_eq!(job.architectures, [70, 61]);
        assert_eq!(job.compiler.as_deref(), Some("g++"));
        assert_eq!(job.options, ["-O2", "-fPIC", "-c", "-o", "out.o"]);
        assert_eq!(job.inputs, ["in.cu"]);
    }

    #[test]
    fn cuda_13_does_not_know_the_old_ones() {
        for (version, knows) in [("11.8", true), ("12.2", true), ("12.9", true), ("13.0", false), ("13.5", false)] {
            assert_eq!(known(version).contains(&70), knows, "{version}");
        }
    }
}
