//! The writer of GGUF files, from the format's own description (docs/gguf.md of ggml): magic, version, number of
//! tensors and of keys, the keys with typed values, the tensors' shapes and offsets, padding, the data. Little-endian
//! throughout.

use std::{
    fs::{self, OpenOptions},
    io,
    path::Path,
};

/// A tensor of 32-bit floats.
pub const F32: Kind = Kind { number: 0, block: 1, bytes: 4 };
/// A tensor of 16-bit floats.
pub const F16: Kind = Kind { number: 1, block: 1, bytes: 2 };
/// A tensor of blocks of 32 numbers with 8 bits.
pub const Q8_0: Kind = Kind { number: 8, block: 32, bytes: 34 };
/// A tensor of blocks of 256 numbers with 4 bits.
pub const Q4_K: Kind = Kind { number: 12, block: 256, bytes: 144 };

/// The data of tensors begins at a multiple of this.
pub(super) const ALIGNMENT: u64 = 32;

/// The storage of a tensor's numbers.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The type's number in the format.
    pub number: u32,
    /// How many numbers one block holds.
    pub block: u64,
    /// The size of a block.
    pub bytes: u64,
}

/// A file that is being built.
#[derive(Clone, Debug, Default)]
pub struct Gguf {
    keys: Vec<(String, Vec<u8>)>,
    tensors: Vec<(String, Vec<u64>, Kind)>,
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

fn array(kind: u32, count: usize, values: Vec<u8>) -> Vec<u8> {
    [&9_u32.to_le_bytes()[..], &kind.to_le_bytes(), &(count as u64).to_le_bytes(), &values].concat()
}

impl Gguf {
    /// An empty file of an architecture.
    #[must_use]
    pub fn new(architecture: &str) -> Self {
        Self::default().text("general.architecture", architecture)
    }

    /// A key with its type and value in the file's format.
    #[must_use]
    pub fn raw(mut self, key: &str, value: Vec<u8>) -> Self {
        self.keys.push((key.to_owned(), value));
        self
    }

    /// A key with a number.
    #[must_use]
    pub fn number(self, key: &str, number: u32) -> Self {
        self.raw(key, [4_u32.to_le_bytes(), number.to_le_bytes()].concat())
    }

    /// A key with a 32-bit float.
    #[must_use]
    pub fn float(self, key: &str, number: f32) -> Self {
        self.raw(key, [6_u32.to_le_bytes(), number.to_le_bytes()].concat())
    }

    /// A key with a text.
    #[must_use]
    pub fn text(self, key: &str, value: &str) -> Self {
        self.raw(key, [&8_u32.to_le_bytes()[..], &text(value)].concat())
    }

    /// A key with an array of numbers.
    #[must_use]
    pub fn numbers(self, key: &str, numbers: &[i32]) -> Self {
        let values = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.raw(key, array(5, numbers.len(), values))
    }

    /// A key with an array of floats.
    #[must_use]
    pub fn floats(self, key: &str, numbers: &[f32]) -> Self {
        let values = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.raw(key, array(6, numbers.len(), values))
    }

    /// A key with an array of booleans.
    #[must_use]
    pub fn flags(self, key: &str, flags: &[bool]) -> Self {
        self.raw(key, array(7, flags.len(), flags.iter().map(|flag| u8::from(*flag)).collect()))
    }

    /// A key with an array of texts.
    #[must_use]
    pub fn texts(self, key: &str, texts: &[String]) -> Self {
        self.raw(key, array(8, texts.len(), texts.iter().flat_map(|own| text(own)).collect()))
    }

    /// The file without a key.
    #[must_use]
    pub fn without(mut self, key: &str) -> Self {
        self.keys.retain(|(own, _)| own != key);
        self
    }

    /// A further tensor.
    #[must_use]
    pub fn tensor(mut self, name: &str, shape: &[u64], kind: Kind) -> Self {
        self.tensors.push((name.to_owned(), shape.to_vec(), kind));
        self
    }

    /// The bytes of all tensors.
    #[must_use]
    pub fn tensor_bytes(&self) -> u64 {
        self.tensors.iter().map(|(_, shape, kind)| bytes(shape, *kind)).sum()
    }

    /// The file up to its data.
    #[must_use]
    pub fn header(&self) -> Vec<u8> {
        let mut file = b"GGUF".to_vec();
        file.extend(3_u32.to_le_bytes());
        file.extend((self.tensors.len() as u64).to_le_bytes());
        file.extend((self.keys.len() as u64).to_le_bytes());
        for (key, value) in &self.keys {
            file.extend(text(key));
            file.extend(value);
        }
        let mut offset = 0_u64;
        for (name, shape, kind) in &self.tensors {
            file.extend(text(name));
            file.extend((shape.len() as u32).to_le_bytes());
            shape.iter().for_each(|length| file.extend(length.to_le_bytes()));
            file.extend(kind.number.to_le_bytes());
            file.extend(offset.to_le_bytes());
            offset += bytes(shape, *kind).next_multiple_of(ALIGNMENT);
        }
        while !(file.len() as u64).is_multiple_of(ALIGNMENT) {
            file.push(0);
        }
        file
    }

    /// The length of the file with its data.
    #[must_use]
    pub fn length(&self) -> u64 {
        let data = self.tensors.iter().map(|(_, shape, kind)| bytes(shape, *kind).next_multiple_of(ALIGNMENT));
        self.header().len() as u64 + data.sum::<u64>()
    }

    /// Writes it; the data is a hole.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        fs::write(path, self.header())?;
        OpenOptions::new().write(true).open(path)?.set_len(self.length())
    }
}

fn bytes(shape: &[u64], kind: Kind) -> u64 {
    shape.iter().product::<u64>() / kind.block * kind.bytes
}
