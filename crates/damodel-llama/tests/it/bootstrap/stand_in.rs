//! What an instance has: the sandbox's stand-ins under the names of llama-server, nvcc and nvidia-smi, models, and the
//! source that is compiled.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::LazyLock,
};

use damodel_sandbox::stand_in::{
    Gpu, Machine,
    gguf::{F32, Gguf},
};

use super::home::{Home, copy, is_healthy, until_so};

/// The program that is all of them, by the name of a link: an example of this crate.
static BINARY: LazyLock<PathBuf> = LazyLock::new(|| {
    let tests = env::current_exe().unwrap();
    let program = tests.parent().unwrap().with_file_name("examples").join("stand_in");
    assert!(program.exists(), "cargo test without --test builds it, and cargo build --examples");
    program
});

/// The package that every home has.
pub(crate) const PACKAGE: &str = "public-storage/package/llama-cuda";

/// The file that nvcc compiles for the GPU.
pub(crate) const CUDA: &str = "source/ggml/src/ggml-cuda/ggml-cuda.cu";

/// Calls the stand-in, after it has recorded the architecture of each compile. The compile waits while `hold` exists.
const NVCC: &str = "#!/bin/sh\ncase $* in\n*/ggml-cuda.cu*)\n\
                    echo \"$*\" | sed 's/.*arch=compute_\\([0-9]*\\).*/\\1/' >>~/compiles\n\
                    while [ -e ~/hold ]; do sleep 0.05; done ;;\nesac\nexec ~/stand-in/nvcc \"$@\"\n";

impl Home {
    /// Puts the stand-ins into the home: a prebuilt server for all current GPUs, and what the source becomes.
    pub(crate) fn install(&self) {
        for folder in [".machine", "stand-in"] {
            fs::create_dir_all(self.path(folder)).unwrap();
        }
        for name in ["llama-server", "nvcc"] {
            symlink(&*BINARY, self.path("stand-in").join(name)).unwrap();
        }
        self.package(PACKAGE, "[75, 80, 86, 89, 90]");
    }

    /// Puts a prebuilt server into a folder: with code for these CUDA architectures.
    pub(crate) fn package(&self, folder: &str, architectures: &str) {
        let folder = self.path(folder);
        fs::create_dir_all(&folder).unwrap();
        let _ = fs::remove_file(folder.join("llama-server"));
        symlink(&*BINARY, folder.join("llama-server")).unwrap();
        let build = format!("{{ \"commit\": \"0c1e57098\", \"architectures\": {architectures} }}");
        fs::write(folder.join("build.json"), build).unwrap();
    }

    /// Adds a prebuilt server that needs a library in this folder, which it looks for as a loader does.
    pub(crate) fn package_with_library(&self, folder: &str) {
        self.script(&format!("{folder}/libcommon.so"), "");
        let text = "#!/bin/sh\nIFS=:\nfor folder in $LD_LIBRARY_PATH; do\n\
                    [ ! -e \"$folder/libcommon.so\" ] || exec ~/stand-in/llama-server \"$@\"\ndone\n\
                    echo 'error while loading shared libraries' >&2; exit 127\n";
        self.script(&format!("{PACKAGE}/bin/llama-server"), text);
    }

    /// Changes the output of the prebuilt server's help with this command.
    pub(crate) fn change_help(&self, command: &str) {
        self.package("stand-in/other", "[89]");
        let text = format!(
            "#!/bin/sh\nserver=~/stand-in/other/llama-server\n[ \"$1\" = --help ] || exec \"$server\" \"$@\"\n\
             \"$server\" --help | {command}\n"
        );
        self.script(&format!("{PACKAGE}/llama-server"), &text);
    }

    /// Writes the model that [`Home::job`] serves.
    pub(crate) fn model(&self, model: impl AsRef<[u8]>) {
        self.model_named("tiny", model);
    }

    /// Writes a model into the public storage: its path, as a job has it.
    pub(crate) fn model_named(&self, name: &str, model: impl AsRef<[u8]>) -> String {
        let path = format!("public-storage/model/{name}.gguf");
        fs::write(self.path(&path), model).unwrap();
        format!("~/{path}")
    }

    /// Sets whether nvidia-smi and the server find the GPU, an RTX 4090 (CUDA architecture 89).
    pub(crate) fn gpu(&self, has_driver: bool) {
        let gpu = Gpu::of_spec("RTX-4090", 24_576);
        let machine = Machine { gpu, gpu_count: 1, has_driver, toolkit: Some("12.4".to_owned()) };
        fs::write(self.path(".machine/machine.json"), serde_json::to_string(&machine).unwrap()).unwrap();
    }

    /// Gives the instance a GPU, a CUDA toolkit and the source.
    pub(crate) fn with_cuda(self) -> Self {
        self.gpu(true);
        self.script("bin/nvcc", NVCC);
        symlink(&*BINARY, self.path("bin/nvidia-smi")).unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../damodel-sandbox/src/stand_in/source");
        copy(&source, &self.path("source"));
        let server = self.path("stand-in/llama-server");
        let about = format!("set(LLAMA_COMMIT f1e2d3c4b)\nset(LLAMA_STAND_IN [=[{}]=])\n", server.display());
        fs::write(self.path("source/cmake/about.cmake"), about).unwrap();
        self
    }

    /// A server that was started by hand. It has another home, as a process of another login.
    pub(crate) fn by_hand(&self) -> Child {
        let hand = Command::new(self.path(PACKAGE).join("llama-server"))
            .args(["-m", &self.text("public-storage/model/tiny.gguf"), "--port", &self.port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        until_so("it is not healthy", || is_healthy(self.port));
        hand
    }

    /// Puts what is in a folder into an archive of the home.
    pub(crate) fn pack(&self, archive: &str, folder: &str, what: &str) {
        let mut tar = Command::new("tar");
        tar.arg("-czf").arg(self.path(archive)).arg("-C").arg(self.path(folder)).arg(what);
        assert!(tar.status().unwrap().success());
    }

    /// Makes the compile for the GPU wait.
    pub(crate) fn hold_compile(&self) {
        fs::write(self.path("hold"), "").unwrap();
    }

    pub(crate) fn release_compile(&self) {
        fs::remove_file(self.path("hold")).unwrap();
    }

    /// The number of compiles for the GPU.
    pub(crate) fn compiles(&self) -> usize {
        fs::read_to_string(self.path("compiles")).unwrap_or_default().lines().count()
    }
}

/// The content of a model that the sandbox's server loads.
fn content(change: impl FnOnce(Gguf) -> Gguf) -> Vec<u8> {
    let model = Gguf::new("llama").number("llama.context_length", 131_072).tensor("token_embd.weight", &[32], F32);
    let model = change(model);
    let mut content = model.header();
    content.resize(usize::try_from(model.length()).unwrap(), 0);
    content
}

/// A model that works at once.
pub(crate) fn working() -> Vec<u8> {
    content(|model| model)
}

/// One whose load takes this long.
pub(crate) fn loading(seconds: u32) -> Vec<u8> {
    content(|model| model.number("stand_in.load_ms", seconds * 1000))
}

/// One whose chats take this long.
pub(crate) fn chatting(seconds: u32) -> Vec<u8> {
    content(|model| model.number("stand_in.token_ms", seconds * 1000))
}

/// One whose load ends as if the kernel killed the server for memory.
pub(crate) fn killed() -> Vec<u8> {
    content(|model| model.text("stand_in.on_load", "killed"))
}

/// One that was copied in part: its load fails.
pub(crate) fn truncated() -> Vec<u8> {
    let mut content = working();
    content.truncate(content.len() - 64);
    content
}
