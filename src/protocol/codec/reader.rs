//! A cursor over msgpack.

use rmp::Marker;

use super::{DecodeError, MOST_VALUES};

/// A cursor over msgpack bytes. It allocates nothing, whatever lengths the bytes claim.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    values: usize,
}

/// The head of one msgpack value. Texts come with their bytes; of arrays and maps the elements follow.
pub(super) enum Head<'a> {
    Array(usize),
    Bin(&'a [u8]),
    Bool(bool),
    Ext(i8, &'a [u8]),
    Float(f64),
    Map(usize),
    Nil,
    Signed(i64),
    Str(&'a [u8]),
    Unsigned(u64),
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, values: 0 }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn head(&mut self) -> Result<Head<'a>, DecodeError> {
        self.values += 1;
        if self.values > MOST_VALUES {
            return Err(DecodeError::new("too many values in one message"));
        }
        let [marker] = self.array()?;
        Ok(match Marker::from_u8(marker) {
            Marker::Null => Head::Nil,
            Marker::True => Head::Bool(true),
            Marker::False => Head::Bool(false),
            Marker::FixPos(number) => Head::Unsigned(number.into()),
            Marker::FixNeg(number) => Head::Signed(number.into()),
            Marker::U8 => Head::Unsigned(u8::from_be_bytes(self.array()?).into()),
            Marker::U16 => Head::Unsigned(u16::from_be_bytes(self.array()?).into()),
            Marker::U32 => Head::Unsigned(u32::from_be_bytes(self.array()?).into()),
            Marker::U64 => Head::Unsigned(u64::from_be_bytes(self.array()?)),
            Marker::I8 => Head::Signed(i8::from_be_bytes(self.array()?).into()),
            Marker::I16 => Head::Signed(i16::from_be_bytes(self.array()?).into()),
            Marker::I32 => Head::Signed(i32::from_be_bytes(self.array()?).into()),
            Marker::I64 => Head::Signed(i64::from_be_bytes(self.array()?)),
            Marker::F32 => Head::Float(f32::from_be_bytes(self.array()?).into()),
            Marker::F64 => Head::Float(f64::from_be_bytes(self.array()?)),
            Marker::FixStr(length) => Head::Str(self.take(length.into())?),
            Marker::Str8 => Head::Str(self.counted::<1>()?),
            Marker::Str16 => Head::Str(self.counted::<2>()?),
            Marker::Str32 => Head::Str(self.counted::<4>()?),
            Marker::Bin8 => Head::Bin(self.counted::<1>()?),
            Marker::Bin16 => Head::Bin(self.counted::<2>()?),
            Marker::Bin32 => Head::Bin(self.counted::<4>()?),
            Marker::FixArray(length) => Head::Array(length.into()),
            Marker::Array16 => Head::Array(self.length::<2>()?),
            Marker::Array32 => Head::Array(self.length::<4>()?),
            Marker::FixMap(length) => Head::Map(length.into()),
            Marker::Map16 => Head::Map(self.length::<2>()?),
            Marker::Map32 => Head::Map(self.length::<4>()?),
            Marker::FixExt1 => self.ext(1)?,
            Marker::FixExt2 => self.ext(2)?,
            Marker::FixExt4 => self.ext(4)?,
            Marker::FixExt8 => self.ext(8)?,
            Marker::FixExt16 => self.ext(16)?,
            Marker::Ext8 => {
                let length = self.length::<1>()?;
                self.ext(length)?
            }
            Marker::Ext16 => {
                let length = self.length::<2>()?;
                self.ext(length)?
            }
            Marker::Ext32 => {
                let length = self.length::<4>()?;
                self.ext(length)?
            }
            Marker::Reserved => return Err(DecodeError::new("a reserved msgpack marker")),
        })
    }

    fn ext(&mut self, length: usize) -> Result<Head<'a>, DecodeError> {
        let [code] = self.array()?;
        Ok(Head::Ext(i8::from_be_bytes([code]), self.take(length)?))
    }

    fn counted<const N: usize>(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = self.length::<N>()?;
        self.take(length)
    }

    fn length<const N: usize>(&mut self) -> Result<usize, DecodeError> {
        let bytes: [u8; N] = self.array()?;
        Ok(bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (array, rest) = self.rest.split_first_chunk().ok_or_else(truncated)?;
        self.rest = rest;
        Ok(*array)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or_else(truncated)?;
        self.rest = rest;
        Ok(taken)
    }
}

fn truncated() -> DecodeError {
    DecodeError::new("the message ends too early")
}
