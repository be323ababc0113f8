//! Compiles `proto/` with protox, so that no machine needs a `protoc`.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let files = ["tfplugin6.proto", "plugin.proto", "health.proto"];
    let descriptors = protox::compile(files, ["proto"])?;
    tonic_prost_build::configure()
        // Clients without a transport: the tests call the services in process and through the real socket.
        .build_client(true)
        .build_transport(false)
        .file_descriptor_set_path(std::path::PathBuf::from(std::env::var("OUT_DIR")?).join("descriptors.bin"))
        .compile_fds(descriptors)?;
    Ok(())
}
