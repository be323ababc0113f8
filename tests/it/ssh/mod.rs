//! The SSH client against a real OpenSSH server.

mod commands;
mod connect;
mod host_key;
mod http;
mod login;
mod password;
