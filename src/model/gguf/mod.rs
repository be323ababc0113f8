//! The header of a GGUF file.

mod error;
mod header;
mod keys;
mod read;
mod stream;

pub use self::{
    error::{Error, Fault},
    read::{Model, read},
    stream::{LARGEST_HEADER, Source},
};
