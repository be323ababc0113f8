//! Compiles `proto/` with protox, so that no `protoc` is needed. At a first release of this crate, `proto/` moves into
//! it.

use std::{error::Error, path::PathBuf};

const PROTO: &str = "../../proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={PROTO}");
    let files = ["tfplugin6.proto", "plugin.proto", "health.proto"];
    let mut compiler = protox::Compiler::new([PROTO])?;
    compiler.include_imports(true).open_files(files)?;
    // The compiled descriptors, for the test that compares them with the protocol's own tables.
    let descriptors = PathBuf::from(std::env::var("OUT_DIR")?).join("descriptors.bin");
    std::fs::write(descriptors, compiler.encode_file_descriptor_set())?;
    tonic_prost_build::configure()
        // Clients have no transport: the tests call the services in process and through the real socket.
        .build_client(true)
        .build_transport(false)
        // Calls that are not implemented are answered as unknown methods.
        .generate_default_stubs(true)
        .compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}
