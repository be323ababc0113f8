//! Programs and files that stand in for what the service's instances hold: the inference server, the GPU's tools, the
//! public storage.
//!
//! They are this program under other names ([`run`]), put into a home by [`install`]: an instance of the sandbox gets
//! them by itself, and a test that has a real sshd puts them where it wants. They behave as the real ones were measured
//! to. What one does follows from the model file it is given, from its build, and from the machine it finds itself on
//! ([`Machine`]), as with the real ones: nobody who uses them tells them that this is a test.
//!
//! # What is installed
//!
//! | below the home | |
//! |---|---|
//! | `public-storage/package/llama.cpp-new/bin/llama-server` | a prebuilt server as of autumn 2026, for CUDA architectures 75, 80, 86, 89 and 90 |
//! | `public-storage/package/llama.cpp-old/bin/llama-server` | one as of February 2025 (b4748), for the same |
//! | `public-storage/package/llama.cpp-src`, `….tar.gz` | the source of the new one: a cmake project with the target `llama-server` |
//! | `public-storage/git/llama.cpp.git` | the source as a bare repository with the branch `master` and the tags `b4748` (old) and `b6500` (new) |
//! | `public-storage/model/*.gguf` | the models below |
//! | `.machine/machine.json` | the hardware, and the version of the CUDA toolkit |
//! | `.machine/bin` | `ss` and, where there is a GPU, `nvidia-smi` and `nvcc`; to be first on PATH |
//!
//! The source is compiled by the system's cmake and C++ compiler, its CUDA part through `nvcc`, which knows the
//! architectures that its version knows: none below 75 from version 13 on. What comes out is the same server, for the
//! architectures that it was compiled for. A file `slow-build` in the source, with a number of seconds in it, makes
//! each of its steps take so long.
//!
//! # Models
//!
//! | file | what the server does |
//! |---|---|
//! | `tiny` | works; is loaded in a moment |
//! | `slow-1s`, `slow-3s`, `slow-5s`, `slow-60s`, `slow-600s` | takes so long to load |
//! | `slow-chat` | works; takes a second for each token |
//! | `no-template` | works; has no chat template |
//! | `bad-template` | new: refuses the template and ends. Old: works |
//! | `crash-on-load` | aborts while it loads (134) |
//! | `oom-on-load` | is killed while it loads (137), without a line in the log |
//! | `gpu-full` | does not fit into memory |
//! | `crash-on-chat`, `crash-on-second-chat` | is healthy, and aborts at the first or second chat (134) |
//! | `oom-on-chat` | is healthy, and is killed at the first chat (137) |
//! | `error-on-chat`, `error-on-second-chat` | is healthy, and answers chats with 500, from the first or the second on |
//! | `busy-on-second-chat` | is healthy, and answers chats from the second on with 503: its queue is full |
//! | `hang-on-chat` | is healthy, and never answers a chat |
//! | `empty-chat` | answers with an empty text |
//! | `truncated`, `header-cut`, `not-gguf`, `empty`, `directory` | refuses the file: cut in its data or header, a Git LFS pointer, empty, a folder |
//! | `newer`, `missing-key` | refuses the file: an architecture that it does not know, a key that is missing |
//!
//! A chat is answered with `You said:` and the last message of the user. A word is a token.
//!
//! On a GPU for which it was not built the server is healthy and aborts at the first chat: "no kernel image" (134). On
//! a machine whose GPU it cannot use it warns, and works on the CPU.
//!
//! # Ports
//!
//! Where [`PORTS`] names a folder, as in an instance of the sandbox, a port is a unix socket there (`8000.sock`), so
//! that the instances do not collide; `ss` tells who listens. Elsewhere the server listens on TCP.

#[cfg(unix)]
mod build;
#[cfg(unix)]
mod gguf;
#[cfg(unix)]
mod install;
mod machine;
#[cfg(unix)]
mod models;
#[cfg(unix)]
mod server;
#[cfg(unix)]
mod tools;

#[cfg(unix)]
use std::{ffi::OsString, path::PathBuf, process::ExitCode};

#[cfg(unix)]
pub use self::install::{bin, equip, install};
pub use self::machine::{Gpu, Machine};
#[cfg(unix)]
use super::machines;

/// The variable that names the folder of a port space.
pub const PORTS: &str = "SANDBOX_PORTS";

/// How a stand-in was started.
#[cfg(unix)]
struct Call<'a> {
    /// `argv[0]`.
    program: PathBuf,
    arguments: Vec<String>,
    variable: &'a dyn Fn(&str) -> Option<OsString>,
}

#[cfg(unix)]
impl Call<'_> {
    fn text(&self, name: &str) -> Option<String> {
        (self.variable)(name)?.into_string().ok()
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        (self.variable)(name).filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    /// The machine that it runs on.
    fn machine(&self) -> Machine {
        self.path("HOME").map(|home| Machine::read(&home)).unwrap_or_default()
    }
}

/// Runs the stand-in whose name this program was started under (the last part of `argv[0]`) to its end; none when the
/// name is another.
#[cfg(unix)]
pub fn run(
    arguments: impl IntoIterator<Item = OsString>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter();
    let program = PathBuf::from(arguments.next()?);
    let main = match program.file_name()?.to_str()? {
        machines::GUARD => |call: &Call<'_>| machines::guard(call.arguments.first().map(String::as_str)),
        "llama-server" => server::main,
        "nvcc" => tools::nvcc::main,
        "nvidia-smi" => tools::nvidia_smi::main,
        "ss" => tools::ss::main,
        _ => return None,
    };
    let arguments = arguments.map(|argument| argument.to_string_lossy().into_owned()).collect();
    Some(main(&Call { program, arguments, variable: &variable }))
}
