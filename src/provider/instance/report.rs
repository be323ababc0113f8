//! Conversion between attributes and the service: the create's request (service API, POST /api/instance/create), and
//! the reported values.

use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::{
    candidates::{self, DEFAULT_GPU_NUM},
    disks::is_on_its_way,
    schema::{Instance, Reported},
};
use crate::{
    api::{
        self, Context, CreateInstance, ExistDisk, ImageSelector, InstanceDetail, LoginMethod, Payment, Sighting,
        SpecSelector,
    },
    framework::{self, Attr, Diagnostic, Path, Secret, from_value, to_value},
    provider::{
        ProviderClient,
        errors::Failure,
        images,
        words::{cut, image_type, json_without, keep, login_method, text_or_json, time},
    },
};

impl Instance {
    /// Sets the attributes that a list shows. Arguments missing in the record keep their values.
    pub(super) fn take_instance(&mut self, record: &api::Instance) {
        keep(&mut self.name, record.name.clone());
        keep(&mut self.region, record.region.clone());
        keep(&mut self.payment_type, record.payment_type.clone());
        // During the creation the service may show 0 for values that are not assigned yet.
        keep(&mut self.spec_id, record.spec_id.filter(|id| *id != 0));
        keep(&mut self.spec_type, record.spec_type.clone());
        keep(&mut self.gpu_num, record.gpu_num.filter(|gpus| *gpus != 0));
        self.take_image(record);
        keep(&mut self.login_method, record.login_method.map(login_method));
        keep(&mut self.ssh_pubkey_name, record.ssh_pubkey_name.clone());
        keep(&mut self.external_ip, record.external_ip.clone());
        self.id = record.uid.as_str().into();
        keep(&mut self.database_id, record.instance_id);
        self.status = record.status.as_ref().map(ToString::to_string).into();
        keep(&mut self.capacity_type, record.capacity_type.clone());
        keep(&mut self.gpu_name, record.gpu_name.clone());
        self.ssh_host = record.ssh_host.clone().into();
        self.ssh_port = record.ssh_port.into();
        self.internal_ip = record.internal_ip.clone().into();
        self.start_time = time(record.start_time).into();
        self.reported = Attr::Known(Reported {
            image_name: record.image_name.clone().into(),
            stop_time: time(record.stop_time).into(),
            release_time: time(record.release_time).into(),
            ..self.reported.known().cloned().unwrap_or_default()
        });
        let secrets = secrets(record);
        self.jupyter_url = record.jupyter_url.as_ref().map(|url| without_token(url.expose(), &secrets)).into();
        let is_stored = self.store_credentials.known() == Some(&true);
        let kept = |secret: &Option<SecretString>| secret.clone().filter(|_| is_stored).map(Secret::from);
        self.ssh_password = kept(&record.ssh_password).into();
        self.jupyter_token = kept(&record.jupyter_token).into();
    }

    /// Sets what the plan knew of the specification; the next refresh shows what the service reports.
    pub(super) fn take_quoted(&mut self, planned: &Self) {
        keep(&mut self.spec_id, planned.spec_id.into_known());
        keep(&mut self.spec_type, planned.spec_type.known().cloned());
        keep(&mut self.gpu_name, planned.gpu_name.known().cloned());
        keep(&mut self.capacity_type, planned.capacity_type.known().cloned());
    }

    /// Sets what a plan knew.
    pub(super) fn keep_known(&mut self, planned: &Self) {
        let (Ok(framework::Value::Object(planned)), Ok(mut state)) = (to_value(planned), to_value(self)) else {
            return;
        };
        for (name, value) in planned.into_iter().filter(|(_, value)| value.is_wholly_known()) {
            state.set_attribute(&name, value);
        }
        *self = from_value(&state).unwrap_or_default();
    }

    /// Removes the credentials.
    pub(super) fn forget_credentials(&mut self) {
        self.ssh_password = Attr::Null;
        self.jupyter_token = Attr::Null;
    }

    /// Sets all reported attributes.
    pub(super) fn take_detail(&mut self, detail: &InstanceDetail) {
        self.take_instance(&detail.instance);
        let more = &detail.more;
        let text = |value: &Option<Value>| Attr::from(value.as_ref().and_then(text_or_json));
        self.gpu_price = more.gpu_price.clone().map(Into::into).into();
        self.data_disk_price = more.data_disk_price.clone().map(Into::into).into();
        let secrets = secrets(&detail.instance);
        let services = more.services.expose().iter().map(|service| json_without(service, &secrets).to_string());
        let json = |value: &Option<Value>| Attr::from(value.as_ref().filter(|v| !v.is_null()).map(Value::to_string));
        self.reported = Attr::Known(Reported {
            cpu_core: text(&more.cpu_core),
            memory_size: text(&more.memory_size),
            gpu_memory: text(&more.gpu_memory),
            sys_disk_size_gb: more.sys_disk_size.into(),
            data_disk_size_gb: more.data_disk_size.into(),
            rent_deadline: text(&more.rent_deadline),
            support_power: more.supports_power.into(),
            cloud_disks: Attr::Known(more.cloud_disks.iter().map(Value::to_string).collect()),
            services: Attr::Known(services.collect()),
            shutdown_status: json(&more.shutdown_status),
            shutdown_stage: json(&more.shutdown_stage),
            shutdown_push_progress: json(&more.shutdown_push_progress),
            ..self.reported.known().cloned().unwrap_or_default()
        });
    }

    /// Looks up the address of the image if only its number is known. If the lists lack it, it stays unchanged.
    pub(super) async fn complete_image(&mut self, client: &ProviderClient, context: &Context) {
        if self.image.is_known() {
            return;
        }
        let Some(id) = self.image_id.known().copied() else { return };
        let Some(kind) = self.image_type.as_str() else { return };
        match images::address(id, kind, client, context).await {
            Ok(address) => keep(&mut self.image, address),
            Err(error) => tracing::warn!(%error, image.id = id, "the image's address could not be looked up"),
        }
    }

    /// Sets the image. If its number has changed, the address in the state is that of another image.
    fn take_image(&mut self, record: &api::Instance) {
        let image_id = record.image_id.filter(|id| *id != 0);
        let has_changed = self.image_id.known().is_some_and(|before| image_id.is_some_and(|id| id != *before));
        if has_changed {
            self.image = Attr::Null;
        }
        keep(&mut self.image_id, image_id);
        if image_id.is_some() || record.image_id.is_none() {
            keep(&mut self.image_type, record.image_type.as_deref().map(image_type));
        }
    }
}

fn secrets(record: &api::Instance) -> Vec<&str> {
    [&record.ssh_password, &record.jupyter_token].into_iter().flatten().map(ExposeSecret::expose_secret).collect()
}

/// A notebook's address without the token, wherever it is in the address.
fn without_token(address: &str, secrets: &[&str]) -> String {
    let Ok(mut url) = url::Url::parse(address) else { return cut(address, secrets) };
    let is_secret = |name: &str, value: &str| name.eq_ignore_ascii_case("token") || secrets.contains(&value);
    let kept: Vec<(String, String)> = url
        .query_pairs()
        .filter(|(name, value)| !is_secret(name, value))
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    if url.query().is_some() {
        url.set_query(None);
        if !kept.is_empty() {
            url.query_pairs_mut().extend_pairs(kept);
        }
    }
    cut(url.as_str(), secrets)
}

/// Removes redundant arguments, and those of another login method.
pub(super) fn generate(config: &mut Instance) {
    if config.spec_id.is_known() {
        config.spec_type = Attr::Null;
    }
    if config.image_id.is_known() && config.image_type.is_known() {
        config.image = Attr::Null;
    } else {
        (config.image_id, config.image_type) = (Attr::Null, Attr::Null);
    }
    if config.login_method.as_str() != Some("ssh_key") {
        (config.ssh_pubkey_id, config.ssh_pubkey_name) = (Attr::Null, Attr::Null);
    }
}

/// The create's request for a planned state. Unknown values are left to the service.
pub(super) fn request(planned: &Instance, client: &ProviderClient) -> Result<CreateInstance, Diagnostic> {
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
        Some("ssh_key") => Some(LoginMethod::SshKey {
            id: planned.ssh_pubkey_id.known().copied(),
            name: planned.ssh_pubkey_name.known().cloned(),
        }),
        Some(_) => Some(LoginMethod::Password),
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
        ..CreateInstance::new(region, spec, planned.gpu_num.known().copied().unwrap_or(DEFAULT_GPU_NUM), image)
    })
}

/// Looks up the uids of the disks to mount, and waits for those that will soon be available.
pub(super) async fn find_disks(
    planned: &Instance,
    requested: &mut [ExistDisk],
    client: &ProviderClient,
    limits: &Context,
) -> Result<(), Diagnostic> {
    if requested.is_empty() {
        return Ok(());
    }
    let failed = |error: &api::Error| {
        let now = "This instance was not created.".to_owned();
        Failure { error, tried: "find the cloud disks to mount".to_owned(), now }.whole()
    };
    let cloud_disks = client.api.cloud_disks();
    let listing = cloud_disks.snapshot(limits).await.map_err(|error| failed(&error))?;
    for ((index, _), wanted) in planned.exist_disks.elements().zip(requested) {
        let (id, disk) = (wanted.id, listing.find(&wanted.id));
        let Some(uid) = disk.and_then(|disk| disk.uid.clone()) else {
            return Err(Diagnostic::error(
                "The cloud disk cannot be mounted",
                format!("Cloud disk {id} does not exist in this account. This instance was not created."),
            )
            .at(Path::to("exist_disks").index(index).attribute("disk_id")));
        };
        wanted.uid = uid;
        if disk.is_some_and(is_on_its_way) {
            let creation_ended = |seen: &Sighting<api::CloudDisk>| !seen.record().is_some_and(is_on_its_way);
            cloud_disks.wait(&id, limits, creation_ended).await.map_err(|error| failed(&error))?;
        }
    }
    Ok(())
}

fn missing(attribute: &str, advice: &str) -> Diagnostic {
    Diagnostic::error("Missing required argument", advice).at(Path::to(attribute))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_loses_its_token() {
        for (address, expected) in [
            ("https://x/lab?token=abc", "https://x/lab"),
            ("https://x/lab?a=1&token=abc", "https://x/lab?a=1"),
            ("https://x/abc/lab", "https://x/***/lab"),
            ("https://x/lab?key=abc", "https://x/lab"),
            ("x abc y", "x *** y"),
        ] {
            assert_eq!(without_token(address, &["abc"]), expected, "{address}");
        }
    }

    #[test]
    fn one_name_of_each_thing_is_enough() {
        let mut config = Instance {
            spec_id: Attr::Known(1),
            spec_type: "gpu".into(),
            image: "r/model_library/a:1".into(),
            image_id: Attr::Known(2),
            image_type: "public".into(),
            login_method: "password".into(),
            ssh_pubkey_name: "laptop".into(),
            ..Instance::default()
        };
        generate(&mut config);
        assert!(config.spec_type.is_null() && config.image.is_null() && config.ssh_pubkey_name.is_null());
        assert!(config.purchase_duration.is_null());
    }
}
