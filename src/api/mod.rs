//! The client of the service, independent of Terraform. Depends on no other folder of the crate.
//!
//! [`Client`] is made from [`Settings`] and returns the endpoint groups of the service API: [`Objects`] of each kind
//! and [`Specs`]. Every call takes a [`Context`] with its time limit, and fails with an [`Error`] that states how far
//! the request got.
//!
//! The modules:
//! - `settings`, `context` (limits and clock), `error`, `code`, `endpoint` (and requests): the vocabulary;
//! - `transport`, `envelope`, `lenient`, `records`, `redact`: from bytes to leniently read records, and to safe log
//!   lines;
//! - `chat`: requests to a model, and answers from a stream of events;
//! - `client`, `token`, `retry` (and pacing): one call;
//! - `listing`, `flight`, `snapshots` (specifications and public images too): complete lists, one request for all
//!   callers;
//! - `watch`: one poller for all waits of a kind;
//! - `create`, `pending`: creates that are sent once, and their journal;
//! - `object` (and markers), `presence` (and witnesses): the calls that all kinds share, and whether an object exists;
//! - `reservations`: the planned spending of creates in flight, for other runs;
//! - `progress`: the progress of waits, for other processes;
//! - `remote_file`: a file at any address, read in pieces without credentials;
//! - `instances`, `private_images`, `save_image`, `cloud_disks`: the endpoint groups.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//!
//! use damodel::api::{BaseUrl, Client, Context, PlainHttp, Settings, TokenSource};
//! use tokio_util::sync::CancellationToken;
//!
//! let client = Client::new(Settings {
//!     base_url: Some(BaseUrl::parse("http://127.0.0.1:8080", PlainHttp::LoopbackOnly)?),
//!     token: Some(TokenSource::Command(vec!["pass".to_owned(), "damodel/token".to_owned()])),
//!     ..Settings::default()
//! });
//! let context = Context::within(Duration::from_secs(60), &CancellationToken::new());
//! let specs = client.specs().fresh("region-1", &context).await?;
//! println!("{} specifications", specs.records.len());
//! # Ok(())
//! # }
//! ```

#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test that cannot go on has failed"))]

mod chat;
mod client;
mod cloud_disks;
mod code;
mod context;
mod create;
mod endpoint;
mod envelope;
mod error;
mod flight;
mod instances;
mod lenient;
mod listing;
mod object;
mod pending;
mod presence;
mod private_images;
mod progress;
mod records;
mod redact;
mod remote_file;
mod reservations;
mod retry;
mod save_image;
mod settings;
mod snapshots;
mod token;
mod transport;
mod watch;

pub use self::cloud_disks::CreateCloudDisk;
pub use self::instances::{CreateInstance, ExistDisk, ImageSelector, LoginMethod, NewDisk, Payment, SpecSelector};
pub use self::object::is_marked;
pub use self::presence::Witness;
pub use self::reservations::Quotes;
pub use self::snapshots::PublicImageFilter;
pub use self::snapshots::Specs;
pub use chat::{
    ChatAnswer, ChatAssembly, ChatMessage, ChatRequest, ChatUsage, EventError, EventStream, Pushed, ServerEvent,
};
pub use client::{Client, GRACE};
pub use cloud_disks::{CloudDiskFilter, CloudDiskSpecFilter};
pub use code::Code;
pub use context::Context;
pub use create::{
    Accepted, Attempt, Choices, CreateOptions, Creation, Evidence, Guard, Leftover, LeftoverKind, Origin, Permission,
    VISIBILITY_WINDOW, WhileBusy, request_hash,
};
pub use endpoint::{Effect, Endpoint};
pub use error::{
    Cause, Error, HeldElsewhere, JournalError, Missing, Refusal, RequestIds, ServiceError, UnreadAnswer, Unsettled,
    WaitEnded,
};
pub use instances::InstanceFilter;
pub use lenient::Lenient;
pub use listing::Listing;
pub use object::{Object, Objects};
pub use pending::{
    CreatePhase, Entry, Ids, Journal, JournalReport, Maker, ObjectKind, PendingCreate, PendingRecord, Scope,
    Unreadable, fingerprint,
};
pub use presence::{Absence, AccountFingerprints, AccountMatch, LastSeen, Presence};
pub use progress::{Event as ProgressEvent, Follower, Look, Progress, Stage, Task, Told, WaitEnding};
pub use records::{
    CloudDisk, CloudDiskSpec, DetailFields, Guarded, Instance, InstanceDetail, InstanceStatus, InstanceUid,
    PrivateImage, PublicImage, Record, Spec, WithJson, disk_status,
};
pub use redact::LOGGABLE;
pub use remote_file::{RemoteError, RemoteFile};
pub use reservations::{Reservation, Reservations};
pub use save_image::SaveImage;
pub use settings::{BaseUrl, InvalidBaseUrl, PlainHttp, Random, RequestRate, Settings, TokenSource, UserAgent};
pub use token::TokenError;
pub use transport::{Answering, IncomingAnswer, Outgoing, SendFailure, Transport};
pub use watch::Sighting;

#[cfg(test)]
mod testing;
