//! The table of failures: the program's word of each kind, its title, the argument to correct, and what to do.

use std::str::FromStr;

/// The reason of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFailure {
    /// Its kind.
    pub kind: FailureKind,
    /// A text for people, which may have several lines. Secrets are redacted.
    pub text: String,
}

/// An answer that is not a report.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The report has a beginning and no end, or nothing at all came. Usual cause: a lost connection, or a login
    /// shell that runs something else.
    #[error("the program in the instance did not finish its report; its last line: {last:?}")]
    Incomplete {
        /// The last line of all that was printed.
        last: String,
    },
    /// A value is unknown.
    #[error("the program in the instance reports an unknown {key}")]
    Value {
        /// The value's name.
        key: String,
    },
}

/// Makes the kinds from the table.
macro_rules! kinds {
    ($($(#[$meta:meta])* $kind:ident = $word:literal, $title:literal, $argument:expr, $advice:literal;)*) => {
        /// The kinds of failures.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum FailureKind {
            $($(#[$meta])* $kind,)*
        }

        impl FailureKind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// The program's word.
            pub fn as_str(self) -> &'static str {
                self.row().0
            }

            /// What happened, in a few words.
            pub fn title(self) -> &'static str {
                self.row().1
            }

            /// The argument to correct.
            pub fn argument(self) -> Option<&'static str> {
                self.row().2
            }

            /// What to do.
            pub fn advice(self) -> &'static str {
                self.row().3
            }

            fn row(self) -> (&'static str, &'static str, Option<&'static str>, &'static str) {
                match self {
                    $(Self::$kind => ($word, $title, $argument, $advice),)*
                }
            }
        }

        impl FromStr for FailureKind {
            type Err = Malformed;

            fn from_str(text: &str) -> Result<Self, Malformed> {
                match text {
                    $($word => Ok(Self::$kind),)*
                    _ => Err(Malformed::Value { key: "failure".to_owned() }),
                }
            }
        }
    };
}

impl FailureKind {
    /// Whether the server itself failed: it ended, or does not serve.
    pub fn is_of_a_server(self) -> bool {
        use FailureKind::{BrokenModel, Exited, NoInference, OutOfMemory, Slow};
        matches!(self, BrokenModel | Exited | NoInference | OutOfMemory | Slow)
    }

    /// Whether the model could not be had: no server was started, and none was ended.
    pub fn is_of_a_download(self) -> bool {
        use FailureKind::{Download, ModelRoom, NoAccess, NoSuchModel, WrongSum};
        matches!(self, Download | ModelRoom | NoAccess | NoSuchModel | WrongSum)
    }
}

kinds! {
    /// The CUDA architecture is unknown, or no toolkit compiles for it.
    Architecture = "architecture", "no installed CUDA toolkit supports this GPU", Some("source"),
        "A V100 or P40 needs a toolkit up to 12.9. Use an image with one, or name the architectures in \
         source.cuda_architectures.";
    /// The server does not understand its options.
    BadOption = "bad_option", "the server refuses its options", None,
        "Correct the option, or use a server that supports it.";
    /// The model's file is incomplete or damaged.
    BrokenModel = "broken_model", "the model's file is incomplete or damaged", Some("model"),
        "Download the file again, or set model to another one.";
    /// Another run holds the lock of the state directory for a minute.
    Busy = "busy", "another run is changing the server", None,
        "Another apply uses the records of this server. Wait until it has ended, then apply again.";
    /// Another run has begun, or the previous server was restored, since the last report.
    Changed = "changed", "another run is changing the server", None,
        "Wait until the other run has ended, then apply again.";
    /// The compile failed, or its result does not run.
    Compile = "compile", "the build from source failed", Some("source"),
        "Correct what the compiler reports, then apply again: what is compiled is kept.";
    /// The server ended after it had been ready.
    Died = "died", "the server exited after it was ready", None, "";
    /// No space is left in the workspace.
    DiskFull = "disk_full", "the disk is full", Some("workspace"),
        "Free space in the workspace, or use one on another disk.";
    /// A file could not be downloaded, or is not what it should be.
    Download = "download", "the download failed", Some("model_source"),
        "Correct the address or the path, or try again later.";
    /// The server ended before it was ready.
    Exited = "exited", "the server exited before it was ready", None,
        "The log has the reason: correct the arguments, then apply again.";
    /// Another resource owns the server.
    Foreign = "foreign", "another resource owns the server", None, "Destroy it in that resource's configuration.";
    /// The work ended without a record: a reboot, or it was killed. [`Verb::Ensure`](super::Verb::Ensure) resumes it.
    Interrupted = "interrupted", "the work was interrupted", None,
        "The instance was rebooted, or the work was killed. Apply again to resume it.";
    /// The server answers clients that send no key.
    KeyIgnored = "key_ignored", "the server answers without its API key", Some("api_key"),
        "Set package to another server, or build = \"source\".";
    /// A file that an option names is missing or cannot be read, or one beside the model is missing.
    MissingFile = "missing_file", "a file of the server is missing", Some("extra_args"),
        "Bring the file with additional_files, or correct its path. Relative paths begin in the workspace, and ~ is \
         not expanded.";
    /// The model is missing, is not a file or cannot be read.
    MissingModel = "missing_model", "model not found", Some("model"), "Set model to an existing file.";
    /// No space is left for a download.
    ModelRoom = "model_room", "no room for the download", Some("model"),
        "Free space on that disk, or set a path on another one.";
    /// No CUDA toolkit to compile with.
    MissingToolkit = "missing_toolkit", "no CUDA toolkit to compile with", Some("build"),
        "Use an image with a CUDA toolkit (nvcc), or a GPU that the prebuilt server supports.";
    /// A program that the work needs is not installed: cmake, git, a compiler.
    MissingTool = "missing_tool", "a required program is missing", Some("build"),
        "Install the program in the instance, or use an image that has it.";
    /// The server of the address permits no download.
    NoAccess = "no_access", "the download needs permission", Some("model_source"),
        "Accept the terms on the model's page, and set model_source_token_wo, or DAMODEL_MODEL_TOKEN for \
         huggingface.co. Check url too: some servers refuse addresses that do not exist.";
    /// A question to the instance has no answer, for example because a file system is stale.
    NoAnswer = "no_answer", "the instance does not answer", None,
        "Check its file systems, for example with ls and df.";
    /// The model's file is not GGUF.
    NoGguf = "no_gguf", "the model is not a GGUF file", Some("model"),
        "Download the file again, or set model to another one.";
    /// The server sees no GPU, although the instance has one.
    NoGpu = "no_gpu", "the server does not see the GPU", Some("gpu_layers"),
        "Use a server that is built for this GPU, or set gpu_layers = 0 to use the CPU.";
    /// The server does not answer the probe.
    NoInference = "no_inference", "no correct answer to the probe", None,
        "The log has the reason: correct the arguments, then apply again.";
    /// The file system of the workspace has no locks.
    NoLocks = "no_locks", "file locks do not work in the workspace", Some("workspace"),
        "Set workspace to a directory on a file system with locks. Nothing was changed.";
    /// There is no prebuilt server.
    NoPackage = "no_package", "no prebuilt server found", Some("package"),
        "Set package to the server's path in the instance.";
    /// There is no source, or it cannot be fetched or unpacked.
    NoSource = "no_source", "the source is not available", Some("source"),
        "Set source.path to a source in the instance, or source.url and source.ref.";
    /// The server of the address has no such file.
    NoSuchModel = "no_such_model", "no file at the address", Some("model_source"), "Correct url.";
    /// There is no server to restart.
    NotRunning = "not_running", "no server to restart", None, "Apply to start it.";
    /// The memory of the GPU or of the instance is not enough.
    OutOfMemory = "out_of_memory", "out of memory", Some("context_size"),
        "Set a smaller context_size or gpu_layers, or use a smaller model, or an instance with more GPU memory. The \
         function model_memory computes what a model needs.";
    /// Another process listens on the port.
    PortInUse = "port_in_use", "the port is in use", Some("port"),
        "Stop the program that uses the port, or choose another port. The provider did not stop it.";
    /// The model was still loading when the time was over.
    Slow = "slow", "the model loads too slowly", Some("ready_timeout"),
        "Raise ready_timeout, or put the model on a faster disk.";
    /// The work or the server outlives even SIGKILL, as a process does that waits for a device.
    Stuck = "stuck", "a process in the instance does not end", None,
        "SIGKILL did not end the process, which may be waiting for a device. Reboot the instance, then apply.";
    /// The build lacks an option that the job needs.
    Unsupported = "unsupported", "this build lacks a required option", Some("build"),
        "Use the source of a newer server: source.url and source.ref, or source.path.";
    /// The workspace cannot be written, for another reason than space.
    Workspace = "workspace", "the workspace cannot be written", Some("workspace"),
        "Choose another workspace, or correct its permissions.";
    /// A file has another sum.
    WrongSum = "wrong_sum", "wrong SHA-256", Some("model_source"),
        "Correct sha256, or set a new path for another file. Without sha256, the sum is the one that the server of the \
         address sends: try again later.";
    /// The server does not support the request of the probe.
    WrongEndpoint = "wrong_endpoint", "the server does not support the probe's request", Some("probe"),
        "Set probe.endpoint to a request that the server supports: chat, embeddings, rerank or health.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_one_word() {
        for kind in FailureKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(*kind));
        }
    }
}
