//! Model files of several architectures, for the reader and the memory rules.

pub(crate) use damodel_sandbox::stand_in::gguf::{F16, F32, Gguf, Kind, Q4_K};

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
