//! How the world changes without a client: mutations, and fields that are set.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::{Account, DiskStatus, Instance, Visibility, World};
use crate::{
    ledger::{LedgerObject, LifeKind},
    mutation::{Mutation, MutationError, StateList},
    options::SandboxSecret,
};

impl World {
    /// Merges fields into the record of a list.
    pub(crate) fn set(&mut self, list: StateList, key: &str, fields: &Value) -> Result<(), MutationError> {
        let fields = fields.as_object().ok_or_else(|| MutationError::Field("expected an object".to_owned()))?;
        match list {
            StateList::Accounts => set(&mut self.accounts, "name", key, fields),
            StateList::DiskSpecs => set(&mut self.disk_specs, "id", key, fields),
            StateList::Disks => set(&mut self.disks, "id", key, fields),
            StateList::Instances => set(&mut self.instances, "uid", key, fields),
            StateList::Models => set(&mut self.models, "name", key, fields),
            StateList::PrivateImages => set(&mut self.private_images, "id", key, fields),
            StateList::PublicImages => set(&mut self.public_images, "id", key, fields),
            StateList::Specs => set(&mut self.specs, "id", key, fields),
        }
    }
}

/// Merges fields into the record that has this key.
fn set<T>(records: &mut [T], key_field: &str, key: &str, fields: &Map<String, Value>) -> Result<(), MutationError>
where
    T: Serialize + DeserializeOwned,
{
    let invalid = |error: serde_json::Error| MutationError::Field(error.to_string());
    for record in records {
        let mut document = serde_json::to_value(&*record).map_err(invalid)?;
        let own_key = match document.get(key_field) {
            Some(Value::String(text)) => text.clone(),
            Some(number) => number.to_string(),
            None => continue,
        };
        if own_key == key {
            merge(&mut document, key_field, fields)?;
            *record = serde_json::from_value(document).map_err(invalid)?;
            return Ok(());
        }
    }
    Err(unknown("record", key))
}

/// Merges fields into a document; the record's type refuses unknown ones.
fn merge(document: &mut Value, key_field: &str, fields: &Map<String, Value>) -> Result<(), MutationError> {
    let Value::Object(own) = document else { return Ok(()) };
    for (name, value) in fields {
        if [key_field, "id", "uid", "uuid"].contains(&name.as_str()) {
            return Err(MutationError::Field(format!("{name} cannot be set")));
        }
        match (own.get_mut(name), value) {
            (Some(inner @ Value::Object(_)), Value::Object(fields)) => merge(inner, key_field, fields)?,
            _ => {
                own.insert(name.clone(), value.clone());
            }
        }
    }
    Ok(())
}

impl World {
    /// Applies a mutation now.
    pub(crate) fn mutate(&mut self, mutation: Mutation, now_ms: i64) -> Result<(), MutationError> {
        match mutation {
            Mutation::ChangeHostKey { uid } => self.any_instance(&uid)?.host.key_generation += 1,
            Mutation::Hide { uid, reads } => self.any_visibility(&uid)?.after_reads = reads,
            Mutation::IssueToken { account, token } => {
                self.any_account(&account)?.further_tokens.push(SandboxSecret::new(token));
            }
            Mutation::RebootInstance { uid } => {
                let host = &mut self.any_instance(&uid)?.host;
                host.reboots += 1;
                host.rebooted_ms = now_ms;
            }
            Mutation::ReleaseDisk { id } => {
                let index = self.disk_index(id)?;
                self.end_disk(index, now_ms);
            }
            Mutation::ReleaseInstance { uid } => {
                let index = self.instance_index(&uid)?;
                self.end(index, now_ms);
            }
            Mutation::RemoveDisk { id } => {
                let index = self.disk_index(id)?;
                let disk = self.disks.remove(index);
                if disk.status != DiskStatus::Released {
                    self.record(
                        now_ms,
                        LedgerObject::CloudDisk,
                        LifeKind::Removed,
                        &disk.uid,
                        &disk.name,
                        &disk.account,
                    );
                }
            }
            Mutation::RemoveImage { id } => {
                let index = self.private_images.iter().position(|image| image.id == id);
                let index = index.ok_or_else(|| unknown("private image", id))?;
                self.drop_private_image(index, LifeKind::Removed, now_ms);
            }
            Mutation::RemoveInstance { uid } => self.remove_instance(&uid, now_ms)?,
            Mutation::RevokeToken { account, token } => {
                if !self.any_account(&account)?.revoke(&token) {
                    return Err(MutationError::Token(account));
                }
            }
            Mutation::SetDiskStatus { id, status } => {
                let status = DiskStatus::parse(status).ok_or(MutationError::DiskStatus(status))?;
                let index = self.disk_index(id)?;
                if status == DiskStatus::Released {
                    self.end_disk(index, now_ms);
                } else if let Some(disk) = self.disks.get_mut(index) {
                    (disk.status, disk.next) = (status, None);
                }
            }
            Mutation::SetInstanceStatus { uid, status } => self.set_instance_status(&uid, status, now_ms)?,
        }
        Ok(())
    }

    fn remove_instance(&mut self, uid: &str, now_ms: i64) -> Result<(), MutationError> {
        let index = self.instance_index(uid)?;
        let instance = self.instances.remove(index);
        if instance.holds_stock {
            self.give_back(instance.spec.id, instance.gpu_num);
        }
        for disk in &mut self.disks {
            let bound = disk.bindings.len();
            disk.bindings.retain(|binding| binding.instance_uid != uid);
            if disk.bindings.is_empty() && bound > 0 {
                disk.status = DiskStatus::Available;
            }
        }
        if !instance.is_released() {
            self.record(now_ms, LedgerObject::Instance, LifeKind::Removed, uid, &instance.alias, &instance.account);
        }
        Ok(())
    }

    fn set_instance_status(&mut self, uid: &str, status: String, now_ms: i64) -> Result<(), MutationError> {
        let index = self.instance_index(uid)?;
        match status.as_str() {
            "Failed" => self.fail(index, now_ms),
            "Released" => self.end(index, now_ms),
            _ => {
                let instance = self.any_instance(uid)?;
                instance.next = None;
                if status == "Running" && instance.start_ms == 0 {
                    instance.start_ms = now_ms;
                }
                instance.status = status;
            }
        }
        Ok(())
    }

    fn instance_index(&self, uid: &str) -> Result<usize, MutationError> {
        self.instances.iter().position(|instance| instance.uid == uid).ok_or_else(|| unknown("instance", uid))
    }

    fn any_instance(&mut self, uid: &str) -> Result<&mut Instance, MutationError> {
        self.instances.iter_mut().find(|instance| instance.uid == uid).ok_or_else(|| unknown("instance", uid))
    }

    fn any_visibility(&mut self, uid: &str) -> Result<&mut Visibility, MutationError> {
        let instances = self.instances.iter_mut().map(|instance| (instance.uid.clone(), &mut instance.visibility));
        let disks = self.disks.iter_mut().map(|disk| (disk.uid.clone(), &mut disk.visibility));
        let images = self.private_images.iter_mut().map(|image| (image.id.to_string(), &mut image.visibility));
        let mut all = instances.chain(disks).chain(images);
        all.find(|(known, _)| known == uid).map(|(_, visibility)| visibility).ok_or_else(|| unknown("object", uid))
    }

    fn any_account(&mut self, name: &str) -> Result<&mut Account, MutationError> {
        self.accounts.iter_mut().find(|account| account.name == name).ok_or_else(|| unknown("account", name))
    }

    fn disk_index(&self, id: i64) -> Result<usize, MutationError> {
        self.disks.iter().position(|disk| disk.id == id).ok_or_else(|| unknown("cloud disk", id))
    }
}

fn unknown(kind: &'static str, name: impl ToString) -> MutationError {
    MutationError::Unknown { kind, name: name.to_string() }
}
