//! Byte order marks of texts from outside.

/// A text without the byte order mark at its beginning.
#[must_use]
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// A value without what files and secret stores add around it: white space, and a byte order mark.
#[must_use]
pub fn trimmed(text: &str) -> &str {
    without_mark(text.trim_start()).trim()
}
