//! The warning about creates whose runs are gone.

use std::time::Duration;

use super::{
    ProviderClient,
    words::{capitalized, indented, keep_or_delete},
};
use crate::{
    api::Context,
    creation::{CreatePhase, PendingRecord},
    framework::{Diagnostic, Diagnostics},
    review::rules::and_more,
};

/// The time limit of the token program; the token is only needed to name the account of a record.
const PATIENCE: Duration = Duration::from_secs(30);

/// The number of records in the warning.
const NAMED: usize = 10;

/// The warning about creates whose runs are gone.
pub(super) async fn warn_of_pending(client: &ProviderClient, limits: &Context) -> Diagnostics {
    let journal = client.journal.clone();
    let left = match limits.blocking(move || journal.left_behind()).await {
        Some(Ok(left)) if !left.is_empty() => left,
        Some(Err(error)) => {
            tracing::warn!(%error, "pending records could not be read");
            return Diagnostics::new();
        }
        _ => return Diagnostics::new(),
    };
    let account = client.api.fingerprint(&limits.at_most(PATIENCE)).await.ok();
    let mut lines: Vec<String> =
        left.iter().take(NAMED).map(|listed| line(&listed.record, account.as_deref(), client)).collect();
    if left.len() > NAMED {
        lines.push(format!("- {}", and_more(left.len() - NAMED)));
    }
    let (summary, them) = match left.len() {
        1 => ("An earlier run did not finish creating an object".to_owned(), "it"),
        count => (format!("Earlier runs did not finish creating {count} objects"), "them"),
    };
    Diagnostic::warning(
        summary,
        format!(
            "{}\n\nIf its address is in the configuration and not in the state yet, the next apply resumes a create, \
             or stops before it buys anything if an argument has changed. What no state has is billed until it is \
             released. To see what became of {them}: terraform-provider-damodel pending --pending-dir {}",
            lines.join("\n"),
            client.journal.directory().display()
        ),
    )
    .into()
}

fn line(record: &PendingRecord, account: Option<&str>, client: &ProviderClient) -> String {
    let noun = capitalized(record.kind.noun());
    let id = record.ids.as_ref().map(|ids| ids.id.as_str());
    let name = &record.marker;
    let whose = match account {
        _ if client.base_url().as_deref() != Some(&record.base_url) => {
            format!("at another service, {}", record.base_url)
        }
        Some(account) if account == record.account.token => "in this account".to_owned(),
        _ => "with another API token, perhaps of another account".to_owned(),
    };
    let what = match record.phase {
        CreatePhase::Accepted | CreatePhase::Finished => "was created",
        CreatePhase::Sent => "may have been created",
    };
    match id {
        Some(id) => format!(
            "- {noun} {id} ({name:?}) {what} {whose}. If no state has it:{}",
            indented(&keep_or_delete(record.kind, id))
        ),
        None => format!("- {noun} {name:?} {what} {whose}"),
    }
}
