//! GGUF files: written small, and read as far as a server looks before it loads the data.
//!
//! The format: magic, version, number of tensors and of keys, the keys with typed values, the tensors' shapes and
//! offsets, padding to 32 bytes, the data. Little-endian throughout.

use std::{collections::BTreeMap, path::Path};

/// The type of a 32-bit unsigned value.
const U32: u32 = 4;
/// The type of a text.
const STRING: u32 = 8;
/// The type of an array.
const ARRAY: u32 = 9;

/// Where the data of tensors begins is a multiple of this.
const ALIGNMENT: usize = 32;

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Number(u32),
    Text(String),
}

/// The keys of a file, of the types that matter here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Gguf {
    pub(super) keys: BTreeMap<String, Value>,
}

impl Gguf {
    pub(super) fn number(&self, key: &str) -> Option<u32> {
        match self.keys.get(key) {
            Some(Value::Number(number)) => Some(*number),
            Some(Value::Text(_)) | None => None,
        }
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        match self.keys.get(key) {
            Some(Value::Text(text)) => Some(text),
            Some(Value::Number(_)) | None => None,
        }
    }

    /// A file with these keys and one tensor.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(3_u32.to_le_bytes());
        bytes.extend(1_u64.to_le_bytes());
        bytes.extend((self.keys.len() as u64).to_le_bytes());
        for (key, value) in &self.keys {
            put_text(&mut bytes, key);
            match value {
                Value::Number(number) => {
                    bytes.extend(U32.to_le_bytes());
                    bytes.extend(number.to_le_bytes());
                }
                Value::Text(text) => {
                    bytes.extend(STRING.to_le_bytes());
                    put_text(&mut bytes, text);
                }
            }
        }
        put_text(&mut bytes, "token_embd.weight");
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend((TENSOR as u64).to_le_bytes());
        // 32-bit floats, from the beginning of the data.
        bytes.extend(0_u32.to_le_bytes());
        bytes.extend(0_u64.to_le_bytes());
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT) + TENSOR * 4, 0);
        bytes
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// The line in which a server says what is wrong with it.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        const FUNCTION: &str = "gguf_init_from_file";
        let name = path.display();
        let bytes = std::fs::read(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::IsADirectory => "gguf_init_from_reader: failed to read magic".to_owned(),
            std::io::ErrorKind::PermissionDenied => {
                format!("{FUNCTION}: failed to open GGUF file '{name}' (Permission denied)")
            }
            _ => format!("{FUNCTION}: failed to open GGUF file '{name}' (No such file or directory)"),
        })?;
        let mut reader = Reader { bytes: &bytes, at: 0 };
        let magic = reader.take(4).ok_or("gguf_init_from_reader: failed to read magic")?;
        if magic != b"GGUF" {
            let magic = String::from_utf8_lossy(magic);
            return Err(format!("gguf_init_from_reader: invalid magic characters: '{magic}', expected 'GGUF'"));
        }
        reader.keys().ok_or("gguf_init_from_reader: failed to read key-value pairs")?.fits(&bytes)
    }
}

/// How many numbers the one tensor has.
const TENSOR: usize = 16;

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
}

/// What was read, and where each tensor ends, counted from where the data begins.
struct Header {
    gguf: Gguf,
    ends: Vec<(String, u64)>,
    data: usize,
}

impl Header {
    fn fits(self, bytes: &[u8]) -> Result<Gguf, String> {
        let length = bytes.len().saturating_sub(self.data) as u64;
        match self.ends.into_iter().find(|(_, end)| *end > length) {
            Some((name, _)) => Err(format!(
                "llama_model_load: error loading model: tensor '{name}' data is not within the file bounds, model is \
                 corrupted or incomplete"
            )),
            None => Ok(self.gguf),
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(count)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.u64()?).ok()?;
        Some(String::from_utf8_lossy(self.take(length)?).into_owned())
    }

    fn keys(&mut self) -> Option<Header> {
        let _version = self.u32()?;
        let (tensors, keys) = (self.u64()?, self.u64()?);
        let mut gguf = Gguf::default();
        for _ in 0..keys {
            let (key, kind) = (self.text()?, self.u32()?);
            match kind {
                U32 => {
                    gguf.keys.insert(key, Value::Number(self.u32()?));
                }
                STRING => {
                    gguf.keys.insert(key, Value::Text(self.text()?));
                }
                _ => self.skip(kind)?,
            }
        }
        let mut ends = Vec::new();
        for _ in 0..tensors {
            let name = self.text()?;
            let mut count: u64 = 1;
            for _ in 0..self.u32()? {
                count = count.checked_mul(self.u64()?)?;
            }
            let (kind, offset) = (self.u32()?, self.u64()?);
            // Quantized types take at least a bit for each number; only the plain ones are held to their exact size.
            let size = match kind {
                0 => count.checked_mul(4)?,
                1 => count.checked_mul(2)?,
                _ => count / 8,
            };
            ends.push((name, offset.checked_add(size)?));
        }
        Some(Header { gguf, ends, data: self.at.next_multiple_of(ALIGNMENT) })
    }

    /// Steps over a value of this type.
    fn skip(&mut self, kind: u32) -> Option<()> {
        match kind {
            0 | 1 | 7 => self.take(1).map(drop),
            2 | 3 => self.take(2).map(drop),
            4..=6 => self.take(4).map(drop),
            STRING => self.text().map(drop),
            ARRAY => {
                let (kind, count) = (self.u32()?, self.u64()?);
                (0..count).try_for_each(|_| self.skip(kind))
            }
            10..=12 => self.take(8).map(drop),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> Gguf {
        let keys = [
            ("general.architecture".to_owned(), Value::Text("llama".to_owned())),
            ("llama.context_length".to_owned(), Value::Number(4096)),
        ];
        Gguf { keys: keys.into() }
    }

    fn read(bytes: &[u8]) -> Result<Gguf, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        Gguf::read(file.path())
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(read(&model().to_bytes()), Ok(model()));
    }

    #[test]
    fn a_file_that_is_cut_says_where() {
        let bytes = model().to_bytes();
        for length in 0..4 {
            assert!(read(&bytes[..length]).unwrap_err().ends_with("failed to read magic"), "{length}");
        }
        assert!(read(&bytes[..40]).unwrap_err().ends_with("failed to read key-value pairs"));
        let data = read(&bytes[..bytes.len() - 1]).unwrap_err();
        assert!(data.contains("tensor 'token_embd.weight' data is not within the file bounds"), "{data}");
    }

    #[test]
    fn what_is_no_gguf_is_quoted() {
        let error = read(b"version https://git-lfs").unwrap_err();
        assert!(error.ends_with("invalid magic characters: 'vers', expected 'GGUF'"), "{error}");
    }

    #[test]
    fn values_of_other_types_are_stepped_over() {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(3_u32.to_le_bytes());
        bytes.extend(0_u64.to_le_bytes());
        bytes.extend(3_u64.to_le_bytes());
        put_text(&mut bytes, "a");
        bytes.extend(ARRAY.to_le_bytes());
        bytes.extend(STRING.to_le_bytes());
        bytes.extend(2_u64.to_le_bytes());
        put_text(&mut bytes, "one");
        put_text(&mut bytes, "two");
        put_text(&mut bytes, "b");
        bytes.extend(7_u32.to_le_bytes());
        bytes.push(1);
        put_text(&mut bytes, "c");
        bytes.extend(U32.to_le_bytes());
        bytes.extend(5_u32.to_le_bytes());
        assert_eq!(read(&bytes).unwrap().number("c"), Some(5));
    }
}
