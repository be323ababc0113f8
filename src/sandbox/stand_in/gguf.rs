//! GGUF files: written small, and read as far as a server reads before it loads the data; the model files of the public
//! storage, and the keys in them that set a server's behaviour.
//!
//! The format: magic, version, number of tensors and of keys, the keys with typed values, the tensors' shapes and
//! offsets, padding to 32 bytes, the data. Little-endian throughout.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Read as _},
    path::Path,
};

/// The type of a 32-bit unsigned value.
const U32: u32 = 4;
/// The type of a text.
const STRING: u32 = 8;
/// The type of an array.
const ARRAY: u32 = 9;

/// The type of a tensor of 16-bit floats.
const F16: u32 = 1;
/// How much of a file is read: the data after the header may be of any size.
const LONGEST_HEADER: u64 = 1 << 20;

/// The data of tensors begins at a multiple of this.
const ALIGNMENT: usize = 32;

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyValue {
    Number(u32),
    Text(String),
}

/// The keys of a file, of the types that are needed here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Gguf {
    pub(super) keys: BTreeMap<String, KeyValue>,
}

impl Gguf {
    pub(super) fn number(&self, key: &str) -> Option<u32> {
        match self.keys.get(key) {
            Some(KeyValue::Number(number)) => Some(*number),
            Some(KeyValue::Text(_)) | None => None,
        }
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        match self.keys.get(key) {
            Some(KeyValue::Text(text)) => Some(text),
            Some(KeyValue::Number(_)) | None => None,
        }
    }

    /// A file with these keys and tensors, up to its data, and its length including the data.
    pub(super) fn to_bytes(&self, tensors: &[WrittenTensor]) -> (Vec<u8>, u64) {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(3_u32.to_le_bytes());
        bytes.extend((tensors.len() as u64).to_le_bytes());
        bytes.extend((self.keys.len() as u64).to_le_bytes());
        for (key, value) in &self.keys {
            put_text(&mut bytes, key);
            match value {
                KeyValue::Number(number) => {
                    bytes.extend(U32.to_le_bytes());
                    bytes.extend(number.to_le_bytes());
                }
                KeyValue::Text(text) => {
                    bytes.extend(STRING.to_le_bytes());
                    put_text(&mut bytes, text);
                }
            }
        }
        let mut offset = 0_u64;
        for tensor in tensors {
            put_text(&mut bytes, &tensor.name);
            bytes.extend((tensor.shape.len() as u32).to_le_bytes());
            tensor.shape.iter().for_each(|length| bytes.extend(length.to_le_bytes()));
            bytes.extend(F16.to_le_bytes());
            bytes.extend(offset.to_le_bytes());
            let size = tensor.shape.iter().product::<u64>() * 2;
            offset += size.next_multiple_of(ALIGNMENT as u64);
        }
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        let length = bytes.len() as u64 + offset;
        (bytes, length)
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// The error line that a server prints for it.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        const FUNCTION: &str = "gguf_init_from_file";
        let name = path.display();
        let opened = File::open(path).and_then(|file| {
            let (length, mut bytes) = (file.metadata()?.len(), Vec::new());
            file.take(LONGEST_HEADER).read_to_end(&mut bytes)?;
            Ok((bytes, length))
        });
        let (bytes, length) = opened.map_err(|error| match error.kind() {
            io::ErrorKind::IsADirectory => "gguf_init_from_reader: failed to read magic".to_owned(),
            io::ErrorKind::PermissionDenied => {
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
        reader.keys().ok_or("gguf_init_from_reader: failed to read key-value pairs")?.fits(length)
    }
}

/// A tensor of 16-bit floats.
#[derive(Clone, Debug)]
pub(super) struct WrittenTensor {
    pub(super) name: String,
    pub(super) shape: Vec<u64>,
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
}

/// The header: the keys, and the end of each tensor, counted from the start of the data.
struct Header {
    gguf: Gguf,
    ends: Vec<(String, u64)>,
    data: usize,
}

impl Header {
    fn fits(self, length: u64) -> Result<Gguf, String> {
        let length = length.saturating_sub(self.data as u64);
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
                    gguf.keys.insert(key, KeyValue::Number(self.u32()?));
                }
                STRING => {
                    gguf.keys.insert(key, KeyValue::Text(self.text()?));
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
            // Quantized types take at least a bit for each number; only the plain ones are checked exactly.
            let size = match kind {
                0 => count.checked_mul(4)?,
                1 => count.checked_mul(2)?,
                _ => count / 8,
            };
            ends.push((name, offset.checked_add(size)?));
        }
        Some(Header { gguf, ends, data: self.at.next_multiple_of(ALIGNMENT) })
    }

    /// Skips a value of this type.
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

/// The loading time in milliseconds.
pub(super) const LOAD_MS: &str = "stand_in.load_ms";
/// The time of a token in milliseconds.
pub(super) const TOKEN_MS: &str = "stand_in.token_ms";
/// What happens during loading: `crash`, `killed`, `no_memory`.
pub(super) const ON_LOAD: &str = "stand_in.on_load";
/// What happens at a chat: `busy`, `crash`, `empty`, `error`, `hang`, `killed`; with the suffix `_second`, from the
/// second chat on.
pub(super) const ON_CHAT: &str = "stand_in.on_chat";
/// The key of the chat template.
pub(super) const TEMPLATE: &str = "tokenizer.chat_template";

/// A template that no parser accepts.
pub(super) const BAD_TEMPLATE: &str = "{% for %}";

/// Files with a key of their own.
const MODELS: [(&str, &str, &str); 18] = [
    ("tiny", LOAD_MS, "50"),
    ("slow-1s", LOAD_MS, "1000"),
    ("slow-3s", LOAD_MS, "3000"),
    ("slow-5s", LOAD_MS, "5000"),
    ("slow-60s", LOAD_MS, "60000"),
    ("slow-600s", LOAD_MS, "600000"),
    ("slow-chat", TOKEN_MS, "1000"),
    ("crash-on-load", ON_LOAD, "crash"),
    ("oom-on-load", ON_LOAD, "killed"),
    ("gpu-full", ON_LOAD, "no_memory"),
    ("crash-on-chat", ON_CHAT, "crash"),
    ("crash-on-second-chat", ON_CHAT, "crash_second"),
    ("oom-on-chat", ON_CHAT, "killed"),
    ("error-on-chat", ON_CHAT, "error"),
    ("error-on-second-chat", ON_CHAT, "error_second"),
    ("busy-on-second-chat", ON_CHAT, "busy_second"),
    ("hang-on-chat", ON_CHAT, "hang"),
    ("empty-chat", ON_CHAT, "empty"),
];

/// A file that is larger than the memory of any GPU here. Its data is a hole, and takes no space.
const LARGE: &str = "large";

/// Writes all of them into a folder.
pub(super) fn write(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder.join("directory.gguf"))?;
    let path = |name: &str| folder.join(format!("{name}.gguf"));
    let file = |name: &str, model: &Gguf, size: &Size| {
        let (header, length) = model.to_bytes(&size.tensors());
        fs::write(path(name), header)?;
        OpenOptions::new().write(true).open(path(name))?.set_len(length)?;
        Ok::<u64, io::Error>(length)
    };
    for (name, key, value) in MODELS {
        let value = value.parse().map_or_else(|_| KeyValue::Text(value.to_owned()), KeyValue::Number);
        file(name, &with(name, key, value), &SMALL_SIZE)?;
    }
    file(LARGE, &LARGE_SIZE.model(LARGE), &LARGE_SIZE)?;
    let length = file("truncated", &plain("whole"), &SMALL_SIZE)?;
    OpenOptions::new().write(true).open(path("truncated"))?.set_len(length - 64)?;
    let (header, _) = plain("whole").to_bytes(&SMALL_SIZE.tensors());
    fs::write(path("header-cut"), header.get(..48).unwrap_or_default())?;
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 41943040\n";
    fs::write(path("not-gguf"), pointer)?;
    fs::write(path("empty"), b"")?;
    let text = |text: &str| KeyValue::Text(text.to_owned());
    file("newer", &with("newer", "general.architecture", text("zzzzz")), &SMALL_SIZE)?;
    file("bad-template", &with("bad-template", TEMPLATE, text(BAD_TEMPLATE)), &SMALL_SIZE)?;
    for (name, key) in [("no-template", TEMPLATE), ("missing-key", "llama.context_length")] {
        let mut model = plain(name);
        model.keys.remove(key);
        file(name, &model, &SMALL_SIZE)?;
    }
    Ok(())
}

fn with(name: &str, key: &str, value: KeyValue) -> Gguf {
    let mut model = plain(name);
    model.keys.insert(key.to_owned(), value);
    model
}

fn plain(name: &str) -> Gguf {
    SMALL_SIZE.model(name)
}

/// How large a model is.
struct Size {
    layers: u32,
    width: u32,
    heads: u32,
    heads_kv: u32,
    feed_forward: u32,
    vocabulary: u32,
}

const SMALL_SIZE: Size = Size { layers: 2, width: 64, heads: 2, heads_kv: 1, feed_forward: 128, vocabulary: 32 };

/// Like models of 70 billion parameters.
const LARGE_SIZE: Size =
    Size { layers: 80, width: 8192, heads: 64, heads_kv: 8, feed_forward: 28_672, vocabulary: 128_256 };

impl Size {
    fn model(&self, name: &str) -> Gguf {
        let text = |text: &str| KeyValue::Text(text.to_owned());
        let keys = [
            ("general.architecture", text("llama")),
            ("general.name", text(name)),
            ("general.file_type", KeyValue::Number(1)),
            ("llama.block_count", KeyValue::Number(self.layers)),
            ("llama.context_length", KeyValue::Number(32_768)),
            ("llama.embedding_length", KeyValue::Number(self.width)),
            ("llama.feed_forward_length", KeyValue::Number(self.feed_forward)),
            ("llama.attention.head_count", KeyValue::Number(self.heads)),
            ("llama.attention.head_count_kv", KeyValue::Number(self.heads_kv)),
            ("llama.vocab_size", KeyValue::Number(self.vocabulary)),
            (TEMPLATE, text("{% for message in messages %}{{ message.content }}{% endfor %}")),
        ];
        Gguf { keys: keys.map(|(key, value)| (key.to_owned(), value)).into() }
    }

    fn tensors(&self) -> Vec<WrittenTensor> {
        let (width, wide) = (u64::from(self.width), u64::from(self.feed_forward));
        let narrow = u64::from(self.width / self.heads * self.heads_kv);
        let tensor = |name: String, shape: &[u64]| WrittenTensor { name, shape: shape.to_vec() };
        let vocabulary = [width, u64::from(self.vocabulary)];
        let layers = (0..self.layers).flat_map(|layer| {
            let parts: [(&str, &[u64]); 9] = [
                ("attn_norm", &[width]),
                ("attn_q", &[width, width]),
                ("attn_k", &[width, narrow]),
                ("attn_v", &[width, narrow]),
                ("attn_output", &[width, width]),
                ("ffn_norm", &[width]),
                ("ffn_gate", &[width, wide]),
                ("ffn_up", &[width, wide]),
                ("ffn_down", &[wide, width]),
            ];
            parts.map(|(part, shape)| tensor(format!("blk.{layer}.{part}.weight"), shape))
        });
        let mut all = vec![tensor("token_embd.weight".to_owned(), &vocabulary)];
        all.extend(layers);
        all.push(tensor("output_norm.weight".to_owned(), &[width]));
        all.push(tensor("output.weight".to_owned(), &vocabulary));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> Gguf {
        let keys = [
            ("general.architecture".to_owned(), KeyValue::Text("llama".to_owned())),
            ("llama.context_length".to_owned(), KeyValue::Number(4096)),
        ];
        Gguf { keys: keys.into() }
    }

    fn tensors() -> [WrittenTensor; 1] {
        [WrittenTensor { name: "token_embd.weight".to_owned(), shape: vec![32] }]
    }

    fn whole() -> Vec<u8> {
        let (mut bytes, length) = model().to_bytes(&tensors());
        bytes.resize(usize::try_from(length).unwrap(), 0);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Gguf, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), bytes).unwrap();
        Gguf::read(file.path())
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(read(&whole()), Ok(model()));
    }

    #[test]
    fn a_file_that_is_cut_says_where() {
        let bytes = whole();
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
