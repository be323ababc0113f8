//! What each call does: decode, ask the framework's server, encode. One file a group of calls.

mod data_source;
mod metadata;
mod provider;
mod resource;
mod resource_change;
mod unoffered;
