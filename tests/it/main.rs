//! The integration tests, one binary: each topic is a module, listed here.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod acceptance;
mod adopt;
mod api;
mod api_chat;
mod audit;
mod command_line;
mod conformance;
mod demo;
mod docs;
mod echo;
mod examples;
mod fuzz;
mod house;
mod install;
mod layers;
mod lives;
mod pending;
mod plugin;
mod plugin_end;
mod plugin_panic;
mod plugin_tls;
mod protocol;
mod protocol_actions;
mod protocol_descriptor;
mod protocol_ephemeral;
mod protocol_fixture;
mod protocol_functions;
mod protocol_identity;
mod protocol_life;
mod protocol_list;
mod protocol_log;
mod protocol_places;
mod protocol_unoffered;
mod reference;
mod release;
mod review;
#[cfg(unix)]
mod sandbox_answers;
#[cfg(unix)]
mod sandbox_build;
mod sandbox_chat;
mod sandbox_client;
mod sandbox_command;
mod sandbox_control;
mod sandbox_faults;
mod sandbox_fixtures;
#[cfg(unix)]
mod sandbox_home;
#[cfg(unix)]
mod sandbox_ssh;
#[cfg(unix)]
mod sandbox_stand_in;
#[cfg(unix)]
mod sandbox_yard;
mod ssh_commands;
mod ssh_connect;
mod ssh_host_key;
mod ssh_http;
mod ssh_login;
mod ssh_password;
mod state_fixtures;
mod support;
mod watch;
