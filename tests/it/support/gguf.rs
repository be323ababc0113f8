//! Model files, written from the format's own description (docs/gguf.md of ggml), not from our reader.

use std::{
    fs::{self, OpenOptions},
    path::Path,
};

pub(crate) const F32: Kind = Kind { number: 0, block: 1, bytes: 4 };
pub(crate) const F16: Kind = Kind { number: 1, block: 1, bytes: 2 };
pub(crate) const Q8_0: Kind = Kind { number: 8, block: 32, bytes: 34 };
pub(crate) const Q4_K: Kind = Kind { number: 12, block: 256, bytes: 144 };

const ALIGNMENT: u64 = 32;

/// The storage of a tensor's numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) number: u32,
    pub(crate) block: u64,
    pub(crate) bytes: u64,
}

/// A file that is being built.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gguf {
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
    pub(crate) fn new(architecture: &str) -> Self {
        Self::default().text("general.architecture", architecture)
    }

    /// A key with its type and value in the file's format.
    pub(crate) fn raw(mut self, key: &str, value: Vec<u8>) -> Self {
        self.keys.push((key.to_owned(), value));
        self
    }

    pub(crate) fn number(self, key: &str, number: u32) -> Self {
        self.raw(key, [4_u32.to_le_bytes(), number.to_le_bytes()].concat())
    }

    pub(crate) fn float(self, key: &str, number: f32) -> Self {
        self.raw(key, [6_u32.to_le_bytes(), number.to_le_bytes()].concat())
    }

    pub(crate) fn text(self, key: &str, value: &str) -> Self {
        self.raw(key, [&8_u32.to_le_bytes()[..], &text(value)].concat())
    }

    pub(crate) fn numbers(self, key: &str, numbers: &[i32]) -> Self {
        let values = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.raw(key, array(5, numbers.len(), values))
    }

    pub(crate) fn floats(self, key: &str, numbers: &[f32]) -> Self {
        let values = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.raw(key, array(6, numbers.len(), values))
    }

    pub(crate) fn flags(self, key: &str, flags: &[bool]) -> Self {
        self.raw(key, array(7, flags.len(), flags.iter().map(|flag| u8::from(*flag)).collect()))
    }

    pub(crate) fn texts(self, key: &str, texts: &[String]) -> Self {
        self.raw(key, array(8, texts.len(), texts.iter().flat_map(|own| text(own)).collect()))
    }

    pub(crate) fn without(mut self, key: &str) -> Self {
        self.keys.retain(|(own, _)| own != key);
        self
    }

    pub(crate) fn tensor(mut self, name: &str, shape: &[u64], kind: Kind) -> Self {
        self.tensors.push((name.to_owned(), shape.to_vec(), kind));
        self
    }

    /// The bytes of all tensors.
    pub(crate) fn tensor_bytes(&self) -> u64 {
        self.tensors.iter().map(|(_, shape, kind)| bytes(shape, *kind)).sum()
    }

    /// The file up to its data.
    pub(crate) fn header(&self) -> Vec<u8> {
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
        let length = (file.len() as u64).next_multiple_of(ALIGNMENT);
        file.resize(usize::try_from(length).unwrap(), 0);
        file
    }

    /// The length of the file with its data.
    pub(crate) fn length(&self) -> u64 {
        let data = self.tensors.iter().map(|(_, shape, kind)| bytes(shape, *kind).next_multiple_of(ALIGNMENT));
        self.header().len() as u64 + data.sum::<u64>()
    }

    /// Writes it; the data is a hole.
    pub(crate) fn write(&self, path: &Path) {
        fs::write(path, self.header()).unwrap();
        OpenOptions::new().write(true).open(path).unwrap().set_len(self.length()).unwrap();
    }
}

fn bytes(shape: &[u64], kind: Kind) -> u64 {
    shape.iter().product::<u64>() / kind.block * kind.bytes
}

/// The size of a model.
#[derive(Clone, Debug)]
pub(crate) struct Size {
    pub(crate) architecture: &'static str,
    pub(crate) layers: u32,
    pub(crate) width: u64,
    pub(crate) heads: u64,
    pub(crate) heads_kv: u64,
    pub(crate) head: u64,
    pub(crate) feed_forward: u64,
    /// The number of experts, each as wide as the feed-forward part.
    pub(crate) experts: u64,
    pub(crate) experts_used: u64,
    pub(crate) window: u32,
    pub(crate) tied: bool,
    pub(crate) kind: Kind,
}

impl Size {
    /// Two layers with as many heads for keys and values as for queries.
    pub(crate) fn dense() -> Self {
        Self {
            architecture: "llama",
            layers: 2,
            width: 512,
            heads: 8,
            heads_kv: 8,
            head: 64,
            feed_forward: 1024,
            experts: 0,
            experts_used: 2,
            window: 0,
            tied: false,
            kind: F16,
        }
    }

    /// The model, with a vocabulary of bytes and some words.
    pub(crate) fn model(&self) -> Gguf {
        const VOCABULARY: usize = 512;
        let own = |key: &str| format!("{}.{key}", self.architecture);
        let number = |number: u64| u32::try_from(number).unwrap();
        let mut file = Gguf::new(self.architecture)
            .text("general.name", "made by a test")
            .number(&own("block_count"), self.layers)
            .number(&own("context_length"), 4096)
            .number(&own("embedding_length"), number(self.width))
            .number(&own("feed_forward_length"), number(self.feed_forward))
            .number(&own("attention.head_count"), number(self.heads))
            .number(&own("attention.head_count_kv"), number(self.heads_kv))
            .number(&own("attention.key_length"), number(self.head))
            .number(&own("attention.value_length"), number(self.head))
            .number(&own("rope.dimension_count"), number(self.head))
            .float(&own("attention.layer_norm_rms_epsilon"), 1e-5);
        if self.experts > 0 {
            file = file
                .number(&own("expert_count"), number(self.experts))
                .number(&own("expert_used_count"), number(self.experts_used))
                .number(&own("expert_feed_forward_length"), number(self.feed_forward));
        }
        if self.window > 0 {
            file = file.number(&own("attention.sliding_window"), self.window);
        }
        let special = ["<unk>", "<s>", "</s>"].map(str::to_owned);
        let bytes = (0..256).map(|byte| format!("<0x{byte:02X}>"));
        let words = (259..VOCABULARY).map(|word| format!("w{word}"));
        let tokens: Vec<String> = special.into_iter().chain(bytes).chain(words).collect();
        let types: Vec<i32> = (0..VOCABULARY)
            .map(|token| match token {
                0 => 2,
                1 | 2 => 3,
                3..259 => 6,
                _ => 1,
            })
            .collect();
        file = file
            .text("tokenizer.ggml.model", "llama")
            .texts("tokenizer.ggml.tokens", &tokens)
            .floats("tokenizer.ggml.scores", &[0.0; VOCABULARY])
            .numbers("tokenizer.ggml.token_type", &types)
            .number("tokenizer.ggml.bos_token_id", 1)
            .number("tokenizer.ggml.eos_token_id", 2)
            .tensor("token_embd.weight", &[self.width, VOCABULARY as u64], self.kind)
            .tensor("output_norm.weight", &[self.width], F32);
        if !self.tied {
            file = file.tensor("output.weight", &[self.width, VOCABULARY as u64], self.kind);
        }
        (0..self.layers).fold(file, |file, layer| self.layer(file, layer))
    }

    fn layer(&self, file: Gguf, layer: u32) -> Gguf {
        let name = |part: &str| format!("blk.{layer}.{part}.weight");
        let (queries, keys) = (self.heads * self.head, self.heads_kv * self.head);
        let is_gemma = self.architecture.starts_with("gemma");
        let mut file = file
            .tensor(&name("attn_norm"), &[self.width], F32)
            .tensor(&name("attn_q"), &[self.width, queries], self.kind)
            .tensor(&name("attn_k"), &[self.width, keys], self.kind)
            .tensor(&name("attn_v"), &[self.width, keys], self.kind)
            .tensor(&name("attn_output"), &[queries, self.width], self.kind)
            .tensor(&name("ffn_norm"), &[self.width], F32);
        if is_gemma {
            file = file.tensor(&name("post_attention_norm"), &[self.width], F32).tensor(
                &name("post_ffw_norm"),
                &[self.width],
                F32,
            );
        }
        if matches!(self.architecture, "gemma3" | "qwen3" | "qwen3moe") {
            file = file.tensor(&name("attn_q_norm"), &[self.head], F32).tensor(&name("attn_k_norm"), &[self.head], F32);
        }
        let (suffix, extra) = if self.experts > 0 { ("_exps", vec![self.experts]) } else { ("", vec![]) };
        let shape = |from: u64, to: u64| [vec![from, to], extra.clone()].concat();
        if self.experts > 0 {
            file = file.tensor(&name("ffn_gate_inp"), &[self.width, self.experts], F32);
        }
        file.tensor(&name(&format!("ffn_gate{suffix}")), &shape(self.width, self.feed_forward), self.kind)
            .tensor(&name(&format!("ffn_up{suffix}")), &shape(self.width, self.feed_forward), self.kind)
            .tensor(&name(&format!("ffn_down{suffix}")), &shape(self.feed_forward, self.width), self.kind)
    }
}
