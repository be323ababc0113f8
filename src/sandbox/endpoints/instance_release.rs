//! POST /api/instance/release.

use axum::http::Method;
use serde_json::Value;

use super::{Context, Endpoint, Input};
use crate::sandbox::{
    form::Form,
    render::{Code, Refusal},
    world::{DiskStatus, Instance, Next, Step},
};

pub(super) const ENDPOINT: Endpoint =
    Endpoint { name: "instance_release", method: Method::POST, path: "/api/instance/release", handle };

fn handle(context: &mut Context<'_>, input: &Input<'_>) -> Result<Value, Refusal> {
    input.no_query()?;
    let mut fields = input.fields()?;
    let uid = fields.required_string("instance_uid")?;
    if uid.is_empty() {
        return Err(fields.invalid("instance_uid", "must not be empty"));
    }
    fields.finish()?;

    let (now_ms, at_ms) = (context.now_ms, context.now_ms.saturating_add(context.tempo.release_ms));
    let Some(instance) = context.world.instance_mut(context.account, &uid) else {
        return Err(Refusal::new(Code::InstanceNotExistOrNoPrivilege, format!("there is no instance {uid:?}")));
    };
    if instance.is_released() || instance.is_releasing() {
        return Err(Refusal::new(
            Code::InstanceNotExistOrAlreadyReleased,
            format!("instance {uid:?} is released already"),
        ));
    }
    if let Some(obstacle) = obstacle(instance, context.form, now_ms) {
        return Err(Refusal::new(Code::InstanceCanNotBeReleased, format!("instance {uid:?}: {obstacle}")));
    }
    instance.next = Some(Step { at_ms, to: Next::Released });
    let mounts = instance.mounts.clone();
    for mount in mounts {
        if let Some(disk) = context.world.disks.iter_mut().find(|disk| disk.id == mount.disk_id) {
            disk.status = if mount.release_with_instance { DiskStatus::Releasing } else { DiskStatus::Unmounting };
        }
    }
    context.released.push(uid);
    context.changed = true;
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
