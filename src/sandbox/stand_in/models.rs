//! The model files of the public storage, and the keys in them that say what a server does with them.

use std::{
    fs::{self, OpenOptions},
    io,
    path::Path,
};

use super::gguf::{Gguf, Tensor, Value};

/// How long loading takes, in milliseconds.
pub(super) const LOAD_MS: &str = "stand_in.load_ms";
/// How long a token takes, in milliseconds.
pub(super) const TOKEN_MS: &str = "stand_in.token_ms";
/// What happens while it loads: `crash`, `killed`, `no_memory`.
pub(super) const ON_LOAD: &str = "stand_in.on_load";
/// What happens at a chat: `busy`, `crash`, `empty`, `error`, `hang`, `killed`; from the second chat on with `_second`
/// behind it.
pub(super) const ON_CHAT: &str = "stand_in.on_chat";
/// The key of the chat template.
pub(super) const TEMPLATE: &str = "tokenizer.chat_template";

/// A template that no parser takes.
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

/// A file that is larger than the memory of any GPU here. Its data are a hole, and take no room.
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
        let value = value.parse().map_or_else(|_| Value::Text(value.to_owned()), Value::Number);
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
    let text = |text: &str| Value::Text(text.to_owned());
    file("newer", &with("newer", "general.architecture", text("zzzzz")), &SMALL_SIZE)?;
    file("bad-template", &with("bad-template", TEMPLATE, text(BAD_TEMPLATE)), &SMALL_SIZE)?;
    for (name, key) in [("no-template", TEMPLATE), ("missing-key", "llama.context_length")] {
        let mut model = plain(name);
        model.keys.remove(key);
        file(name, &model, &SMALL_SIZE)?;
    }
    Ok(())
}

fn with(name: &str, key: &str, value: Value) -> Gguf {
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

/// As models of 70 billion parameters are.
const LARGE_SIZE: Size =
    Size { layers: 80, width: 8192, heads: 64, heads_kv: 8, feed_forward: 28_672, vocabulary: 128_256 };

impl Size {
    fn model(&self, name: &str) -> Gguf {
        let text = |text: &str| Value::Text(text.to_owned());
        let keys = [
            ("general.architecture", text("llama")),
            ("general.name", text(name)),
            ("general.file_type", Value::Number(1)),
            ("llama.block_count", Value::Number(self.layers)),
            ("llama.context_length", Value::Number(32_768)),
            ("llama.embedding_length", Value::Number(self.width)),
            ("llama.feed_forward_length", Value::Number(self.feed_forward)),
            ("llama.attention.head_count", Value::Number(self.heads)),
            ("llama.attention.head_count_kv", Value::Number(self.heads_kv)),
            ("llama.vocab_size", Value::Number(self.vocabulary)),
            (TEMPLATE, text("{% for message in messages %}{{ message.content }}{% endfor %}")),
        ];
        Gguf { keys: keys.map(|(key, value)| (key.to_owned(), value)).into() }
    }

    fn tensors(&self) -> Vec<Tensor> {
        let (width, wide) = (u64::from(self.width), u64::from(self.feed_forward));
        let narrow = u64::from(self.width / self.heads * self.heads_kv);
        let tensor = |name: String, shape: &[u64]| Tensor { name, shape: shape.to_vec() };
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
