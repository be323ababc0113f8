//! Values that may carry secrets among other things.

use std::fmt;

/// A value that the service does not call secret and that may hold one, as an address with a token in it.
/// Its `Debug` shows nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Guarded<T>(T);

impl<T> Guarded<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// The value: cut out what is secret before it goes anywhere.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Guarded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[GUARDED]")
    }
}
