use super::{PRIVATE_IMAGE, model::PrivateImage, witness_key};
use crate::{
    api::{self, Accepted, CreateOptions, InstanceUid, Origin, PublicImageFilter, SaveImage, SavedImage, Sighting},
    framework::{Attr, Context, Create, Diagnostic, Outcome, Path},
    provider::{
        Client,
        client::limits,
        creation::Creation,
        presence,
        protection::Protected as _,
        words::{image_status, image_type},
    },
};

/// Saves an instance's system disk and waits until the image is ready. While the service is busy with another save it is asked
/// again; a day's cap is final (service API, POST /api/instance/save_image_v2).
pub(super) async fn create(change: Create<PrivateImage>, context: &Context<Client>) -> Outcome<PrivateImage> {
    let Create { planned, private, .. } = change;
    let (client, limits) = (context.client.as_ref(), limits(context));
    let (Some(instance), Some(name)) = (planned.instance_id.as_str(), planned.name.as_str()) else {
        return Outcome::absent().with(
            Diagnostic::error("Missing required argument", "A new image needs instance_id. Nothing was created.")
                .at(Path::to("instance_id")),
        );
    };
    let uid = InstanceUid::new(instance);
    let request =
        SaveImage { original_images: original_images(&uid, client, &limits).await, ..SaveImage::new(uid, name) };
    let key = client.create_key(&format!("damodel_private_image {}", request.wanted()));
    let options = CreateOptions::waiting_while_busy();
    let accepted = client.api.images().save(request, &key, &client.journal, options, &limits).await;
    // Asked after the create, which may have waited for the end of the run that left them.
    let diagnostics = PRIVATE_IMAGE.never_seen(&key, client);
    let accepted = match accepted {
        Ok(accepted) => accepted,
        Err(error) => {
            let failure = PRIVATE_IMAGE.not_accepted(&error, &planned.title(), client);
            let is_set = |name: &str| matches!(name, "instance_id" | "name");
            return Outcome::absent().with(diagnostics).with(failure.diagnostic(is_set));
        }
    };
    let mut creation =
        Creation { state: planned, private, diagnostics, client, limits, unheard: context.unheard.clone() };
    creation.follow(accepted).await;
    creation.outcome()
}

impl Creation<'_, PrivateImage> {
    async fn follow(&mut self, accepted: Accepted<SavedImage>) {
        let id = accepted.made.image_id;
        tracing::info!(private_image.id = id, "accepted");
        self.state.id = Attr::Known(id.to_string());
        self.state.image_id = Attr::Known(id);
        self.state.image_tag = accepted.made.image_tag.clone().into();
        presence::made(&mut self.private, self.client, &self.limits).await;
        self.client.witness().saw(&witness_key(id));
        if accepted.origin == Origin::Adopted {
            self.diagnostics.push(PRIVATE_IMAGE.adopted(&self.state.title()));
        }
        let is_settled = |seen: &Sighting<api::PrivateImage>| {
            seen.record().and_then(|image| image.image_status).is_some_and(|status| status != 0)
        };
        match self.client.api.images().wait(id, &self.limits, is_settled).await {
            Ok(seen) => {
                if let Some(image) = seen.record() {
                    self.state.take_whole(image);
                    if !image.is_ready() {
                        self.diagnostics.push(unusable(&self.state.title(), image, &accepted));
                    }
                }
            }
            Err(error) => {
                let diagnostic = PRIVATE_IMAGE.wait_ended(&error, &self.state.title(), &accepted.ids);
                self.diagnostics.push(diagnostic);
            }
        }
        PRIVATE_IMAGE.hand_over(accepted.entry, &id.to_string(), &self.unheard);
    }
}

/// What the instance's own image may be called, its address and its name: it tells an image that this save made from one of the
/// same name. Without the address nothing is compared: a display name alone is no proof that an address is another image's.
async fn original_images(uid: &InstanceUid, client: &Client, limits: &api::Context) -> Vec<String> {
    match original_address(uid, client, limits).await {
        Ok(Some((address, name))) => [address].into_iter().chain(name).collect(),
        Ok(None) => Vec::new(),
        Err(error) => {
            tracing::debug!(%error, "the instance's image is not known");
            Vec::new()
        }
    }
}

/// The address of the image that an instance was made of, and its display name.
async fn original_address(
    uid: &InstanceUid,
    client: &Client,
    limits: &api::Context,
) -> Result<Option<(String, Option<String>)>, api::Error> {
    let instance = client.api.instances().detail(uid, limits).await?.instance;
    let (Some(id), Some(kind)) = (instance.image_id, instance.image_type.as_deref().map(image_type)) else {
        return Ok(None);
    };
    let images = client.api.images();
    let address = match kind.as_str() {
        "public" => {
            let listing = images.public(&PublicImageFilter::default(), limits).await?;
            listing.records.iter().find(|image| image.id == id).and_then(|image| image.image_url.clone())
        }
        "private" => {
            let listing = images.private_snapshot(limits).await?;
            listing.records.iter().find(|image| image.image_id == id).and_then(|image| image.image_tag.clone())
        }
        _ => None,
    };
    Ok(address.map(|address| (address, instance.image_name)))
}

fn unusable(title: &str, image: &api::PrivateImage, accepted: &Accepted<SavedImage>) -> Diagnostic {
    Diagnostic::warning(
        format!("{title} is {}", image.image_status.map(image_status).unwrap_or_default()),
        format!(
            "The service accepted the save and then shows this status instead of ready. The state holds the image. See to it in the \
             console{}.",
            accepted.ids
        ),
    )
}
