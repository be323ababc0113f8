//! What tells one kind of create from another.

use serde_json::Value;

use crate::api::{client::Client, endpoint::Endpoint, marker, object::Object, pending::Record, settings::Random};

/// A wanted object, and how it is asked for.
pub trait Creation: Send + Sync + 'static {
    /// What it makes.
    type Object: Object;

    /// The endpoint that makes it.
    const ENDPOINT: Endpoint;

    /// The name that it is to have in the end.
    fn wanted_name(&self) -> Option<&str>;

    /// The name that is sent, by which the object is found without an answer. `key` is the create's.
    #[doc(hidden)]
    fn marker(&self, key: &str, random: &Random) -> String {
        marker::mark(self.wanted_name(), key, random)
    }

    /// The request, with the name that is sent.
    fn body(&self, marker: &str) -> Value;

    /// The name of this request among several choices; `None` if it is the only one.
    fn candidate(&self) -> Option<String> {
        None
    }

    /// What is asked for, as JSON without a marker. It is equal for the same wanted object, so that a key can be made
    /// of it, and equal for all choices of one create.
    fn wanted(&self) -> Value {
        self.body(self.wanted_name().unwrap_or_default())
    }

    /// Whether a create that sent this made the object.
    #[doc(hidden)]
    fn made(&self, object: &Self::Object, sent: &Record, _client: &Client) -> bool {
        object.name() == Some(&sent.marker)
    }
}
