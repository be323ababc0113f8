use super::{model::CloudDisk, witness_key};
use crate::{
    api,
    framework::{Context, Diagnostic, Outcome, Private},
    provider::{Client, client::limits, errors::Failure, presence},
};

/// Imports by database id or UID.
pub(super) async fn import(id: &str, context: &Context<Client>) -> Outcome<CloudDisk> {
    let (client, limits) = (context.client.as_ref(), limits(context));
    let id = id.trim();
    let is_wanted =
        |disk: &api::CloudDisk| !disk.is_released() && (disk.id.to_string() == id || disk.uid.as_deref() == Some(id));
    // The imports of one run share a list; what it lacks may have been made since.
    let disks = client.api.cloud_disks();
    let listing = match disks.snapshot(&limits).await {
        Ok(shared) if !shared.records.iter().any(is_wanted) => disks.fresh(&limits).await,
        shared => shared,
    };
    let listing = match listing {
        Ok(listing) => listing,
        Err(error) => {
            let tried = format!("import cloud disk {id}");
            let failure = Failure { error: &error, tried, now: "Nothing was imported.".to_owned() };
            return Outcome::absent().with(failure.whole());
        }
    };
    match listing.records.iter().find(|disk| is_wanted(disk)) {
        Some(disk) => {
            let mut private = Private::default();
            presence::seen(&mut private, &witness_key(disk.id), client, &limits).await;
            let mut state = CloudDisk::default();
            state.take(disk);
            Outcome::present(state, private)
        }
        None => Outcome::absent().with(Diagnostic::error(
            format!("Cannot import cloud disk {id}: the service does not have it"),
            "The import id is the disk's database number or its UID, not its name. Check the id, base_url and the account of the \
             API token.",
        )),
    }
}
