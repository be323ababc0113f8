//! Hosted models (service API, Chat completions).

use serde::{Deserialize, Serialize};

/// A model of the console's marketplace.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::sandbox) struct ChatModel {
    /// What requests name it by.
    pub(in crate::sandbox) name: String,
    /// Whether it was enabled in the console; others are unknown to the chat endpoint.
    pub(in crate::sandbox) enabled: bool,
}
