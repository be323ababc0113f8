use super::{CLOUD_DISK, model::CloudDisk, witness_key};
use crate::{
    api::{self, Accepted, CloudDisks, CreateCloudDisk, CreateOptions, CreatedCloudDisk, Origin, Sighting},
    framework::{Attr, Context, Create, Diagnostic, Diagnostics, Outcome},
    provider::{
        Client,
        client::limits,
        creation::Creation,
        presence,
        protection::Protected as _,
        words::{AVAILABLE, MOUNTED, disk_status},
    },
};

/// Creates a disk. The service answers nothing to it, so it is found by the marker in its name, then waited for and renamed
/// (service API, POST /api/storage/cloud_disk/create).
pub(super) async fn create(change: Create<CloudDisk>, context: &Context<Client>) -> Outcome<CloudDisk> {
    let Create { config, planned, private } = change;
    let (client, limits) = (context.client.as_ref(), limits(context));
    let (Some(size), Some(spec)) = (planned.size_gb.known(), planned.spec_id.known()) else {
        return Outcome::absent()
            .with(Diagnostic::error("Missing required argument", "size_gb and spec_id are needed."));
    };
    let request = CreateCloudDisk {
        name: planned.name.known().cloned(),
        mount_path: planned.mount_path.known().cloned(),
        purchase_duration: planned.purchase_duration.known().copied(),
        ..CreateCloudDisk::new(*size, *spec)
    };
    let key = client.create_key(&format!("damodel_cloud_disk {}", request.wanted()));
    let mut diagnostics = look_alikes(&planned, &key, client, &limits).await;
    let accepted =
        client.api.cloud_disks().create(request, &key, &client.journal, CreateOptions::default(), &limits).await;
    // Asked after the create, which may have waited for the end of the run that left them.
    diagnostics.extend(CLOUD_DISK.never_seen(&key, client));
    let accepted = match accepted {
        Ok(accepted) => accepted,
        Err(error) => {
            let failure = CLOUD_DISK.not_accepted(&error, &planned.title(), client);
            return Outcome::absent().with(diagnostics).with(failure.diagnostic(|name| is_set(&config, name)));
        }
    };
    let mut creation =
        Creation { state: planned, private, diagnostics, client, limits, unheard: context.unheard.clone() };
    creation.follow(accepted).await;
    creation.outcome()
}

impl Creation<'_, CloudDisk> {
    async fn follow(&mut self, accepted: Accepted<CreatedCloudDisk>) {
        let id = accepted.made.id;
        tracing::info!(cloud_disk.id = id, "accepted");
        self.state.id = Attr::Known(id.to_string());
        self.state.uid = accepted.made.uid.clone().into();
        presence::made(&mut self.private, self.client, &self.limits).await;
        self.client.witness().saw(&witness_key(id));
        if accepted.origin == Origin::Adopted {
            self.diagnostics.push(CLOUD_DISK.adopted(&self.state.title()));
        }
        self.wait(&accepted).await;
        if let Some(name) = &accepted.rename_to {
            if let Err(error) = self.client.api.cloud_disks().rename(id, name, &self.limits).await {
                let diagnostic = CLOUD_DISK.not_renamed(&error, &self.state.title(), &accepted.sent_name);
                self.diagnostics.push(diagnostic);
            }
            self.state.name = Attr::Known(name.clone());
        }
        CLOUD_DISK.hand_over(accepted.entry, &id.to_string(), &self.unheard);
    }

    async fn wait(&mut self, accepted: &Accepted<CreatedCloudDisk>) {
        let is_settled = |seen: &Sighting<api::CloudDisk>| {
            seen.record().and_then(|disk| disk.status).is_some_and(|status| ![1, 3].contains(&status))
        };
        match self.client.api.cloud_disks().wait(accepted.made.id, &self.limits, is_settled).await {
            Ok(seen) => {
                let Some(disk) = seen.record() else { return };
                self.state.take(disk);
                if !matches!(disk.status, Some(AVAILABLE | MOUNTED)) {
                    self.diagnostics.push(unusable(&self.state.title(), disk.status.unwrap_or_default(), accepted));
                }
            }
            Err(error) => {
                let diagnostic = CLOUD_DISK.wait_ended(&error, &self.state.title(), &accepted.ids);
                self.diagnostics.push(diagnostic);
            }
        }
    }
}

fn unusable(title: &str, status: i64, accepted: &Accepted<CreatedCloudDisk>) -> Diagnostic {
    Diagnostic::warning(
        format!("{title} is {}", disk_status(status)),
        format!(
            "The service accepted the create and then shows this status instead of available. The state holds the disk. See to it in \
             the console{}.",
            accepted.ids
        ),
    )
}

/// Warns of disks whose names look as if an earlier run had made them and lost its notes.
async fn look_alikes(planned: &CloudDisk, key: &str, client: &Client, limits: &api::Context) -> Diagnostics {
    let mut diagnostics = Diagnostics::new();
    let Some(name) = planned.name.as_str() else { return diagnostics };
    match client.disks_before(limits).await {
        Ok(listing) => {
            for disk in CloudDisks::look_alikes(listing, name, &client.journal, key) {
                diagnostics.push(CLOUD_DISK.look_alike(&disk.id.to_string(), disk.name.as_deref(), name));
            }
        }
        Err(error) => tracing::warn!(%error, "disks that an earlier run may have left could not be looked for"),
    }
    diagnostics
}

fn is_set(config: &CloudDisk, name: &str) -> bool {
    match name {
        "mount_path" => !config.mount_path.is_null(),
        "name" => !config.name.is_null(),
        "purchase_duration" => !config.purchase_duration.is_null(),
        "size_gb" | "spec_id" => true,
        _ => false,
    }
}
