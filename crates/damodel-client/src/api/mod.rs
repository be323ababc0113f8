//! The client of the service, independent of Terraform. Of the other folders it uses `process` only.
//!
//! [`Client`] is made from [`Settings`] and returns the endpoint groups of the service API: [`Objects`] of each kind
//! and [`Specs`]. Every call takes a [`Context`] with its time limit, and fails with an [`Error`] that states how far
//! the request got.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//!
//! use damodel_client::api::{BaseUrl, Client, Context, PlainHttp, Settings, TokenSource};
//! use tokio_util::sync::CancellationToken;
//!
//! let client = Client::new(Settings {
//!     base_url: Some(BaseUrl::parse("http://127.0.0.1:8080", PlainHttp::LoopbackOnly)?),
//!     token: Some(TokenSource::Command(vec!["pass".to_owned(), "damodel/token".to_owned()])),
//!     ..Settings::default()
//! });
//! let context = Context::within(Duration::from_secs(60), &CancellationToken::new());
//! let specs = client.specs().snapshot("region-1", &context).await?;
//! println!("{} specifications", specs.records.len());
//! # Ok(())
//! # }
//! ```

mod beside;
mod catalogue;
mod chat;
mod client;
mod cloud_disks;
mod code;
mod context;
mod encoding;
mod endpoint;
mod envelope;
mod error;
mod flight;
mod instances;
mod lenient;
mod listing;
mod object;
mod pages;
mod presence;
mod private_images;
mod progress;
mod proxies;
mod records;
mod redact;
mod remote_file;
pub(crate) mod retry;
mod save_image;
mod settings;
mod snapshots;
mod token;
mod transport;
mod watch;
mod witness;

pub use self::catalogue::PublicImageFilter;
pub use self::catalogue::Specs;
pub use self::cloud_disks::CreateCloudDisk;
pub use self::instances::{CreateInstance, ExistDisk, ImageSelector, LoginMethod, NewDisk, Payment, SpecSelector};
pub use self::witness::Witness;
pub use chat::{
    ChatAnswer, ChatAssembly, ChatMessage, ChatRequest, ChatUsage, EventError, EventStream, Pushed, ServerEvent,
};
pub use client::{Client, GRACE};
pub use cloud_disks::{CloudDiskFilter, CloudDiskSpecFilter};
pub use code::Code;
pub use context::Context;
pub use encoding::{trimmed, without_mark};
pub use endpoint::{Effect, Endpoint};
pub use error::{
    Cause, ConnectFailure, Error, HeldElsewhere, JournalError, Missing, Refusal, RequestIds, ServiceError, TokenError,
    UnreadAnswer, Unsettled, WaitEnded,
};
pub use instances::InstanceFilter;
pub use lenient::Lenient;
pub use listing::Listing;
pub use object::{Creation, Ids, Object, ObjectKind, Objects, is_same_name};
pub use presence::{Absence, AccountMatch, LastSeen, Presence};
pub use progress::{Event as ProgressEvent, Progress, Stage, Task, WaitEnding};
pub use proxies::Proxies;
pub use records::{
    CloudDisk, CloudDiskSpec, DetailFields, Guarded, Instance, InstanceDetail, InstanceStatus, InstanceUid,
    PrivateImage, PublicImage, Record, Spec, WithJson, disk_status,
};
pub use redact::LOGGABLE;
pub use remote_file::{RemoteError, RemoteFile};
pub use save_image::SaveImage;
pub use settings::{BaseUrl, InvalidBaseUrl, PlainHttp, Random, Settings, TokenSource, UserAgent, credential};
pub use transport::{Answering, IncomingAnswer, Outgoing, SendFailure, Transport};
pub use watch::Sighting;
pub use witness::AccountFingerprints;

pub(crate) use {context::Ended, endpoint::Request, flight::Freshness, records::read};

#[cfg(test)]
pub(crate) mod testing;
