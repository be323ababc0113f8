//! Model files that are in memory.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
};

use damodel_llama::ModelBytes;

/// Files in memory: their headers, and their lengths with the data.
#[derive(Debug, Default)]
pub(crate) struct Files {
    files: BTreeMap<String, (Vec<u8>, u64)>,
    /// The number of requested bytes.
    pub(crate) asked: AtomicU64,
}

impl Files {
    pub(crate) fn with(mut self, name: &str, header: Vec<u8>, length: u64) -> Self {
        self.files.insert(name.to_owned(), (header, length));
        self
    }
}

impl ModelBytes for Files {
    type Error = String;

    async fn size(&self, name: &str) -> Result<u64, String> {
        self.files.get(name).map(|(_, length)| *length).ok_or_else(|| format!("no file {name}"))
    }

    async fn bytes(&self, name: &str, offset: u64, length: usize) -> Result<Vec<u8>, String> {
        let (header, size) = self.files.get(name).ok_or_else(|| format!("no file {name}"))?;
        assert!(length <= 512 << 10 && offset + length as u64 <= *size, "{length} bytes from {offset} of {size}");
        self.asked.fetch_add(length as u64, Ordering::Relaxed);
        // Zeros follow the header.
        let start = usize::try_from(offset).unwrap().min(header.len());
        let mut bytes = header[start..(start + length).min(header.len())].to_vec();
        bytes.resize(length, 0);
        Ok(bytes)
    }
}
