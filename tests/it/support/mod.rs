//! What several topics need.

pub(crate) mod plugin;
pub(crate) mod proto;
mod tls;
