//! Private data that the core stores with a state or plan.

use std::collections::BTreeMap;

use serde::{Serialize, de::DeserializeOwned};

/// The private data of a resource, which the core stores with the state, never shows, and sends back (plugin protocol,
/// messages).
///
/// It is JSON by key. The state file has it in clear, so it must not contain secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Private(BTreeMap<String, serde_json::Value>);

impl Private {
    /// Reads the bytes that the core sent back. Anything but a JSON object counts as empty, because older or foreign
    /// data must not make an instance unmanageable.
    pub fn decode(bytes: &[u8]) -> Self {
        Self(serde_json::from_slice(bytes).unwrap_or_default())
    }

    /// The bytes for the core; empty if no entry is kept.
    pub fn encode(&self) -> Vec<u8> {
        if self.0.is_empty() { Vec::new() } else { serde_json::to_vec(&self.0).unwrap_or_default() }
    }

    /// The entry under `key`, if it exists and has the requested type.
    pub fn entry<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        self.0.get(key).and_then(|value| T::deserialize(value).ok())
    }

    /// Stores an entry. A value that JSON cannot represent is dropped.
    pub fn insert(&mut self, key: &str, value: impl Serialize) {
        if let Ok(value) = serde_json::to_value(value) {
            self.0.insert(key.to_owned(), value);
        }
    }

    /// Removes an entry.
    pub fn remove(&mut self, key: &str) {
        self.0.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_survive_the_core() {
        let mut private = Private::default();
        private.insert("created_at", 1_700_000_000);
        let back = Private::decode(&private.encode());
        assert_eq!(back.entry::<i64>("created_at"), Some(1_700_000_000));
        assert_eq!(back.entry::<String>("created_at"), None);
    }

    #[test]
    fn foreign_bytes_count_as_empty() {
        assert_eq!(Private::decode(b"\x00not json"), Private::default());
        assert!(Private::decode(b"").encode().is_empty());
    }
}
