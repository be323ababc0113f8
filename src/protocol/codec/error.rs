//! Why bytes are not a value.

use crate::framework::{Path, Step};

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
    pub(super) fn new(fault: &'static str) -> Self {
        Self { steps: Vec::new(), fault }
    }

    /// The same, seen from one level further out.
    pub(super) fn inside(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// The same, seen from outside a set: there are no steps into sets, so that the path ends here.
    pub(super) fn inside_set(mut self) -> Self {
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
    pub(super) fn new(steps: impl DoubleEndedIterator<Item = Step>, expected: &'static str, partial: Vec<u8>) -> Self {
        Self { steps: steps.rev().collect(), expected, partial }
    }

    /// The encoded value with null for every part that has the wrong type, so that a thing that exists is not lost with
    /// one of its attributes.
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
