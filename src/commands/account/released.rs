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

/// The time limit for a release that the service refuses, as of an image that is in use, and again for all accepted
/// releases together.
const RELEASE: Duration = Duration::from_secs(15 * 60);

/// Releases the objects that are to be released, and waits until they and those that are being released already are
/// Released; without `yes` they are left.
pub(in crate::commands) async fn release_all(
    objects: &mut [Judged],
    yes: bool,
    states: &[AuditedState],
    client: &Client,
    told: &mut impl Write,
) -> Result<(), Failure> {
    let mut due: Vec<&mut Judged> = objects.iter_mut().filter(|object| object.verdict == Verdict::Due).collect();
    // An image in use is waited for: it delays no other object.
    due.sort_by_key(|object| object.kind == ObjectKind::PrivateImage);
    for object in due {
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
    let context = &Context::within(RELEASE, &CancellationToken::new());
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

#[cfg(test)]
mod tests {
    use std::{future::Future, pin::Pin, sync::Arc};

    use serde_json::{Value, json};
    use tokio::time::Instant;

    use super::*;
    use crate::{
        api::{
            BaseUrl, Endpoint, IncomingAnswer, Object, Outgoing, PlainHttp, SendFailure, Settings, TokenSource,
            Transport,
        },
        commands::account::expired::named,
    };

    /// A service in which an image is in use for some time. It has a disk too, whose release it accepts.
    struct Busy {
        start: Instant,
        time: Duration,
    }

    impl Transport for Busy {
        fn send<'a, 'b>(
            &'a self,
            request: Outgoing,
        ) -> Pin<Box<dyn Future<Output = Result<IncomingAnswer, SendFailure>> + Send + 'b>>
        where
            'a: 'b,
            Self: 'b,
        {
            let (passed, mut error) = (self.start.elapsed(), Value::Null);
            let page = |data: &[Value]| json!({"total": data.len(), "page": 1, "total_page": 1, "data": data});
            let result = match request.endpoint {
                Endpoint::CloudDiskList if passed.is_zero() => page(&[json!({"id": 7, "status": 1})]),
                Endpoint::PrivateImageList if passed < self.time => page(&[json!({"image_id": 5, "image_status": 1})]),
                Endpoint::CloudDiskList | Endpoint::PrivateImageList => page(&[]),
                Endpoint::ImageDelete if passed < self.time => {
                    error = json!({"code_n": 130_005, "code": "ImageUsedByInstance", "message": "in use"});
                    Value::Null
                }
                Endpoint::CloudDiskRelease => {
                    assert!(passed.is_zero(), "the disk waited for the image: {passed:?}");
                    Value::Null
                }
                Endpoint::ImageDelete => Value::Null,
                other => panic!("{other:?}"),
            };
            let metadata = json!({"request_id": "req-1", "trace_id": "trace-1", "error": error});
            let body = json!({"result": result, "response_metadata": metadata}).to_string().into();
            Box::pin(async move { Ok(IncomingAnswer { status: 200, headers: Default::default(), body }) })
        }
    }

    /// The verdicts about the image and the disk, and how long they took.
    async fn released_while_in_use(time: Duration) -> (Vec<Verdict>, Duration) {
        let start = Instant::now();
        let settings = Settings {
            base_url: Some(BaseUrl::parse("http://127.0.0.1:1", PlainHttp::LoopbackOnly).unwrap()),
            token: Some(TokenSource::Value("planted".into())),
            ..Settings::default()
        };
        let client = Client::with_transport(settings, Arc::new(Busy { start, time }));
        let listed = [PrivateImage::of_id("5").unwrap().billed(), CloudDisk::of_id("7").unwrap().billed()];
        let mut objects = listed.map(|billed| named(&billed, None, &Inventory::default(), &[]));
        release_all(&mut objects, true, &[], &client, &mut Vec::new()).await.unwrap();
        (objects.map(|object| object.verdict).to_vec(), start.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn an_image_in_use_is_tried_for_15_minutes_and_delays_no_other_object() {
        let (verdicts, _) = released_while_in_use(Duration::from_secs(14 * 60)).await;
        assert_eq!(verdicts, [Verdict::Released, Verdict::Released]);

        let (verdicts, took) = released_while_in_use(Duration::from_secs(3600)).await;
        let Verdict::Unjudged(reason) = &verdicts[0] else { panic!("{verdicts:?}") };
        assert!(reason.starts_with("the release failed: ") && reason.contains("130005"), "{reason}");
        assert_eq!(verdicts[1], Verdict::Released);
        assert!(took > Duration::from_secs(14 * 60) && took < Duration::from_secs(16 * 60), "{took:?}");
    }
}
