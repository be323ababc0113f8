//! The service simulated on loopback, for tests, demonstrations and trying things out without a bill.
//!
//! Written from the service API document alone: it shares no type with `api`, refuses what the document does
//! not name, and lets the forms that the document leaves open be chosen ([`Form`]). It depends on nothing inside the
//! crate; hyper is used directly where a fault closes a connection without an answer.
//!
//! It simulates the whole service: the chat, instances, cloud disks, images and specifications, with every rule, state,
//! limit and error code.
//!
//! - [`Sandbox::start`] runs one inside a process; `terraform-provider-damodel sandbox` runs one from the command line.
//! - [`Fault`] says what goes wrong, [`Mutation`] what happens behind the client's back, [`Ledger`] what was asked and
//!   what came of it.
//! - The control interface under `/sandbox/` offers the same to other processes. It is not part of the service.
//! - States follow from moments and the life clock on each request ([`LifeClock`]); nothing of the service runs in the
//!   background.
//! - A Running instance can be logged into: it has an sshd on a loopback port, a home, a port space of its own, and a
//!   public storage with an inference server ([`stand_in`]). Its processes are real ones, and go on between requests.
//!
//! It is no security boundary: tokens follow from the seed, and whoever reaches the port controls it. So it listens on
//! loopback only.

#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test that cannot go on has failed"))]

mod answer;
mod chat;
mod clock;
mod control;
mod endpoints;
mod fault;
mod form;
mod ledger;
mod machines;
mod options;
mod query;
mod render;
mod running;
mod server;
mod service;
pub mod stand_in;
mod world;

#[cfg(test)]
mod tests;

pub use self::{
    clock::LifeClock,
    control::{Mutation, MutationError},
    fault::{Action, ArmedFault, Fault, Shape, When},
    form::{
        Booleans, ChatError, ChatStream, DiskRefusal, Empty, ErrorShape, ErrorStatus, Form, FormError, Integers,
        Metadata, Order, Released, ReleasedDisks, Resize, Uploading,
    },
    ledger::{Balance, Ledger, LifeEvent, LifeKind, RequestEntry, Thing},
    machines::MachineView,
    options::{Error, Options},
    render::Code,
    running::{Account, Running, Sandbox},
};
