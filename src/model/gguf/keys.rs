//! The keys of a header and their values.

use std::collections::BTreeMap;

use super::{Error, Fault, Source, read::Stream};

/// The most keys that are read. Real models have fewer than a hundred.
const MOST_KEYS: u64 = 4096;
/// The longest name of a key, as the format has it.
const LONGEST_NAME: usize = 65_535;
/// The longest name of a key that is kept.
const LONGEST_KEPT: usize = 128;
/// The longest text that is kept.
const LONGEST_TEXT: u64 = 1024;
/// The longest array that is kept: one value for each layer.
pub(super) const MOST_LAYERS: u64 = 1024;

/// The keys of a file, as far as they are kept.
#[derive(Debug, Default)]
pub(super) struct Keys(BTreeMap<String, Value>);

/// A value.
#[derive(Debug)]
enum Value {
    /// An array of so many values that were not kept.
    Length(u64),
    Number(u64),
    Numbers(Vec<u64>),
    /// A text; none for one that is too long to keep.
    Text(Option<String>),
    /// Of a type, or with a value, that no key of interest has.
    Other,
}

impl Keys {
    /// Reads them.
    pub(super) async fn read<S: Source>(stream: &mut Stream<'_, S>, count: u64) -> Result<Self, Error<S::Error>> {
        if count > MOST_KEYS {
            return Err(stream.fault(Fault::TooMany { what: "keys", count, most: MOST_KEYS }));
        }
        let mut keys = BTreeMap::new();
        for _ in 0..count {
            let key = stream.text("key", LONGEST_NAME).await?;
            let number = stream.u32().await?;
            let value = value(stream, &key, number).await?;
            if key.len() <= LONGEST_KEPT && keys.insert(key.clone(), value).is_some() {
                return Err(stream.fault(Fault::RepeatedKey { key }));
            }
        }
        Ok(Self(keys))
    }

    /// A text; none for an empty one.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        match self.0.get(key)? {
            Value::Text(text) => text.as_deref().filter(|text| !text.is_empty()),
            _ => None,
        }
    }

    /// Whether a key holds some text, kept or not.
    pub(super) fn has_text(&self, key: &str) -> bool {
        matches!(self.0.get(key), Some(Value::Text(text)) if text.as_deref() != Some(""))
    }

    /// A number that is not negative.
    ///
    /// # Errors
    /// Something else.
    pub(super) fn number(&self, key: &str) -> Result<Option<u64>, Fault> {
        match self.0.get(key) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(*number)),
            Some(_) => Err(Fault::InvalidKey { key: key.to_owned() }),
        }
    }

    /// A number for each layer, or one for all of them.
    ///
    /// # Errors
    /// Something else.
    pub(super) fn numbers(&self, key: &str) -> Result<Option<Numbers>, Fault> {
        match self.0.get(key) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(Numbers::One(*number))),
            Some(Value::Numbers(numbers)) => Ok(Some(Numbers::Each(numbers.clone()))),
            Some(_) => Err(Fault::InvalidKey { key: key.to_owned() }),
        }
    }

    /// How many elements an array has.
    pub(super) fn length(&self, key: &str) -> Option<u64> {
        match self.0.get(key)? {
            Value::Length(length) => Some(*length),
            Value::Numbers(numbers) => Some(numbers.len() as u64),
            _ => None,
        }
    }
}

/// A number, or one for each layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Numbers {
    Each(Vec<u64>),
    One(u64),
}

impl Numbers {
    /// The largest.
    pub(super) fn largest(&self) -> Option<u64> {
        match self {
            Self::Each(numbers) => numbers.iter().max().copied(),
            Self::One(number) => Some(*number),
        }
    }

    /// One for each of so many layers; none when there are too few.
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

async fn value<S: Source>(stream: &mut Stream<'_, S>, key: &str, number: u32) -> Result<Value, Error<S::Error>> {
    match number {
        STRING => {
            let length = stream.u64().await?;
            if length > LONGEST_TEXT {
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

async fn array<S: Source>(stream: &mut Stream<'_, S>, key: &str) -> Result<Value, Error<S::Error>> {
    let (number, count) = (stream.u32().await?, stream.u64().await?);
    match number {
        ARRAY => Err(stream.fault(Fault::NestedArray { key: key.to_owned() })),
        STRING => {
            // Each has a length of eight bytes at least.
            stream.has_room(count.saturating_mul(8))?;
            for _ in 0..count {
                let length = stream.u64().await?;
                stream.skip(length).await?;
            }
            Ok(Value::Length(count))
        }
        _ if count <= MOST_LAYERS => {
            let mut numbers = Vec::new();
            for _ in 0..count {
                numbers.push(scalar(stream, key, number).await?);
            }
            let numbers: Option<Vec<u64>> = numbers.into_iter().collect();
            Ok(numbers.map_or(Value::Other, Value::Numbers))
        }
        _ => {
            let width = width(number).ok_or_else(|| unknown(stream, key, number))?;
            let length = count.checked_mul(width).ok_or_else(|| stream.fault(Fault::Truncated))?;
            stream.skip(length).await?;
            Ok(Value::Length(count))
        }
    }
}

/// The bytes of a value of a type with a fixed size.
fn width(number: u32) -> Option<u64> {
    match number {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

/// A number or a flag; none for a fraction and for a negative number.
async fn scalar<S: Source>(stream: &mut Stream<'_, S>, key: &str, number: u32) -> Result<Option<u64>, Error<S::Error>> {
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

fn unknown<S: Source>(stream: &Stream<'_, S>, key: &str, number: u32) -> Error<S::Error> {
    stream.fault(Fault::UnknownType { key: key.to_owned(), number })
}
