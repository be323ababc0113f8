//! Reads the headers of all files of a model, as streams within a budget, into its description. The files of a split
//! model are named `model-00001-of-00003.gguf`.

use std::future::Future;

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{
    FileFault, MAX_HEADER, ModelError,
    header::{ARCHITECTURE, Header, Keys, MAX_LAYERS, Numbers, Tensors},
};
use crate::model::memory::Architecture;

/// The description of a model. A value that the header does not have is `None`, empty or 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GgufModel {
    /// The architecture's name, such as `llama`.
    pub architecture: String,
    /// The model's own name.
    pub name: Option<String>,
    /// The number of values in its tensors.
    pub parameters: u64,
    /// Its quantization, such as `Q4_K_M`.
    pub quantization: Option<String>,
    /// The number of layers that a token passes, without those that only predict further tokens.
    pub layers: Option<u64>,
    /// The context that it was trained for, in tokens.
    pub context_length: Option<u64>,
    /// The width of a token.
    pub embedding_length: Option<u64>,
    /// The largest number of attention heads in a layer.
    pub head_count: Option<u64>,
    /// The number of key and value heads in each layer.
    pub head_count_kv: Vec<u64>,
    /// The width of a key in a head.
    pub key_length: Option<u64>,
    /// The width of a value in a head.
    pub value_length: Option<u64>,
    /// The number of experts in a layer; 0 without experts.
    pub expert_count: u64,
    /// The number of tokens in a sliding window.
    pub sliding_window: Option<u64>,
    /// One layer in each period has the whole context, and the others the window.
    pub sliding_window_pattern: Option<u64>,
    /// The number of tokens in the vocabulary.
    pub vocabulary_size: Option<u64>,
    /// The width of the feed-forward part that a token passes, including all used experts, in the largest layer.
    pub feed_forward_length: Option<u64>,
    /// Whether the token embeddings are also the output.
    pub tied_output: bool,
    /// The bytes of each layer in the file.
    pub layer_bytes: Vec<u64>,
    /// The bytes of the token embeddings.
    pub embedding_bytes: u64,
    /// The bytes of the tensors after the layers.
    pub output_bytes: u64,
    /// The bytes of all tensors.
    pub tensor_bytes: u64,
    /// The bytes of all files.
    pub file_bytes: u64,
    /// Whether it has a chat template.
    pub has_chat_template: bool,
    /// A hash of the headers and the files' sizes.
    pub fingerprint: String,
}

/// Reads the header of a model, and those of the other files of a split model, which must be in the same folder as the
/// first.
///
/// Reads at most [`MAX_HEADER`](super::MAX_HEADER), less than a MiB at a time. Cancel-safe.
///
/// # Errors
///
/// The source's, and faults of a file.
pub async fn read_model<S: ModelBytes>(source: &S, name: &str) -> Result<GgufModel, ModelError<S::Error>> {
    let fault_in = |file: &str| {
        let file = file.to_owned();
        move |fault| ModelError::Fault { file, fault }
    };
    let mut budget = Budget::new();
    let Header { keys, mut tensors, mut file_bytes } = Header::read(source, name, &mut budget).await?;
    let count = keys.number("split.count").map_err(fault_in(name))?.unwrap_or_default();
    if count > 1 {
        let number = keys.number("split.no").map_err(fault_in(name))?.unwrap_or_default().saturating_add(1);
        if count > MAX_PARTS {
            return Err(fault_in(name)(FileFault::TooMany { what: "files of a split model", count, most: MAX_PARTS }));
        }
        for next in 2..=count {
            let file = part(name, next, count)
                .filter(|_| number == 1)
                .ok_or_else(|| fault_in(name)(FileFault::NotFirstPart { number, count }))?;
            let part = Header::read(source, &file, &mut budget).await?;
            let own = (part.keys.number("split.no"), part.keys.number("split.count"));
            if own != (Ok(Some(next - 1)), Ok(Some(count))) || !tensors.merge(part.tensors) {
                return Err(fault_in(&file)(FileFault::OtherPart { number: next, count }));
            }
            file_bytes = file_bytes.saturating_add(part.file_bytes);
        }
    }
    model(&keys, tensors, file_bytes, budget.fingerprint()).map_err(fault_in(name))
}

fn model(keys: &Keys, tensors: Tensors, file_bytes: u64, fingerprint: String) -> Result<GgufModel, FileFault> {
    let architecture = keys.text(ARCHITECTURE).ok_or(FileFault::MissingKey { key: ARCHITECTURE })?.to_owned();
    let own = |key: &str| format!("{architecture}.{key}");
    let number = |key: &str| keys.number(&own(key));
    let numbers = |key: &str| keys.numbers(&own(key));
    let blocks = number("block_count")?;
    if let Some(count) = blocks.filter(|count| *count > MAX_LAYERS) {
        return Err(FileFault::TooMany { what: "layers", count, most: MAX_LAYERS });
    }
    let predicting = number("nextn_predict_layers")?.unwrap_or_default();
    let layered = |key: &str| keys.layered(&own(key), blocks);
    let heads = layered("attention.head_count")?;
    let heads_kv = layered("attention.head_count_kv")?.or_else(|| heads.clone());
    let embedding_length = number("embedding_length")?;
    // Like the server: the width divided by the heads of the first layer (llama.cpp, load_hparams).
    let first_heads = heads.as_ref().and_then(|heads| heads.for_layers(1)?.first().copied());
    let head_length = embedding_length.zip(first_heads).and_then(|(width, heads)| width.checked_div(heads));
    let windows = Architecture::of(&architecture).and_then(Architecture::windows);
    let sliding_window = number("attention.sliding_window")?.or_else(|| windows.and_then(|windows| windows.length));
    let pattern = match numbers("attention.sliding_window_pattern")? {
        Some(pattern) => period(&pattern),
        None => windows.map(|windows| windows.period),
    };
    let vocabulary_size = match keys.length("tokenizer.ggml.tokens") {
        None => number("vocab_size")?,
        length => length,
    };
    Ok(GgufModel {
        name: keys.text("general.name").map(str::to_owned),
        parameters: tensors.elements,
        quantization: quantization(keys, &tensors).map(str::to_owned),
        layers: blocks.map(|blocks| blocks.saturating_sub(predicting)),
        context_length: number("context_length")?,
        embedding_length,
        head_count: heads.as_ref().and_then(Numbers::largest),
        head_count_kv: heads_kv.zip(blocks).and_then(|(heads, blocks)| heads.for_layers(blocks)).unwrap_or_default(),
        key_length: number("attention.key_length")?.or(head_length),
        value_length: number("attention.value_length")?.or(head_length),
        expert_count: number("expert_count")?.unwrap_or_default(),
        sliding_window: sliding_window.filter(|window| *window > 0),
        sliding_window_pattern: pattern,
        vocabulary_size,
        feed_forward_length: feed_forward_length(keys, &own, blocks)?,
        tied_output: !tensors.has_output && tensors.embedding > 0,
        layer_bytes: layer_bytes(&tensors, blocks),
        embedding_bytes: tensors.embedding,
        output_bytes: tensors.output,
        tensor_bytes: tensors.bytes,
        file_bytes,
        has_chat_template: keys.has_text("tokenizer.chat_template"),
        fingerprint,
        architecture,
    })
}

/// With experts, a token passes several of them, and in some models first a layer without experts.
fn feed_forward_length(
    keys: &Keys,
    own: &impl Fn(&str) -> String,
    layers: Option<u64>,
) -> Result<Option<u64>, FileFault> {
    let largest = |key: &str| keys.numbers(&own(key)).map(|numbers| numbers.as_ref().and_then(Numbers::largest));
    let dense = keys.layered(&own("feed_forward_length"), layers)?.as_ref().and_then(Numbers::largest);
    let dense = dense.filter(|width| *width > 0);
    let Some(used) = largest("expert_used_count")?.filter(|used| *used > 0) else { return Ok(dense) };
    let (expert, leading) = (largest("expert_feed_forward_length")?, largest("leading_dense_block_count")?);
    let together = expert.or(dense).map(|width| width.saturating_mul(used));
    Ok(if leading.unwrap_or_default() > 0 { together.max(dense) } else { together })
}

fn layer_bytes(tensors: &Tensors, blocks: Option<u64>) -> Vec<u64> {
    let last = tensors.layers.last_key_value().map_or(0, |(layer, _)| layer + 1);
    (0..last.max(blocks.unwrap_or_default())).map(|layer| tensors.layers.get(&layer).copied().unwrap_or(0)).collect()
}

/// The period of a pattern of layers. A list has a flag for each layer; `None` if it is not periodic.
fn period(pattern: &Numbers) -> Option<u64> {
    match pattern {
        Numbers::One(number) => Some(*number),
        Numbers::Each(flags) => {
            let period = flags.iter().position(|flag| *flag == 0)? + 1;
            let is_periodic =
                flags.iter().enumerate().all(|(layer, flag)| (*flag != 0) == (layer % period < period - 1));
            is_periodic.then_some(period as u64)
        }
    }
}

/// The names of `general.file_type` (llama.cpp, llama_ftype).
const FILE_TYPES: &[(u64, &str)] = &[
    (0, "F32"),
    (1, "F16"),
    (2, "Q4_0"),
    (3, "Q4_1"),
    (7, "Q8_0"),
    (8, "Q5_0"),
    (9, "Q5_1"),
    (10, "Q2_K"),
    (11, "Q3_K_S"),
    (12, "Q3_K_M"),
    (13, "Q3_K_L"),
    (14, "Q4_K_S"),
    (15, "Q4_K_M"),
    (16, "Q5_K_S"),
    (17, "Q5_K_M"),
    (18, "Q6_K"),
    (19, "IQ2_XXS"),
    (20, "IQ2_XS"),
    (21, "Q2_K_S"),
    (22, "IQ3_XS"),
    (23, "IQ3_XXS"),
    (24, "IQ1_S"),
    (25, "IQ4_NL"),
    (26, "IQ3_S"),
    (27, "IQ3_M"),
    (28, "IQ2_S"),
    (29, "IQ2_M"),
    (30, "IQ4_XS"),
    (31, "IQ1_M"),
    (32, "BF16"),
    (36, "TQ1_0"),
    (37, "TQ2_0"),
    (38, "MXFP4_MOE"),
    (39, "NVFP4"),
];

/// The quantization in the file, otherwise the type of most of its bytes.
fn quantization(keys: &Keys, tensors: &Tensors) -> Option<&'static str> {
    let said = keys.number("general.file_type").ok().flatten();
    let named = FILE_TYPES.iter().find(|(number, _)| Some(*number) == said).map(|(_, name)| *name);
    named.or_else(|| tensors.main_type())
}

/// The largest number of files of a model.
pub(super) const MAX_PARTS: u64 = 512;

/// The name of another part; `None` if the first part has a different name pattern.
pub(super) fn part(first: &str, number: u64, count: u64) -> Option<String> {
    let stem = first.strip_suffix(&format!("-00001-of-{count:05}.gguf"))?;
    Some(format!("{stem}-{number:05}-of-{count:05}.gguf"))
}

/// The first read; a longer header is read in pieces of doubling size.
const FIRST_PIECE: usize = 64 << 10;
/// The largest piece that is read from a source.
const MAX_PIECE: usize = 512 << 10;

/// A source of files that are read in pieces.
pub trait ModelBytes: Sync {
    /// The error of a failed read.
    type Error: Send;

    /// The size of a file in bytes.
    fn size(&self, name: &str) -> impl Future<Output = Result<u64, Self::Error>> + Send;

    /// Exactly these bytes of a file; never more than half a MiB, and never beyond the file's end.
    fn bytes(
        &self,
        name: &str,
        offset: u64,
        length: usize,
    ) -> impl Future<Output = Result<Vec<u8>, Self::Error>> + Send;
}

/// The size limit for the headers of all files of a model, and their size and hash so far.
#[derive(Debug)]
pub(super) struct Budget {
    left: u64,
    hash: Sha256,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self { left: MAX_HEADER, hash: Sha256::new() }
    }

    /// A hash of the headers and the files' sizes.
    pub(super) fn fingerprint(self) -> String {
        hex::encode(self.hash.finalize())
    }
}

/// A file, read from its beginning. Consumed bytes are dropped.
pub(super) struct FileStream<'a, S> {
    source: &'a S,
    name: &'a str,
    size: u64,
    budget: &'a mut Budget,
    /// The bytes that were read but not consumed, starting at `at`.
    buffer: Vec<u8>,
    at: usize,
    /// The offset of the next piece.
    next: u64,
    piece: usize,
}

impl<'a, S: ModelBytes> FileStream<'a, S> {
    pub(super) async fn open(
        source: &'a S,
        name: &'a str,
        budget: &'a mut Budget,
    ) -> Result<Self, ModelError<S::Error>> {
        let size = source.size(name).await.map_err(|error| ModelError::Source { file: name.to_owned(), error })?;
        budget.hash.update(size.to_le_bytes());
        Ok(Self { source, name, size, budget, buffer: Vec::new(), at: 0, next: 0, piece: FIRST_PIECE })
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// The number of consumed bytes.
    pub(super) fn position(&self) -> u64 {
        self.next - (self.buffer.len() - self.at) as u64
    }

    pub(super) fn fault(&self, fault: FileFault) -> ModelError<S::Error> {
        ModelError::Fault { file: self.name.to_owned(), fault }
    }

    /// The next bytes. The caller checks `length`, because they are kept in memory.
    pub(super) async fn take(&mut self, length: usize) -> Result<&[u8], ModelError<S::Error>> {
        while self.buffer.len() - self.at < length {
            self.fill().await?;
        }
        let taken = self.at..self.at + length;
        self.at = taken.end;
        let bytes = self.buffer.get(taken).unwrap_or_default();
        self.budget.hash.update(bytes);
        Ok(bytes)
    }

    /// Fails if fewer than `length` bytes can follow, before any of them is read.
    pub(super) fn has_room(&self, length: u64) -> Result<(), ModelError<S::Error>> {
        if length > self.size - self.position() {
            return Err(self.fault(FileFault::Truncated));
        }
        if length > self.budget.left + (self.buffer.len() - self.at) as u64 {
            return Err(self.fault(FileFault::TooLarge));
        }
        Ok(())
    }

    /// Skips bytes, keeping at most one piece in memory.
    pub(super) async fn skip(&mut self, mut length: u64) -> Result<(), ModelError<S::Error>> {
        self.has_room(length)?;
        while length > 0 {
            let step = length.min(FIRST_PIECE as u64);
            self.take(usize::try_from(step).unwrap_or(FIRST_PIECE)).await?;
            length -= step;
        }
        Ok(())
    }

    async fn fill(&mut self) -> Result<(), ModelError<S::Error>> {
        let rest = self.size - self.next;
        if rest == 0 {
            return Err(self.fault(FileFault::Truncated));
        }
        if self.budget.left == 0 {
            return Err(self.fault(FileFault::TooLarge));
        }
        let length = (self.piece as u64).min(rest).min(self.budget.left);
        let wanted = usize::try_from(length).unwrap_or(FIRST_PIECE);
        let bytes = self.source.bytes(self.name, self.next, wanted).await;
        let bytes = bytes.map_err(|error| ModelError::Source { file: self.name.to_owned(), error })?;
        if bytes.len() != wanted {
            return Err(self.fault(FileFault::Truncated));
        }
        self.buffer.drain(..self.at);
        self.at = 0;
        self.buffer.extend(bytes);
        self.next += length;
        self.budget.left -= length;
        self.piece = (self.piece * 2).min(MAX_PIECE);
        Ok(())
    }

    pub(super) async fn byte(&mut self) -> Result<u8, ModelError<S::Error>> {
        Ok(self.array::<1>().await?[0])
    }

    pub(super) async fn u16(&mut self) -> Result<u16, ModelError<S::Error>> {
        self.array().await.map(u16::from_le_bytes)
    }

    pub(super) async fn u32(&mut self) -> Result<u32, ModelError<S::Error>> {
        self.array().await.map(u32::from_le_bytes)
    }

    pub(super) async fn u64(&mut self) -> Result<u64, ModelError<S::Error>> {
        self.array().await.map(u64::from_le_bytes)
    }

    /// A text of at most `most` bytes. Invalid UTF-8 is replaced.
    pub(super) async fn text(&mut self, what: &'static str, most: usize) -> Result<String, ModelError<S::Error>> {
        let length = self.u64().await?;
        match usize::try_from(length).ok().filter(|length| *length <= most) {
            Some(length) => Ok(String::from_utf8_lossy(self.take(length).await?).into_owned()),
            None => Err(self.fault(FileFault::TooLong { what, length })),
        }
    }

    async fn array<const N: usize>(&mut self) -> Result<[u8; N], ModelError<S::Error>> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N).await?);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_lie_beside_the_first() {
        let second = part("/m/a-00001-of-00012.gguf", 2, 12).unwrap();
        assert_eq!(second, "/m/a-00002-of-00012.gguf");
        assert_eq!(part("/m/a-00002-of-00012.gguf", 2, 12), None);
        assert_eq!(part("/m/a.gguf", 2, 12), None);
        assert_eq!(part("/m/a-00001-of-00011.gguf", 2, 12), None);
    }
}
