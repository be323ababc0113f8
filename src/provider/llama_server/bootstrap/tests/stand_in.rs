//! What an instance has: the sandbox's stand-ins (`stand_in`), which are the built program under the names
//! of llama-server, nvcc and nvidia-smi, and the source that it compiles.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

use serde_json::json;

use super::home::{Home, copy};

/// The package that every home has.
pub(super) const PACKAGE: &str = "public-storage/package/llama-cuda";

/// The file that nvcc compiles for the GPU.
pub(super) const CUDA: &str = "source/ggml/src/ggml-cuda/ggml-cuda.cu";

/// Calls the stand-in, after it has recorded the architecture of each compile. The compile waits while `hold` exists.
const NVCC: &str = "#!/bin/sh\ncase $* in\n*/ggml-cuda.cu*)\n\
                    echo \"$*\" | sed 's/.*arch=compute_\\([0-9]*\\).*/\\1/' >>~/compiles\n\
                    while [ -e ~/hold ]; do sleep 0.05; done ;;\nesac\nexec ~/stand-in/nvcc \"$@\"\n";

/// A GPU.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gpu {
    pub(super) name: &'static str,
    /// Its compute capability, times ten.
    pub(super) architecture: u32,
    /// The version of its driver; empty if the driver does not find the GPU.
    pub(super) driver: &'static str,
}

pub(super) const RTX: Gpu = Gpu { name: "NVIDIA GeForce RTX 4090", architecture: 89, driver: "560.35.03" };
pub(super) const V100: Gpu = Gpu { name: "Tesla V100-SXM2-16GB", architecture: 70, driver: "535.183.01" };

/// The program, which is beside the folder of the tests. If only the library was built, it is built now.
fn stand_in() -> &'static Path {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
        let own = fs::read_link("/proc/self/exe").unwrap();
        let folder = own.parent().and_then(Path::parent).unwrap();
        let program = folder.join("terraform-provider-damodel");
        if !program.exists() {
            let profile = if folder.ends_with("release") { "release" } else { "dev" };
            let built = Command::new(env!("CARGO"))
                .args(["build", "--quiet", "--package", env!("CARGO_PKG_NAME"), "--bins", "--profile", profile])
                .status();
            assert!(built.unwrap().success() && program.exists(), "{} is missing", program.display());
        }
        program
    });
    &PROGRAM
}

impl Home {
    /// Puts the stand-ins into the home: a prebuilt server for all current GPUs, and what the source becomes.
    pub(super) fn install(&self) {
        fs::create_dir_all(self.path(".machine")).unwrap();
        fs::create_dir_all(self.path("stand-in")).unwrap();
        for name in ["llama-server", "nvcc"] {
            symlink(stand_in(), self.path("stand-in").join(name)).unwrap();
        }
        self.package(PACKAGE, &[75, 80, 86, 89, 90]);
    }

    /// Puts a prebuilt server into a folder: with code for these CUDA architectures.
    pub(super) fn package(&self, folder: &str, architectures: &[u32]) {
        let folder = self.path(folder);
        fs::create_dir_all(&folder).unwrap();
        let _ = fs::remove_file(folder.join("llama-server"));
        symlink(stand_in(), folder.join("llama-server")).unwrap();
        let build = json!({ "commit": "0c1e57098", "architectures": architectures });
        fs::write(folder.join("build.json"), build.to_string()).unwrap();
    }

    /// Replaces the prebuilt server by a program that is linked with a library in this folder, and becomes the server.
    pub(super) fn package_with_library(&self, folder: &str) {
        let (server, folder) = (self.path(PACKAGE).join("bin/llama-server"), self.path(folder));
        fs::remove_file(self.path(PACKAGE).join("llama-server")).unwrap();
        for folder in [server.parent().unwrap(), &folder] {
            fs::create_dir_all(folder).unwrap();
        }
        let (library, program) = (self.path("library.c"), self.path("program.c"));
        fs::write(&library, "int common(void) { return 0; }\n").unwrap();
        let text = format!(
            "#include <unistd.h>\nint common(void);\nint main(int count, char **words) {{\n    return count && \
             (common() || execv({:?}, words));\n}}\n",
            self.path("stand-in/llama-server")
        );
        fs::write(&program, text).unwrap();
        let compile = |words: &[&str], from: &Path, to: &Path| {
            let status = Command::new("cc").arg("-o").arg(to).arg(from).arg("-L").arg(&folder).args(words).status();
            assert!(status.unwrap().success());
        };
        compile(&["-shared", "-fPIC"], &library, &folder.join("libcommon.so"));
        compile(&["-lcommon"], &program, &server);
    }

    /// Writes the model that [`Home::job`] serves.
    pub(super) fn model(&self, model: impl AsRef<[u8]>) {
        self.model_named("tiny", model);
    }

    /// Writes a model into the public storage: its path, as a job has it.
    pub(super) fn model_named(&self, name: &str, model: impl AsRef<[u8]>) -> String {
        let path = format!("public-storage/model/{name}.gguf");
        fs::write(self.path(&path), model).unwrap();
        format!("~/{path}")
    }

    /// Sets what nvidia-smi and nvcc find.
    pub(super) fn machine(&self, gpu: Gpu, toolkit: &str) {
        let Gpu { name, architecture, driver } = gpu;
        let gpu = json!({ "name": name, "architecture": architecture, "memory_mib": 24_576, "driver": driver });
        let machine = json!({ "gpu": gpu, "gpu_count": 1, "has_driver": !driver.is_empty(), "toolkit": toolkit });
        fs::write(self.path(".machine/machine.json"), machine.to_string()).unwrap();
    }

    /// Gives the instance a GPU, a CUDA toolkit and the source.
    pub(super) fn with_cuda(self, gpu: Gpu) -> Self {
        self.machine(gpu, "12.4");
        self.script("bin/nvcc", NVCC);
        symlink(stand_in(), self.path("bin/nvidia-smi")).unwrap();
        copy(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/damodel-sandbox/src/stand_in/source"),
            &self.path("source"),
        );
        let server = self.path("stand-in/llama-server");
        let about = format!("set(LLAMA_COMMIT f1e2d3c4b)\nset(LLAMA_STAND_IN [=[{}]=])\n", server.display());
        fs::write(self.path("source/cmake/about.cmake"), about).unwrap();
        self
    }

    /// Makes the compile for the GPU wait.
    pub(super) fn hold_compile(&self) {
        fs::write(self.path("hold"), "").unwrap();
    }

    pub(super) fn release_compile(&self) {
        fs::remove_file(self.path("hold")).unwrap();
    }

    /// The architectures for which nvcc was asked to compile, in order.
    pub(super) fn compiles(&self) -> Vec<String> {
        let recorded = fs::read_to_string(self.path("compiles")).unwrap_or_default();
        recorded.lines().map(str::to_owned).collect()
    }
}
