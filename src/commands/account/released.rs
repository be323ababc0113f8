//! The release of judged objects, which `expire` and `release` share.

use std::{
    borrow::Borrow,
    io::{self, Write},
    time::Duration,
};

use futures_util::future::join_all;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::{
    expired::{Judged, LONGEST, Shown, TwoClocks, Verdict, judge},
    inventory::{BilledObject, Inventory, Listed},
    lock::LockedFile,
    states::AuditedState,
};
use crate::{
    api::{self, Client, CloudDisk, Code, Context, Instance, ObjectKind, Presence, PrivateImage, Sighting},
    commands::{Failure, plain},
    plugin::with_causes,
    review::visible,
};

/// The exit code for objects that were left.
const LEFT: u8 = 3;

/// The time limit for all accepted releases together.
const UNTIL_RELEASED: Duration = Duration::from_secs(15 * 60);

/// The time limit for the last look at an object and its accepted release, during which its state is locked.
const RELEASE: Duration = Duration::from_secs(2 * 60);

/// Releases the objects that are to be released, and waits until they and those that are being released already are
/// Released; without `yes` they are left.
pub(in crate::commands) async fn release_all(
    objects: &mut [Judged],
    yes: bool,
    states: &[AuditedState],
    client: &Client,
    told: &mut impl Write,
) -> Result<(), Failure> {
    for object in objects.iter_mut().filter(|object| object.verdict == Verdict::Due) {
        if !yes {
            object.verdict = Verdict::Left("--yes is not set".to_owned());
            continue;
        }
        writeln!(told, "releasing {}", object.title()).map_err(Failure::terminal)?;
        object.verdict = match object.kind {
            ObjectKind::CloudDisk => release::<CloudDisk>(object, states, client).await,
            ObjectKind::Instance => release::<Instance>(object, states, client).await,
            ObjectKind::PrivateImage => release::<PrivateImage>(object, states, client).await,
        };
    }
    let context = &Context::within(UNTIL_RELEASED, &CancellationToken::new());
    let released = objects.iter_mut().filter(|object| yes && object.verdict == Verdict::Releasing);
    join_all(released.map(|object| async {
        object.verdict = match object.kind {
            ObjectKind::CloudDisk => until_released::<CloudDisk>(&object.id, client, context).await,
            ObjectKind::Instance => until_released::<Instance>(&object.id, client, context).await,
            ObjectKind::PrivateImage => until_released::<PrivateImage>(&object.id, client, context).await,
        };
    }))
    .await;
    Ok(())
}

/// Names the objects that were left and those that cannot be judged or released, and returns the exit code.
pub(in crate::commands) fn exit_code(objects: &[Judged], told: &mut impl Write) -> Result<u8, Failure> {
    let mut code = 0;
    for object in objects {
        let (word, reason) = words(&object.verdict);
        let Some(reason) = reason else { continue };
        writeln!(told, "{word}: {}: {}", object.title(), plain(reason)).map_err(Failure::terminal)?;
        match object.verdict {
            Verdict::Left(_) if code == 0 => code = LEFT,
            Verdict::Unjudged(_) => code = 1,
            _ => {}
        }
    }
    Ok(code)
}

/// The word for a verdict, and its reason.
pub(in crate::commands) fn words(verdict: &Verdict) -> (&'static str, Option<&str>) {
    match verdict {
        Verdict::Due => ("due", None),
        Verdict::Gone => ("gone", None),
        Verdict::Left(reason) => ("left", Some(reason)),
        Verdict::Released => ("released", None),
        Verdict::Releasing => ("releasing", None),
        Verdict::Unjudged(reason) => ("failed", Some(reason)),
        Verdict::Young => ("young", None),
    }
}

/// Releases an object after a last look at its states, the service and its disks. The states stay locked until the
/// service has accepted the release.
async fn release<K: Listed>(object: &Judged, states: &[AuditedState], client: &Client) -> Verdict {
    let Some(key) = K::of_id(&object.id).map(|record| record.key()) else {
        return Verdict::Unjudged("its id cannot be read".to_owned());
    };
    let locked = match lock(object, states) {
        Ok(locked) => locked,
        Err(verdict) => return verdict,
    };
    let context = Context::within(RELEASE, &CancellationToken::new());
    let objects = client.objects::<K>();
    let failed = |what: &str, error: &api::Error| Verdict::Unjudged(format!("{what}: {}", with_causes(error)));
    let verdict = match objects.look(&key, None, &context).await {
        Ok(Presence::Present(shown)) => {
            let record: &K = (*shown).borrow();
            let listed: BilledObject = record.billed();
            if listed.uid != object.uid {
                return Verdict::Unjudged("another object has its id now".to_owned());
            }
            let clocks = TwoClocks { service: client.last_date(), computer: Timestamp::now().as_second() };
            judge(&object.terms, Shown::of(&listed), object.max_age.is_some().then_some(clocks))
        }
        Ok(Presence::Released) => Verdict::Released,
        Ok(Presence::Absent) => Verdict::Unjudged("no longer in the account".to_owned()),
        Ok(Presence::Unproved { reason }) => Verdict::Unjudged(reason.to_owned()),
        Err(error) => failed("the second read failed", &error),
    };
    if verdict != Verdict::Due {
        return verdict;
    }
    if K::KIND == ObjectKind::Instance {
        let mut account = Inventory::default();
        if let Err(failure) = account.list_disks(client, &context).await {
            return Verdict::Unjudged(with_causes(&failure));
        }
        if let Some(item) = object.deletes(&account, states).iter().find(|item| !object.deletes.contains(item)) {
            let reason = format!("its release deletes {item} now, which is not in the list: run the command again");
            return Verdict::Left(visible(&reason, 3 * LONGEST));
        }
    }
    let sent = objects.release(&key, &context).await;
    drop(locked);
    match sent {
        Ok(()) => Verdict::Releasing,
        Err(error) if error.code() == Some(Code::InstanceNotExistOrAlreadyReleased) => Verdict::Releasing,
        Err(error) => failed("the release failed", &error),
    }
}

/// Locks the files of the object's states, which must have the content that was judged.
fn lock(object: &Judged, states: &[AuditedState]) -> Result<Vec<LockedFile>, Verdict> {
    let files = object.states.iter().filter_map(|index| states.get(*index)?.file.as_ref());
    let paths = files.flat_map(|file| file.paths.iter().map(move |path| (path, &file.digest)));
    let mut all = Vec::new();
    for (path, digest) in paths {
        let place = path.display();
        let failed = |error: io::Error| Verdict::Unjudged(format!("cannot lock {place}: {error}"));
        let Some(mut locked) = LockedFile::open(path).map_err(failed)? else {
            return Err(Verdict::Left(format!("another process has locked {place}")));
        };
        let content = locked.read().map_err(failed)?;
        // It is kept also if it is not the one, because a handle that is closed ends the locks of all.
        all.push(locked);
        let now = AuditedState::read(&place.to_string(), &content).ok().and_then(|state| state.file);
        if now.is_none_or(|now| now.digest != *digest) {
            return Err(Verdict::Unjudged(format!("{place} was changed meanwhile: run the command again")));
        }
    }
    Ok(all)
}

/// Waits until an object is Released. A released image and, at last, a disk disappear from the lists.
async fn until_released<K: Listed>(id: &str, client: &Client, context: &Context) -> Verdict {
    let unseen = |reason: &str| Verdict::Unjudged(format!("the release is not confirmed: {reason}"));
    let Some(key) = K::of_id(id).map(|record| record.key()) else { return unseen("its id cannot be read") };
    let objects = client.objects::<K>();
    let has_ended = |seen: &Sighting<K>| seen.record().is_none_or(K::is_released);
    loop {
        match objects.wait(&key, context, has_ended).await {
            Ok(Sighting::Present(_)) => return Verdict::Released,
            Ok(Sighting::Missing) => {}
            Err(error) => return unseen(&with_causes(&error)),
        }
        match objects.look(&key, None, context).await {
            Ok(Presence::Released) => return Verdict::Released,
            Ok(Presence::Absent) if K::KIND == ObjectKind::Instance => return unseen("no longer in the account"),
            Ok(Presence::Absent) => return Verdict::Released,
            Ok(_) => tracing::debug!(id, "not released yet"),
            Err(error) => return unseen(&with_causes(&error)),
        }
    }
}
