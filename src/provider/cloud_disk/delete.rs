use serde_json::Value;

use super::model::CloudDisk;
use crate::{
    api::{self, Code, Presence, Sighting, WaitEnded},
    framework::{Context, Diagnostic, Outcome, State},
    provider::{
        Client,
        client::limits,
        errors::Failure,
        presence::{self, Absence},
        protection::{Protected as _, refusal},
        words::{MOUNTED, MOUNTING, RELEASED, RELEASING, UNMOUNTING, disk_status, disk_status_number},
    },
};

/// Releases a disk and waits until it is gone for sure. One that is still mounted is waited for.
pub(super) async fn delete(current: State<CloudDisk>, context: &Context<Client>) -> Outcome<CloudDisk> {
    if current.state.is_protected() {
        let diagnostic = refusal(&current.state);
        return current.unchanged(diagnostic);
    }
    let release =
        Release { number: current.state.number(), client: context.client.as_ref(), limits: limits(context), current };
    release.run().await
}

struct Release<'a> {
    number: i64,
    client: &'a Client,
    limits: api::Context,
    current: State<CloudDisk>,
}

/// How a look before the release ends.
enum Ready {
    /// The disk can be released.
    Free,
    /// It is gone, or on its way.
    Going,
}

impl Release<'_> {
    async fn run(self) -> Outcome<CloudDisk> {
        loop {
            match self.wait_until_free().await {
                Ok(Ready::Free) => {}
                Ok(Ready::Going) => return self.wait_until_gone().await,
                Err(error) => return self.still_held(&error).await,
            }
            tracing::info!(cloud_disk.id = self.number, "releasing");
            match self.client.api.cloud_disks().release(self.number, &self.limits).await {
                Ok(()) => return self.wait_until_gone().await,
                // The service refuses a mounted disk with a general code: look what it is doing now, and try again if it is that.
                Err(error) if is_refusal(&error) => match self.status().await {
                    Some(MOUNTING | UNMOUNTING | MOUNTED) => tracing::debug!(%error, "the disk is mounted again"),
                    // An earlier request was accepted, and its answer lost.
                    Some(RELEASING | RELEASED) => return self.wait_until_gone().await,
                    _ => return self.failed(&error),
                },
                Err(error) => return self.failed(&error),
            }
        }
    }

    /// Waits for a disk that is mounted, or about to be, or about to be free.
    async fn wait_until_free(&self) -> Result<Ready, api::Error> {
        let is_free = |seen: &Sighting<api::CloudDisk>| seen.record().is_none_or(|disk| !is_held(disk));
        let seen = self.client.api.cloud_disks().wait(self.number, &self.limits, is_free).await?;
        Ok(match seen.record().and_then(|disk| disk.status) {
            Some(RELEASING | RELEASED) => Ready::Going,
            None if seen.record().is_none() => Ready::Going,
            _ => Ready::Free,
        })
    }

    async fn status(&self) -> Option<i64> {
        let listing = self.client.api.cloud_disks().fresh(&self.limits).await.ok()?;
        listing.find(&self.number).and_then(|disk| disk.status)
    }

    async fn wait_until_gone(self) -> Outcome<CloudDisk> {
        let is_gone = |seen: &Sighting<api::CloudDisk>| seen.record().is_none_or(api::CloudDisk::is_released);
        let disks = self.client.api.cloud_disks();
        loop {
            match disks.wait(self.number, &self.limits, is_gone).await {
                Ok(Sighting::Present(_)) => return Outcome::absent(),
                Ok(Sighting::Missing) => {
                    match disks.look(self.number, self.current.state.uid.as_str(), &self.limits).await {
                        Ok(Presence::Released(_)) => return Outcome::absent(),
                        Ok(Presence::Absent { .. }) => return self.absent().await,
                        Ok(_) => tracing::debug!(cloud_disk.id = self.number, "still there"),
                        Err(error) => return self.stopped(&error),
                    }
                }
                Err(error) => return self.stopped(&error),
            }
        }
    }

    /// Not there: gone, unless this is another account.
    async fn absent(self) -> Outcome<CloudDisk> {
        let subject = self.current.state.subject();
        match presence::judge(&self.current.private, &subject.key, self.client, &self.limits).await {
            Ok(Absence::Proved | Absence::TooYoung) => Outcome::absent(),
            Ok(Absence::AnotherAccount) => self.current.unchanged(Diagnostic::error(
                format!("The service does not show {}", subject.title),
                "Is this another account? It was last seen under another base address or API token. It stays in the state.",
            )),
            Err(error) => self.failed(&error),
        }
    }

    /// The release was accepted, and its end not seen.
    fn stopped(self, error: &api::Error) -> Outcome<CloudDisk> {
        let title = self.current.state.title();
        self.current.unchanged(Diagnostic::error(
            format!("The release of {title} has not ended"),
            format!(
                "The service accepted the release, and then: {error}. The disk stays in the state until it is seen as released; \
                 destroy again to go on. To wait longer set timeouts {{ delete = \"…\" }}."
            ),
        ))
    }

    /// The wait ended before the disk was free.
    async fn still_held(self, error: &api::Error) -> Outcome<CloudDisk> {
        let api::Error::WaitEnded(ended) = error else { return self.failed(error) };
        let title = self.current.state.title();
        if !was_seen_held(ended) {
            let why = if ended.cancelled { "the run was told to stop" } else { "its status was not seen in time" };
            return self.current.unchanged(Diagnostic::error(
                format!("{title} was not released"),
                format!(
                    "Whether it is mounted must be known before it is released, and {why}: {error}. It stays in the state; destroy again \
                     to go on. To wait longer set timeouts {{ delete = \"…\" }}."
                ),
            ));
        }
        let holders = self.holders().await;
        self.current.unchanged(Diagnostic::error(
            format!("{title} is still mounted"),
            format!(
                "A mounted disk cannot be released; waiting for it ended: {error}. {holders} It stays in the state. Unmount it or release \
                 its instance, then destroy again."
            ),
        ))
    }

    /// Who holds the disk, as the service reports it.
    async fn holders(&self) -> String {
        let limits = api::Context::within(std::time::Duration::from_secs(5), &self.limits.cancel);
        let Ok(listing) = self.client.api.cloud_disks().fresh(&limits).await else { return String::new() };
        let Some(disk) = listing.find(&self.number) else { return String::new() };
        let bound: Vec<String> =
            disk.binding_instances.iter().chain(&disk.binding_clusters).map(Value::to_string).collect();
        let status = disk.status.map(disk_status).unwrap_or_default();
        if bound.is_empty() {
            format!("It is {status}; the service does not say by whom.")
        } else {
            format!("It is {status} by {}.", bound.join(", "))
        }
    }

    fn failed(self, error: &api::Error) -> Outcome<CloudDisk> {
        let tried = format!("release {}", self.current.state.title());
        let diagnostic = Failure { error, tried, now: "It stays in the state.".to_owned() }.whole();
        self.current.unchanged(diagnostic)
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

fn is_refusal(error: &api::Error) -> bool {
    matches!(error.code(), Some(Code::InvalidParameter | Code::InternalError | Code::Other(_)))
}
