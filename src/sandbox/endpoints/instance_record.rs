//! An instance as answers show it (service API, Resources and fields, Instance).

use serde_json::{Map, Value, json};

use crate::sandbox::{
    form::Form,
    world::{Disk, Instance},
};

/// The fields of list and detail.
pub(super) fn list_record(instance: &Instance, form: &Form) -> Map<String, Value> {
    // An instance that never ran has no address yet, and nobody can log into it.
    let has_run = instance.start_ms > 0;
    let text = |value: &str| if has_run { json!(value) } else { json!("") };
    let kind = instance.image.kind;
    let known = |number: i64| if form.zeros_while_creating && instance.status == "Creating" { 0 } else { number };
    let record = json!({
        "instance_id": instance.id,
        "instance_uid": instance.uid,
        "instance_alias": instance.alias,
        "status": displayed_status(instance, form),
        "region": instance.spec.region,
        "capacity_type": instance.spec.capacity_type,
        "gpu_name": instance.spec.gpu_name,
        "gpu_num": known(instance.gpu_num),
        "spec_id": known(instance.spec.id),
        "spec_type": instance.spec.spec_type,
        "payment_type": instance.payment.word(),
        "image_id": known(instance.image.id),
        "image_name": instance.image.name,
        "image_type": if form.image_type_as_number { kind.number() } else { kind.word() },
        "ssh_host": text("127.0.0.1"),
        "ssh_port": if has_run { instance.ssh_port } else { 0 },
        "login_method": instance.login_method,
        "ssh_pubkey_name": instance.ssh_pubkey_name,
        "ssh_password": text(ssh_password(instance)),
        "external_ip": instance.external_ip,
        "internal_ip": text(&instance.internal_ip),
        "jupyter_url": text(&jupyter_url(instance)),
        "jupyter_token": text(instance.jupyter_token.reveal()),
        "start_time": instance.start_ms / 1000,
        "stop_time": instance.stop_ms / 1000,
        "release_time": instance.release_ms / 1000,
    });
    object(record)
}

/// The fields of detail.
pub(super) fn detail_record(instance: &Instance, disks: &[Disk], form: &Form) -> Map<String, Value> {
    let spec = &instance.spec;
    let cloud_disks: Vec<Value> = instance
        .mounts
        .iter()
        .filter_map(|mount| {
            let disk = disks.iter().find(|disk| disk.id == mount.disk_id)?;
            Some(json!({
                "id": disk.id,
                "uid": disk.uid,
                "name": disk.name,
                "size_gb": disk.size_gb,
                "mount_path": form.path(&mount.mount_path),
                "release_with_instance": mount.release_with_instance,
            }))
        })
        .collect();
    let more = json!({
        "cpu_core": spec.cpu_per_gpu * instance.gpu_num,
        "memory_size": spec.mem_per_gpu * instance.gpu_num,
        "gpu_memory": spec.gpu_mem * instance.gpu_num,
        "sys_disk_size": spec.sys_disk_size,
        "data_disk_size": spec.data_disk_size + instance.data_disk_expand_size,
        "cloud_disks": cloud_disks,
        "gpu_price": spec.prices.of(instance.payment),
        "data_disk_price": spec.data_disk_prices.of(instance.payment),
        "rent_deadline": instance.rent_deadline_ms / 1000,
        "services": services(instance),
        "support_power_type": 1,
        "shutdown_status": "idle",
        "shutdown_stage": "",
        "shutdown_push_progress": 0,
    });
    let mut record = list_record(instance, form);
    record.extend(object(more));
    record
}

/// The status that a reader is shown.
pub(super) fn displayed_status<'a>(instance: &'a Instance, form: &Form) -> &'a str {
    if form.undocumented_statuses && instance.is_releasing() {
        "Releasing"
    } else if form.undocumented_statuses && instance.status == "Creating" {
        "Scheduling"
    } else {
        &instance.status
    }
}

/// The services of an instance that ran; both hold a secret, as real ones do (element structure: "not shown").
fn services(instance: &Instance) -> Vec<Value> {
    if instance.start_ms == 0 {
        return Vec::new();
    }
    vec![
        json!({ "name": "jupyter", "port": 8888, "url": jupyter_url(instance), "token": instance.jupyter_token.reveal() }),
        json!({ "name": "ssh", "port": instance.ssh_port, "user": "root", "password": ssh_password(instance) }),
    ]
}

fn ssh_password(instance: &Instance) -> &str {
    if instance.login_method == 1 { "" } else { instance.ssh_password.reveal() }
}

fn jupyter_url(instance: &Instance) -> String {
    format!("https://{}.jupyter.damodel.test/lab?token={}", instance.uid, instance.jupyter_token.reveal())
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
