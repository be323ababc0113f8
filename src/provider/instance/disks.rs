//! The cloud disks of an instance in the configuration, and in a destroy: deleted, released or kept.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::schema::Instance;
use crate::{
    api::{
        CloudDisk, Context, ExistDisk, Listing, NewDisk,
        disk_status::{STARTING, UNMOUNTING},
    },
    framework::{
        Attr, CreatePlan, Diagnostic, Path, Private, Type,
        schema::{Attribute, AttributeType, Nesting, Replacement, Validator},
    },
    provider::{ProviderClient, lifecycle::ManagedExt as _, protection, rules, words::capitalized},
    review::rules::{bound_to, goes_with_instance},
};

/// The largest number of cloud disks of an instance (service API, Limits).
pub(super) const MOST: usize = 8;

/// An existing cloud disk to mount.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::provider) struct Existing {
    pub(super) disk_id: Attr<i64>,
    pub(super) mount_path: Attr<String>,
    pub(super) release_with_instance: Attr<bool>,
}

/// A cloud disk to create with the instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::provider) struct New {
    pub(super) size_gb: Attr<i64>,
    pub(super) spec_id: Attr<i64>,
    pub(super) mount_path: Attr<String>,
    pub(super) release_with_instance: Attr<bool>,
}

impl Existing {
    /// The disk in the create's request, without its uid; `None` while its number is unknown.
    pub(super) fn request(&self) -> Option<ExistDisk> {
        Some(ExistDisk {
            id: *self.disk_id.known()?,
            uid: String::new(),
            mount_path: self.mount_path.known().cloned(),
            release_with_instance: self.release_with_instance.known() == Some(&true),
        })
    }
}

impl New {
    /// The disk in the create's request.
    pub(super) fn request(&self) -> Option<NewDisk> {
        Some(NewDisk {
            size_gb: *self.size_gb.known()?,
            spec_id: *self.spec_id.known()?,
            mount_path: self.mount_path.known().cloned(),
            release_with_instance: self.release_with_instance.known() != Some(&false),
        })
    }
}

/// Whether the service shows a disk as mounted in an instance.
pub(super) fn is_bound(disk: &CloudDisk, uid: &str) -> bool {
    let mut found = BTreeSet::new();
    disk.binding_instances.iter().for_each(|binding| bound_to(binding, &mut found));
    !uid.is_empty() && found.contains(uid)
}

/// Whether the release of an instance deletes a disk, by the service and by the instance's state.
pub(super) fn goes_with(uid: &str, disk: &CloudDisk, stated: Option<bool>) -> bool {
    goes_with_instance([disk.release_with_instance.filter(|_| is_bound(disk, uid)), stated])
}

/// Whether a disk will soon be available, so that a create waits for it.
pub(super) fn is_on_its_way(disk: &CloudDisk) -> bool {
    matches!(disk.status, Some(STARTING | UNMOUNTING))
}

/// The arguments for disks and mounts (service API, POST /api/instance/create).
pub(super) fn attributes() -> Vec<Attribute> {
    vec![
        Attribute::optional(
            "exist_disks",
            AttributeType::Nested(Nesting::List, existing()),
            "Existing cloud disks to mount. Together with `new_disks` at most 8.",
        )
        .replaces(Replacement::IfKnown),
        Attribute::optional(
            "new_disks",
            AttributeType::Nested(Nesting::List, new()),
            "Cloud disks to create with the instance. Together with `exist_disks` at most 8. To keep a disk longer \
             than the instance, create it with `damodel_cloud_disk` and mount it with `exist_disks`.",
        )
        .replaces(Replacement::IfKnown),
        Attribute::optional(
            "object_mounts",
            Type::list(Type::String),
            "Object storage mounts, each a JSON document that is sent to the service unchanged.",
        )
        .sensitive()
        .replaces(Replacement::IfKnown)
        .validate(Validator::text("a JSON document", |text| serde_json::from_str::<Value>(text).is_ok())),
    ]
}

fn existing() -> Vec<Attribute> {
    vec![
        Attribute::required("disk_id", Type::Number, "The disk's number (`id` of `damodel_cloud_disk`).")
            .validate(Validator::between(1..=i64::MAX)),
        mount_path("Where it is mounted. Default: the disk's own mount path."),
        Attribute::with_default(
            "release_with_instance",
            Type::Bool,
            false,
            "Whether the disk and its data are deleted when the instance is released.",
        ),
    ]
}

fn new() -> Vec<Attribute> {
    vec![
        Attribute::required("size_gb", Type::Number, "The capacity in GB.").validate(Validator::between(20..=i64::MAX)),
        Attribute::required("spec_id", Type::Number, "The cloud disk specification (see `damodel_cloud_disk_specs`).")
            .validate(Validator::between(1..=i64::MAX)),
        mount_path("Where it is mounted."),
        Attribute::with_default(
            "release_with_instance",
            Type::Bool,
            true,
            "Whether the disk and its data are deleted when the instance is released. Otherwise it stays and is still \
             billed.",
        ),
    ]
}

fn mount_path(description: &str) -> Attribute {
    Attribute::optional("mount_path", Type::String, description)
        .validate(Validator::text(rules::ABSOLUTE_PATH, rules::is_absolute_path))
        .validate(Validator::text(rules::DISK_PATH_RULE, rules::is_allowed_disk_path))
}

/// The private entry of a plan with the protected cloud disk that its instance would delete. If the plan replaces a
/// tainted instance, of which it has no state, the release finds it.
const PROTECTED: &str = "protected_disk";

/// The existing cloud disks that go with an instance by its state.
fn dying(instance: &Instance) -> Vec<i64> {
    let disks = instance.exist_disks.elements().filter(|(_, disk)| disk.release_with_instance.known() == Some(&true));
    disks.filter_map(|(_, disk)| disk.disk_id.known().copied()).collect()
}

/// Warns that the release of a planned instance would delete a protected cloud disk.
pub(super) fn plan_protected(plan: &mut CreatePlan<Instance>, client: &ProviderClient) {
    let Some(disk) = client.protected_disk(&dying(&plan.planned)) else { return };
    plan.private.insert(PROTECTED, &disk);
    plan.diagnostics.warning_at(
        Path::to("exist_disks"),
        "The release of the instance would delete a protected disk",
        format!(
            "{} has deletion_protection = true and is mounted with release_with_instance = true: while it is \
             protected, the instance is neither destroyed nor replaced. To keep the disk longer than the instance, \
             set release_with_instance = false.",
            capitalized(&disk.1)
        ),
    );
}

/// Removes the protected disk from a plan's private data.
pub(super) fn forget_protected(private: &mut Private) {
    private.remove(PROTECTED);
}

/// The error for a release that would delete the protected cloud disk of the plan.
pub(super) fn planned_protected(instance: &Instance, private: &Private) -> Option<Diagnostic> {
    let (disk, title): (i64, String) = private.entry(PROTECTED)?;
    dying(instance).contains(&disk).then(|| protection::refusal_of_disk(&instance.title(), &title))
}

/// The text about the disks that the release of an instance deletes and keeps, and the error if it deletes a protected
/// one.
pub(super) async fn losses(
    instance: &Instance,
    client: Option<&ProviderClient>,
    limits: &Context,
) -> (String, Option<Diagnostic>) {
    let checked = client.filter(|client| client.preflight);
    let mount_path = instance.data_disk_mount_path.as_str().unwrap_or(super::schema::DEFAULT_MOUNT_PATH);
    let own = format!("Its system disk and its local data disk ({mount_path}) are deleted with it permanently.");
    let listing = match checked {
        Some(client) => client.api.cloud_disks().snapshot(limits).await.ok(),
        None => None,
    };
    let disks = mounted(instance, listing.as_deref());
    let named = |dies: bool| -> Vec<&str> {
        disks.iter().filter(|disk| disk.dies == dies).map(|disk| disk.name.as_str()).collect()
    };
    let mut parts = vec![own];
    for (names, sentence) in [
        (named(true), "These cloud disks and their data are deleted with it"),
        (named(false), "These cloud disks are not deleted with it, and are billed until they are destroyed themselves"),
    ] {
        if !names.is_empty() {
            parts.push(format!("{sentence}: {}.", names.join(", ")));
        }
    }
    if listing.is_none() {
        let why = if checked.is_some() { "could not be" } else { "were not" };
        parts.push(format!("The cloud disks {why} listed: other disks may be mounted too."));
    }
    let ended: Vec<i64> = disks.iter().filter(|disk| disk.dies).filter_map(|disk| disk.id).collect();
    let title = instance.title();
    let protected = client.and_then(|client| client.ends_disks(&title, &ended));
    (parts.join(" "), protected.map(|(_, disk)| protection::refusal_of_disk(&title, &disk)))
}

/// The warning about the disks that the release of an instance deletes. The service may refuse to release a prepaid
/// one, and if it is abandoned then, its disks are deleted or it is left, never both.
pub(super) fn released(
    instance: &Instance,
    client: Option<&ProviderClient>,
    [title, what, losses]: [&str; 3],
) -> [Option<Diagnostic>; 2] {
    let certain = Diagnostic::warning(title, format!("{what} {losses}"));
    let Some(payment) = instance.payment_type.as_str().filter(|payment| *payment != "Hourly") else {
        return [None, Some(certain)];
    };
    let until = instance.paid_until().unwrap_or("an unknown time");
    let variable = client.filter(|client| instance.never_abandoned(client).is_none());
    let (decides, wanted) = match variable.and_then(|client| client.on_unreleasable) {
        Some(wanted) => (
            format!("DAMODEL_ON_UNRELEASABLE is {:?} and decides what happens then.", wanted.as_str()),
            wanted.as_str(),
        ),
        None => {
            let wanted = instance.on_unreleasable.as_str().unwrap_or("fail");
            (format!("on_unreleasable decides what happens then; its value in the state is {wanted:?}."), wanted)
        }
    };
    let is_left = wanted == "abandon" && instance.auto_renew.known() != Some(&true);
    let subject = if is_left { format!("{what} It") } else { capitalized(&instance.title()) };
    let mut detail = format!(
        "{subject} is prepaid ({payment}) until {until}. The service may forbid its release before that date (160012). \
         {decides}"
    );
    if is_left {
        detail = format!(
            "{detail} If the service refuses the release, the instance is left with its disks until {until}; \
             otherwise it is released. {losses}"
        );
    }
    let refused = Diagnostic::warning("The service may refuse to release the prepaid instance", detail);
    [Some(refused), (!is_left).then_some(certain)]
}

/// A cloud disk that is mounted in the instance.
struct Mounted {
    /// Its number; `None` for one that was created with the instance and not listed.
    id: Option<i64>,
    name: String,
    dies: bool,
}

/// The cloud disks of an instance: those in its state, and those that the service shows as mounted in it, managed or
/// not.
fn mounted(instance: &Instance, listing: Option<&Listing<CloudDisk>>) -> Vec<Mounted> {
    let stated = || instance.exist_disks.elements().map(|(_, disk)| disk);
    let of_state = |id: i64| stated().find(|disk| disk.disk_id.known() == Some(&id));
    let uid = instance.id.as_str().unwrap_or_default();
    let mut disks: Vec<Mounted> = listing
        .into_iter()
        .flat_map(|listing| &listing.records)
        .filter(|disk| !disk.is_released() && (is_bound(disk, uid) || of_state(disk.id).is_some()))
        .map(|disk| Mounted {
            id: Some(disk.id),
            name: format!(
                "{} {:?} ({} GB)",
                disk.id,
                disk.name.as_deref().unwrap_or_default(),
                disk.size_gb.unwrap_or_default()
            ),
            dies: goes_with(uid, disk, of_state(disk.id).and_then(|disk| disk.release_with_instance.known().copied())),
        })
        .collect();
    if listing.is_none() {
        disks.extend(stated().filter_map(|disk| {
            Some(Mounted {
                id: disk.disk_id.known().copied(),
                name: disk.disk_id.known()?.to_string(),
                dies: disk.release_with_instance.known() == Some(&true),
            })
        }));
        disks.extend(instance.new_disks.elements().map(|(_, disk)| made_with(disk)));
    }
    disks
}

/// A disk that was created with the instance: the state has neither its number nor its name.
fn made_with(disk: &New) -> Mounted {
    let number = |number: &Attr<i64>| number.known().copied().unwrap_or_default();
    let place = disk.mount_path.as_str().map(|path| format!(" at {path}")).unwrap_or_default();
    Mounted {
        id: None,
        name: format!("one of {} GB (specification {}){place}", number(&disk.size_gb), number(&disk.spec_id)),
        dies: disk.release_with_instance.known() != Some(&false),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::provider::instance::disks::Existing;

    fn listing() -> Listing<CloudDisk> {
        let disk = |value: Value| serde_json::from_value(value).unwrap();
        Listing {
            records: vec![
                disk(json!({"id": 1, "name": "scratch", "size_gb": 20, "release_with_instance": true,
                            "binding_instances": [{"instance_uid": "ins-a"}]})),
                disk(json!({"id": 2, "name": "data", "size_gb": 100, "binding_instances": ["ins-a"]})),
                disk(json!({"id": 3, "name": "other", "size_gb": 50, "binding_instances": ["ins-b"]})),
                disk(json!({"id": 4, "name": "moved", "size_gb": 60, "release_with_instance": true,
                            "binding_instances": [r#"{"instance_uid": "ins-b"}"#]})),
            ],
            complete: true,
            total: Some(4),
            is_reached: true,
            unread: Vec::new(),
            changed: false,
        }
    }

    fn names(disks: &[Mounted], dies: bool) -> Vec<&str> {
        disks.iter().filter(|disk| disk.dies == dies).map(|disk| disk.name.as_str()).collect()
    }

    #[test]
    fn disks_of_others_that_are_mounted_are_told_too() {
        let instance = Instance { id: "ins-a".into(), ..Instance::default() };
        let listing = listing();
        let disks = mounted(&instance, Some(&listing));
        assert_eq!(names(&disks, true), [r#"1 "scratch" (20 GB)"#]);
        assert_eq!(names(&disks, false), [r#"2 "data" (100 GB)"#]);
        let other = Instance { id: "ins-b".into(), ..Instance::default() };
        assert_eq!(names(&mounted(&other, Some(&listing)), true), [r#"4 "moved" (60 GB)"#]);
        // Where the state and the service disagree, the disk goes.
        // The mark of another instance's disk is not this one's.
        let stated = [(1, false), (2, true), (4, false)].map(|(id, goes)| {
            let goes = Attr::Known(goes);
            Existing { disk_id: Attr::Known(id), release_with_instance: goes, ..Existing::default() }.into()
        });
        let instance = Instance { exist_disks: Attr::Known(stated.to_vec()), ..instance };
        assert_eq!(
            names(&mounted(&instance, Some(&listing)), true),
            [r#"1 "scratch" (20 GB)"#, r#"2 "data" (100 GB)"#]
        );
        assert_eq!(names(&mounted(&instance, Some(&listing)), false), [r#"4 "moved" (60 GB)"#]);
    }

    #[test]
    fn without_a_list_the_state_tells_what_it_knows() {
        let disk =
            Existing { disk_id: Attr::Known(7), release_with_instance: Attr::Known(true), ..Existing::default() };
        let new = |size, path: Option<&str>, dies| New {
            size_gb: Attr::Known(size),
            spec_id: Attr::Known(31),
            mount_path: path.map(str::to_owned).into(),
            release_with_instance: dies,
        };
        let news = vec![new(25, Some("/data"), Attr::Known(true)).into(), new(26, None, Attr::Known(false)).into()];
        let instance = Instance {
            id: "ins-a".into(),
            exist_disks: Attr::Known(vec![disk.into()]),
            new_disks: Attr::Known(news),
            ..Instance::default()
        };
        let disks = mounted(&instance, None);
        assert_eq!(names(&disks, true), ["7", "one of 25 GB (specification 31) at /data"]);
        assert_eq!(names(&disks, false), ["one of 26 GB (specification 31)"]);
        // With a list, disks have their own names.
        assert_eq!(names(&mounted(&instance, Some(&listing())), true), [r#"1 "scratch" (20 GB)"#]);
    }

    /// One warning or two, they list the disks once.
    #[test]
    fn a_destroy_names_each_disk_once() {
        for (payment, wanted, renewed) in [
            ("Hourly", None, false),
            ("Monthly", None, false),
            ("Monthly", Some("fail"), true),
            ("Monthly", Some("abandon"), false),
            ("Monthly", Some("abandon"), true),
        ] {
            let instance = Instance {
                payment_type: payment.into(),
                on_unreleasable: wanted.map(str::to_owned).into(),
                auto_renew: renewed.into(),
                ..Instance::default()
            };
            let said = released(&instance, None, ["title", "What.", "1 \"scratch\"."]);
            let all: String = said.into_iter().flatten().map(|warning| warning.detail).collect();
            assert_eq!(all.matches("1 \"scratch\"").count(), 1, "{payment} {wanted:?} {renewed}: {all}");
        }
    }

    #[tokio::test]
    async fn what_was_not_asked_is_said() {
        let limits = Context::within(std::time::Duration::from_secs(1), &tokio_util::sync::CancellationToken::new());
        let (losses, _) = losses(&Instance::default(), None, &limits).await;
        assert!(losses.ends_with("The cloud disks were not listed: other disks may be mounted too."), "{losses}");
    }
}
