//! What the tests took and what they skipped, for the scripts that run them: a line each in
//! `target/tmp/tests-CRATE.tsv`.

use std::{
    cell::Cell,
    env,
    fs::File,
    io::{self, Write},
    sync::{Mutex, OnceLock},
    thread,
    time::Instant,
};

const FILE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/tests-", env!("CARGO_PKG_NAME"), ".tsv");

thread_local! {
    /// The commands of this thread's test.
    static COMMANDS: Cell<usize> = const { Cell::new(0) };
}

/// Counts a command of Terraform or OpenTofu.
pub(crate) fn command() {
    COMMANDS.set(COMMANDS.get() + 1);
}

/// Records what a test takes from here on.
pub(crate) struct Recorded(Instant);

impl Recorded {
    pub(crate) fn begin() -> Self {
        COMMANDS.set(0);
        Self(Instant::now())
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        write(&format!("took\t{:.1}\t{}", self.0.elapsed().as_secs_f64(), COMMANDS.get()));
    }
}

/// Says past the test harness that something is not tested, and fails if CI is set.
pub(crate) fn skipped(why: &str) {
    write(&format!("skipped\t{why}\t"));
    let _ = writeln!(io::stderr(), "\nNOT TESTED: {why}");
    assert!(env::var_os("CI").is_none(), "skipped, and CI is set: {why}");
}

/// Appends a line that ends with the name of the test, which its thread has.
fn write(line: &str) {
    static OPEN: OnceLock<Mutex<File>> = OnceLock::new();
    let file = OPEN.get_or_init(|| Mutex::new(File::create(FILE).unwrap()));
    let test = thread::current().name().unwrap_or_default().to_owned();
    let _ = writeln!(file.lock().unwrap(), "{line}\t{test}");
}
