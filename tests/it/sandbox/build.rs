//! The source of the inference server, compiled by the system's cmake and compiler.

use std::{fs, path::Path, process::Output};

use damodel::sandbox::stand_in::Machine;

use crate::{
    sandbox::home::{Home, Server},
    sandbox::yard::has,
    support::wait::wait_for,
};

/// A home in which the source can be compiled; `None`, with a message, if cmake is missing.
fn home(gpu: &str, toolkit: &str) -> Option<Home> {
    (has("cmake") && has("c++")).then(|| Home::new(&Machine::with(gpu, toolkit)))
}

fn shell(home: &Home, script: &str) -> Output {
    home.command("/bin/sh").args(["-c", script]).output().unwrap()
}

/// Compiles a source tree below the home for these architectures, like llama.cpp.
fn compile(home: &Home, source: &str, options: &str) -> Output {
    let script = format!(
        "cmake -S {source} -B build -DCMAKE_BUILD_TYPE=Release {options} -DLLAMA_CURL=OFF -DLLAMA_BUILD_TESTS=OFF \
         2>&1 &&
         cmake --build build --config Release --target llama-server -j 2 2>&1"
    );
    shell(home, &script)
}

fn cuda(architectures: &str) -> String {
    format!("-DGGML_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES='{architectures}'")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Starts the compiled server, at port 8000.
fn start(home: &Home) -> Server {
    let mut command = home.command(home.path().join("build/bin/llama-server"));
    command.args(["--port", "8000", "-ngl", "999", "-m", "public-storage/model/tiny.gguf"]);
    let mut server = home.spawn(command);
    server.await_ready();
    server
}

const SOURCE: &str = "public-storage/package/llama.cpp-src";

#[test]
fn compiled_for_its_gpu_it_works_there_and_for_a_newer_one_it_does_not() {
    let Some(home) = home("NVIDIA-V100-32G", "12.2") else { return };
    let compiled = compile(&home, SOURCE, &cuda("70"));
    assert!(compiled.status.success(), "{}", text(&compiled));
    let version = shell(&home, "build/bin/llama-server --version 2>&1");
    assert!(text(&version).contains("commit f1e2d3c4b"), "{}", text(&version));
    let server = start(&home);
    assert_eq!(server.chat("x").unwrap().status, 200, "{}", server.log());
    let listening = shell(&home, "ss -ltnpH 'sport = :8000'");
    assert!(text(&listening).contains("((\"llama-server\",pid="), "{}", text(&listening));
    drop(server);

    let compiled = compile(&home, SOURCE, &cuda("80;86"));
    assert!(compiled.status.success(), "{}", text(&compiled));
    let mut server = start(&home);
    assert!(server.chat("x").is_none());
    assert_eq!(server.code(), 134);
    assert!(server.log().contains("no kernel image"), "{}", server.log());
}

#[test]
fn cuda_13_does_not_compile_for_a_v100() {
    let Some(home) = home("NVIDIA-V100-32G", "13.0") else { return };
    let failed = compile(&home, SOURCE, &cuda("70"));
    let said = text(&failed);
    assert!(!failed.status.success(), "{said}");
    assert!(said.contains("nvcc fatal   : Unsupported gpu architecture 'compute_70'"), "{said}");
    assert!(said.contains("The CUDA compiler") && said.contains("is broken"), "{said}");
}

#[test]
fn without_a_toolkit_it_does_not_compile_for_a_gpu_and_does_for_the_cpu() {
    let Some(home) = home("NVIDIA-V100-32G", "") else { return };
    let failed = compile(&home, SOURCE, &cuda("70"));
    assert!(!failed.status.success());
    assert!(text(&failed).contains("CUDA Toolkit not found"), "{}", text(&failed));
    fs::remove_dir_all(home.path().join("build")).unwrap();
    let compiled = compile(&home, SOURCE, "");
    assert!(compiled.status.success(), "{}", text(&compiled));
    let server = start(&home);
    assert_eq!(server.chat("x").unwrap().status, 200);
    assert!(
        server.log().contains("no usable GPU found") && !server.log().contains("ggml_cuda_init"),
        "{}",
        server.log()
    );
}

#[test]
fn the_archive_and_the_repository_hold_the_source() {
    let Some(home) = home("NVIDIA-A100-80G", "12.4") else { return };
    let archive =
        shell(&home, &format!("mkdir from && tar -xzf {SOURCE}.tar.gz -C from && diff -r {SOURCE} from/llama.cpp-src"));
    assert!(archive.status.success(), "{}", text(&archive));
    if !has("git") {
        return;
    }
    let script = format!(
        "git clone --quiet --branch b4748 file://$HOME/public-storage/git/llama.cpp.git old &&
         git -C old checkout --quiet master && diff -r --exclude=.git {SOURCE} old && git -C old checkout --quiet b4748"
    );
    let cloned = shell(&home, &script);
    assert!(cloned.status.success(), "{}", String::from_utf8_lossy(&cloned.stderr));
    let compiled = compile(&home, "old", &cuda("80"));
    assert!(compiled.status.success(), "{}", text(&compiled));
    let version = shell(&home, "build/bin/llama-server --version 2>&1");
    assert!(text(&version).contains("version: 4748 (a9b8c7d6e)"), "{}", text(&version));
}

#[test]
fn a_held_compile_can_be_killed_and_resumed() {
    let Some(home) = home("NVIDIA-A100-80G", "12.4") else { return };
    let hold = home.path().join(".machine/hold-build");
    fs::write(&hold, "").unwrap();
    let configured = shell(&home, &format!("cmake -S {SOURCE} -B build {}", cuda("80")));
    // The configure step compiles nothing of the tree.
    assert!(configured.status.success(), "{}", text(&configured));
    let mut build = home.command("/bin/sh");
    build.args(["-c", "setsid cmake --build build --target llama-server & wait $!"]);
    let mut building = home.spawn(build);
    let processes = || text(&shell(&home, "grep -lsz -a \"^HOME=$HOME\" /proc/[0-9]*/environ | cut -d/ -f3"));
    let live = wait_for("a step that waits", || {
        let ids: Vec<String> = processes().lines().map(str::to_owned).collect();
        let is_step = |id: &String| {
            fs::read(format!("/proc/{id}/cmdline")).is_ok_and(|line| line.windows(8).any(|word| word == b"step.sh\0"))
        };
        ids.iter().any(is_step).then_some(ids)
    });
    assert!(!Path::new(&home.path().join("build/bin/llama-server")).exists());
    shell(&home, &format!("kill -9 {} 2>/dev/null", live.join(" ")));
    building.ended();
    fs::remove_file(hold).unwrap();
    let compiled = shell(&home, "cmake --build build --target llama-server -j 2 2>&1");
    assert!(compiled.status.success(), "{}", text(&compiled));
}
