//! Values and types in their wire forms (plugin protocol, value encoding). Everything is driven by the schema's type:
//! the bytes alone do not tell a decimal from a text, or a set from a list.

mod decode;
mod encode;
mod error;
mod json;
mod reader;
mod ty;

pub use decode::decode;
pub use encode::encode;
pub use error::{DecodeError, EncodeError};
pub use json::{Unsaid, decode_json, from_json};
pub use ty::{InvalidType, decode_type, encode_type};

/// Deepest nesting that is read, in types and in values: far beyond any schema, and far from the end of a stack.
const DEEPEST: usize = 128;

/// Most values in one message. A byte can stand for a whole value, so that the message limit alone would let a hostile
/// sender ask for gigabytes.
const MOST_VALUES: usize = 8 << 20;

#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod refusal_tests;
