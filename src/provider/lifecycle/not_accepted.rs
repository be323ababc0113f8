//! What an operator reads of a create that was not accepted.

use super::{Managed, ManagedExt as _, noun};
use crate::{
    api::Error,
    framework::Diagnostic,
    provider::{Client, errors::Failure},
};

/// The diagnostic, at the attribute to blame.
pub(super) fn diagnostic<M: Managed>(
    error: &Error,
    planned: &M,
    client: &Client,
    more: Option<String>,
    is_set: impl Fn(&str) -> bool,
) -> Diagnostic {
    let noun = noun::<M>();
    let mut now = match error {
        Error::Unsettled(unsettled) => format!(
            "Whether a {noun} was created is not known. If it was, its name is {:?}, and its pending record is in {}. The next apply \
             looks for it first.",
            unsettled.marker,
            client.journal.directory().display()
        ),
        Error::SeveralMatches { .. } => format!("At least one {noun} too many was created."),
        _ => "Nothing was created.".to_owned(),
    };
    if let Some(more) = more {
        now = format!("{now} {more}");
    }
    Failure { error, tried: format!("create {}", planned.title()), now }.diagnostic(is_set)
}
