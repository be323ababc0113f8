//! The integration tests, one binary: each topic is a module, listed here.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod acceptance;
mod api;
mod api_chat;
mod conformance;
mod demo;
mod echo;
mod examples;
mod house;
mod layers;
mod pending;
mod plugin;
mod plugin_end;
mod plugin_panic;
mod plugin_tls;
mod protocol;
mod protocol_descriptor;
mod protocol_fixture;
mod protocol_life;
mod protocol_log;
mod protocol_unoffered;
mod sandbox_chat;
mod sandbox_client;
mod sandbox_command;
mod sandbox_control;
mod sandbox_faults;
mod sandbox_fixtures;
mod support;
