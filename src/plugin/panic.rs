//! What a panic says (plugin protocol, stderr line format).

use std::{
    backtrace::Backtrace,
    io::Write,
    panic::{Location, PanicHookInfo, set_hook},
    thread,
};

/// Replaces the text that Rust prints for a panic, which the core passes over, by one that it understands.
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
            let _ = std::io::stderr().lock().write_all(crash_report(panic, &backtrace).as_bytes());
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
