//! The header of a GGUF file.

mod error;
mod header;
mod keys;
mod read;

pub use self::{
    error::{Error, Fault},
    read::{LARGEST_HEADER, Model, Source, read},
};
