//! Processes and their files, as each operating system has them: the parent and its end, signals, and locks that end
//! with their holder. It depends on no other layer.

mod files;
mod parent;
mod signals;

pub(crate) use self::{
    files::{FileLock, is_locked, private, private_directory, replace},
    parent::Parent,
    signals::{Signals, interrupt, kill, told_to_end},
};
