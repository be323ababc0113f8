//! Waiting for what must come.

use std::{
    thread,
    time::{Duration, Instant},
};

/// How long a test waits for what must come.
const DEADLINE: Duration = Duration::from_secs(60);

/// Waits until something is so.
pub(crate) fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(begun.elapsed() < DEADLINE, "never came: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The same for what has nothing to show.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    wait_for(what, || is_so().then_some(()));
}
