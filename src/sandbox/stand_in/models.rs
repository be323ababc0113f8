//! The model files of the public storage, and the keys in them that say what a server does with them.

use std::{fs, io, path::Path};

use super::gguf::{Gguf, Value};

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

/// Writes all of them into a folder.
pub(super) fn write(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder.join("directory.gguf"))?;
    let file = |name: &str, bytes: &[u8]| fs::write(folder.join(format!("{name}.gguf")), bytes);
    for (name, key, value) in MODELS {
        let value = value.parse().map_or_else(|_| Value::Text(value.to_owned()), Value::Number);
        file(name, &with(name, key, value).to_bytes())?;
    }
    let whole = plain("whole");
    let bytes = whole.to_bytes();
    file("truncated", bytes.get(..bytes.len().saturating_sub(16)).unwrap_or_default())?;
    file("header-cut", bytes.get(..48).unwrap_or_default())?;
    file("not-gguf", b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 41943040\n")?;
    file("empty", b"")?;
    let text = |text: &str| Value::Text(text.to_owned());
    file("newer", &with("newer", "general.architecture", text("zzzzz")).to_bytes())?;
    file("bad-template", &with("bad-template", TEMPLATE, text(BAD_TEMPLATE)).to_bytes())?;
    for (name, key) in [("no-template", TEMPLATE), ("missing-key", "llama.context_length")] {
        let mut model = plain(name);
        model.keys.remove(key);
        file(name, &model.to_bytes())?;
    }
    Ok(())
}

fn with(name: &str, key: &str, value: Value) -> Gguf {
    let mut model = plain(name);
    model.keys.insert(key.to_owned(), value);
    model
}

fn plain(name: &str) -> Gguf {
    let text = |text: &str| Value::Text(text.to_owned());
    let keys = [
        ("general.architecture", text("llama")),
        ("general.name", text(name)),
        ("llama.block_count", Value::Number(1)),
        ("llama.context_length", Value::Number(32_768)),
        ("llama.embedding_length", Value::Number(16)),
        (TEMPLATE, text("{% for message in messages %}{{ message.content }}{% endfor %}")),
    ];
    Gguf { keys: keys.map(|(key, value)| (key.to_owned(), value)).into() }
}
