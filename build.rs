//! Compiles `proto/` with protox, so that no `protoc` is needed, and records the commit for `--version`.

use std::{error::Error, path::Path, process::Command};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    println!("cargo::rustc-env=DAMODEL_COMMIT={}", commit().as_deref().unwrap_or("unknown"));
    let files = ["tfplugin6.proto", "plugin.proto", "health.proto"];
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_imports(true).open_files(files)?;
    // The compiled descriptors, for the test that compares them with the protocol's own tables.
    std::fs::write(
        std::path::PathBuf::from(std::env::var("OUT_DIR")?).join("descriptors.bin"),
        compiler.encode_file_descriptor_set(),
    )?;
    tonic_prost_build::configure()
        // Clients have no transport: the tests call the services in process and through the real socket.
        .build_client(true)
        .build_transport(false)
        // Calls that are not implemented are answered as unknown methods.
        .generate_default_stubs(true)
        .compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}

/// The commit of the build; `None` without git, or if the sources are a part of another repository.
fn commit() -> Option<String> {
    if !git(&["rev-parse", "--show-prefix"])?.is_empty() {
        return None;
    }
    // The files that change with the commit. A missing one would cause a rebuild every time.
    let head = git(&["rev-parse", "--symbolic-full-name", "HEAD"])?;
    for name in ["HEAD", head.as_str(), "packed-refs"] {
        let path = git(&["rev-parse", "--git-path", name])?;
        if Path::new(&path).is_file() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "--short=12", "HEAD"]).filter(|commit| !commit.is_empty())
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
