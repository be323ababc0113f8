//! The entry of a tensor in a header, and ggml's types.

use super::{Error, Fault, Source, stream::Stream};

/// The longest name of a tensor, as ggml has it.
const LONGEST_NAME: usize = 64;
/// The most dimensions, as ggml has it.
const DIMENSIONS: u32 = 4;

/// What the entry of a tensor says.
#[derive(Debug)]
pub(super) struct Tensor {
    pub(super) name: String,
    pub(super) elements: u64,
    pub(super) bytes: u64,
    /// Where its data end, counted from where all data begin.
    pub(super) end: u64,
    pub(super) ty: TensorType,
}

/// How numbers are stored: so many in a block of so many bytes (ggml's type_traits).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TensorType {
    pub(super) name: &'static str,
    block: u64,
    bytes: u64,
}

/// The types by their numbers.
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

impl TensorType {
    fn of(number: u32) -> Option<Self> {
        let (_, name, block, bytes) = TYPES.iter().find(|(own, ..)| *own == number)?;
        Some(Self { name, block: *block, bytes: *bytes })
    }
}

impl Tensor {
    /// Reads an entry.
    pub(super) async fn read<S: Source>(stream: &mut Stream<'_, S>, alignment: u64) -> Result<Self, Error<S::Error>> {
        let name = stream.text("tensor", LONGEST_NAME).await?;
        let dimensions = stream.u32().await?;
        if dimensions > DIMENSIONS {
            return Err(stream.fault(Fault::InvalidTensor { name }));
        }
        let (mut row, mut elements) = (None, Some(1_u64));
        for _ in 0..dimensions {
            let length = stream.u64().await?;
            row.get_or_insert(length);
            elements = elements.and_then(|elements| elements.checked_mul(length));
        }
        let (number, offset) = (stream.u32().await?, stream.u64().await?);
        let Some(ty) = TensorType::of(number) else {
            return Err(stream.fault(Fault::UnknownTensorType { name, number }));
        };
        let is_whole = row.unwrap_or(1).is_multiple_of(ty.block) && offset.is_multiple_of(alignment);
        let sized = || {
            let elements = elements.filter(|_| is_whole)?;
            let bytes = (elements / ty.block).checked_mul(ty.bytes)?;
            Some((elements, bytes, offset.checked_add(bytes)?))
        };
        match sized() {
            Some((elements, bytes, end)) => Ok(Self { name, elements, bytes, end, ty }),
            None => Err(stream.fault(Fault::InvalidTensor { name })),
        }
    }

    /// The layer that it belongs to; none for one that is before or behind them.
    pub(super) fn layer(&self) -> Option<u64> {
        self.name.strip_prefix("blk.")?.split('.').next()?.parse().ok()
    }
}
