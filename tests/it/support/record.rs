//! What the tests took and what they skipped, for the scripts that run them: a line each in `target/tmp/tests.tsv`.

use std::{
    cell::Cell,
    env,
    fs::{self, File},
    io::{self, Write},
    path::Path,
    process::Command,
    sync::{Mutex, OnceLock},
    thread,
    time::Instant,
};

const FILE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/tests.tsv");

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

/// A suite of any length: more than the pipe between two programs of the script holds.
#[test]
fn the_slowest_are_told_of_any_number_of_tests() {
    let root = tempfile::tempdir().unwrap();
    for folder in ["scripts", "target/tmp"] {
        fs::create_dir_all(root.path().join(folder)).unwrap();
    }
    let script = root.path().join("scripts/slowest");
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/slowest"), &script).unwrap();
    let took = (0..20_000).map(|test| format!("took\t{test}.5\t7\tmodule::test_{test}\n"));
    let skipped = ["skipped\tno tofu\t\tmodule::other\n".to_owned()];
    fs::write(root.path().join("target/tmp/tests.tsv"), took.chain(skipped).collect::<String>()).unwrap();
    let run = Command::new(script).output().unwrap();
    assert!(run.status.success(), "{}", run.status);
    let told = String::from_utf8(run.stdout).unwrap();
    let told: Vec<_> = told.trim().lines().collect();
    assert_eq!(told.len(), 12, "{told:?}");
    assert_eq!(told[1], " 19999.5 s     7 commands  module::test_19999");
    assert_eq!(told[10], " 19990.5 s     7 commands  module::test_19990");
    assert_eq!(told[11], "skipped: module::other: no tofu");
}

/// Appends a line that ends with the name of the test, which its thread has.
fn write(line: &str) {
    static OPEN: OnceLock<Mutex<File>> = OnceLock::new();
    let file = OPEN.get_or_init(|| Mutex::new(File::create(FILE).unwrap()));
    let test = thread::current().name().unwrap_or_default().to_owned();
    let _ = writeln!(file.lock().unwrap(), "{line}\t{test}");
}
