//! The header of one file: its keys, and its tensors with the types of ggml.

use std::collections::BTreeMap;

use super::{
    FileFault, ModelBytes, ModelError,
    read::{Budget, FileStream},
};

/// The largest number of tensors in a file. Real models have a few thousand.
const MAX_TENSORS: u64 = 131_072;
/// The data begin at a multiple of this, unless a key sets another alignment.
const ALIGNMENT: u64 = 32;
/// The largest alignment that a key may set.
const MAX_ALIGNMENT: u64 = 1 << 20;

/// The content of a header.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) keys: Keys,
    pub(super) tensors: Tensors,
    pub(super) file_bytes: u64,
}

/// The sums over the entries of all tensors.
#[derive(Debug, Default)]
pub(super) struct Tensors {
    pub(super) elements: u64,
    pub(super) bytes: u64,
    /// Bytes by layer.
    pub(super) layers: BTreeMap<u64, u64>,
    /// The token embeddings.
    pub(super) embedding: u64,
    /// The tensors after the last layer.
    pub(super) output: u64,
    pub(super) has_output: bool,
    /// Bytes by the name of the type; `None` for a type that is unknown.
    types: BTreeMap<Option<&'static str>, u64>,
}

impl Header {
    /// Reads the header of a file.
    pub(super) async fn read<S: ModelBytes>(
        source: &S,
        name: &str,
        budget: &mut Budget,
    ) -> Result<Self, ModelError<S::Error>> {
        let mut stream = FileStream::open(source, name, budget).await?;
        let stream = &mut stream;
        let magic = if stream.size() < 4 { &[] } else { stream.take(4).await? };
        if magic != b"GGUF" {
            let magic = String::from_utf8_lossy(magic).into_owned();
            return Err(stream.fault(FileFault::Magic { magic }));
        }
        match stream.u32().await? {
            2 | 3 => {}
            number if (1..=3).contains(&number.swap_bytes()) => return Err(stream.fault(FileFault::BigEndian)),
            number => return Err(stream.fault(FileFault::Version { number })),
        }
        let (tensors, keys) = (stream.u64().await?, stream.u64().await?);
        if tensors > MAX_TENSORS {
            return Err(stream.fault(FileFault::TooMany { what: "tensors", count: tensors, most: MAX_TENSORS }));
        }
        let keys = Keys::read(stream, keys).await?;
        let alignment = alignment(&keys).map_err(|fault| stream.fault(fault))?;
        let tensors = Tensors::read(stream, tensors, alignment).await?;
        Ok(Self { keys, tensors, file_bytes: stream.size() })
    }
}

fn alignment(keys: &Keys) -> Result<u64, FileFault> {
    const KEY: &str = "general.alignment";
    let alignment = keys.number(KEY)?.unwrap_or(ALIGNMENT);
    let is_valid = alignment.is_power_of_two() && alignment <= MAX_ALIGNMENT;
    if is_valid { Ok(alignment) } else { Err(FileFault::InvalidKey { key: KEY.to_owned() }) }
}

impl Tensors {
    async fn read<S: ModelBytes>(
        stream: &mut FileStream<'_, S>,
        count: u64,
        alignment: u64,
    ) -> Result<Self, ModelError<S::Error>> {
        let mut tensors = Vec::new();
        for _ in 0..count {
            tensors.push(Tensor::read(stream, alignment).await?);
        }
        let data = stream.position().next_multiple_of(alignment);
        let room = stream.size().saturating_sub(data);
        tensors.sort_by_key(|tensor| tensor.offset);
        let mut all = Self::default();
        let mut last: Option<(u64, String)> = None;
        let mut rest = tensors.into_iter().peekable();
        while let Some(tensor) = rest.next() {
            let next = rest.peek().map_or(room, |next| next.offset);
            let bytes = match tensor.bytes {
                Some(bytes) => bytes,
                None if tensor.offset >= room => {
                    return Err(stream.fault(FileFault::TruncatedData { name: tensor.name }));
                }
                // A tensor of a type that is unknown reaches to the next one, or to the end of the file.
                None => next.saturating_sub(tensor.offset),
            };
            let end = tensor.offset.saturating_add(bytes);
            let is_valid = (bytes > 0 || tensor.elements == 0) && tensor.layer().is_none_or(|layer| layer < MAX_LAYERS);
            if !is_valid || !all.add(&tensor, bytes) {
                return Err(stream.fault(FileFault::InvalidTensor { name: tensor.name }));
            }
            if last.as_ref().is_none_or(|(last, _)| *last < end) {
                last = Some((end, tensor.name));
            }
        }
        match last {
            // Tensors do not overlap, so the sum of their sizes must fit too.
            Some((end, name)) if end > room || all.bytes > room => Err(stream.fault(FileFault::TruncatedData { name })),
            _ => Ok(all),
        }
    }

    /// Adds a tensor; `false` if a sum overflows.
    fn add(&mut self, tensor: &Tensor, bytes: u64) -> bool {
        let add = |sum: &mut u64, more: u64| match sum.checked_add(more) {
            Some(new) => {
                *sum = new;
                true
            }
            None => false,
        };
        let part = match tensor.layer() {
            Some(layer) => Some(self.layers.entry(layer).or_default()),
            None if tensor.name == "token_embd.weight" => Some(&mut self.embedding),
            None if LOOKED_UP.contains(&&*tensor.name) => None,
            // The frequencies of rotary positions exist once for all layers, and are loaded with the first one.
            None if tensor.name.starts_with("rope_") => Some(self.layers.entry(0).or_default()),
            None => Some(&mut self.output),
        };
        self.has_output |= tensor.name == "output.weight";
        part.is_none_or(|part| add(part, bytes))
            && add(self.types.entry(tensor.ty).or_default(), bytes)
            && add(&mut self.bytes, bytes)
            && add(&mut self.elements, tensor.elements)
    }

    /// Adds the sums of another file of the same model; `false` if a sum overflows.
    pub(super) fn merge(&mut self, other: Self) -> bool {
        let mut fits = true;
        let mut add = |sum: &mut u64, more: u64| {
            fits &= sum.checked_add(more).is_some();
            *sum = sum.saturating_add(more);
        };
        add(&mut self.elements, other.elements);
        add(&mut self.bytes, other.bytes);
        add(&mut self.embedding, other.embedding);
        add(&mut self.output, other.output);
        other.layers.into_iter().for_each(|(layer, bytes)| add(self.layers.entry(layer).or_default(), bytes));
        other.types.into_iter().for_each(|(ty, bytes)| add(self.types.entry(ty).or_default(), bytes));
        self.has_output |= other.has_output;
        fits
    }

    /// The type of most bytes; `None` if it is unknown.
    pub(super) fn main_type(&self) -> Option<&'static str> {
        self.types.iter().max_by_key(|(_, bytes)| **bytes).and_then(|(ty, _)| *ty)
    }
}

/// What the input looks up beside the token embeddings: the server keeps it in the host's memory (llama.cpp,
/// llama-arch.cpp: LLM_TENSOR_LAYER_INPUT).
const LOOKED_UP: &[&str] = &["per_layer_token_embd.weight", "position_embd.weight", "token_types.weight"];

/// The longest name of a tensor in ggml.
const MAX_NAME: usize = 64;
/// The largest number of dimensions in ggml.
const MAX_DIMENSIONS: u32 = 4;

/// The entry of a tensor.
#[derive(Debug)]
struct Tensor {
    name: String,
    elements: u64,
    /// The bytes of its data; `None` for a type that is unknown.
    bytes: Option<u64>,
    /// The start of its data, relative to the start of all data.
    offset: u64,
    /// The name of its type.
    ty: Option<&'static str>,
}

/// The number, name, block size and bytes of a block of each type (ggml's type_traits).
const TYPES: &[(u32, &str, u64, u64)] = &[
    (0, "F32", 1, 4),
    (1, "F16", 1, 2),
    (2, "Q4_0", 32, 18),
    (3, "Q4_1", 32, 20),
    (6, "Q5_0", 32, 22),
    (7, "Q5_1", 32, 24),
    (8, "Q8_0", 32, 34),
    (9, "Q8_1", 32, 36),
    (10, "Q2_K", 256, 84),
    (11, "Q3_K", 256, 110),
    (12, "Q4_K", 256, 144),
    (13, "Q5_K", 256, 176),
    (14, "Q6_K", 256, 210),
    (15, "Q8_K", 256, 292),
    (16, "IQ2_XXS", 256, 66),
    (17, "IQ2_XS", 256, 74),
    (18, "IQ3_XXS", 256, 98),
    (19, "IQ1_S", 256, 50),
    (20, "IQ4_NL", 32, 18),
    (21, "IQ3_S", 256, 110),
    (22, "IQ2_S", 256, 82),
    (23, "IQ4_XS", 256, 136),
    (24, "I8", 1, 1),
    (25, "I16", 1, 2),
    (26, "I32", 1, 4),
    (27, "I64", 1, 8),
    (28, "F64", 1, 8),
    (29, "IQ1_M", 256, 56),
    (30, "BF16", 1, 2),
    (34, "TQ1_0", 256, 54),
    (35, "TQ2_0", 256, 66),
    (39, "MXFP4", 32, 17),
    (40, "NVFP4", 64, 36),
];

impl Tensor {
    async fn read<S: ModelBytes>(stream: &mut FileStream<'_, S>, alignment: u64) -> Result<Self, ModelError<S::Error>> {
        let name = stream.text("tensor", MAX_NAME).await?;
        let dimensions = stream.u32().await?;
        if dimensions > MAX_DIMENSIONS {
            return Err(stream.fault(FileFault::InvalidTensor { name }));
        }
        let (mut row, mut elements) = (None, Some(1_u64));
        for _ in 0..dimensions {
            let length = stream.u64().await?;
            row.get_or_insert(length);
            elements = elements.and_then(|elements| elements.checked_mul(length));
        }
        let (number, offset) = (stream.u32().await?, stream.u64().await?);
        let ty = TYPES.iter().find(|(own, ..)| *own == number);
        let elements = elements.filter(|_| offset.is_multiple_of(alignment));
        let sized = elements.and_then(|elements| {
            let Some((_, name, block, bytes)) = ty else { return Some((elements, None, None)) };
            let blocks = row.unwrap_or(1).is_multiple_of(*block).then_some(elements / block)?;
            let bytes = blocks.checked_mul(*bytes).filter(|bytes| offset.checked_add(*bytes).is_some())?;
            Some((elements, Some(bytes), Some(*name)))
        });
        match sized {
            Some((elements, bytes, ty)) => Ok(Self { name, elements, bytes, offset, ty }),
            None => Err(stream.fault(FileFault::InvalidTensor { name })),
        }
    }

    /// Its layer; `None` for a tensor before or after the layers.
    fn layer(&self) -> Option<u64> {
        self.name.strip_prefix("blk.")?.split('.').next()?.parse().ok()
    }
}

/// The size of the smallest key: the length of its name, its type and one byte.
const MIN_KEY_BYTES: u64 = 13;
/// The largest size in memory of all keys that are kept. With the needed keys of one model it is never reached.
const MAX_KEPT_BYTES: u64 = 1 << 20;
/// An allowance for what a key takes in memory beside its name and value.
const KEPT_OVERHEAD: u64 = 128;
/// The longest name of a key in the format.
const MAX_KEY: usize = 65_535;
/// The longest text that is kept.
const MAX_TEXT: u64 = 1024;
/// The longest array that is kept, with one value for each layer.
pub(super) const MAX_LAYERS: u64 = 1024;

/// The key with the name of the architecture, usually the first one.
pub(super) const ARCHITECTURE: &str = "general.architecture";
/// The keys that are needed. A file may have any number of others, so they are not kept.
const NEEDED: &[&str] = &[
    ARCHITECTURE,
    "general.alignment",
    "general.file_type",
    "general.name",
    "split.count",
    "split.no",
    "tokenizer.chat_template",
    "tokenizer.ggml.tokens",
];
/// The needed keys that begin with the name of the architecture.
const NEEDED_OF_ARCHITECTURE: &[&str] = &[
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.sliding_window",
    "attention.sliding_window_pattern",
    "attention.value_length",
    "block_count",
    "context_length",
    "embedding_length",
    "expert_count",
    "expert_feed_forward_length",
    "expert_used_count",
    "feed_forward_length",
    "leading_dense_block_count",
    "nextn_predict_layers",
    "vocab_size",
];

/// Whether a key is needed for a model of this architecture; `None` if it is unknown.
fn is_needed(key: &str, architecture: Option<&str>) -> bool {
    NEEDED.contains(&key)
        || NEEDED_OF_ARCHITECTURE.iter().any(|own| {
            let name = key.strip_suffix(*own).and_then(|name| name.strip_suffix('.'));
            name.is_some_and(|name| architecture.is_none_or(|architecture| architecture == name))
        })
}

/// The needed keys of a file.
#[derive(Debug, Default)]
pub(super) struct Keys(BTreeMap<String, Value>);

#[derive(Debug)]
enum Value {
    /// The length of an array whose values were not kept.
    Length(u64),
    Number(u64),
    Numbers(Vec<u64>),
    /// A text; `None` if it is too long to keep.
    Text(Option<String>),
    /// A value that is never needed.
    Other,
}

impl Value {
    /// The bytes that a value takes beside its own size.
    fn bytes(&self) -> u64 {
        match self {
            Self::Numbers(numbers) => numbers.len() as u64 * 8,
            Self::Text(text) => text.as_ref().map_or(0, String::len) as u64,
            Self::Length(_) | Self::Number(_) | Self::Other => 0,
        }
    }
}

impl Keys {
    pub(super) async fn read<S: ModelBytes>(
        stream: &mut FileStream<'_, S>,
        count: u64,
    ) -> Result<Self, ModelError<S::Error>> {
        stream.has_room(count.saturating_mul(MIN_KEY_BYTES))?;
        let (mut keys, mut kept) = (Self::default(), 0);
        for _ in 0..count {
            let key = stream.text("key", MAX_KEY).await?;
            let number = stream.u32().await?;
            let value = value(stream, &key, number).await?;
            if !is_needed(&key, keys.text(ARCHITECTURE)) {
                continue;
            }
            kept += KEPT_OVERHEAD + key.len() as u64 + value.bytes();
            if kept > MAX_KEPT_BYTES {
                let fault = FileFault::TooMany { what: "bytes of keys", count: kept, most: MAX_KEPT_BYTES };
                return Err(stream.fault(fault));
            }
            if keys.0.insert(key.clone(), value).is_some() {
                return Err(stream.fault(FileFault::RepeatedKey { key }));
            }
        }
        Ok(keys)
    }

    /// The value of a key, which must be one of those that are kept.
    fn get(&self, key: &str) -> Option<&Value> {
        debug_assert!(is_needed(key, None), "{key} is not kept");
        self.0.get(key)
    }

    /// A text; `None` if it is empty.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        match self.get(key)? {
            Value::Text(text) => text.as_deref().filter(|text| !text.is_empty()),
            _ => None,
        }
    }

    /// Whether a key has a text, kept or not.
    pub(super) fn has_text(&self, key: &str) -> bool {
        matches!(self.get(key), Some(Value::Text(text)) if text.as_deref() != Some(""))
    }

    /// A number that is not negative.
    ///
    /// # Errors
    /// A value of another kind.
    pub(super) fn number(&self, key: &str) -> Result<Option<u64>, FileFault> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(*number)),
            Some(_) => Err(FileFault::InvalidKey { key: key.to_owned() }),
        }
    }

    /// The same for a model of so many layers: a list has one number for each of them.
    ///
    /// # Errors
    /// A value of another kind, a list of another length.
    pub(super) fn layered(&self, key: &str, layers: Option<u64>) -> Result<Option<Numbers>, FileFault> {
        let numbers = self.numbers(key)?;
        match (&numbers, layers) {
            (Some(Numbers::Each(each)), Some(layers)) if each.len() as u64 != layers => {
                Err(FileFault::KeyLength { key: key.to_owned(), length: each.len() as u64, layers })
            }
            _ => Ok(numbers),
        }
    }

    /// A number for each layer, or one for all of them.
    ///
    /// # Errors
    /// A value of another kind.
    pub(super) fn numbers(&self, key: &str) -> Result<Option<Numbers>, FileFault> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(Numbers::One(*number))),
            Some(Value::Numbers(numbers)) => Ok(Some(Numbers::Each(numbers.clone()))),
            Some(_) => Err(FileFault::InvalidKey { key: key.to_owned() }),
        }
    }

    /// The length of an array.
    pub(super) fn length(&self, key: &str) -> Option<u64> {
        match self.get(key)? {
            Value::Length(length) => Some(*length),
            Value::Numbers(numbers) => Some(numbers.len() as u64),
            _ => None,
        }
    }
}

/// A number for all layers, or one for each layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Numbers {
    Each(Vec<u64>),
    One(u64),
}

impl Numbers {
    /// The largest number.
    pub(super) fn largest(&self) -> Option<u64> {
        match self {
            Self::Each(numbers) => numbers.iter().max().copied(),
            Self::One(number) => Some(*number),
        }
    }

    /// One number for each layer; `None` if there are too few.
    pub(super) fn for_layers(&self, layers: u64) -> Option<Vec<u64>> {
        let layers = usize::try_from(layers).ok()?;
        match self {
            Self::Each(numbers) => numbers.get(..layers).map(<[u64]>::to_vec),
            Self::One(number) => Some(vec![*number; layers]),
        }
    }
}

const STRING: u32 = 8;
const ARRAY: u32 = 9;

async fn value<S: ModelBytes>(
    stream: &mut FileStream<'_, S>,
    key: &str,
    number: u32,
) -> Result<Value, ModelError<S::Error>> {
    match number {
        STRING => {
            let length = stream.u64().await?;
            if length > MAX_TEXT {
                stream.skip(length).await?;
                return Ok(Value::Text(None));
            }
            let bytes = stream.take(usize::try_from(length).unwrap_or_default()).await?;
            Ok(Value::Text(Some(String::from_utf8_lossy(bytes).into_owned())))
        }
        ARRAY => array(stream, key).await,
        _ => scalar(stream, key, number).await.map(|number| number.map_or(Value::Other, Value::Number)),
    }
}

async fn array<S: ModelBytes>(stream: &mut FileStream<'_, S>, key: &str) -> Result<Value, ModelError<S::Error>> {
    let (number, count) = (stream.u32().await?, stream.u64().await?);
    match number {
        ARRAY => Err(stream.fault(FileFault::NestedArray { key: key.to_owned() })),
        STRING => {
            // Each text has a length field of eight bytes.
            stream.has_room(count.saturating_mul(8))?;
            for _ in 0..count {
                let length = stream.u64().await?;
                stream.skip(length).await?;
            }
            Ok(Value::Length(count))
        }
        _ if count <= MAX_LAYERS => {
            let mut numbers = Vec::new();
            for _ in 0..count {
                numbers.push(scalar(stream, key, number).await?);
            }
            let numbers: Option<Vec<u64>> = numbers.into_iter().collect();
            Ok(numbers.map_or(Value::Other, Value::Numbers))
        }
        _ => {
            let width = width(number).ok_or_else(|| unknown(stream, key, number))?;
            let length = count.checked_mul(width).ok_or_else(|| stream.fault(FileFault::Truncated))?;
            stream.skip(length).await?;
            Ok(Value::Length(count))
        }
    }
}

/// The size of a value of a fixed-size type.
fn width(number: u32) -> Option<u64> {
    match number {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

/// A number or a flag; `None` for a fraction or a negative number.
async fn scalar<S: ModelBytes>(
    stream: &mut FileStream<'_, S>,
    key: &str,
    number: u32,
) -> Result<Option<u64>, ModelError<S::Error>> {
    Ok(match number {
        0 | 7 => Some(u64::from(stream.byte().await?)),
        1 => u64::try_from(stream.byte().await?.cast_signed()).ok(),
        2 => Some(u64::from(stream.u16().await?)),
        3 => u64::try_from(stream.u16().await?.cast_signed()).ok(),
        4 => Some(u64::from(stream.u32().await?)),
        5 => u64::try_from(stream.u32().await?.cast_signed()).ok(),
        10 => Some(stream.u64().await?),
        11 => u64::try_from(stream.u64().await?.cast_signed()).ok(),
        6 | 12 => {
            stream.skip(width(number).unwrap_or_default()).await?;
            None
        }
        _ => return Err(unknown(stream, key, number)),
    })
}

fn unknown<S: ModelBytes>(stream: &FileStream<'_, S>, key: &str, number: u32) -> ModelError<S::Error> {
    stream.fault(FileFault::UnknownType { key: key.to_owned(), number })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::FutureExt as _;

    use super::*;

    /// A file that is made while it is read: parts, each so many times. A part that is repeated begins with a text,
    /// whose first letters are its number.
    struct Generated(Vec<(Vec<u8>, u64)>);

    impl ModelBytes for Generated {
        type Error = Infallible;

        async fn size(&self, _: &str) -> Result<u64, Infallible> {
            Ok(self.0.iter().map(|(part, count)| part.len() as u64 * count).sum())
        }

        async fn bytes(&self, _: &str, offset: u64, length: usize) -> Result<Vec<u8>, Infallible> {
            let (mut bytes, mut start) = (Vec::new(), 0);
            for (part, count) in &self.0 {
                let size = part.len() as u64;
                let end = start + size * count;
                while bytes.len() < length && offset + (bytes.len() as u64) < end {
                    let at = offset + bytes.len() as u64 - start;
                    let mut part = part.clone();
                    if *count > 1 {
                        part[8..16].copy_from_slice(format!("{:08}", at / size).as_bytes());
                    }
                    bytes.extend(&part[usize::try_from(at % size).unwrap()..]);
                }
                start = end;
            }
            bytes.truncate(length);
            Ok(bytes)
        }
    }

    fn text(text: &str) -> Vec<u8> {
        [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
    }

    fn key(name: &str, value: &[u8]) -> Vec<u8> {
        [&text(name)[..], &4_u32.to_le_bytes(), value].concat()
    }

    #[test]
    fn memory_does_not_grow_with_the_keys_of_a_header() {
        const MANY: u64 = 60_000;
        let array =
            |name: &str| [&text(name)[..], &ARRAY.to_le_bytes(), &STRING.to_le_bytes(), &MANY.to_le_bytes()].concat();
        let word = text(&"x".repeat(128));
        let (foreign, unused) = (format!("{:08}.block_count", 0), format!("{:08}.{}", 0, "y".repeat(120)));
        let start = [&b"GGUF"[..], &3_u32.to_le_bytes(), &0_u64.to_le_bytes(), &(4 + 2 * MANY).to_le_bytes()].concat();
        let file = Generated(vec![
            (start, 1),
            ([&text("general.architecture")[..], &STRING.to_le_bytes(), &text("llama")].concat(), 1),
            (array("tokenizer.ggml.tokens"), 1),
            (word.clone(), MANY),
            (array("tokenizer.ggml.merges"), 1),
            (word, MANY),
            (key(&foreign, &7_u32.to_le_bytes()), MANY),
            (key(&unused, &7_u32.to_le_bytes()), MANY),
            (key("llama.block_count", &2_u32.to_le_bytes()), 1),
        ]);
        let Header { keys, file_bytes, .. } =
            Header::read(&file, "m", &mut Budget::new()).now_or_never().unwrap().unwrap();
        assert!(file_bytes > 24 << 20, "{file_bytes}");
        assert_eq!((keys.number("llama.block_count"), keys.length("tokenizer.ggml.tokens")), (Ok(Some(2)), Some(MANY)));
        let kept: u64 = keys.0.iter().map(|(key, value)| KEPT_OVERHEAD + key.len() as u64 + value.bytes()).sum();
        assert!(kept < 1024, "{kept}");
    }
}
