//! The calls: decode, call the framework's server, encode. One file for each group of calls.

mod provider;
mod resource;

use super::{
    convert,
    service::{Answered, Call, Message},
};
