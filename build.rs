//! Compiles `proto/` with protox, so that no machine needs a `protoc`.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let files = ["tfplugin6.proto", "plugin.proto", "health.proto"];
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_imports(true).open_files(files)?;
    // What was compiled, for the test that compares it with the protocol's own tables.
    std::fs::write(
        std::path::PathBuf::from(std::env::var("OUT_DIR")?).join("descriptors.bin"),
        compiler.encode_file_descriptor_set(),
    )?;
    tonic_prost_build::configure()
        // Clients without a transport: the tests call the services in process and through the real socket.
        .build_client(true)
        .build_transport(false)
        .compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}
