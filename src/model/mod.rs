//! Model files: what the header of a GGUF file says, and how much memory a server needs for it.
//!
//! [`read`] reads the header through a [`Source`] and nothing of the tensors' data; [`memory`] is a pure function from
//! a [`Model`] and [`Options`] to bytes. Nothing here knows where a file lies, and nothing else of the crate is named.
//!
//! The format is that of the ggml project (docs/gguf.md), versions 2 and 3. A header is untrusted: every length and
//! count in it is checked before anything is kept for it.

mod error;
mod header;
mod memory;
mod read;

pub use self::{
    error::{Error, Fault},
    memory::{CacheType, InvalidOption, Memory, Options, largest_context, memory},
    read::{LARGEST_HEADER, Model, Source, read},
};
