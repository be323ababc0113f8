//! Updates of cloud disks: they grow in place.

use super::model::CloudDisk;
use crate::{
    api::{self, Objects, Sighting},
    framework::{Context, Diagnostic, Outcome, Path, Update},
    provider::{
        Client,
        client::limits,
        errors::Failure,
        lifecycle::ManagedExt as _,
        words::{AVAILABLE, MOUNTED, STARTING},
    },
};

/// Grows in place.
pub(super) async fn update(change: Update<CloudDisk>, context: &Context<Client>) -> Outcome<CloudDisk> {
    let Update { prior, planned, private, .. } = change;
    let (disks, limits) = (context.client.api.cloud_disks(), limits(context));
    let size = planned.size_gb.known().copied().filter(|size| prior.size_gb.known() != Some(size));
    let (Some(number), Some(size)) = (prior.key(), size) else {
        return Outcome::present(planned, private);
    };
    if let Err(error) = disks.resize(number, size, &limits).await
        && !is_growing(number, size, &disks, &limits).await
    {
        let failure = Failure {
            error: &error,
            tried: format!("grow {} to {size} GB", prior.title()),
            now: "The disk keeps its size.".to_owned(),
        };
        return Outcome::present(prior, private).with(failure.whole().at(Path::to("size_gb")));
    }
    let has_grown = |seen: &Sighting<api::CloudDisk>| {
        seen.record().is_some_and(|disk| {
            disk.size_gb.is_some_and(|now| now >= size) && matches!(disk.status, Some(AVAILABLE | MOUNTED))
        })
    };
    match disks.wait(&number, &limits, has_grown).await {
        Ok(_) => Outcome::present(planned, private),
        Err(error) => {
            let diagnostic = not_grown(&error, &prior, size);
            let state = if diagnostic.is_error() { prior } else { planned };
            Outcome::present(state, private).with(diagnostic)
        }
    }
}

/// Whether a refused resize is one that an earlier request, whose answer was lost, has begun or done.
async fn is_growing(number: i64, size: i64, disks: &Objects<api::CloudDisk>, limits: &api::Context) -> bool {
    let listing = disks.fresh(limits).await;
    listing.is_ok_and(|listing| {
        listing.find(&number).is_some_and(|disk| disk.size_gb == Some(size) || disk.status == Some(STARTING))
    })
}

/// The resize was accepted, and its end not seen.
fn not_grown(error: &api::Error, disk: &CloudDisk, size: i64) -> Diagnostic {
    let tried = format!("see {} grow to {size} GB", disk.title());
    let now = "The service accepted the change. The next plan shows the disk's size, and asks again if need be.";
    let failure = Failure { error, tried, now: now.to_owned() };
    match error {
        api::Error::WaitEnded(ended) if !ended.cancelled => failure.whole().at(Path::to("size_gb")),
        _ => failure.warning(),
    }
}
