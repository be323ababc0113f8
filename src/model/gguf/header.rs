//! The header of one file: its keys and what its tensors add up to.

use std::collections::BTreeMap;

use super::{
    Error, Fault, Source,
    keys::{Keys, MOST_LAYERS},
    stream::{Budget, Stream},
    tensor::{Tensor, TensorType},
};

/// The most tensors of a file. Real models have a few thousand.
const MOST_TENSORS: u64 = 131_072;
/// Where data begin is a multiple of this, unless a key says otherwise.
const ALIGNMENT: u64 = 32;
/// The largest alignment that a key may ask for.
const LARGEST_ALIGNMENT: u64 = 1 << 20;

/// What a header says.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) keys: Keys,
    pub(super) tensors: Tensors,
    pub(super) file_bytes: u64,
}

/// What the entries of all tensors say together.
#[derive(Debug, Default)]
pub(super) struct Tensors {
    pub(super) elements: u64,
    pub(super) bytes: u64,
    /// Bytes by layer.
    pub(super) layers: BTreeMap<u64, u64>,
    /// The token embeddings.
    pub(super) embedding: u64,
    /// What stands behind the last layer.
    pub(super) output: u64,
    pub(super) has_output: bool,
    /// Bytes by type.
    types: BTreeMap<TensorType, u64>,
}

impl Header {
    /// Reads a file as far as its header goes.
    pub(super) async fn read<S: Source>(source: &S, name: &str, budget: &mut Budget) -> Result<Self, Error<S::Error>> {
        let mut stream = Stream::open(source, name, budget).await?;
        let stream = &mut stream;
        let magic = if stream.size() < 4 { &[] } else { stream.take(4).await? };
        if magic != b"GGUF" {
            let magic = String::from_utf8_lossy(magic).into_owned();
            return Err(stream.fault(Fault::Magic { magic }));
        }
        match stream.u32().await? {
            2 | 3 => {}
            number if (1..=3).contains(&number.swap_bytes()) => return Err(stream.fault(Fault::BigEndian)),
            number => return Err(stream.fault(Fault::Version { number })),
        }
        let (tensors, keys) = (stream.u64().await?, stream.u64().await?);
        if tensors > MOST_TENSORS {
            return Err(stream.fault(Fault::TooMany { what: "tensors", count: tensors, most: MOST_TENSORS }));
        }
        let keys = Keys::read(stream, keys).await?;
        let alignment = alignment(&keys).map_err(|fault| stream.fault(fault))?;
        let tensors = Tensors::read(stream, tensors, alignment).await?;
        Ok(Self { keys, tensors, file_bytes: stream.size() })
    }
}

fn alignment(keys: &Keys) -> Result<u64, Fault> {
    const KEY: &str = "general.alignment";
    let alignment = keys.number(KEY)?.unwrap_or(ALIGNMENT);
    let is_valid = alignment.is_power_of_two() && alignment <= LARGEST_ALIGNMENT;
    if is_valid { Ok(alignment) } else { Err(Fault::InvalidKey { key: KEY.to_owned() }) }
}

impl Tensors {
    async fn read<S: Source>(stream: &mut Stream<'_, S>, count: u64, alignment: u64) -> Result<Self, Error<S::Error>> {
        let mut all = Self::default();
        let mut last: Option<Tensor> = None;
        for _ in 0..count {
            let tensor = Tensor::read(stream, alignment).await?;
            if tensor.layer().is_some_and(|layer| layer >= MOST_LAYERS) || !all.add(&tensor) {
                return Err(stream.fault(Fault::InvalidTensor { name: tensor.name }));
            }
            if last.as_ref().is_none_or(|last| last.end < tensor.end) {
                last = Some(tensor);
            }
        }
        let data = stream.position().next_multiple_of(alignment);
        let room = stream.size().saturating_sub(data);
        match last {
            // Tensors do not overlap, so that all together fit too.
            Some(last) if last.end > room || all.bytes > room => {
                Err(stream.fault(Fault::TruncatedData { name: last.name }))
            }
            _ => Ok(all),
        }
    }

    /// Adds a tensor; false when a sum is too large for any file.
    fn add(&mut self, tensor: &Tensor) -> bool {
        let add = |sum: &mut u64, more: u64| match sum.checked_add(more) {
            Some(new) => {
                *sum = new;
                true
            }
            None => false,
        };
        let part = match tensor.layer() {
            Some(layer) => self.layers.entry(layer).or_default(),
            None if tensor.name == "token_embd.weight" => &mut self.embedding,
            // The frequencies of rotary positions stand once, for every layer, and are loaded with the first.
            None if tensor.name.starts_with("rope_") => self.layers.entry(0).or_default(),
            None => &mut self.output,
        };
        self.has_output |= tensor.name == "output.weight";
        add(part, tensor.bytes)
            && add(self.types.entry(tensor.ty).or_default(), tensor.bytes)
            && add(&mut self.bytes, tensor.bytes)
            && add(&mut self.elements, tensor.elements)
    }

    /// Adds what another file of the same model has; false when a sum is too large.
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

    /// The type that most bytes have.
    pub(super) fn main_type(&self) -> Option<&'static str> {
        self.types.iter().max_by_key(|(_, bytes)| **bytes).map(|(ty, _)| ty.name)
    }
}
