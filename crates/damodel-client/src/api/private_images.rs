//! Private images: saved from instances, renamed, deleted (service API, Images).

use std::sync::Arc;

use serde_json::json;

use super::{
    client::Client,
    context::Context,
    endpoint::{Endpoint, Request},
    error::Error,
    flight::Flight,
    listing::Listing,
    object::{Object, ObjectKind, Objects, bare, look_in_lists},
    presence::Presence,
    progress::Stage,
    records::PrivateImage,
    snapshots::Snapshots,
    watch::{Poller, Watch},
};

impl Client {
    /// Calls on private images. A create sends no marker and needs no rename, because the name is unique in the
    /// account. If the outcome is unknown, the image is found by its name, its date and the image of its instance.
    #[must_use]
    pub fn private_images(&self) -> Objects<PrivateImage> {
        self.objects()
    }
}

#[expect(private_interfaces, reason = "how it is asked for is this layer's own")]
impl Object for PrivateImage {
    type Shown = Self;

    const KIND: ObjectKind = ObjectKind::PrivateImage;
    const LIST: Endpoint = Endpoint::PrivateImageList;
    const SEARCH: &'static str = "image_name";

    fn flight(snapshots: &Snapshots) -> &Flight<Listing<Self>> {
        &snapshots.private_images
    }

    fn poller(watch: &Watch) -> &Arc<Poller<Self>> {
        &watch.private_images
    }

    fn of_id(id: &str) -> Option<Self> {
        bare("image_id", &json!(id))
    }

    fn name(&self) -> Option<&str> {
        self.image_name.as_deref()
    }

    fn uid(&self) -> Option<&str> {
        self.image_uuid.as_deref()
    }

    /// Always false: a deleted image disappears from the list.
    fn is_released(&self) -> bool {
        false
    }

    fn status_text(&self) -> String {
        let status = self.step().phase;
        self.push_progress.map_or_else(|| status.clone(), |progress| format!("{status} with {progress} % pushed"))
    }

    fn as_shown(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn step(&self) -> Stage {
        let status = match self.image_status {
            Some(0) => "creating".to_owned(),
            Some(1) => "ready".to_owned(),
            Some(number) => format!("with status {number}"),
            None => "without a status".to_owned(),
        };
        let percent = self.push_progress.and_then(|percent| u8::try_from(percent).ok());
        Stage { percent, ..Stage::new(status) }
    }

    async fn look(
        objects: &Objects<Self>,
        id: &i64,
        hint: Option<&str>,
        context: &Context,
    ) -> Result<Presence<Self>, Error> {
        look_in_lists(objects, id, hint, context).await
    }

    fn rename_request(image_id: &i64, name: &str) -> Request {
        Request::new(Endpoint::ImageRename).body(&json!({ "image_id": image_id, "image_name": name }))
    }

    fn release_request(image_id: &i64) -> Request {
        Request::new(Endpoint::ImageDelete).id(*image_id)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rstest::rstest;
    use serde_json::json;
    use tokio::time::Instant;

    use super::*;
    use crate::api::{
        Code, Sighting,
        testing::{Reply, context, ok, page, query, refusal, serve},
    };

    #[tokio::test(start_paused = true)]
    async fn changes_send_what_is_documented() {
        let (client, ledger) = serve(|_| async { ok(&json!(null)) });
        client.private_images().rename(&5, "new", &context(60)).await.unwrap();
        client.private_images().release(&5, &context(60)).await.unwrap();
        let asked = ledger.all();
        assert_eq!((asked[0].request.method.as_str(), asked[0].request.url.path()), ("PUT", "/api/image/update"));
        assert_eq!(asked[0].body(), json!({"image_id": 5, "image_name": "new"}));
        assert_eq!((asked[1].request.method.as_str(), asked[1].request.url.path()), ("DELETE", "/api/image/delete/5"));
        assert_eq!(asked[1].request.body, None);
        assert!(!asked[1].request.headers.contains_key("content-type"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_delete_waits_for_the_instance_that_is_made_of_it() {
        let start = Instant::now();
        let (client, ledger) = serve(move |_| async move {
            if start.elapsed() < Duration::from_secs(300) { refusal(130_005) } else { ok(&json!(null)) }
        });
        client.private_images().release(&5, &context(600)).await.unwrap();
        assert!(start.elapsed() < Duration::from_secs(345));
        assert!(ledger.all().len() < 30);

        let (client, _) = serve(|_| async { refusal(130_005) });
        let start = Instant::now();
        let error = client.private_images().release(&5, &context(60)).await.unwrap_err();
        assert_eq!(error.code(), Some(Code::ImageUsedByInstance));
        assert!(start.elapsed() <= Duration::from_secs(60) && start.elapsed() > Duration::from_secs(15));
    }

    #[rstest]
    #[case(130_004)]
    #[case(130_006)]
    #[case(100_002)]
    #[tokio::test(start_paused = true)]
    async fn other_refusals_of_a_delete_are_final(#[case] code: i64) {
        let (client, ledger) = serve(move |_| async move { refusal(code) });
        let error = client.private_images().release(&5, &context(600)).await.unwrap_err();
        assert_eq!(error.code(), Some(Code::from_number(code)));
        assert_eq!(ledger.all().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_push_is_waited_for_and_its_progress_told() {
        let start = Instant::now();
        let (client, ledger) = serve(move |_| async move {
            let progress = start.elapsed().as_secs().min(100);
            page(&[json!({"image_id": 5, "push_progress": progress, "image_status": i64::from(progress == 100)})])
        });
        let mut told = Vec::new();
        let ready = |seen: &Sighting<PrivateImage>| {
            told.push(seen.record().unwrap().push_progress.unwrap());
            seen.record().is_some_and(PrivateImage::is_ready)
        };
        client.private_images().wait(&5, &context(600), ready).await.unwrap();
        assert!(told.len() > 5 && told.is_sorted() && told.last() == Some(&100), "{told:?}");
        assert_eq!(ledger.of(Endpoint::PrivateImageList).len(), ledger.all().len());

        let (client, _) = serve(|_| async { page(&[json!({"image_id": 5, "push_progress": 40, "image_status": 0})]) });
        let error = client.private_images().wait(&5, &context(30), |_| false).await.unwrap_err();
        let text = "private image 5 timed out, last seen creating with 40 % pushed";
        assert!(error.to_string().contains(text), "{error}");
    }

    fn others() -> Reply {
        page(&[json!({"image_id": 1})])
    }

    fn it() -> Reply {
        page(&[json!({"image_id": 5})])
    }

    #[rstest]
    #[case::alive(it, others, "Present")]
    #[case::absent(others, others, "Absent")]
    #[case::contradiction(others, it, "Unproved")]
    #[case::list_cut_short(|| ok(&json!({"total": 9, "data": []})), others, "Unproved")]
    #[case::search_cut_short(others, || ok(&json!({"total": 9, "data": []})), "Unproved")]
    #[tokio::test(start_paused = true)]
    async fn absence_takes_two_proofs(
        #[case] list: fn() -> Reply,
        #[case] search: fn() -> Reply,
        #[case] presence: &str,
    ) {
        let (client, _) = serve(move |request| async move {
            match query(&request, "image_name").as_deref() {
                Some("trained") => search(),
                _ => list(),
            }
        });
        let found = client.private_images().look(&5, Some("trained"), &context(600)).await.unwrap();
        assert!(format!("{found:?}").starts_with(presence), "{found:?}");
    }
}
