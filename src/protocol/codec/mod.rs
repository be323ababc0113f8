//! Values and types in their wire forms (plugin protocol, value encoding). Everything is driven by the schema's type:
//! the bytes alone do not tell a decimal from a text, or a set from a list.

mod decode;
mod encode;
mod json;
mod reader;
mod ty;

pub use decode::decode;
pub use encode::encode;
pub use json::{Unsaid, decode_json, from_json};
pub use ty::{InvalidType, decode_type, encode_type};

use crate::framework::{Path, Step};

/// Deepest nesting that is read, in types and in values: far beyond any schema, and far from the end of a stack.
const DEEPEST: usize = 128;

/// Most values in one message. A byte can stand for a whole value, so that the message limit alone would let a hostile
/// sender ask for gigabytes.
const MOST_VALUES: usize = 8 << 20;

/// Bytes that are no value of the type they should have. It says where and what was meant, and never what was there:
/// any value may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{fault}", location(.steps))]
pub struct DecodeError {
    /// From the innermost step outwards.
    steps: Vec<Step>,
    fault: &'static str,
}

/// A value that is not of its type: a fault of the provider.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{expected} was meant", location(.steps))]
pub struct EncodeError {
    /// From the innermost step outwards.
    steps: Vec<Step>,
    expected: &'static str,
    partial: Vec<u8>,
}

impl DecodeError {
    fn new(fault: &'static str) -> Self {
        Self { steps: Vec::new(), fault }
    }

    /// The same, seen from one level further out.
    fn inside(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// The same, seen from outside a set: there are no steps into sets, so that the path ends here.
    fn inside_set(mut self) -> Self {
        self.steps.clear();
        self
    }

    /// Where the fault is.
    pub fn path(&self) -> Path {
        path(&self.steps)
    }
}

impl EncodeError {
    /// `steps` go from the outermost inwards.
    fn new(steps: impl DoubleEndedIterator<Item = Step>, expected: &'static str, partial: Vec<u8>) -> Self {
        Self { steps: steps.rev().collect(), expected, partial }
    }

    /// The encoded value with null for every part that has the wrong type, so that an object that exists is not lost
    /// with one of its attributes.
    pub fn into_partial(self) -> Vec<u8> {
        self.partial
    }
}

fn path(steps: &[Step]) -> Path {
    steps.iter().rev().cloned().collect()
}

fn location(steps: &[Step]) -> String {
    if steps.is_empty() { String::new() } else { format!("{}: ", path(steps)) }
}

#[cfg(test)]
mod tests;
