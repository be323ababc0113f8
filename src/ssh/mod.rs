//! SSH, for whoever drives a machine through it: sessions, bastions, host keys, commands, forwards, and HTTP
//! through a channel.
//!
//! [`connect`] waits until the server lets us in and runs a command; the [`Session`] it gives does the rest. Nothing
//! here knows of Terraform or of the service, and nothing else of the crate is named. The environment and the user's
//! own SSH settings are not read: what is used is in the [`Target`].
//!
//! Three rules hold everywhere. A host key that the pin refuses ends a connection before any credential is sent. No
//! secret reaches an argument list, a log, an error or `Debug`. Every wait ends: by a limit of [`Limits`], by the
//! deadline of [`connect`], or by its token.
//!
//! The protocol is RFC 4251 to 4254 and 8332, with OpenSSH's extensions, as russh speaks it; russh and hyper are
//! imported here and in the sandbox alone.

mod agent;
mod connect;
mod connection;
mod credentials;
mod error;
mod exec;
mod forward;
mod handler;
mod host_key;
pub mod http;
mod identity;
mod limits;
mod link;
mod login;
mod output;
mod session;
mod stream;
mod target;

pub use connect::{connect, log_in};
pub use credentials::Credentials;
pub use error::Error;
pub use forward::Forward;
pub use host_key::{HostKey, Pin};
pub use http::Body;
pub use limits::Limits;
pub use link::Link;
pub use output::{Exit, Output};
pub use session::Session;
pub use stream::Stream;
pub use target::Target;
