//! The service simulated on loopback, for tests, demonstrations and trials without costs.
//!
//! Written from the service API document alone: it shares no type with `api`, refuses what the document does not name,
//! and has an option for each form that the document leaves open ([`Form`]). It depends on no other crate of ours;
//! hyper is used directly, because a fault can close a connection without an answer.
//!
//! It simulates the whole service: the chat, instances, cloud disks, images and specifications, with every rule, state,
//! limit and error code.
//!
//! - [`Sandbox::start`] runs one inside a process; `terraform-provider-damodel sandbox` runs one from the command line.
//! - A [`Fault`] makes requests fail, a [`Mutation`] changes the world without a client, and the [`Ledger`] lists all
//!   requests and their effects.
//! - The control interface under `/sandbox/` offers the same to other processes. It is not part of the service.
//! - States follow from due times and the life clock at each request ([`LifeClock`]); the service has no background
//!   tasks.
//! - A Running instance accepts SSH logins: it has an sshd on a loopback port, a home, a port space of its own, and a
//!   public storage with an inference server ([`stand_in`]). Its processes are real, and continue between requests.
//!
//! It is not a security boundary: tokens follow from the seed, and any program that reaches the port controls it. So it
//! listens on loopback only.

#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test that cannot go on has failed"))]

mod answer;
mod chat;
mod clock;
mod control;
mod endpoints;
mod fault;
mod files;
mod form;
mod handle;
mod ledger;
mod machines;
mod mutation;
mod openai;
mod options;
mod query;
mod random;
mod refusal;
mod render;
mod running;
mod server;
mod service;
pub mod stand_in;
mod world;

#[cfg(test)]
mod tests;

pub use self::{
    fault::{ArmedFault, Fault, FaultAction, Shape, When},
    files::{FileRequest, FileService},
    form::{
        Booleans, ChatError, ChatStream, DiskRefusal, Empty, ErrorShape, ErrorStatus, Form, FormError, Integers,
        ListOrder, Metadata, Released, ReleasedDisks, Resize, Uploading,
    },
    handle::{Sandbox, SandboxAccount},
    ledger::{Balance, Ledger, LedgerObject, LifeEvent, LifeKind, RequestEntry},
    machines::MachineView,
    mutation::{Mutation, MutationError, StateList},
    options::{Error, LifeClock, Options},
    refusal::Code,
    running::Running,
};
