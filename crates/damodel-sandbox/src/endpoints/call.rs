//! A call of an endpoint: what it reads, and the state that it changes.

use axum::http::Method;
use serde_json::Value;

use crate::{
    clock::Tempo,
    form::Form,
    query::{Fields, Query},
    random::RandomStream,
    refusal::{Code, ServiceRefusal},
    world::{Account, Visibility, World},
};

/// An endpoint (service API, Endpoints).
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// Its name in faults and ledgers.
    pub(crate) name: &'static str,
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    /// Answers an authenticated request.
    pub(crate) handle: fn(&mut CallContext<'_>, &EndpointInput<'_>) -> Result<Value, ServiceRefusal>,
}

/// The parts of a request that an endpoint reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndpointInput<'a> {
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    pub(crate) content_type: Option<&'a str>,
    pub(crate) body: &'a [u8],
}

impl EndpointInput<'_> {
    pub(crate) fn query(&self) -> Result<Query, ServiceRefusal> {
        Query::parse(self.query)
    }

    pub(crate) fn fields(&self) -> Result<Fields, ServiceRefusal> {
        Fields::of_body(self.content_type, self.body)
    }

    /// The number that ends the path.
    pub(crate) fn path_id(&self, name: &str) -> Result<i64, ServiceRefusal> {
        let text = self.path.rsplit('/').next().unwrap_or_default();
        text.parse().map_err(|_| ServiceRefusal::invalid(format!("{name}: expected an integer, got {text:?}")))
    }

    /// Refuses any body: the document names none for this endpoint.
    pub(crate) fn no_body(&self) -> Result<(), ServiceRefusal> {
        if self.body.is_empty() { Ok(()) } else { Err(ServiceRefusal::invalid("body: none is expected")) }
    }

    /// Refuses any query parameter: the document names none for this endpoint.
    pub(crate) fn no_query(&self) -> Result<(), ServiceRefusal> {
        self.query()?.finish()
    }
}

/// What a fault does to the object that a call creates.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CreationWish {
    pub(crate) fail: bool,
    pub(crate) stick: bool,
    pub(crate) hidden_ms: i64,
    pub(crate) hidden_reads: u32,
}

/// The state that an endpoint reads and changes.
#[derive(Debug)]
pub(crate) struct CallContext<'a> {
    pub(crate) world: &'a mut World,
    pub(crate) form: &'a Form,
    /// For the order of lists.
    pub(crate) random: &'a mut RandomStream,
    /// The name of the requesting account.
    pub(crate) account: &'a str,
    /// The life clock.
    pub(crate) now_ms: i64,
    pub(crate) tempo: Tempo,
    pub(crate) wish: CreationWish,
    /// The uids or ids that the call creates.
    pub(crate) created: Vec<String>,
    /// The uids or ids whose release the call begins.
    pub(crate) released: Vec<String>,
}

impl CallContext<'_> {
    /// The requesting account.
    pub(super) fn asking(&self) -> Option<&Account> {
        self.world.account(self.account)
    }

    /// When lists and details show the objects that the call creates.
    pub(super) fn visibility(&self) -> Visibility {
        Visibility { from_ms: self.now_ms.saturating_add(self.wish.hidden_ms), after_reads: self.wish.hidden_reads }
    }

    /// Refuses an account without balance. The document names no prices of cloud disks and images, so any balance above
    /// 0 is enough.
    pub(super) fn require_balance(&self) -> Result<(), ServiceRefusal> {
        match self.asking() {
            Some(account) if account.balance <= 0.0 => {
                Err(ServiceRefusal::new(Code::BalanceNotEnough, "the main account's balance is too low"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Cloud disk operations and storage specification queries need a permission (service API, Authentication).
    pub(super) fn require_disk_permission(&self) -> Result<(), ServiceRefusal> {
        if self.asking().is_some_and(|account| account.may_use_disks) {
            Ok(())
        } else {
            Err(ServiceRefusal::new(Code::PermissionDenied, "cloud disks are not permitted to this account"))
        }
    }
}

/// A field with the new name of an object.
pub(super) fn required_name(fields: &mut Fields, field: &str) -> Result<String, ServiceRefusal> {
    let name = fields.required_string(field)?;
    name_problem(&name).map_or(Ok(name), |problem| Err(fields.invalid(field, problem)))
}

/// The problem with an object's name, if any. The document calls a name "malformed" without a rule; here it has 1 to
/// 128 characters, no control characters and no white space at its ends.
pub(super) fn name_problem(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("must not be empty")
    } else if name.chars().count() > 128 {
        Some("must have at most 128 characters")
    } else if name.chars().any(char::is_control) || name.trim() != name {
        Some("must hold no control characters, and no white space at its ends")
    } else {
        None
    }
}
