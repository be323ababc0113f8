//! What each call does: decode, ask the framework's server, encode. One file a group of calls.

mod offers;
mod provider;
mod resource;
mod streams;

use super::{
    convert,
    service::{Answered, Call, Message},
};
