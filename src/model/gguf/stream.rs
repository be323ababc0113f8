//! A file as a stream of bytes, within a budget.

use std::future::Future;

use sha2::{Digest, Sha256};

use super::{Error, Fault};

/// The most that is read of all headers of a model, in bytes.
pub const LARGEST_HEADER: u64 = 256 << 20;

/// What is read first; a header that goes on is read in pieces that double.
const FIRST_PIECE: usize = 64 << 10;
/// The largest piece that is asked of a source.
const LARGEST_PIECE: usize = 512 << 10;

/// Where files can be read from, in pieces.
pub trait Source: Sync {
    /// Why bytes could not be had.
    type Error: Send;

    /// The size of a file in bytes.
    fn size(&self, name: &str) -> impl Future<Output = Result<u64, Self::Error>> + Send;

    /// Exactly these bytes of a file; at most half a MiB is asked for at once, and never beyond the file's size.
    fn bytes(
        &self,
        name: &str,
        offset: u64,
        length: usize,
    ) -> impl Future<Output = Result<Vec<u8>, Self::Error>> + Send;
}

/// What all files of a model may take together, and what was read of them.
#[derive(Debug)]
pub(super) struct Budget {
    left: u64,
    hash: Sha256,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self { left: LARGEST_HEADER, hash: Sha256::new() }
    }

    /// A fingerprint of the headers and the files' sizes.
    pub(super) fn fingerprint(self) -> String {
        self.hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// A file from its beginning. What was taken is forgotten.
pub(super) struct Stream<'a, S> {
    source: &'a S,
    name: &'a str,
    size: u64,
    budget: &'a mut Budget,
    /// What was read and not taken yet, from `at` on.
    buffer: Vec<u8>,
    at: usize,
    /// Where the next piece begins.
    next: u64,
    piece: usize,
}

impl<'a, S: Source> Stream<'a, S> {
    pub(super) async fn open(source: &'a S, name: &'a str, budget: &'a mut Budget) -> Result<Self, Error<S::Error>> {
        let size = source.size(name).await.map_err(Error::Source)?;
        budget.hash.update(size.to_le_bytes());
        Ok(Self { source, name, size, budget, buffer: Vec::new(), at: 0, next: 0, piece: FIRST_PIECE })
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// How much was taken.
    pub(super) fn position(&self) -> u64 {
        self.next - (self.buffer.len() - self.at) as u64
    }

    pub(super) fn fault(&self, fault: Fault) -> Error<S::Error> {
        Error::Fault { file: self.name.to_owned(), fault }
    }

    /// The next bytes. `length` is checked by the caller: it is kept in memory.
    pub(super) async fn take(&mut self, length: usize) -> Result<&[u8], Error<S::Error>> {
        while self.buffer.len() - self.at < length {
            self.fill().await?;
        }
        let taken = self.at..self.at + length;
        self.at = taken.end;
        let bytes = self.buffer.get(taken).unwrap_or_default();
        self.budget.hash.update(bytes);
        Ok(bytes)
    }

    /// Sees that so many bytes can follow, before each of them is read.
    pub(super) fn has_room(&self, length: u64) -> Result<(), Error<S::Error>> {
        if length > self.size - self.position() {
            return Err(self.fault(Fault::Truncated));
        }
        if length > self.budget.left + (self.buffer.len() - self.at) as u64 {
            return Err(self.fault(Fault::TooLarge));
        }
        Ok(())
    }

    /// Steps over bytes, of which no more than a piece is kept at a time.
    pub(super) async fn skip(&mut self, mut length: u64) -> Result<(), Error<S::Error>> {
        self.has_room(length)?;
        while length > 0 {
            let step = length.min(FIRST_PIECE as u64);
            self.take(usize::try_from(step).unwrap_or(FIRST_PIECE)).await?;
            length -= step;
        }
        Ok(())
    }

    async fn fill(&mut self) -> Result<(), Error<S::Error>> {
        let rest = self.size - self.next;
        if rest == 0 {
            return Err(self.fault(Fault::Truncated));
        }
        if self.budget.left == 0 {
            return Err(self.fault(Fault::TooLarge));
        }
        let length = (self.piece as u64).min(rest).min(self.budget.left);
        let wanted = usize::try_from(length).unwrap_or(FIRST_PIECE);
        let bytes = self.source.bytes(self.name, self.next, wanted).await.map_err(Error::Source)?;
        if bytes.len() != wanted {
            return Err(self.fault(Fault::Truncated));
        }
        self.buffer.drain(..self.at);
        self.at = 0;
        self.buffer.extend(bytes);
        self.next += length;
        self.budget.left -= length;
        self.piece = (self.piece * 2).min(LARGEST_PIECE);
        Ok(())
    }

    pub(super) async fn byte(&mut self) -> Result<u8, Error<S::Error>> {
        Ok(self.array::<1>().await?[0])
    }

    pub(super) async fn u16(&mut self) -> Result<u16, Error<S::Error>> {
        self.array().await.map(u16::from_le_bytes)
    }

    pub(super) async fn u32(&mut self) -> Result<u32, Error<S::Error>> {
        self.array().await.map(u32::from_le_bytes)
    }

    pub(super) async fn u64(&mut self) -> Result<u64, Error<S::Error>> {
        self.array().await.map(u64::from_le_bytes)
    }

    /// A text of at most `most` bytes. What is not UTF-8 in it is replaced.
    pub(super) async fn text(&mut self, what: &'static str, most: usize) -> Result<String, Error<S::Error>> {
        let length = self.u64().await?;
        match usize::try_from(length).ok().filter(|length| *length <= most) {
            Some(length) => Ok(String::from_utf8_lossy(self.take(length).await?).into_owned()),
            None => Err(self.fault(Fault::TooLong { what, length })),
        }
    }

    async fn array<const N: usize>(&mut self) -> Result<[u8; N], Error<S::Error>> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N).await?);
        Ok(bytes)
    }
}
