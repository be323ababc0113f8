//! What each call does: decode, ask the framework's server, encode. One file a group of calls.

mod provider;
mod resource;

use super::{
    convert,
    service::{Answered, Call, Message},
};
