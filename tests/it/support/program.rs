//! Programs of the tests.

use std::{
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

/// Writes a program that can be run at once. A process of its own writes it: what another test starts meanwhile would
/// inherit a file of this process, and a file that is open for writing cannot be run.
pub(crate) fn put(path: &Path, text: &str) {
    let mut install = Command::new("install");
    let mut writing = install.args(["-m", "755", "/dev/stdin"]).arg(path).stdin(Stdio::piped()).spawn().unwrap();
    writing.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(writing.wait().unwrap().success(), "{}", path.display());
}
