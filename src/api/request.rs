//! What is asked, and the mark that a change leaves while it is under way.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use serde_json::Value;

use crate::api::endpoint::Endpoint;

/// What is asked: an endpoint and its parameters.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) endpoint: Endpoint,
    /// What the path ends with, where it names its object.
    id: Option<i64>,
    pub(super) query: Vec<(&'static str, String)>,
    pub(super) body: Option<Bytes>,
}

impl Request {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, id: None, query: Vec::new(), body: None }
    }

    /// Names the object in the path (service API, DELETE /api/image/delete/{image_id}).
    pub(super) fn id(mut self, id: i64) -> Self {
        self.id = Some(id);
        self
    }

    pub(super) fn query(mut self, name: &'static str, value: impl ToString) -> Self {
        self.query.push((name, value.to_string()));
        self
    }

    pub(super) fn body(mut self, body: &Value) -> Self {
        self.body = Some(Bytes::from(body.to_string()));
        self
    }

    /// The path below the base address.
    pub(super) fn path(&self) -> String {
        let id = self.id.map(|id| id.to_string()).unwrap_or_default();
        format!("{}{id}", self.endpoint.path())
    }
}

/// A change under way: what was asked before its end is old after it, however it ends.
pub(super) struct Change<'a>(&'a AtomicU64);

impl<'a> Change<'a> {
    pub(super) fn begin(changes: &'a AtomicU64) -> Self {
        changes.fetch_add(1, Ordering::SeqCst);
        Self(changes)
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}
