//! What goes with an instance: its own disks, the cloud disks that are released with it, and what stays and is billed
//! on.

use super::{
    disks::{New, is_bound},
    schema::Instance,
};
use crate::{
    api::{self, CloudDisk, Listing},
    framework::{Attr, Diagnostic},
    provider::{Client, lifecycle::ManagedExt as _},
};

/// What the release of an instance deletes, and what it leaves, in sentences.
pub(super) async fn told(instance: &Instance, client: Option<&Client>, limits: &api::Context) -> String {
    let mount_path = instance.data_disk_mount_path.as_str().unwrap_or(super::schema::DEFAULT_MOUNT_PATH);
    let own = format!("Its system disk and its local data disk ({mount_path}) are deleted for good.");
    let listing = match client {
        Some(client) => client.api.cloud_disks().snapshot(limits).await.ok(),
        None => None,
    };
    let disks = mounted(instance, listing.as_deref());
    let named = |dies: bool| -> Vec<&str> {
        disks.iter().filter(|disk| disk.dies == dies).map(|disk| disk.name.as_str()).collect()
    };
    let mut parts = vec![own];
    for (names, sentence) in [
        (named(true), "These cloud disks are released with it, and their data is deleted"),
        (named(false), "These cloud disks stay, with their data, and are still billed"),
    ] {
        if !names.is_empty() {
            parts.push(format!("{sentence}: {}.", names.join(", ")));
        }
    }
    if listing.is_none() {
        let why = if client.is_some() { "could not be" } else { "were not" };
        parts.push(format!("The cloud disks {why} listed: others than these may be mounted."));
    }
    parts.join(" ")
}

/// Says that a prepaid instance may refuse its release.
pub(super) fn prepaid(instance: &Instance) -> Option<Diagnostic> {
    let payment = instance.payment_type.as_str().filter(|payment| *payment != "Hourly")?;
    let until = instance.release_time.as_str().or(instance.rent_deadline.as_str()).unwrap_or("an unknown time");
    Some(Diagnostic::warning(
        "The release of a prepaid instance may be refused",
        format!(
            "{} is paid for {payment}, until {until}. The service may forbid its release before that (160012), and \
             pays nothing back. on_unreleasable decides what happens then; in the state it is {:?}.",
            instance.title(),
            instance.on_unreleasable.as_str().unwrap_or("fail")
        ),
    ))
}

/// A cloud disk that is mounted in the instance.
struct Mounted {
    name: String,
    dies: bool,
}

/// The cloud disks of an instance: those that its state names, and those that the service shows as bound to it, whoever
/// manages them.
fn mounted(instance: &Instance, listing: Option<&Listing<CloudDisk>>) -> Vec<Mounted> {
    let stated = || instance.exist_disks.elements().map(|(_, disk)| disk);
    let of_state = |id: i64| stated().find(|disk| disk.disk_id.known() == Some(&id));
    let uid = instance.id.as_str().unwrap_or_default();
    let mut disks: Vec<Mounted> = listing
        .into_iter()
        .flat_map(|listing| &listing.records)
        .filter(|disk| !disk.is_released() && (is_bound(disk, uid) || of_state(disk.id).is_some()))
        .map(|disk| Mounted {
            name: format!(
                "{} {:?} ({} GB)",
                disk.id,
                disk.name.as_deref().unwrap_or_default(),
                disk.size_gb.unwrap_or_default()
            ),
            dies: of_state(disk.id).map_or_else(
                || disk.release_with_instance == Some(true),
                |disk| disk.release_with_instance.known() == Some(&true),
            ),
        })
        .collect();
    if listing.is_none() {
        disks.extend(stated().filter_map(|disk| {
            Some(Mounted {
                name: disk.disk_id.known()?.to_string(),
                dies: disk.release_with_instance.known() == Some(&true),
            })
        }));
        disks.extend(instance.new_disks.elements().map(|(_, disk)| made_with(disk)));
    }
    disks
}

/// A disk that was made with the instance: the state knows neither its number nor its name.
fn made_with(disk: &New) -> Mounted {
    let number = |number: &Attr<i64>| number.known().copied().unwrap_or_default();
    let place = disk.mount_path.as_str().map(|path| format!(" at {path}")).unwrap_or_default();
    Mounted {
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
        let disk = |value: serde_json::Value| serde_json::from_value(value).unwrap();
        Listing {
            records: vec![
                disk(json!({"id": 1, "name": "scratch", "size_gb": 20, "release_with_instance": true,
                            "binding_instances": [{"instance_uid": "ins-a"}]})),
                disk(json!({"id": 2, "name": "data", "size_gb": 100, "binding_instances": ["ins-a"]})),
                disk(json!({"id": 3, "name": "other", "size_gb": 50, "binding_instances": ["ins-b"]})),
            ],
            complete: true,
            total: Some(3),
            skipped: 0,
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
        // A list tells them by their own names.
        assert_eq!(names(&mounted(&instance, Some(&listing())), true), [r#"1 "scratch" (20 GB)"#]);
    }

    #[tokio::test]
    async fn what_was_not_asked_is_said() {
        let limits =
            api::Context::within(std::time::Duration::from_secs(1), &tokio_util::sync::CancellationToken::new());
        let told = told(&Instance::default(), None, &limits).await;
        assert!(told.ends_with("The cloud disks were not listed: others than these may be mounted."), "{told}");
    }
}
