//! Waits for conditions.

use std::{
    thread,
    time::{Duration, Instant},
};

/// The longest wait of a test.
const DEADLINE: Duration = Duration::from_secs(60);

/// Waits until a value is found.
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

/// The same for a condition without a value.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    wait_for(what, || is_so().then_some(()));
}
