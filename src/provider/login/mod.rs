//! The login to an instance: its arguments, the service's access data, its failures, and what is done with a session.
//! All that logs in to instances shares it.

mod access;
mod arguments;
mod failure;
mod files;
pub(crate) mod schema;

#[cfg(test)]
pub(crate) use self::arguments::Bastion;
pub(super) use self::files::InstanceFiles;
pub(crate) use self::{
    access::{Access, USER, running},
    arguments::{Login, Ssh, WriteOnly},
    failure::{NoLogin, SshFailure, no_credentials},
};
