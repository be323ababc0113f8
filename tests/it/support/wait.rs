//! Waits for conditions.

use std::{
    thread,
    time::{Duration, Instant},
};

/// The longest wait of a test.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// Waits until a value is found.
pub(crate) fn wait_for<T>(what: &str, found: impl FnMut() -> Option<T>) -> T {
    found_within(DEADLINE, found).unwrap_or_else(|| panic!("never came: {what}"))
}

/// The same within a time of its own; none if it is over.
pub(crate) fn found_within<T>(longest: Duration, mut found: impl FnMut() -> Option<T>) -> Option<T> {
    let begun = Instant::now();
    loop {
        let answer = found();
        if answer.is_some() || begun.elapsed() > longest {
            return answer;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// The same for a condition without a value.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    wait_for(what, || is_so().then_some(()));
}
