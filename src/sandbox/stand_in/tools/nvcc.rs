//! `nvcc`: knows the architectures that its version knows, and compiles by the system's C++ compiler.

use std::process::{Command, ExitCode};

use super::{complain, say};
use crate::sandbox::stand_in::{Call, Machine};

/// Toolkits by the first part of their version: what `--list-gpu-arch` lists. [m] for 11 and 13, NVIDIA's release notes
/// for 12.
const KNOWN: [(u32, &[u32]); 3] = [
    (11, &[35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90]),
    (12, &[50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90]),
    (13, &[75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121]),
];

pub(in super::super) fn main(call: &Call<'_>) -> ExitCode {
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

/// What is to be compiled.
#[derive(Debug, Default, PartialEq, Eq)]
struct Job {
    architectures: Vec<u32>,
    compiler: Option<String>,
    /// Options that the C++ compiler takes as they are.
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
                // What tunes the code of a GPU tunes nothing here.
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
        // As nvcc tells the code that it compiles.
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

#[cfg(test)]
mod tests {
    use super::*;

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
