//! The endpoints of the service, one file each (disks and images: one file for each group).
//!
//! An endpoint is a value of [`Endpoint`], listed in [`ENDPOINTS`]; one more is one file and one line.

mod cloud_disks;
mod images;
mod instance_create;
mod instance_disks;
mod instance_image;
mod instance_read;
mod instance_record;
mod instance_release;
mod instance_rename;
mod instance_request;
mod specs;

use axum::http::Method;
use serde_json::Value;

use super::{errors::Refusal, fields::Fields, form::Form, query::Query, random::Random, world::World};

/// Every endpoint that the sandbox has.
pub(super) const ENDPOINTS: [&Endpoint; 10] = [
    &instance_create::ENDPOINT,
    &instance_read::LIST,
    &instance_read::DETAIL,
    &instance_rename::ENDPOINT,
    &instance_release::ENDPOINT,
    &images::PUBLIC_LIST,
    &images::PRIVATE_LIST,
    &specs::LIST,
    &cloud_disks::LIST,
    &cloud_disks::SPEC_LIST,
];

/// An endpoint (service API, Endpoints).
#[derive(Debug)]
pub(super) struct Endpoint {
    /// Its name in faults and ledgers.
    pub(super) name: &'static str,
    pub(super) method: Method,
    pub(super) path: &'static str,
    /// Answers an authenticated request.
    pub(super) handle: fn(&mut Context<'_>, &Input<'_>) -> Result<Value, Refusal>,
}

/// What an endpoint reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Input<'a> {
    pub(super) query: &'a str,
    pub(super) content_type: Option<&'a str>,
    pub(super) body: &'a [u8],
}

impl Input<'_> {
    pub(super) fn query(&self) -> Result<Query, Refusal> {
        Query::parse(self.query)
    }

    pub(super) fn fields(&self) -> Result<Fields, Refusal> {
        Fields::of_body(self.content_type, self.body)
    }

    /// Refuses query parameters where the document has none.
    pub(super) fn no_query(&self) -> Result<(), Refusal> {
        self.query()?.finish()
    }
}

/// What a fault wants of the thing that a call creates.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CreationWish {
    pub(super) fail: bool,
    pub(super) stick: bool,
    pub(super) hidden_ms: i64,
    pub(super) hidden_reads: u32,
}

/// What an endpoint works with.
#[derive(Debug)]
pub(super) struct Context<'a> {
    pub(super) world: &'a mut World,
    pub(super) form: &'a Form,
    /// For the order of lists.
    pub(super) random: &'a mut Random,
    /// The name of the account that asks.
    pub(super) account: &'a str,
    /// The life clock.
    pub(super) now_ms: i64,
    pub(super) creation_ms: i64,
    pub(super) release_ms: i64,
    pub(super) wish: CreationWish,
    /// The uids that the call creates.
    pub(super) created: Vec<String>,
    /// The uids whose release the call begins.
    pub(super) released: Vec<String>,
    /// Whether the world is another than before.
    pub(super) changed: bool,
}

/// A name that a thing can have. The document calls a name "malformed" without a rule; here it has 1 to 128 characters, no control characters and no
/// white space at its ends.
fn name_problem(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("must not be empty")
    } else if name.chars().count() > 128 {
        Some("must have at most 128 characters")
    } else if name.chars().any(char::is_control) || name.trim() != name {
        Some("must hold no control characters, and no white space at its ends")
    } else {
        None
    }
}
