//! The endpoints that show, rename and release instances (service API, Instances).

use axum::http::Method;
use serde_json::{Map, Value, json};

use super::call::{CallContext, Endpoint, EndpointInput, required_name};
use crate::{
    form::{Form, Released},
    ledger::{LedgerObject, LifeKind},
    query::Query,
    refusal::{Code, ServiceRefusal},
    world::{Disk, DiskStatus, Instance, Next, ScheduledChange},
};

pub(super) const LIST: Endpoint =
    Endpoint { name: "instance_list", method: Method::GET, path: "/api/instance/list", handle: list };

pub(super) const DETAIL: Endpoint =
    Endpoint { name: "instance_detail", method: Method::GET, path: "/api/instance/detail", handle: detail };

/// The statuses that the document names for filtering.
const STATUSES: [&str; 5] = ["Creating", "Running", "Stopped", "Released", "Failed"];

fn list(context: &mut CallContext<'_>, input: &EndpointInput<'_>) -> Result<Value, ServiceRefusal> {
    let mut query = input.query()?;
    let page = query.page()?;
    let search = query.string("query").unwrap_or_default();
    let status = status_filter(&mut query)?;
    query.finish()?;

    let (account, form, now_ms) = (context.account, context.form, context.now_ms);
    let records = context
        .world
        .instances
        .iter_mut()
        .filter(|instance| instance.account == account)
        .filter(|instance| !(instance.is_released() && form.released == Released::Forgotten))
        .filter(|instance| instance.uid.contains(&search) || instance.alias.contains(&search))
        .filter(|instance| status.as_deref().is_none_or(|status| displayed_status(instance, form) == status))
        .filter_map(|instance| instance.visibility.is_seen(now_ms).then(|| Value::Object(list_record(instance, form))))
        .collect();
    Ok(page.of(records, context.form, context.random))
}

fn status_filter(query: &mut Query) -> Result<Option<String>, ServiceRefusal> {
    match query.string("status") {
        Some(status) if !STATUSES.contains(&status.as_str()) => {
            Err(ServiceRefusal::invalid(format!("status: {status:?} is not one of {STATUSES:?}")))
        }
        status => Ok(status),
    }
}

fn detail(context: &mut CallContext<'_>, input: &EndpointInput<'_>) -> Result<Value, ServiceRefusal> {
    let mut query = input.query()?;
    let uid = query.required_string("instance_uid")?;
    query.finish()?;

    let now_ms = context.now_ms;
    let has_detail = |instance: &Instance| context.form.released == Released::Listed || !instance.is_released();
    let seen: Option<Instance> = context
        .world
        .instance_mut(context.account, &uid)
        .filter(|instance| has_detail(instance))
        .and_then(|instance| instance.visibility.is_seen(now_ms).then(|| instance.clone()));
    match seen {
        Some(instance) => {
            let record: Map<String, Value> = detail_record(&instance, &context.world.disks, context.form);
            Ok(Value::Object(record))
        }
        None => Err(ServiceRefusal::no_instance(&uid)),
    }
}

/// The fields of list and detail.
pub(super) fn list_record(instance: &Instance, form: &Form) -> Map<String, Value> {
    // An instance that never ran has no address yet, and takes no login.
    let has_run = instance.start_ms > 0;
    let text = |value: &str| if has_run { json!(value) } else { json!("") };
    let kind = instance.image.kind;
    let is_assigned = !form.zeros_while_creating || instance.status != "Creating";
    let known = |number: i64| if is_assigned { number } else { 0 };
    let of_spec = |text: &str| is_assigned.then(|| text.to_owned());
    let gpu_name = of_spec(&instance.spec.gpu_name);
    let record = json!({
        "instance_id": instance.id,
        "instance_uid": instance.uid,
        "instance_alias": form.name(&instance.alias),
        "status": displayed_status(instance, form),
        "region": instance.spec.region,
        "capacity_type": of_spec(&instance.spec.capacity_type),
        "gpu_name": gpu_name.map(|name| if form.spaced_gpu_names { name.replace('-', " ") } else { name }),
        "gpu_num": known(instance.gpu_num),
        "spec_id": known(instance.spec.id),
        "spec_type": of_spec(&instance.spec.spec_type),
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

/// The status in answers.
pub(super) fn displayed_status<'a>(instance: &'a Instance, form: &Form) -> &'a str {
    if form.undocumented_statuses && instance.is_releasing() {
        "Releasing"
    } else if form.undocumented_statuses && instance.status == "Creating" {
        "Scheduling"
    } else {
        &instance.status
    }
}

/// The services of an instance that has run; both contain a secret, as real ones do (element structure: "not shown").
fn services(instance: &Instance) -> Vec<Value> {
    if instance.start_ms == 0 {
        return Vec::new();
    }
    vec![
        json!({ "name": "jupyter", "port": 8888, "url": jupyter_url(instance),
            "token": instance.jupyter_token.reveal() }),
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

pub(super) const ENDPOINT: Endpoint =
    Endpoint { name: "instance_rename", method: Method::POST, path: "/api/instance/rename", handle };

fn handle(context: &mut CallContext<'_>, input: &EndpointInput<'_>) -> Result<Value, ServiceRefusal> {
    input.no_query()?;
    let mut fields = input.fields()?;
    let uid = fields.required_string("instance_uid")?;
    let name = required_name(&mut fields, "name")?;
    fields.finish()?;

    match context.world.instance_mut(context.account, &uid) {
        Some(instance) if !instance.is_released() => instance.alias.clone_from(&name),
        Some(_) | None => return Err(ServiceRefusal::no_instance(&uid)),
    }
    context.world.record(context.now_ms, LedgerObject::Instance, LifeKind::Renamed, &uid, &name, context.account);
    Ok(Value::Null)
}

pub(super) const RELEASE: Endpoint =
    Endpoint { name: "instance_release", method: Method::POST, path: "/api/instance/release", handle: release };

fn release(context: &mut CallContext<'_>, input: &EndpointInput<'_>) -> Result<Value, ServiceRefusal> {
    input.no_query()?;
    let mut fields = input.fields()?;
    let uid = fields.required_string("instance_uid")?;
    if uid.is_empty() {
        return Err(fields.invalid("instance_uid", "must not be empty"));
    }
    fields.finish()?;

    let (now_ms, at_ms) = (context.now_ms, context.now_ms.saturating_add(context.tempo.release_ms));
    let Some(instance) = context.world.instance_mut(context.account, &uid) else {
        return Err(ServiceRefusal::no_instance(&uid));
    };
    if instance.is_released() || instance.is_releasing() {
        return Err(ServiceRefusal::new(
            Code::InstanceNotExistOrAlreadyReleased,
            format!("instance {uid:?} is released already"),
        ));
    }
    if let Some(obstacle) = obstacle(instance, context.form, now_ms) {
        return Err(ServiceRefusal::new(Code::InstanceCanNotBeReleased, format!("instance {uid:?}: {obstacle}")));
    }
    instance.next = Some(ScheduledChange { at_ms, to: Next::Released });
    let mounts = instance.mounts.clone();
    for mount in mounts {
        if let Some(disk) = context.world.disks.iter_mut().find(|disk| disk.id == mount.disk_id) {
            disk.status = if mount.release_with_instance { DiskStatus::Releasing } else { DiskStatus::Unmounting };
        }
    }
    context.released.push(uid);
    Ok(Value::Null)
}

/// What forbids a manual release (service API, States, Instance: "status and billing type permit manual release").
fn obstacle(instance: &Instance, form: &Form, now_ms: i64) -> Option<&'static str> {
    if instance.unreleasable {
        Some("its status forbids manual release")
    } else if instance.status == "Failed" {
        form.failed_unreleasable.then_some("a failed instance is cleared by the service")
    } else if instance.rent_deadline_ms > now_ms {
        Some("its prepaid term has not ended")
    } else if instance.status == "Creating" && form.creating_unreleasable {
        Some("it is still being created")
    } else {
        None
    }
}
