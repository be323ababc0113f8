//! Why a model was not read.

use super::read::LARGEST_HEADER;

/// Why a model was not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error<E> {
    /// The file is not what it should be.
    #[error("{file}: {fault}")]
    Fault {
        /// The file's name.
        file: String,
        /// What is wrong with it.
        fault: Fault,
    },
    /// The bytes could not be had.
    #[error("{0}")]
    Source(E),
}

/// What is wrong with a file, as it reads after the file's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The byte order is that of other machines.
    #[error("the file is big-endian, which no server on a GPU instance reads")]
    BigEndian,
    /// A key has a value that it cannot have.
    #[error("the key {key:?} has an invalid value")]
    InvalidKey {
        /// The key.
        key: String,
    },
    /// A tensor's entry is not possible. Usually the file is damaged.
    #[error("the entry of tensor {name:?} is invalid")]
    InvalidTensor {
        /// The tensor.
        name: String,
    },
    /// The first bytes are others. Usually a download page or the pointer of a large-file storage.
    #[error("not a GGUF file: it begins with {magic:?}")]
    Magic {
        /// What it begins with.
        magic: String,
    },
    /// A key that every model has is missing.
    #[error("the key {key:?} is missing")]
    MissingKey {
        /// The key.
        key: &'static str,
    },
    /// Arrays of arrays exist in no model.
    #[error("the key {key:?} holds an array of arrays")]
    NestedArray {
        /// The key.
        key: String,
    },
    /// The name does not say which part of a split model it is, or this is not the first.
    #[error("the file is part {number} of {count} of a split model; give the first, named …-00001-of-{count:05}.gguf")]
    NotFirstPart {
        /// Which part it is, from 1.
        number: u64,
        /// How many there are.
        count: u64,
    },
    /// A part does not belong to the first.
    #[error("the file is not part {number} of {count} of this model")]
    OtherPart {
        /// Which part it should be, from 1.
        number: u64,
        /// How many there are.
        count: u64,
    },
    /// A key occurs twice.
    #[error("the key {key:?} occurs twice")]
    RepeatedKey {
        /// The key.
        key: String,
    },
    /// More keys, tensors, layers or parts than any model has.
    #[error("{count} {what}: more than {most}")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// How many there are.
        count: u64,
        /// How many there may be.
        most: u64,
    },
    /// A name is longer than names are.
    #[error("the name of a {what} has {length} bytes")]
    TooLong {
        /// What is named.
        what: &'static str,
        /// Its length.
        length: u64,
    },
    /// The header is larger than any model's.
    #[error("the header is larger than {} MiB", LARGEST_HEADER >> 20)]
    TooLarge,
    /// The file ends before its header does. Usually a download that was cut off.
    #[error("the file ends within its header")]
    Truncated,
    /// The file ends before its tensors do. Usually a download that was cut off.
    #[error("tensor {name:?} ends beyond the end of the file: the file is incomplete")]
    TruncatedData {
        /// The tensor.
        name: String,
    },
    /// A tensor of a type that is newer than this program.
    #[error("tensor {name:?} has the unknown type {number}")]
    UnknownTensorType {
        /// The tensor.
        name: String,
        /// Its type.
        number: u32,
    },
    /// A key whose value has a type that the format does not have.
    #[error("the key {key:?} has the unknown type {number}")]
    UnknownType {
        /// The key.
        key: String,
        /// Its type.
        number: u32,
    },
    /// A version that is too old or too new.
    #[error("version {number} of the format; 2 and 3 can be read")]
    Version {
        /// The version.
        number: u32,
    },
}
