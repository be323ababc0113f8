//! What earlier runs left behind in the pending directory, told once a run.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Client, words::capitalized};
use crate::{
    api::{Context, Kind, PendingRecord, Phase},
    framework::{Diagnostic, Diagnostics},
};

/// How long the token program may take to tell whose account a record is of.
const PATIENCE: Duration = Duration::from_secs(30);

/// A warning for each record of an earlier run that nothing has resumed.
pub(super) async fn told(client: &Client) -> Diagnostics {
    let mut diagnostics = Diagnostics::new();
    let journal = client.journal.clone();
    let left = match tokio::task::spawn_blocking(move || journal.left_behind()).await {
        Ok(Ok(left)) if !left.is_empty() => left,
        Ok(Err(error)) => {
            tracing::warn!(%error, "pending records could not be read");
            return diagnostics;
        }
        _ => return diagnostics,
    };
    let context = Context::within(PATIENCE, &CancellationToken::new());
    let account = client.api.fingerprint(&context).await.ok();
    for listed in &left {
        diagnostics.push(warning(&listed.record, account.as_deref(), client));
    }
    diagnostics
}

fn warning(record: &PendingRecord, account: Option<&str>, client: &Client) -> Diagnostic {
    let noun = capitalized(record.kind.noun());
    let id = record.ids.as_ref().map(|ids| ids.id.as_str());
    let name = &record.marker;
    let whose = match account {
        _ if client.base_url().as_deref() != Some(&record.base_url) => {
            format!("at another service, {}", record.base_url)
        }
        Some(account) if account == record.account => "in this account".to_owned(),
        _ => "with another API token, perhaps of another account".to_owned(),
    };
    let known = id.map_or_else(|| format!("{noun} {name:?}"), |id| format!("{noun} {id} ({name:?})"));
    let (summary, what) = match record.phase {
        Phase::HandedOver => (
            format!("{known} is in no state that was planned here"),
            "An earlier run created it and answered it to Terraform, and no plan since has found it in the state.",
        ),
        Phase::Accepted => (
            format!("{known} was created by a run that did not finish"),
            "If this configuration still contains it, an apply adopts it.",
        ),
        Phase::Sent => (
            format!("{known} may have been created by a run that did not finish"),
            "If this configuration still contains it, an apply looks for it first.",
        ),
    };
    let import = id.map_or_else(String::new, |id| {
        format!(" To manage it under another address: terraform import {}.<name> {id}.", type_name(record.kind))
    });
    Diagnostic::warning(
        summary,
        format!(
            "It was requested {whose}. {what}{import} To see what became of it: terraform-provider-damodel pending --dir {}",
            client.journal.directory().display()
        ),
    )
}

fn type_name(kind: Kind) -> String {
    format!("damodel_{}", kind.as_str())
}
