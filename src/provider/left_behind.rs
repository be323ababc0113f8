//! The warning about the pending records of earlier runs, once per run.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{ProviderClient, words::capitalized};
use crate::{
    api::{Context, CreatePhase, ObjectKind, PendingRecord},
    framework::{Diagnostic, Diagnostics},
};

/// The time limit of the token program; the token is only needed to name the account of a record.
const PATIENCE: Duration = Duration::from_secs(30);

/// The number of records in the warning.
const NAMED: usize = 10;

/// The warning about records that no run has resumed.
pub(super) async fn told(client: &ProviderClient) -> Diagnostics {
    let journal = client.journal.clone();
    let left = match tokio::task::spawn_blocking(move || journal.left_behind()).await {
        Ok(Ok(left)) if !left.is_empty() => left,
        Ok(Err(error)) => {
            tracing::warn!(%error, "pending records could not be read");
            return Diagnostics::new();
        }
        _ => return Diagnostics::new(),
    };
    let context = Context::within(PATIENCE, &CancellationToken::new());
    let account = client.api.fingerprint(&context).await.ok();
    let mut lines: Vec<String> =
        left.iter().take(NAMED).map(|listed| line(&listed.record, account.as_deref(), client)).collect();
    if left.len() > NAMED {
        lines.push(format!("- and {} more", left.len() - NAMED));
    }
    Diagnostic::warning(
        match left.len() {
            1 => "A create of an earlier run is not finished".to_owned(),
            count => format!("{count} creates of earlier runs are not finished"),
        },
        format!(
            "{}\n\nAn apply of a configuration that still contains them adopts them, if they are in its account. To \
             see what became of them: terraform-provider-damodel pending --dir {}",
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
        Some(account) if account == record.account => "in this account".to_owned(),
        _ => "with another API token, perhaps of another account".to_owned(),
    };
    let what = match record.phase {
        CreatePhase::HandedOver => {
            "was created and reported to Terraform, but a complete run since then did not find it in the state"
        }
        CreatePhase::Accepted => "was created",
        CreatePhase::Sent => "may have been created",
    };
    match id {
        Some(id) => format!(
            "- {noun} {id} ({name:?}) {what} {whose}. To manage it under another address: terraform import {}.<name> \
             {id}",
            type_name(record.kind)
        ),
        None => format!("- {noun} {name:?} {what} {whose}"),
    }
}

fn type_name(kind: ObjectKind) -> String {
    format!("damodel_{}", kind.as_str())
}
