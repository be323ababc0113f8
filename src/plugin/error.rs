//! What goes wrong: why the plugin cannot be served, causes in words, and what a panic says.

use std::{
    backtrace::Backtrace,
    io::{self, Write},
    panic::{Location, PanicHookInfo, set_hook},
    path::PathBuf,
    thread,
};

/// Why the plugin could not be served. The text reads after "failed to".
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server's own certificate or the TLS settings could not be made.
    #[error("prepare mutual TLS")]
    Certificate(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// `PLUGIN_CLIENT_CERT` holds no certificate in PEM form. Usual cause: its line breaks were lost on the way.
    #[error("read the certificate in PLUGIN_CLIENT_CERT: {reason}")]
    ClientCertificate {
        /// What is wrong with it.
        reason: String,
    },
    /// The handshake line could not be written. Usual cause: the core is gone already.
    #[error("write to standard output")]
    Output(#[source] io::Error),
    /// The port range is not one. Usual cause: set by hand.
    #[error("read the port range {minimum:?} to {maximum:?} of PLUGIN_MIN_PORT and PLUGIN_MAX_PORT")]
    Ports {
        /// `PLUGIN_MIN_PORT` as it was given.
        minimum: String,
        /// `PLUGIN_MAX_PORT` as it was given.
        maximum: String,
    },
    /// `PLUGIN_UNIX_SOCKET_GROUP` names no group of this system.
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
    /// No unix socket could be made. Usual causes: the directory's name is too long for the system's limit of
    /// about 100 bytes, or it may not be written.
    #[error("listen on a unix socket under {}", directory.display())]
    Socket {
        /// The directory that was tried last.
        directory: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No port of the range could be listened on. Usual cause: all are taken.
    #[error("listen on 127.0.0.1, ports {minimum} to {maximum}")]
    Tcp {
        /// The first port that was tried.
        minimum: u16,
        /// The last port that was tried.
        maximum: u16,
        /// What the system said of the last one.
        source: io::Error,
    },
}

/// An error with its causes, separated by colons.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    std::iter::successors(error.source(), |cause| cause.source())
        .fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Replaces the text that Rust prints for a panic, which the core passes over, by one that it understands (plugin
/// protocol, stderr line format).
///
/// Call it on the main thread, whose panics end the process. Those are written as `panic: <message>`, the place and
/// the backtrace: on the first words the core starts recording, and in the end tells the user that the plugin
/// crashed, with the record.
///
/// A panic on any other thread ends a task or a single call, which becomes a diagnostic, and the process goes
/// on. It is logged as an error with the same facts as fields and those of the spans around it (the request's id,
/// say), and not in those words: the core would show its report of a crash, in which the diagnostic drowns, for
/// every command that fails afterwards.
pub fn install_panic_hook() {
    let main = thread::current().id();
    set_hook(Box::new(move |panic| {
        let backtrace = Backtrace::force_capture();
        if thread::current().id() == main {
            let _ = io::stderr().lock().write_all(crash_report(panic, &backtrace).as_bytes());
        } else {
            tracing::error!(
                panic.message = message(panic),
                panic.location = place(panic),
                panic.backtrace = %backtrace,
                "a task panicked"
            );
        }
    }));
}

fn crash_report(panic: &PanicHookInfo<'_>, backtrace: &Backtrace) -> String {
    let (message, place) = (message(panic), place(panic));
    format!("panic: {message}\n\nat {place}\n{backtrace}\n")
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
