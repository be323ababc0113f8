//! The cloud disks of a new instance (service API, POST /api/instance/create: exist_disks and new_disks).

use super::call::CallContext;
use crate::{
    query::Fields,
    refusal::{Code, ServiceRefusal},
    world::{self, DiskSpec, DiskStatus, Mount, disk_path_problem},
};

/// Cloud disks in one instance, existing and new ones together (service API, Limits).
const MOST_DISKS: usize = 8;

#[derive(Debug)]
struct ExistingDisk {
    id: i64,
    uid: String,
    mount_path: String,
    release_with_instance: bool,
}

#[derive(Debug)]
struct DiskOrder {
    size_gb: i64,
    spec: DiskSpec,
    mount_path: String,
    release_with_instance: bool,
}

/// The disks of a create request.
#[derive(Debug)]
pub(super) struct DiskRequest {
    existing: Vec<ExistingDisk>,
    new: Vec<DiskOrder>,
}

impl DiskRequest {
    /// Reads both arrays and applies the rules that need no disk record.
    pub(super) fn read(fields: &mut Fields, disk_specs: &[DiskSpec]) -> Result<Self, ServiceRefusal> {
        let existing = fields.objects("exist_disks")?.into_iter().map(existing_disk).collect::<Result<Vec<_>, _>>()?;
        let new = fields
            .objects("new_disks")?
            .into_iter()
            .map(|disk| new_disk(disk, disk_specs))
            .collect::<Result<Vec<_>, _>>()?;
        let count = existing.len() + new.len();
        if count > MOST_DISKS {
            let message = format!("{count} cloud disks, and an instance can have {MOST_DISKS}");
            return Err(ServiceRefusal::new(Code::ExceededCloudDiskMaxCount, message));
        }
        Ok(Self { existing, new })
    }

    /// Refuses existing disks that cannot be mounted (unknown, in another state, or named twice), and new ones that
    /// cannot be created.
    pub(super) fn check(&self, context: &CallContext<'_>) -> Result<(), ServiceRefusal> {
        for (index, wanted) in self.existing.iter().enumerate() {
            let mut own = context.world.disks.iter().filter(|disk| disk.account == context.account);
            let is_mountable = own.any(|disk| disk.id == wanted.id && disk.uid == wanted.uid && disk.can_be_mounted());
            let is_repeated = self.existing.iter().take(index).any(|other| other.id == wanted.id);
            if !is_mountable || is_repeated {
                return Err(ServiceRefusal::new(
                    Code::MountCloudDiskFailed,
                    format!("exist_disks[{index}]: disk {} cannot be mounted", wanted.id),
                ));
            }
        }
        match self.new.iter().position(|wanted| wanted.spec.sold_out) {
            Some(index) => {
                let message = format!("new_disks[{index}]: no more disk of this specification can be created");
                Err(ServiceRefusal::new(Code::MountCloudDiskFailed, message))
            }
            None => Ok(()),
        }
    }

    /// Begins to mount the existing disks and creates the new ones.
    pub(super) fn mount(self, instance_uid: &str, context: &mut CallContext<'_>) -> Vec<Mount> {
        let mut mounts = Vec::new();
        for wanted in self.existing {
            let Some(disk) = context.world.disks.iter_mut().find(|disk| disk.id == wanted.id) else {
                continue;
            };
            if disk.status == DiskStatus::Available {
                disk.status = DiskStatus::Mounting;
            }
            disk.release_with_instance = wanted.release_with_instance;
            let mount_path = if wanted.mount_path.is_empty() { disk.mount_path.clone() } else { wanted.mount_path };
            let release_with_instance = wanted.release_with_instance;
            mounts.push(Mount { disk_id: wanted.id, mount_path, release_with_instance, is_new: false });
        }
        for (index, wanted) in self.new.into_iter().enumerate() {
            mounts.push(create(wanted, format!("{instance_uid}-disk-{}", index + 1), context));
        }
        mounts
    }
}

fn existing_disk(mut fields: Fields) -> Result<ExistingDisk, ServiceRefusal> {
    let disk = ExistingDisk {
        id: fields.required_integer("id")?,
        uid: fields.required_string("uid")?,
        mount_path: mount_path(&mut fields)?,
        release_with_instance: release_with_instance(&mut fields)?,
    };
    fields.finish()?;
    Ok(disk)
}

fn new_disk(mut fields: Fields, disk_specs: &[DiskSpec]) -> Result<DiskOrder, ServiceRefusal> {
    let size_gb = fields.required_integer("size_gb")?;
    let spec_id = fields.required_integer("spec_id")?;
    let Some(spec) = disk_specs.iter().find(|spec| spec.id == spec_id).cloned() else {
        return Err(fields.invalid("spec_id", &format!("{spec_id} is no cloud disk specification")));
    };
    if let Some(problem) = spec.size_problem(size_gb) {
        return Err(fields.invalid("size_gb", &problem));
    }
    let mount_path = mount_path(&mut fields)?;
    let release_with_instance = release_with_instance(&mut fields)?;
    fields.finish()?;
    Ok(DiskOrder { size_gb, spec, mount_path, release_with_instance })
}

/// The mount path; "" selects the disk's default.
fn mount_path(fields: &mut Fields) -> Result<String, ServiceRefusal> {
    let path = fields.string("mount_path")?.unwrap_or_default();
    match disk_path_problem(&path) {
        Some(problem) if !path.is_empty() => Err(fields.invalid("mount_path", problem)),
        Some(_) | None => Ok(path),
    }
}

fn release_with_instance(fields: &mut Fields) -> Result<bool, ServiceRefusal> {
    match fields.required_integer("release_with_instance")? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(fields.invalid("release_with_instance", &format!("{other} is neither 1 nor 0"))),
    }
}

fn create(wanted: DiskOrder, name: String, context: &mut CallContext<'_>) -> Mount {
    let mount_path = if wanted.mount_path.is_empty() { format!("/data/{name}") } else { wanted.mount_path };
    let release_with_instance = wanted.release_with_instance;
    let (account, visibility, now_ms) = (context.account, context.visibility(), context.now_ms);
    let (disk_id, uid) = context.world.add_disk(
        world::DiskOrder {
            account,
            name,
            size_gb: wanted.size_gb,
            spec: wanted.spec,
            mount_path: mount_path.clone(),
            release_with_instance,
            // It waits for its instance.
            next: None,
            visibility,
        },
        now_ms,
    );
    context.created.push(uid);
    Mount { disk_id, mount_path, release_with_instance, is_new: true }
}
