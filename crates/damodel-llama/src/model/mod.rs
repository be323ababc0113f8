//! Model files: the content of a GGUF file's header, and the memory that a server needs for the model.
//!
//! [`read_model`] reads the header, not the tensors' data, through a [`ModelBytes`]; [`memory`] is a pure function from
//! a [`GgufModel`] and [`ServerOptions`] to bytes. Independent of the location of a file.
//! Depends on no other folder of the crate.
//!
//! The format is that of the ggml project (docs/gguf.md), versions 2 and 3. Headers are untrusted: every length and
//! count is checked before memory is allocated for it.

mod error;
mod header;
mod memory;
mod read;

pub use self::{
    error::{FileFault, MAX_HEADER, ModelError, described},
    memory::{CacheType, InvalidOption, Memory, ServerOptions, largest_context, memory, refused_options},
    read::{GgufModel, ModelBytes, read_model},
};
