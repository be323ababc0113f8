//! How often to look.

use std::time::Duration;

/// The shortest pause, for a wait that has just begun.
const SHORTEST: Duration = Duration::from_millis(500);

/// The longest pause, before jitter.
const LONGEST: Duration = Duration::from_secs(4);

/// The longest pause after failures.
const LONGEST_AFTER_FAILURES: Duration = Duration::from_secs(30);

/// The pause before the next look: 8 % of the age of the youngest wait, give or take 15 %, so that what is ready
/// is seen within a tenth of its wait, and within 5 s. `fraction` (0 to 1) is the jitter.
pub(super) fn pause(youngest: Duration, fraction: f64) -> Duration {
    youngest.mul_f64(0.08).clamp(SHORTEST, LONGEST).mul_f64(0.85 + 0.3 * fraction)
}

/// The least pause after this many failures in a row: doubling.
pub(super) fn after_failures(failures: u32) -> Duration {
    match failures {
        0 => Duration::ZERO,
        more => SHORTEST.saturating_mul(1 << more.min(16)).min(LONGEST_AFTER_FAILURES),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(0)]
    #[case(6)]
    #[case(10)]
    #[case(60)]
    #[case(3600)]
    fn what_is_ready_is_seen_soon(#[case] seconds: u64) {
        let age = Duration::from_secs(seconds);
        for fraction in [0.0, 0.5, 1.0] {
            let pause = pause(age, fraction);
            assert!(pause < Duration::from_secs(5));
            assert!(pause <= age.mul_f64(0.1).max(SHORTEST.mul_f64(1.15)), "{pause:?}");
        }
    }

    #[test]
    fn failures_slow_it_down_to_a_limit() {
        assert_eq!(after_failures(0), Duration::ZERO);
        assert_eq!(after_failures(1), Duration::from_secs(1));
        assert_eq!(after_failures(3), Duration::from_secs(4));
        assert_eq!(after_failures(u32::MAX), LONGEST_AFTER_FAILURES);
    }
}
