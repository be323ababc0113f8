//! Random values, the same for the same seed.

use rand::{RngExt, SeedableRng, rngs::StdRng, seq::SliceRandom};

const ALPHABET: &[u8] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// A source of random values, one for each (seed, stream).
#[derive(Debug)]
pub(super) struct RandomStream(StdRng);

impl RandomStream {
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        // The odd factor (Fibonacci hashing) keeps neighbouring streams of neighbouring seeds apart.
        Self(StdRng::seed_from_u64(seed ^ stream.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15)))
    }

    /// Letters and digits that are not easily confused.
    pub(super) fn text(&mut self, length: usize) -> String {
        (0..length)
            .map(|_| char::from(ALPHABET.get(self.0.random_range(0..ALPHABET.len())).copied().unwrap_or(b'x')))
            .collect()
    }

    /// True with this probability, which is cut to 0 … 1.
    pub(super) fn happens(&mut self, probability: f64) -> bool {
        self.0.random_bool(probability.clamp(0.0, 1.0))
    }

    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        items.shuffle(&mut self.0);
    }
}
