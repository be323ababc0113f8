//! Stand-ins for the programs and files of the service's instances: the inference server, the GPU's tools, the public
//! storage.
//!
//! They are this program under other names ([`run`]), which [`install`] puts into a home: an instance of the sandbox
//! has them from its start, and a test with a real sshd installs them itself. They behave as measured on the real ones.
//! The behaviour follows from the model file, the build and the machine ([`Machine`]), as with the real ones; no option
//! marks a test.
//!
//! # What is installed
//!
//! | below the home | |
//! |---|---|
//! | `public-storage/package/llama.cpp/bin/llama-server` | a prebuilt server as of autumn 2026, for CUDA architectures 75, 80, 86, 89 and 90 |
//! | `public-storage/package/llama.cpp-src`, `….tar.gz` | its source: a cmake project with the target `llama-server` |
//! | `public-storage/git/llama.cpp.git` | the source as a bare repository with the branch `master` and the tag `b6500` |
//! | `public-storage/model/*.gguf` | the models below |
//! | `.machine/machine.json` | the hardware, and the version of the CUDA toolkit |
//! | `.machine/bin` | `ss`, `nvidia-smi` if there is a GPU, and `nvcc` if there is a toolkit; to be first on PATH |
//!
//! The source is compiled by the system's cmake and C++ compiler, its CUDA part through `nvcc`, which supports the
//! architectures of its version: none below 75 from version 13 on. The result is the same server, for the compiled
//! architectures. While a file `.machine/hold-build` exists in the home, each step of the compile waits whose command
//! contains the text of that file.
//!
//! # Models
//!
//! | file | what the server does |
//! |---|---|
//! | `tiny` | works; loads at once |
//! | `slow-1s`, `slow-3s`, `slow-5s`, `slow-60s`, `slow-600s` | takes this long to load |
//! | `slow-chat` | works; takes a second for each token |
//! | `no-template` | works; has no chat template |
//! | `bad-template` | refuses the template and exits |
//! | `crash-on-load` | aborts while it loads (134) |
//! | `oom-on-load` | is killed while it loads (137), without a line in the log |
//! | `gpu-full` | does not fit into memory |
//! | `crash-on-chat`, `crash-on-second-chat` | is healthy, and aborts at the first or second chat (134) |
//! | `oom-on-chat` | is healthy, and is killed at the first chat (137) |
//! | `error-on-chat`, `error-on-second-chat` | is healthy, and answers chats with 500, from the first or the second on |
//! | `busy-on-second-chat` | is healthy, and answers chats from the second on with 503: its queue is full |
//! | `hang-on-chat` | is healthy, and never answers a chat |
//! | `empty-chat` | answers with an empty text |
//! | `embedding` | is for `--embeddings` or `--reranking`: it answers those requests, and no chat |
//! | `large` | has 70 billion parameters, too large for a single GPU; its data is a hole |
//! | `truncated`, `header-cut`, `not-gguf`, `empty`, `directory` | refuses the file: cut in its data or header, a Git LFS pointer, empty, a folder |
//! | `newer`, `missing-key` | refuses the file: an unknown architecture, a missing key |
//!
//! A server that loads a model `NAME.gguf` waits as long as a file `NAME.gguf.hold` is beside it.
//!
//! A chat is answered with `You said:` and the last message of the user. A word is a token.
//!
//! On a GPU for which it was not built, the server is healthy and aborts at the first chat: "no kernel image" (134). If
//! it cannot use the machine's GPU, it warns and works on the CPU.
//!
//! # Ports
//!
//! If [`PORTS`] names a folder, as in an instance of the sandbox, a port is a unix socket there (`8000.sock`), so
//! that the instances do not collide; `ss` lists the listeners. Otherwise the server listens on TCP.

#[cfg(unix)]
mod build;
#[cfg(unix)]
pub mod gguf;
mod machine;
#[cfg(unix)]
mod server;
#[cfg(unix)]
mod tools;

#[cfg(unix)]
use std::{ffi::OsString, path::PathBuf, process::ExitCode};

#[cfg(unix)]
pub use self::build::{bin, equip, install};
#[cfg(unix)]
use self::machine::Call;
pub use self::machine::{Gpu, Machine, PORTS};
#[cfg(unix)]
use super::machines;

/// Runs the stand-in whose name this program was started under (the last part of `argv[0]`) to its end; `None` for any
/// other name.
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
        "nvcc" => tools::nvcc,
        "nvidia-smi" => tools::nvidia_smi,
        "ss" => tools::ss,
        _ => return None,
    };
    let arguments = arguments.map(|argument| argument.to_string_lossy().into_owned()).collect();
    Some(main(&Call { program, arguments, variable: &variable }))
}
