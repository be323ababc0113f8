//! What a command said and how it ended.

use std::{collections::VecDeque, fmt};

/// What a command wrote and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// What it wrote to its standard output. Where it was longer than [`Limits::output`](crate::ssh::Limits), the
    /// middle is a line that says how many bytes were left out.
    pub stdout: Vec<u8>,
    /// What it wrote to its standard error, shortened in the same way.
    pub stderr: Vec<u8>,
    /// How it ended.
    pub exit: Exit,
    /// How many bytes were left out of both. Zero: nothing was.
    pub left_out: u64,
}

impl Output {
    /// Whether the command ended with exit code 0.
    pub fn is_success(&self) -> bool {
        self.exit == Exit::Code(0)
    }
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this exit code.
    Code(u32),
    /// Without a word of the server about it, although the connection is up: it was ended from outside.
    Missing,
    /// By this signal, as in `TERM`.
    Signal(String),
}

impl fmt::Display for Exit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(formatter, "exit code {code}"),
            Self::Missing => formatter.write_str("no exit code"),
            Self::Signal(name) => write!(formatter, "signal {name}"),
        }
    }
}

/// The beginning and the end of a text of any length.
#[derive(Debug)]
pub(super) struct Ends {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// How much of each is kept.
    half: usize,
    left_out: u64,
}

impl Ends {
    /// Keeps this many bytes in all.
    pub(super) fn new(kept: usize) -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), half: kept / 2, left_out: 0 }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.extend(rest);
        let excess = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..excess);
        self.left_out += excess as u64;
    }

    /// The text, and how many bytes it lacks.
    pub(super) fn finish(self) -> (Vec<u8>, u64) {
        let mut text = self.head;
        if self.left_out > 0 {
            text.extend_from_slice(format!("\n[{} bytes left out]\n", self.left_out).as_bytes());
        }
        text.extend(self.tail);
        (text, self.left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(kept: usize, pieces: &[&str]) -> (String, u64) {
        let mut ends = Ends::new(kept);
        pieces.iter().for_each(|piece| ends.push(piece.as_bytes()));
        let (text, left_out) = ends.finish();
        (String::from_utf8(text).unwrap(), left_out)
    }

    #[test]
    fn what_fits_is_kept_whole() {
        assert_eq!(ends(8, &[]), (String::new(), 0));
        assert_eq!(ends(8, &["abc", "", "defgh"]), ("abcdefgh".to_owned(), 0));
    }

    #[test]
    fn the_middle_of_a_long_text_is_left_out() {
        assert_eq!(ends(4, &["abcdefgh"]), ("ab\n[4 bytes left out]\ngh".to_owned(), 4));
        let letters: Vec<&str> = "abcdefgh".split("").collect();
        assert_eq!(ends(4, &letters), ("ab\n[4 bytes left out]\ngh".to_owned(), 4));
    }
}
