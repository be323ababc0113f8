//! A test of random runs, each made from a seed.

use std::{
    ops::Range,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

/// Runs a test for each seed, this many at once.
pub(crate) fn each_seed(seeds: &Range<u64>, at_once: usize, test: impl Fn(u64) + Sync) {
    let next = AtomicU64::new(seeds.start);
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    test(seed);
                }
            });
        }
    });
}
