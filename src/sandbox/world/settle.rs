//! How the world changes: with time (service API, States and transitions), and by mutations.

use super::{
    Account, Binding, ChatModel, Disk, DiskNext, DiskStatus, DiskStep, Instance, Next, PrivateImage, Spec, Visibility,
    World,
};
use crate::sandbox::{
    control::{Mutation, MutationError},
    ledger::{LedgerObject, LifeKind},
    options::SandboxSecret,
};

/// A due change of the instance, cloud disk or private image at an index.
#[derive(Clone, Copy, Debug)]
enum Due {
    Disk(DiskNext),
    Push { fails: bool },
    Step(Next),
    TermEnd,
}

impl World {
    /// Applies all changes that are due by now, in order of their times. Returns true if there were any.
    pub(in crate::sandbox) fn settle(&mut self, now_ms: i64) -> bool {
        let mut changed = false;
        while let Some((at_ms, index, due)) = self.earliest_due(now_ms) {
            changed = true;
            match due {
                Due::Disk(next) => self.change_disk(index, next, at_ms),
                Due::Push { fails: true } => self.drop_private_image(index, LifeKind::Removed, at_ms),
                Due::Push { fails: false } => {
                    if let Some(image) = self.private_images.get_mut(index) {
                        image.become_ready(at_ms);
                    }
                }
                Due::Step(Next::Running) => self.run(index, at_ms),
                Due::Step(Next::Failed) => self.fail(index, at_ms),
                Due::Step(Next::Released) => self.end(index, at_ms),
                Due::TermEnd => self.end_term(index, at_ms),
            }
        }
        changed
    }

    fn earliest_due(&self, now_ms: i64) -> Option<(i64, usize, Due)> {
        let dues = self.instances.iter().enumerate().flat_map(|(index, instance)| {
            let step = instance.next.map(|step| (step.at_ms, index, Due::Step(step.to)));
            let term = has_running_term(instance).then_some((instance.rent_deadline_ms, index, Due::TermEnd));
            step.into_iter().chain(term)
        });
        let disks = self.disks.iter().enumerate().filter_map(|(index, disk)| {
            let DiskStep { at_ms, to } = disk.next?;
            Some((at_ms, index, Due::Disk(to)))
        });
        let pushes = self.private_images.iter().enumerate().filter_map(|(index, image)| {
            let push = image.push?;
            Some((push.until_ms, index, Due::Push { fails: push.fails }))
        });
        let dues = dues.chain(disks).chain(pushes);
        dues.filter(|(at_ms, ..)| *at_ms <= now_ms).min_by_key(|(at_ms, index, _)| (*at_ms, *index))
    }

    fn change_disk(&mut self, index: usize, next: DiskNext, at_ms: i64) {
        let Some(disk) = self.disks.get_mut(index) else {
            return;
        };
        disk.next = None;
        match next {
            DiskNext::Available => disk.status = DiskStatus::Available,
            DiskNext::Grown { size_gb } => disk.size_gb = size_gb,
            DiskNext::Released => self.end_disk(index, at_ms),
        }
    }

    fn run(&mut self, index: usize, at_ms: i64) {
        let Some(instance) = self.instances.get_mut(index) else {
            return;
        };
        instance.status = "Running".to_owned();
        instance.next = None;
        instance.start_ms = at_ms;
        let (uid, mounts) = (instance.uid.clone(), instance.mounts.clone());
        for mount in mounts {
            if let Some(disk) = self.disks.iter_mut().find(|disk| disk.id == mount.disk_id) {
                disk.status = DiskStatus::Mounted;
                if !disk.bindings.iter().any(|binding| binding.instance_uid == uid) {
                    disk.bindings.push(Binding { instance_uid: uid.clone(), mount_path: mount.mount_path });
                }
            }
        }
    }

    /// Makes an instance Failed now: its GPUs are returned, its new disks are released, and the others are free again.
    pub(in crate::sandbox) fn fail(&mut self, index: usize, at_ms: i64) {
        let Some(instance) = self.instances.get_mut(index) else {
            return;
        };
        instance.status = "Failed".to_owned();
        instance.next = None;
        let (uid, name, account) = (instance.uid.clone(), instance.alias.clone(), instance.account.clone());
        for mount in &mut instance.mounts {
            mount.release_with_instance = mount.is_new;
        }
        self.let_go(index, at_ms);
        self.record(at_ms, LedgerObject::Instance, LifeKind::Failed, &uid, &name, &account);
    }

    /// Makes an instance Released now, with the disks that are released with it.
    pub(in crate::sandbox) fn end(&mut self, index: usize, at_ms: i64) {
        let Some(instance) = self.instances.get_mut(index) else {
            return;
        };
        instance.status = "Released".to_owned();
        instance.next = None;
        instance.release_ms = at_ms;
        if instance.stop_ms == 0 {
            instance.stop_ms = at_ms;
        }
        let (uid, name, account) = (instance.uid.clone(), instance.alias.clone(), instance.account.clone());
        self.let_go(index, at_ms);
        self.record(at_ms, LedgerObject::Instance, LifeKind::Released, &uid, &name, &account);
    }

    /// Returns an instance's GPUs and cloud disks.
    fn let_go(&mut self, index: usize, at_ms: i64) {
        let Some(instance) = self.instances.get_mut(index) else {
            return;
        };
        let gpus = if std::mem::take(&mut instance.holds_stock) { instance.gpu_num } else { 0 };
        let (uid, spec_id, mounts) = (instance.uid.clone(), instance.spec.id, std::mem::take(&mut instance.mounts));
        self.give_back(spec_id, gpus);
        for mount in mounts {
            let Some((index, disk)) = self.disks.iter_mut().enumerate().find(|(_, disk)| disk.id == mount.disk_id)
            else {
                continue;
            };
            disk.bindings.retain(|binding| binding.instance_uid != uid);
            if mount.release_with_instance {
                self.end_disk(index, at_ms);
            } else {
                disk.status = if disk.bindings.is_empty() { DiskStatus::Available } else { DiskStatus::Mounted };
            }
        }
    }

    /// Ends a prepaid term: it is renewed, or the instance stops and may be released.
    fn end_term(&mut self, index: usize, at_ms: i64) {
        let Some(instance) = self.instances.get_mut(index) else {
            return;
        };
        let renewal_ms = instance.payment.term_ms().unwrap_or(0).saturating_mul(instance.purchase_duration.max(1));
        if instance.auto_renew && renewal_ms > 0 {
            instance.rent_deadline_ms = at_ms.saturating_add(renewal_ms);
            instance.release_ms = instance.rent_deadline_ms;
        } else {
            instance.status = "Stopped".to_owned();
            instance.stop_ms = at_ms;
        }
    }
}

/// Whether the instance's prepaid term has not ended.
fn has_running_term(instance: &Instance) -> bool {
    instance.rent_deadline_ms > 0 && instance.status == "Running"
}

impl World {
    /// Applies a mutation now.
    pub(in crate::sandbox) fn mutate(&mut self, mutation: Mutation, now_ms: i64) -> Result<(), MutationError> {
        match mutation {
            Mutation::ChangeHostKey { uid } => self.any_instance(&uid)?.host.key_generation += 1,
            Mutation::DelaySshd { uid, ms } => self.any_instance(&uid)?.host.sshd_delay_ms = Some(i64::from(ms)),
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
                let index = self.image_index(id)?;
                self.drop_private_image(index, LifeKind::Removed, now_ms);
            }
            Mutation::RemoveInstance { uid } => self.remove_instance(&uid, now_ms)?,
            Mutation::RenameDisk { id, name } => {
                let disk = self.any_disk(id)?;
                disk.name.clone_from(&name);
                let (uid, account) = (disk.uid.clone(), disk.account.clone());
                self.record(now_ms, LedgerObject::CloudDisk, LifeKind::Renamed, &uid, &name, &account);
            }
            Mutation::RenameImage { id, name } => {
                let image = self.any_image(id)?;
                image.name.clone_from(&name);
                let account = image.account.clone();
                self.record(now_ms, LedgerObject::PrivateImage, LifeKind::Renamed, &id.to_string(), &name, &account);
            }
            Mutation::RenameInstance { uid, name } => {
                let instance = self.any_instance(&uid)?;
                instance.alias.clone_from(&name);
                let account = instance.account.clone();
                self.record(now_ms, LedgerObject::Instance, LifeKind::Renamed, &uid, &name, &account);
            }
            Mutation::ResizeDisk { id, size_gb } => self.any_disk(id)?.size_gb = size_gb,
            Mutation::RevokeToken { account, token } => {
                if !self.any_account(&account)?.revoke(&token) {
                    return Err(MutationError::Token(account));
                }
            }
            Mutation::SetAccount { account, balance, certified, at_risk, may_use_disks, may_use_images } => {
                let account = self.any_account(&account)?;
                set(&mut account.balance, balance);
                set(&mut account.certified, certified);
                set(&mut account.at_risk, at_risk);
                set(&mut account.may_use_disks, may_use_disks);
                set(&mut account.may_use_images, may_use_images);
            }
            Mutation::SetDiskSpec { id, max_size_g, sold_out } => {
                let spec = self
                    .disk_specs
                    .iter_mut()
                    .find(|spec| spec.id == id)
                    .ok_or_else(|| unknown("cloud disk specification", id))?;
                set(&mut spec.max_size_g, max_size_g);
                set(&mut spec.sold_out, sold_out);
            }
            Mutation::SetDiskStatus { id, status } => {
                let status = DiskStatus::parse(status).ok_or(MutationError::DiskStatus(status))?;
                let index = self.disk_index(id)?;
                let disk = self.any_disk(id)?;
                if status == DiskStatus::Released {
                    self.end_disk(index, now_ms);
                } else {
                    (disk.status, disk.next) = (status, None);
                }
            }
            Mutation::SetInstanceStatus { uid, status } => self.set_instance_status(&uid, status, now_ms)?,
            Mutation::SetMachine { uid, toolkit, driver } => {
                let host = &mut self.any_instance(&uid)?.host;
                if toolkit.is_some() {
                    host.toolkit = toolkit;
                }
                set(&mut host.has_driver, driver);
            }
            Mutation::SetSshd { uid, up } => self.any_instance(&uid)?.host.is_sshd_down = !up,
            Mutation::SetUnreleasable { uid, unreleasable } => self.any_instance(&uid)?.unreleasable = unreleasable,
            Mutation::SetModel { name, enabled } => match self.models.iter_mut().find(|model| model.name == name) {
                Some(model) => model.enabled = enabled,
                None => self.models.push(ChatModel { name, enabled }),
            },
            Mutation::SetPrivateImage { id, ready, push_progress } => {
                let image = self.any_image(id)?;
                (image.ready, image.push_progress, image.push) = (ready, push_progress, None);
                image.updated_at = now_ms / 1000;
            }
            Mutation::SetPublicImage { id, enabled, labels, softwares, cuda } => {
                let images = &mut self.public_images;
                let image =
                    images.iter_mut().find(|image| image.id == id).ok_or_else(|| unknown("public image", id))?;
                set(&mut image.enabled, enabled);
                set(&mut image.labels, labels);
                set(&mut image.softwares, softwares);
                set(&mut image.cuda, cuda.map(|version| Some(version).filter(|version| !version.is_empty())));
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

    fn any_disk(&mut self, id: i64) -> Result<&mut Disk, MutationError> {
        self.disks.iter_mut().find(|disk| disk.id == id).ok_or_else(|| unknown("cloud disk", id))
    }

    fn image_index(&self, id: i64) -> Result<usize, MutationError> {
        self.private_images.iter().position(|image| image.id == id).ok_or_else(|| unknown("private image", id))
    }

    fn any_image(&mut self, id: i64) -> Result<&mut PrivateImage, MutationError> {
        self.private_images.iter_mut().find(|image| image.id == id).ok_or_else(|| unknown("private image", id))
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
