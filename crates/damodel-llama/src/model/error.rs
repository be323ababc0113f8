//! The error of a model file that was not read.

/// The largest total size of all headers of a model, in bytes.
pub const MAX_HEADER: u64 = 256 << 20;

/// The error of a model file that was not read.
#[derive(Debug, thiserror::Error)]
pub enum ModelError<E> {
    /// The file is invalid.
    #[error("{file}: {fault}")]
    Fault {
        /// The file's name.
        file: String,
        /// The fault.
        fault: FileFault,
    },
    /// The bytes could not be read.
    #[error("{file}: {error}")]
    Source {
        /// The file's name: of a split model, that of the part.
        file: String,
        /// The source's error.
        error: E,
    },
}

/// The kind of a file with this beginning, as far as four bytes show it.
pub fn described(begin: &str) -> String {
    let kinds = [
        ("vers", "it is a Git LFS pointer instead of the file (see git lfs pull)"),
        ("<!do", "it is a web page, such as a login or error page"),
        ("<htm", "it is a web page, such as a login or error page"),
        ("<?xm", "it is an XML document, such as an error of a store"),
        ("<err", "it is an XML document, such as an error of a store"),
        ("{", "it is a JSON document, such as an error of a store"),
        ("pk\u{3}", "it is a ZIP archive"),
    ];
    if begin.is_empty() {
        return "it is empty".to_owned();
    }
    let lower = begin.to_ascii_lowercase();
    let kind = kinds.into_iter().find(|(magic, _)| lower.starts_with(magic));
    kind.map_or_else(|| format!("it begins with {begin:?}"), |(_, kind)| kind.to_owned())
}

/// A fault of a file, as text after the file's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileFault {
    /// The byte order is big-endian.
    #[error("the file is big-endian, which servers on GPU instances cannot read")]
    BigEndian,
    /// A key has an invalid value.
    #[error("the key {key:?} has an invalid value")]
    InvalidKey {
        /// The key.
        key: String,
    },
    /// A tensor's entry is invalid. Usual cause: a damaged file.
    #[error("the entry of tensor {name:?} is invalid")]
    InvalidTensor {
        /// The tensor.
        name: String,
    },
    /// The first bytes are wrong. Usual cause: a download page or the pointer of a large-file storage.
    #[error("not a GGUF file: {}", described(magic))]
    Magic {
        /// The first bytes.
        magic: String,
    },
    /// A list has another length than the model has layers.
    #[error("the key {key:?} has {length} values for {layers} layers")]
    KeyLength {
        /// The key.
        key: String,
        /// The number of values.
        length: u64,
        /// The number of layers.
        layers: u64,
    },
    /// A required key is missing.
    #[error("the key {key:?} is missing")]
    MissingKey {
        /// The key.
        key: &'static str,
    },
    /// A key has an array of arrays, which no model has.
    #[error("the key {key:?} is an array of arrays")]
    NestedArray {
        /// The key.
        key: String,
    },
    /// The file name has no part number of a split model, or the part is not the first.
    #[error("the file is part {number} of {count} of a split model; give the first, named …-00001-of-{count:05}.gguf")]
    NotFirstPart {
        /// The number of the part, from 1.
        number: u64,
        /// The number of them.
        count: u64,
    },
    /// A part is not of the same model as the first.
    #[error("the file is not part {number} of {count} of this model")]
    OtherPart {
        /// The expected number of the part, from 1.
        number: u64,
        /// The number of them.
        count: u64,
    },
    /// A key occurs twice.
    #[error("the key {key:?} occurs twice")]
    RepeatedKey {
        /// The key.
        key: String,
    },
    /// Too many bytes of keys, tensors, layers or parts.
    #[error("{count} {what}: more than {most}")]
    TooMany {
        /// The noun for them.
        what: &'static str,
        /// The number of them.
        count: u64,
        /// The largest allowed number.
        most: u64,
    },
    /// A name is too long.
    #[error("the name of a {what} has {length} bytes")]
    TooLong {
        /// The noun of the named object.
        what: &'static str,
        /// Its length.
        length: u64,
    },
    /// The header is larger than the limit.
    #[error("the header is larger than {} MiB", MAX_HEADER >> 20)]
    TooLarge,
    /// The file ends within its header. Usual cause: an interrupted download.
    #[error("the file ends within its header")]
    Truncated,
    /// The file ends within its tensors. Usual cause: an interrupted download.
    #[error("tensor {name:?} ends beyond the end of the file: the file is incomplete")]
    TruncatedData {
        /// The tensor.
        name: String,
    },
    /// A key has a value of an unknown type.
    #[error("the key {key:?} has the unknown type {number}")]
    UnknownType {
        /// The key.
        key: String,
        /// Its type.
        number: u32,
    },
    /// The version of the format is not supported.
    #[error("version {number} of the format; 2 and 3 can be read")]
    Version {
        /// The version.
        number: u32,
    },
}
