//! How the world changes with time (service API, States and transitions).

use super::{Binding, DiskNext, DiskStatus, DiskStep, Next, World};
use crate::ledger::{LedgerObject, LifeKind};

/// A due change of the instance, cloud disk or private image at an index.
#[derive(Clone, Copy, Debug)]
enum Due {
    Disk(DiskNext),
    Push { fails: bool },
    Step(Next),
    TermEnd,
}

impl World {
    /// Applies all changes that are due by now, in order of their times.
    pub(crate) fn apply_due(&mut self, now_ms: i64) {
        while let Some((at_ms, index, due)) = self.earliest_due(now_ms) {
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
    }

    fn earliest_due(&self, now_ms: i64) -> Option<(i64, usize, Due)> {
        let dues = self.instances.iter().enumerate().flat_map(|(index, instance)| {
            let step = instance.next.map(|step| (step.at_ms, index, Due::Step(step.to)));
            let is_paid = instance.rent_deadline_ms > 0 && instance.status == "Running";
            let term = is_paid.then_some((instance.rent_deadline_ms, index, Due::TermEnd));
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
    pub(crate) fn fail(&mut self, index: usize, at_ms: i64) {
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
    pub(crate) fn end(&mut self, index: usize, at_ms: i64) {
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
