//! GGUF files: written, and read as far as a server reads before it loads the data; the model files of the public
//! storage, and the keys in them that set a server's behaviour.

mod writer;

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Read as _},
    path::Path,
};

use self::writer::ALIGNMENT;
pub use self::writer::{F16, F32, Gguf, Kind, Q4_K, Q8_0};

/// The type of a 32-bit unsigned value.
const U32: u32 = 4;
/// The type of a text.
const STRING: u32 = 8;
/// The type of an array.
const ARRAY: u32 = 9;

/// How much of a file is read: the data after the header may be of any size.
const LONGEST_HEADER: u64 = 1 << 20;

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyValue {
    Number(u32),
    Text(String),
}

/// The keys of a file, of the types that are needed here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ModelKeys {
    pub(super) keys: BTreeMap<String, KeyValue>,
}

impl ModelKeys {
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

/// The header: the keys, and the end of each tensor, counted from the start of the data.
struct Header {
    keys: ModelKeys,
    ends: Vec<(String, u64)>,
    data: u64,
}

impl Header {
    fn fits(self, length: u64) -> Result<ModelKeys, String> {
        let length = length.saturating_sub(self.data);
        match self.ends.into_iter().find(|(_, end)| *end > length) {
            Some((name, _)) => Err(format!(
                "llama_model_load: error loading model: tensor '{name}' data is not within the file bounds, model is \
                 corrupted or incomplete"
            )),
            None => Ok(self.keys),
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
        let mut found = ModelKeys::default();
        for _ in 0..keys {
            let (key, kind) = (self.text()?, self.u32()?);
            match kind {
                U32 => {
                    found.keys.insert(key, KeyValue::Number(self.u32()?));
                }
                STRING => {
                    found.keys.insert(key, KeyValue::Text(self.text()?));
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
        Some(Header { keys: found, ends, data: (self.at as u64).next_multiple_of(ALIGNMENT) })
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
/// How the values of tokens become the embedding of a text. Models that generate text have no such key.
pub(super) const POOLING: &str = "llama.pooling_type";
/// The key of the architecture.
const ARCHITECTURE: &str = "general.architecture";
/// The key of the chat template.
pub(super) const TEMPLATE: &str = "tokenizer.chat_template";

/// A template that no parser accepts.
pub(super) const BAD_TEMPLATE: &str = "{% for %}";

/// Files with a key of their own.
const MODELS: [(&str, &str, &str); 19] = [
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
    ("embedding", POOLING, "1"),
];

/// A file that is larger than the memory of any GPU here. Its data is a hole, and takes no space.
const LARGE: &str = "large";

fn with_key(name: &str, key: &str, value: &str) -> Gguf {
    let model = SMALL_SIZE.model(name);
    match value.parse() {
        Ok(number) => model.number(key, number),
        Err(_) => model.text(key, value),
    }
}

/// The header of a model, and the length of the file: the rest of it is zero.
pub(crate) fn of_name(name: &str) -> Option<(Vec<u8>, u64)> {
    let model = match MODELS.into_iter().find(|(known, ..)| *known == name) {
        Some((name, key, value)) => with_key(name, key, value),
        None if name == LARGE => LARGE_SIZE.model(LARGE),
        None => return None,
    };
    Some((model.header(), model.length()))
}

/// Writes all of them into a folder.
pub(super) fn write(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder.join("directory.gguf"))?;
    let path = |name: &str| folder.join(format!("{name}.gguf"));
    let plain = |name: &str| SMALL_SIZE.model(name);
    for (name, key, value) in MODELS {
        with_key(name, key, value).write(&path(name))?;
    }
    LARGE_SIZE.model(LARGE).write(&path(LARGE))?;
    let whole = plain("whole");
    whole.write(&path("truncated"))?;
    OpenOptions::new().write(true).open(path("truncated"))?.set_len(whole.length() - 64)?;
    fs::write(path("header-cut"), whole.header().get(..48).unwrap_or_default())?;
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 41943040\n";
    fs::write(path("not-gguf"), pointer)?;
    fs::write(path("empty"), b"")?;
    for (name, key, value) in [("newer", ARCHITECTURE, "zzzzz"), ("bad-template", TEMPLATE, BAD_TEMPLATE)] {
        plain(name).without(key).text(key, value).write(&path(name))?;
    }
    for (name, key) in [("no-template", TEMPLATE), ("missing-key", "llama.context_length")] {
        plain(name).without(key).write(&path(name))?;
    }
    Ok(())
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
        let (width, wide) = (u64::from(self.width), u64::from(self.feed_forward));
        let narrow = u64::from(self.width / self.heads * self.heads_kv);
        let vocabulary = [width, u64::from(self.vocabulary)];
        let file = Gguf::default()
            .text(ARCHITECTURE, "llama")
            .text("general.name", name)
            .number("general.file_type", 1)
            .number("llama.block_count", self.layers)
            .number("llama.context_length", 32_768)
            .number("llama.embedding_length", self.width)
            .number("llama.feed_forward_length", self.feed_forward)
            .number("llama.attention.head_count", self.heads)
            .number("llama.attention.head_count_kv", self.heads_kv)
            .number("llama.vocab_size", self.vocabulary)
            .text(TEMPLATE, "{% for message in messages %}{{ message.content }}{% endfor %}")
            .tensor("token_embd.weight", &vocabulary, F16);
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
        let tensors = (0..self.layers).flat_map(|layer| parts.map(|(part, shape)| (layer, part, shape)));
        tensors
            .fold(file, |file, (layer, part, shape)| file.tensor(&format!("blk.{layer}.{part}.weight"), shape, F16))
            .tensor("output_norm.weight", &[width], F16)
            .tensor("output.weight", &vocabulary, F16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<ModelKeys, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), bytes).unwrap();
        ModelKeys::read(file.path())
    }

    #[test]
    fn what_is_written_is_read_and_a_file_that_is_cut_says_where() {
        let file = Gguf::new("llama")
            .texts("a", &["one".to_owned(), "two".to_owned()])
            .flags("b", &[true])
            .number("c", 5)
            .tensor("t", &[32], F16);
        let mut bytes = file.header();
        bytes.resize(usize::try_from(file.length()).unwrap(), 0);
        let keys = read(&bytes).unwrap();
        assert_eq!((keys.text(ARCHITECTURE), keys.number("c")), (Some("llama"), Some(5)));
        assert!(read(&bytes[..3]).unwrap_err().ends_with("failed to read magic"));
        assert!(read(&bytes[..40]).unwrap_err().ends_with("failed to read key-value pairs"));
        let data = read(&bytes[..bytes.len() - 1]).unwrap_err();
        assert!(data.contains("tensor 't' data is not within the file bounds"), "{data}");
    }
}
