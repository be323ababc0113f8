//! What a test can do to the world behind the client's back: what a person does in the console, or the service by itself.

use serde::{Deserialize, Serialize};

use super::{
    ledger::{LifeKind, Thing},
    world::{Account, DiskStatus, Instance, Spec, World},
};

/// A change behind the client's back. As JSON (`POST /sandbox/mutate`): `{"release_instance": {"uid": "ins-…"}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Mutation {
    /// An instance is Released at once, with the disks that die with it.
    ReleaseInstance {
        /// Its uid.
        uid: String,
    },
    /// A cloud disk vanishes without a trace, even from lists.
    RemoveDisk {
        /// Its database id.
        id: i64,
    },
    /// An instance vanishes without a trace, even from lists. Its disks stay.
    RemoveInstance {
        /// Its uid.
        uid: String,
    },
    /// An instance gets another name.
    RenameInstance {
        /// Its uid.
        uid: String,
        /// The name.
        name: String,
    },
    /// An account may do other things; what is left out stays.
    SetAccount {
        /// Its name, such as `main`.
        account: String,
        /// The balance.
        balance: Option<f64>,
        /// Whether it is certified.
        certified: Option<bool>,
        /// Whether its risk state forbids creating instances.
        at_risk: Option<bool>,
        /// Whether cloud disks are permitted.
        may_use_disks: Option<bool>,
    },
    /// A cloud disk has another status.
    SetDiskStatus {
        /// Its database id.
        id: i64,
        /// The service's number, 1 … 8.
        status: i64,
    },
    /// An instance has another status, and nothing more happens to it by itself. `Failed` and `Released` have their usual effects; any
    /// other word is set as it is, documented or not.
    SetInstanceStatus {
        /// Its uid.
        uid: String,
        /// The word.
        status: String,
    },
    /// An instance refuses its release with 160012, or no longer.
    SetUnreleasable {
        /// Its uid.
        uid: String,
        /// Whether it refuses.
        unreleasable: bool,
    },
    /// A private image is ready, or is not.
    SetPrivateImage {
        /// Its id.
        id: i64,
        /// Whether it is ready.
        ready: bool,
        /// Its push_progress, 0 … 100.
        push_progress: i64,
    },
    /// A public image is enabled or disabled.
    SetPublicImage {
        /// Its id.
        id: i64,
        /// Whether it is enabled.
        enabled: bool,
    },
    /// A specification changes; what is left out stays.
    SetSpec {
        /// Its spec_id.
        spec_id: i64,
        /// The price of an hour.
        hourly_price: Option<f64>,
        /// The price of a day.
        daily_price: Option<f64>,
        /// The price of a month.
        monthly_price: Option<f64>,
        /// How many GPUs are free in all.
        stock: Option<i64>,
        /// How many are free on the node that has most.
        node_limit: Option<i64>,
        /// The highest CUDA version.
        highest_cuda: Option<String>,
        /// Whether it is enabled.
        enabled: Option<bool>,
    },
}

/// Why a mutation cannot be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MutationError {
    /// There is nothing of this name or number.
    #[error("find the {kind} {name:?}")]
    Unknown {
        /// What was looked for.
        kind: &'static str,
        /// Its name or number.
        name: String,
    },
    /// The number is no cloud disk status.
    #[error("understand the cloud disk status {0}")]
    DiskStatus(i64),
}

impl World {
    /// Does it, now.
    pub(super) fn mutate(&mut self, mutation: Mutation, now_ms: i64) -> Result<(), MutationError> {
        match mutation {
            Mutation::ReleaseInstance { uid } => {
                let index = self.instance_index(&uid)?;
                self.end(index, now_ms);
            }
            Mutation::RemoveDisk { id } => {
                let index =
                    self.disks.iter().position(|disk| disk.id == id).ok_or_else(|| unknown("cloud disk", id))?;
                let disk = self.disks.remove(index);
                if disk.status != DiskStatus::Released {
                    self.record(now_ms, Thing::CloudDisk, LifeKind::Removed, &disk.uid, &disk.name, &disk.account);
                }
            }
            Mutation::RemoveInstance { uid } => self.remove_instance(&uid, now_ms)?,
            Mutation::RenameInstance { uid, name } => {
                let instance = self.any_instance(&uid)?;
                instance.alias.clone_from(&name);
                let account = instance.account.clone();
                self.record(now_ms, Thing::Instance, LifeKind::Renamed, &uid, &name, &account);
            }
            Mutation::SetAccount { account, balance, certified, at_risk, may_use_disks } => {
                let account = self.account(&account)?;
                set(&mut account.balance, balance);
                set(&mut account.certified, certified);
                set(&mut account.at_risk, at_risk);
                set(&mut account.may_use_disks, may_use_disks);
            }
            Mutation::SetDiskStatus { id, status } => {
                let status = disk_status(status).ok_or(MutationError::DiskStatus(status))?;
                self.disks.iter_mut().find(|disk| disk.id == id).ok_or_else(|| unknown("cloud disk", id))?.status =
                    status;
            }
            Mutation::SetInstanceStatus { uid, status } => self.set_instance_status(&uid, status, now_ms)?,
            Mutation::SetUnreleasable { uid, unreleasable } => self.any_instance(&uid)?.unreleasable = unreleasable,
            Mutation::SetPrivateImage { id, ready, push_progress } => {
                let image = self
                    .private_images
                    .iter_mut()
                    .find(|image| image.id == id)
                    .ok_or_else(|| unknown("private image", id))?;
                image.ready = ready;
                image.push_progress = push_progress;
                image.updated_at = now_ms / 1000;
            }
            Mutation::SetPublicImage { id, enabled } => {
                self.public_images
                    .iter_mut()
                    .find(|image| image.id == id)
                    .ok_or_else(|| unknown("public image", id))?
                    .enabled = enabled;
            }
            Mutation::SetSpec {
                spec_id,
                hourly_price,
                daily_price,
                monthly_price,
                stock,
                node_limit,
                highest_cuda,
                enabled,
            } => {
                let spec: &mut Spec = self
                    .specs
                    .iter_mut()
                    .find(|spec| spec.id == spec_id)
                    .ok_or_else(|| unknown("specification", spec_id))?;
                set(&mut spec.prices.hourly, hourly_price);
                set(&mut spec.prices.daily, daily_price);
                set(&mut spec.prices.monthly, monthly_price);
                set(&mut spec.stock, stock);
                set(&mut spec.node_limit, node_limit);
                set(&mut spec.highest_cuda, highest_cuda);
                set(&mut spec.enabled, enabled);
            }
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
            self.record(now_ms, Thing::Instance, LifeKind::Removed, uid, &instance.alias, &instance.account);
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

    fn account(&mut self, name: &str) -> Result<&mut Account, MutationError> {
        self.accounts.iter_mut().find(|account| account.name == name).ok_or_else(|| unknown("account", name))
    }
}

fn unknown(kind: &'static str, name: impl ToString) -> MutationError {
    MutationError::Unknown { kind, name: name.to_string() }
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

fn disk_status(number: i64) -> Option<DiskStatus> {
    use DiskStatus::{Available, InArrears, Mounted, Mounting, Released, Releasing, Starting, Unmounting};

    [Starting, Available, Mounting, Unmounting, Releasing, Mounted, Released, InArrears]
        .into_iter()
        .find(|status| status.number() == number)
}
