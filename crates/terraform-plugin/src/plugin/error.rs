//! Errors of serving, their causes as text, and the texts of panics.

use std::{
    backtrace::Backtrace,
    io::{self, Write},
    panic::{Location, PanicHookInfo, set_hook},
    path::PathBuf,
    thread,
};

/// The reason why the plugin could not be served. The text reads after "failed to".
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server's own certificate or the TLS settings could not be created.
    #[error("prepare mutual TLS")]
    Certificate(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// `PLUGIN_CLIENT_CERT` is not a certificate in PEM form. Usual cause: its line breaks were lost.
    #[error("read the certificate in PLUGIN_CLIENT_CERT: {reason}")]
    ClientCertificate {
        /// The fault.
        reason: String,
    },
    /// The handshake line could not be written. Usual cause: the core has exited.
    #[error("write to standard output")]
    Output(#[source] io::Error),
    /// The port range is invalid. Usual cause: it was set by hand.
    #[error("read the port range {minimum:?} to {maximum:?} of PLUGIN_MIN_PORT and PLUGIN_MAX_PORT")]
    Ports {
        /// `PLUGIN_MIN_PORT` as it was given.
        minimum: String,
        /// `PLUGIN_MAX_PORT` as it was given.
        maximum: String,
    },
    /// `PLUGIN_UNIX_SOCKET_GROUP` does not name a group of this system.
    #[error("find the group {name:?} of PLUGIN_UNIX_SOCKET_GROUP")]
    Group {
        /// The name, or the number, as it was given.
        name: String,
    },
    /// The runtime's threads could not be started.
    #[error("start the runtime")]
    Runtime(#[source] io::Error),
    /// No signal handler could be installed.
    #[error("handle signals")]
    Signals(#[source] io::Error),
    /// No unix socket could be created. Usual causes: the directory's name exceeds the system's limit of about 100
    /// bytes, or the directory is not writable.
    #[error("listen on a unix socket under {}", directory.display())]
    Socket {
        /// The directory that was tried last.
        directory: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// No port of the range could be listened on. Usual cause: all are in use.
    #[error("listen on 127.0.0.1, ports {minimum} to {maximum}")]
    Tcp {
        /// The first port that was tried.
        minimum: u16,
        /// The last port that was tried.
        maximum: u16,
        /// The system's error for the last port.
        source: io::Error,
    },
}

/// An error with its causes, separated by colons.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    std::iter::successors(error.source(), |cause| cause.source())
        .fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Replaces Rust's text of a panic, which the core ignores, by one that it recognises (plugin protocol, stderr line
/// format).
///
/// Call it on the main thread, whose panics end the process. They are written as `panic: <message>`, the source
/// location and the backtrace: at `panic:` the core starts to record, and finally reports a crash of the plugin with
/// the record.
///
/// A panic on any other thread ends a task or a single call, which becomes a diagnostic, and the process continues. It
/// is logged as an error with the same facts as fields and the fields of its spans (such as the request's id). The word
/// `panic:` is avoided there: otherwise the core would add its crash report, which hides the diagnostic, to every
/// command that fails afterwards.
pub fn install_panic_hook() {
    let main = thread::current().id();
    set_hook(Box::new(move |panic| {
        let backtrace = Backtrace::force_capture();
        let (message, place) = (message(panic), place(panic));
        if thread::current().id() == main {
            let report = format!("panic: {message}\n\nat {place}\n{backtrace}\n");
            let _ = io::stderr().lock().write_all(report.as_bytes());
        } else {
            tracing::error!(
                panic.message = message,
                panic.location = place,
                panic.backtrace = %backtrace,
                "a task panicked"
            );
        }
    }));
}

fn message<'a>(panic: &'a PanicHookInfo<'_>) -> &'a str {
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("of an unknown kind")
}

fn place(panic: &PanicHookInfo<'_>) -> String {
    panic.location().map_or_else(|| "an unknown place".to_owned(), Location::to_string)
}
