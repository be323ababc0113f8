//! What each call does: decode, ask the framework's server, encode. One file a group of calls.

mod action;
mod data_source;
mod ephemeral;
mod function;
mod generate;
mod list_resource;
mod metadata;
mod provider;
mod resource;
mod resource_change;
mod validate;
