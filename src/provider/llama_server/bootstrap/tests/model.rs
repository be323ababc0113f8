//! Models: GGUF files as the format's description (docs/gguf.md of ggml) has them, with weights that are all zero, and
//! with keys that the sandbox's server obeys (`stand_in/gguf.rs`).

/// A key with its type and its value.
pub(super) type Key = (&'static str, u32, Vec<u8>);

const U32: u32 = 4;
const F32: u32 = 6;
const TEXT: u32 = 8;
const ARRAY: u32 = 9;

pub(super) fn number(key: &'static str, number: u32) -> Key {
    (key, U32, number.to_le_bytes().to_vec())
}

pub(super) fn text(key: &'static str, text: &str) -> Key {
    (key, TEXT, with_length(text))
}

/// A text with its length before it.
fn with_length(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

fn array(key: &'static str, kind: u32, values: &[Vec<u8>]) -> Key {
    (key, ARRAY, [&kind.to_le_bytes()[..], &(values.len() as u64).to_le_bytes(), &values.concat()].concat())
}

/// A file with these keys, and tensors of 32-bit floats.
fn file(keys: Vec<Key>, tensors: &[(String, Vec<u64>)]) -> Vec<u8> {
    let mut file = [&b"GGUF"[..], &3_u32.to_le_bytes()].concat();
    file.extend((tensors.len() as u64).to_le_bytes());
    file.extend((keys.len() as u64).to_le_bytes());
    for (key, kind, value) in keys {
        file.extend([with_length(key), kind.to_le_bytes().to_vec(), value].concat());
    }
    let mut offset = 0_u64;
    for (name, shape) in tensors {
        file.extend(with_length(&format!("{name}.weight")));
        file.extend(u32::try_from(shape.len()).unwrap().to_le_bytes());
        shape.iter().for_each(|length| file.extend(length.to_le_bytes()));
        file.extend(0_u32.to_le_bytes());
        file.extend(offset.to_le_bytes());
        offset += shape.iter().product::<u64>() * 4;
    }
    let header = file.len().next_multiple_of(32);
    file.resize(header + usize::try_from(offset).unwrap(), 0);
    file
}

/// A model that the sandbox's server loads, with further keys.
fn small(further: impl IntoIterator<Item = Key>) -> Vec<u8> {
    let keys = [text("general.architecture", "llama"), number("llama.context_length", 131_072)];
    file(keys.into_iter().chain(further).collect(), &[("token_embd".to_owned(), vec![32])])
}

/// One that works at once.
pub(super) fn working() -> Vec<u8> {
    small([])
}

/// One whose load takes this long.
pub(super) fn loading(seconds: u32) -> Vec<u8> {
    small([number("stand_in.load_ms", seconds * 1000)])
}

/// One whose chats take this long.
pub(super) fn chatting(seconds: u32) -> Vec<u8> {
    small([number("stand_in.token_ms", seconds * 1000)])
}

/// One whose load ends as if the kernel killed the server for memory.
pub(super) fn killed() -> Vec<u8> {
    small([text("stand_in.on_load", "killed")])
}

/// One that was copied in part: its load fails.
pub(super) fn truncated() -> Vec<u8> {
    let mut file = working();
    file.truncate(file.len() - 64);
    file
}

/// One of one layer that llama.cpp computes with.
pub(super) fn computable() -> Vec<u8> {
    // Two heads of 32 values: a cache of q8_0 has blocks of 32.
    const WIDTH: u32 = 64;
    let tokens: Vec<String> = ["<unk>", "<s>", "</s>"]
        .map(str::to_owned)
        .into_iter()
        .chain((0..=255).map(|byte| format!("<0x{byte:02X}>")))
        .chain(["\u{2581}".to_owned()])
        .collect();
    // Unknown, control, byte, normal.
    let kinds = tokens.iter().enumerate().map(|(index, token)| match index {
        0 => 2_u32,
        1 | 2 => 3,
        _ if token.starts_with("<0x") => 6,
        _ => 1,
    });
    let kinds: Vec<_> = kinds.map(|kind| kind.to_le_bytes().to_vec()).collect();
    let keys = vec![
        text("general.architecture", "llama"),
        ("llama.attention.layer_norm_rms_epsilon", F32, 1e-5_f32.to_le_bytes().to_vec()),
        text("tokenizer.ggml.model", "llama"),
        array("tokenizer.ggml.tokens", TEXT, &tokens.iter().map(|token| with_length(token)).collect::<Vec<_>>()),
        array("tokenizer.ggml.scores", F32, &vec![0_f32.to_le_bytes().to_vec(); tokens.len()]),
        array("tokenizer.ggml.token_type", 5, &kinds),
        number("llama.block_count", 1),
        number("llama.context_length", 512),
        number("llama.embedding_length", WIDTH),
        number("llama.feed_forward_length", WIDTH),
        number("llama.attention.head_count", 2),
        number("tokenizer.ggml.bos_token_id", 1),
        number("tokenizer.ggml.eos_token_id", 2),
    ];
    let width = u64::from(WIDTH);
    let mut tensors =
        vec![("token_embd".to_owned(), vec![width, tokens.len() as u64]), ("output_norm".to_owned(), vec![width])];
    for name in ["attn_norm", "ffn_norm"] {
        tensors.push((format!("blk.0.{name}"), vec![width]));
    }
    for name in ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"] {
        tensors.push((format!("blk.0.{name}"), vec![width, width]));
    }
    file(keys, &tensors)
}
