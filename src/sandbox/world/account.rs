//! Accounts, and what they may do.

use serde::{Deserialize, Serialize};

use crate::sandbox::secret::Secret;

/// An account of the service (service API, Authentication).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::sandbox) struct Account {
    pub(in crate::sandbox) name: String,
    /// X-Service-Token.
    pub(in crate::sandbox) token: Secret,
    /// The bearer key of the chat endpoint.
    pub(in crate::sandbox) chat_key: Secret,
    /// What the main account can still spend.
    pub(in crate::sandbox) balance: f64,
    /// Whether the main account has real-name certification.
    pub(in crate::sandbox) certified: bool,
    /// Whether the account or its risk state forbids creating instances.
    pub(in crate::sandbox) at_risk: bool,
    /// Whether cloud disk operations and storage specification queries are permitted.
    pub(in crate::sandbox) may_use_disks: bool,
}
