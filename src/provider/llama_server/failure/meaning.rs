//! Each kind of failure: its title, the argument to blame, and what to do.

use super::{
    super::{
        bootstrap::{Failure, Kind, Report},
        model::LlamaServer,
        options,
    },
    doing,
};

/// The title, the argument to blame, and what to do: never what is set already.
pub(super) fn meaning(
    server: &LlamaServer,
    failure: Option<&Failure>,
    report: &Report,
) -> (String, Option<&'static str>, &'static str) {
    let Some(failure) = failure else {
        return (
            format!("it is {}", doing(report)),
            None,
            "It was stopped by another run, or its records were removed. Apply again.",
        );
    };
    let source = server.source.known();
    let has_build = |word: &str| server.build.as_str() == Some(word);
    let (title, argument, advice) = match failure.kind {
        Kind::Architecture => (
            "no CUDA toolkit there compiles for this card",
            Some("source"),
            if source.is_some_and(|source| !source.cuda_architectures.is_null()) {
                "Correct source.cuda_architectures, or use an image with a toolkit that compiles for them."
            } else {
                "A V100 or P40 needs a toolkit up to 12.9. Use an image with one, or name the architectures in \
                 source.cuda_architectures."
            },
        ),
        Kind::BadOption => (
            "the server refuses its options",
            options::argument_in(&failure.text).or_else(|| (!server.extra_args.is_null()).then_some("extra_args")),
            "Correct the option, or use a server that knows it.",
        ),
        Kind::Busy => (
            "another run works on it",
            None,
            "Another apply holds the records of this server. Wait until it has ended, then apply again.",
        ),
        Kind::Changed => ("another run works on it", None, "Wait until the other run has ended, then apply again."),
        Kind::Compile => (
            "the compile failed",
            Some("source"),
            "Correct what the compiler says, then apply again: what is compiled stays.",
        ),
        Kind::Died => ("it died after it had been ready", None, ""),
        Kind::DiskFull => {
            ("the disk is full", Some("workspace"), "Free space in the workspace, or put it on another disk.")
        }
        Kind::Exited => {
            ("it ended before it was ready", None, "The log says why: correct the arguments, then apply again.")
        }
        Kind::Foreign => ("another resource owns it", None, "Destroy it where it is managed."),
        Kind::Interrupted => (
            "the work was interrupted",
            None,
            "The instance was rebooted, or the work was killed. Apply again to resume it.",
        ),
        Kind::MissingModel => ("model not found", Some("model"), "Set model to a file that is there."),
        Kind::MissingToolkit => (
            "no CUDA toolkit to compile with",
            Some("build"),
            "Use an image with a CUDA toolkit (nvcc), or a card that the prebuilt server can use.",
        ),
        Kind::MissingTool => (
            "a program that the compile needs is missing",
            Some("build"),
            "Install it in the instance, or use an image that has it.",
        ),
        Kind::NoGguf => {
            ("the model is not a GGUF file", Some("model"), "Fetch the file anew, or set model to another one.")
        }
        Kind::NoInference => ("it does not infer", None, "The log says why: correct the arguments, then apply again."),
        Kind::NoPackage => (
            "no prebuilt server found",
            Some("package"),
            match (server.package.known().is_none(), has_build("prebuilt")) {
                (false, _) => "Correct package: the path of the server in the instance.",
                (true, true) => "Set package to the server's path in the instance, or build = \"source\".",
                (true, false) => "Set package to the server's path in the instance.",
            },
        ),
        Kind::NoSource => (
            "its source cannot be had",
            Some("source"),
            match source {
                Some(source) if !source.path.is_null() => {
                    "Correct source.path, or set source.url and source.ref instead."
                }
                Some(source) if !source.url.is_null() || !source.reference.is_null() => {
                    "Correct source.url and source.ref, or set source.path to a source in the instance instead."
                }
                _ => "Set source.path to one in the instance, or source.url and source.ref.",
            },
        ),
        Kind::NotRunning => ("nothing there can be restarted", None, "Apply to start it."),
        Kind::PortInUse => {
            ("the port is in use", Some("port"), "Stop what listens there, or choose another port. It was left alone.")
        }
        Kind::Stuck => (
            "a process there does not end",
            None,
            "It outlives even SIGKILL, as one that waits for a device does. Reboot the instance, then apply again.",
        ),
        Kind::Unsupported => (
            "this build cannot do what is asked",
            Some(if server.api_key.is_null() { "api_key_wo" } else { "api_key" }),
            if has_build("prebuilt") {
                "Use a newer server: set package to one, or build = \"source\"."
            } else {
                "Use the source of a newer server: source.url and source.ref, or source.path."
            },
        ),
        Kind::Workspace => (
            "the workspace cannot be written",
            Some("workspace"),
            "Choose another workspace, or correct its permissions.",
        ),
    };
    (title.to_owned(), argument, advice)
}
