//! The endpoints of the OpenAPI, one file each or one for a few that are alike. The chat endpoint, which has no
//! envelope, is in `chat`.
//!
//! An endpoint is a value of [`Endpoint`], listed in [`ENDPOINTS`]; one more is one file and one line.

mod cloud_disk_change;
mod cloud_disk_create;
mod cloud_disk_read;
mod cloud_disk_record;
mod image_change;
mod image_read;
mod image_save;
mod instance_create;
mod instance_disks;
mod instance_image;
mod instance_read;
mod instance_record;
mod instance_release;
mod instance_rename;
mod instance_request;
mod specs;

use axum::http::Method;
use serde_json::Value;

use super::{
    errors::{Code, Refusal},
    fields::Fields,
    form::Form,
    query::Query,
    random::Random,
    tempo::Tempo,
    world::{Account, Visibility, World},
};

/// Every endpoint that the sandbox has.
pub(super) const ENDPOINTS: [&Endpoint; 17] = [
    &instance_create::ENDPOINT,
    &instance_read::LIST,
    &instance_read::DETAIL,
    &instance_rename::ENDPOINT,
    &instance_release::ENDPOINT,
    &cloud_disk_create::ENDPOINT,
    &cloud_disk_read::LIST,
    &cloud_disk_change::RENAME,
    &cloud_disk_change::RESIZE,
    &cloud_disk_change::RELEASE,
    &cloud_disk_read::SPEC_LIST,
    &image_read::PUBLIC_LIST,
    &image_read::PRIVATE_LIST,
    &image_save::ENDPOINT,
    &image_change::RENAME,
    &image_change::DELETE,
    &specs::LIST,
];

/// An endpoint (service API, Endpoints).
#[derive(Debug)]
pub(super) struct Endpoint {
    /// Its name in faults and ledgers.
    pub(super) name: &'static str,
    pub(super) method: Method,
    pub(super) path: &'static str,
    /// Answers an authenticated request.
    pub(super) handle: fn(&mut Context<'_>, &Input<'_>) -> Result<Value, Refusal>,
}

/// What an endpoint reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Input<'a> {
    pub(super) path: &'a str,
    pub(super) query: &'a str,
    pub(super) content_type: Option<&'a str>,
    pub(super) body: &'a [u8],
}

impl Input<'_> {
    pub(super) fn query(&self) -> Result<Query, Refusal> {
        Query::parse(self.query)
    }

    pub(super) fn fields(&self) -> Result<Fields, Refusal> {
        Fields::of_body(self.content_type, self.body)
    }

    /// The number that ends the path.
    pub(super) fn path_id(&self, name: &str) -> Result<i64, Refusal> {
        let text = self.path.rsplit('/').next().unwrap_or_default();
        text.parse().map_err(|_| Refusal::invalid(format!("{name}: expected an integer, got {text:?}")))
    }

    /// Refuses a body where the document has none.
    pub(super) fn no_body(&self) -> Result<(), Refusal> {
        if self.body.is_empty() { Ok(()) } else { Err(Refusal::invalid("body: none is expected")) }
    }

    /// Refuses query parameters where the document has none.
    pub(super) fn no_query(&self) -> Result<(), Refusal> {
        self.query()?.finish()
    }
}

/// What a fault wants of the thing that a call creates.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CreationWish {
    pub(super) fail: bool,
    pub(super) stick: bool,
    pub(super) hidden_ms: i64,
    pub(super) hidden_reads: u32,
}

/// What an endpoint works with.
#[derive(Debug)]
pub(super) struct Context<'a> {
    pub(super) world: &'a mut World,
    pub(super) form: &'a Form,
    /// For the order of lists.
    pub(super) random: &'a mut Random,
    /// The name of the account that asks.
    pub(super) account: &'a str,
    /// The life clock.
    pub(super) now_ms: i64,
    pub(super) tempo: Tempo,
    pub(super) wish: CreationWish,
    /// The uids or ids that the call creates.
    pub(super) created: Vec<String>,
    /// The uids or ids whose end the call begins.
    pub(super) released: Vec<String>,
    /// Whether the world is another than before.
    pub(super) changed: bool,
}

impl Context<'_> {
    /// The account that asks.
    fn asking(&self) -> Option<&Account> {
        self.world.account(self.account)
    }

    /// When what the call creates shows up in lists and details.
    fn visibility(&self) -> Visibility {
        Visibility { from_ms: self.now_ms.saturating_add(self.wish.hidden_ms), after_reads: self.wish.hidden_reads }
    }

    /// Refuses an account that has nothing left. What a cloud disk or an image costs is not in the document, so any
    /// balance above 0 is enough.
    fn require_balance(&self) -> Result<(), Refusal> {
        match self.asking() {
            Some(account) if account.balance <= 0.0 => {
                Err(Refusal::new(Code::BalanceNotEnough, "the main account's balance is too low"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Cloud disk operations and storage specification queries need a permission (service API, Authentication).
    fn require_disk_permission(&self) -> Result<(), Refusal> {
        if self.asking().is_some_and(|account| account.may_use_disks) {
            Ok(())
        } else {
            Err(Refusal::new(Code::PermissionDenied, "cloud disks are not permitted to this account"))
        }
    }
}

/// A name that a thing can have. The document calls a name "malformed" without a rule; here it has 1 to 128 characters,
/// no control characters and no white space at its ends.
fn name_problem(name: &str) -> Option<&'static str> {
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
