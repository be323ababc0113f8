//! What a create of an instance asks for (service API, POST /api/instance/create).

use super::{candidates, disks::is_on_its_way, schema::Instance};
use crate::{
    api::{self, CreateInstance, ImageSelector, Login, Payment, Sighting, SpecSelector},
    framework::{Diagnostic, Path},
    provider::{Client, errors::Failure},
};

/// The request that a planned state asks for. What is still unknown is left to the service.
pub(super) fn request(planned: &Instance, client: &Client) -> Result<CreateInstance, Diagnostic> {
    let region = planned.region.known().cloned().or_else(|| client.region.clone());
    let region =
        region.ok_or_else(|| missing("region", "Set region here, in the provider block, or in DAMODEL_REGION."))?;
    let spec = match (planned.spec_id.known(), planned.spec_type.known()) {
        (Some(id), _) => SpecSelector::Id(*id),
        (None, Some(code)) => SpecSelector::Type(code.clone()),
        (None, None) => return Err(missing("spec_id", "Set spec_id or spec_type.")),
    };
    let image = match (planned.image_id.known(), planned.image_type.as_str(), planned.image.known()) {
        (Some(id), Some("private"), _) => ImageSelector::Private(*id),
        (Some(id), Some(_), _) => ImageSelector::Public(*id),
        (_, _, Some(address)) => ImageSelector::Address(address.clone()),
        _ => return Err(missing("image", "Set image, or image_id and image_type.")),
    };
    let duration = planned.purchase_duration.known().copied().unwrap_or(1);
    let payment = match planned.payment_type.as_str() {
        Some("Daily") => Payment::Daily(duration),
        Some("Weekly") => Payment::Weekly(duration),
        Some("Monthly") => Payment::Monthly(duration),
        _ => Payment::Hourly,
    };
    let login = match planned.login_method.as_str() {
        Some("ssh_key") => Some(Login::SshKey {
            id: planned.ssh_pubkey_id.known().copied(),
            name: planned.ssh_pubkey_name.known().cloned(),
        }),
        Some(_) => Some(Login::Password),
        None => None,
    };
    Ok(CreateInstance {
        payment,
        data_disk_expand_size: planned.data_disk_expand_size_gb.known().copied().unwrap_or(0),
        data_disk_mount_path: planned.data_disk_mount_path.known().cloned(),
        name: planned.name.known().cloned(),
        hostname: planned.hostname.known().cloned(),
        login,
        external_ip: planned.external_ip.known().cloned(),
        auto_renew: planned.auto_renew.known().copied(),
        exist_disks: planned.exist_disks.elements().filter_map(|(_, disk)| disk.request()).collect(),
        new_disks: planned.new_disks.elements().filter_map(|(_, disk)| disk.request()).collect(),
        object_mounts: planned
            .object_mounts
            .elements()
            .filter_map(|(_, text)| serde_json::from_str(text).ok())
            .collect(),
        is_candidate: candidates::has_choice(planned),
        ..CreateInstance::new(region, spec, planned.gpu_num.known().copied().unwrap_or(1), image)
    })
}

/// Finds the uids of existing disks that the configuration names by number only, and waits for disks that are about to
/// be available.
pub(super) async fn find_disks(
    planned: &mut Instance,
    client: &Client,
    limits: &api::Context,
) -> Result<(), Diagnostic> {
    if planned.exist_disks.elements().next().is_none() {
        return Ok(());
    }
    let failed = |error: &api::Error| {
        let now = "Nothing was created.".to_owned();
        Failure { error, tried: "find the cloud disks to mount".to_owned(), now }.whole()
    };
    let cloud_disks = client.api.cloud_disks();
    let listing = cloud_disks.snapshot(limits).await.map_err(|error| failed(&error))?;
    for (index, disk) in planned.exist_disks.elements_mut() {
        disk.find_uid(&listing);
        let id = disk.disk_id.known().copied().unwrap_or_default();
        if disk.uid.known().is_none() {
            return Err(Diagnostic::error(
                "The cloud disk cannot be mounted",
                format!("Cloud disk {id} does not exist in this account. Nothing was created."),
            )
            .at(Path::to("exist_disks").index(index).attribute("disk_id")));
        }
        if listing.find(&id).is_some_and(is_on_its_way) {
            let is_settled = |seen: &Sighting<api::CloudDisk>| !seen.record().is_some_and(is_on_its_way);
            cloud_disks.wait(&id, limits, is_settled).await.map_err(|error| failed(&error))?;
        }
    }
    Ok(())
}

fn missing(attribute: &str, advice: &str) -> Diagnostic {
    Diagnostic::error("Missing required argument", format!("{advice} Nothing was created.")).at(Path::to(attribute))
}
