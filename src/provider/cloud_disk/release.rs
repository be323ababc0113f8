//! When a disk can be released: never while it is mounted, and then the service refuses with a general code.

use serde_json::Value;

use super::model::CloudDisk;
use crate::{
    api::{self, Sighting, WaitEnded},
    framework::Diagnostic,
    provider::{
        errors::Failure,
        lifecycle::{AfterRefusal, Free, ManagedExt as _, Release},
        words::{MOUNTED, MOUNTING, RELEASED, RELEASING, UNMOUNTING, capitalized, disk_status, disk_status_number},
    },
};

impl Release<'_, CloudDisk> {
    /// Waits for a disk that is mounted, or about to be, or about to be free.
    pub(super) async fn until_free(&self) -> Result<Free, Diagnostic> {
        let is_free = |seen: &Sighting<api::CloudDisk>| seen.record().is_none_or(|disk| !is_held(disk));
        match self.client.api.cloud_disks().wait(&self.key, &self.limits, is_free).await {
            Ok(seen) => Ok(match seen.record().map(|disk| disk.status) {
                None => Free::Unseen,
                Some(Some(RELEASING | RELEASED)) => Free::Going,
                Some(_) => Free::Ready,
            }),
            Err(error) => Err(self.still_held(&error).await),
        }
    }

    /// The wait ended before the disk was free.
    async fn still_held(&self, error: &api::Error) -> Diagnostic {
        let title = self.current.state.title();
        let api::Error::WaitEnded(ended) = error else {
            let tried = format!("release {title}");
            return Failure { error, tried, now: "It stays in the state.".to_owned() }.whole();
        };
        if !was_seen_held(ended) {
            let why = if ended.cancelled { "the run was stopped" } else { "its status was not seen in time" };
            return Diagnostic::error(
                format!("{} was not released", capitalized(&title)),
                format!(
                    "Whether it is mounted must be known before it is released, and {why}: {error}. It stays in the \
                     state; destroy again to continue. To wait longer set timeouts {{ delete = \"…\" }}."
                ),
            );
        }
        let holders = self.holders().await;
        Diagnostic::error(
            format!("{} is still mounted", capitalized(&title)),
            format!(
                "A mounted disk cannot be released; waiting for it ended: {error}. {holders} It stays in the state. \
                 Unmount it or release its instance, then destroy again."
            ),
        )
    }

    /// Who holds the disk, as the service reports it.
    async fn holders(&self) -> String {
        let limits = api::Context::within(std::time::Duration::from_secs(5), &self.limits.cancel);
        let Ok(listing) = self.client.api.cloud_disks().fresh(&limits).await else { return String::new() };
        let Some(disk) = listing.find(&self.key) else { return String::new() };
        let bound: Vec<String> =
            disk.binding_instances.iter().chain(&disk.binding_clusters).map(Value::to_string).collect();
        let status = disk.status.map(disk_status).unwrap_or_default();
        if bound.is_empty() {
            format!("Its status is {status}; the service does not report which instance holds it.")
        } else {
            format!("It is {status} by {}.", bound.join(", "))
        }
    }
}

/// A refused disk may have been mounted meanwhile; or an earlier request was accepted, and its answer lost.
pub(super) fn after_refusal(disk: &api::CloudDisk) -> AfterRefusal {
    match disk.status {
        Some(MOUNTING | UNMOUNTING | MOUNTED) => AfterRefusal::Again,
        Some(RELEASING | RELEASED) => AfterRefusal::Wait,
        _ => AfterRefusal::Fail,
    }
}

/// Whether the last that was seen of a disk is that it is mounted, or about to be, or about to be free.
fn was_seen_held(ended: &WaitEnded) -> bool {
    let last = ended.last.as_deref().and_then(|last| last.split_whitespace().next()).and_then(disk_status_number);
    matches!(last, Some(MOUNTING | UNMOUNTING | MOUNTED))
}

fn is_held(disk: &api::CloudDisk) -> bool {
    matches!(disk.status, Some(MOUNTING | UNMOUNTING | MOUNTED))
}
