use super::{model::PrivateImage, witness_key};
use crate::{
    api,
    framework::{Context, Diagnostic, Outcome, Private},
    provider::{Client, client::limits, errors::Failure, presence},
};

/// Imports by number. The instance that it was made of is not known any more.
pub(super) async fn import(id: &str, context: &Context<Client>) -> Outcome<PrivateImage> {
    let (client, limits) = (context.client.as_ref(), limits(context));
    let is_wanted = |image: &api::PrivateImage| image.image_id.to_string() == id.trim();
    // The imports of one run share a list; what it lacks may have been made since.
    let images = client.api.images();
    let listing = match images.private_snapshot(&limits).await {
        Ok(shared) if !shared.records.iter().any(is_wanted) => images.private_fresh(&limits).await,
        shared => shared,
    };
    let listing = match listing {
        Ok(listing) => listing,
        Err(error) => {
            let tried = format!("import private image {id}");
            let failure = Failure { error: &error, tried, now: "Nothing was imported.".to_owned() };
            return Outcome::absent().with(failure.whole());
        }
    };
    match listing.records.iter().find(|image| is_wanted(image)) {
        Some(image) => {
            let mut private = Private::default();
            presence::seen(&mut private, &witness_key(image.image_id), client, &limits).await;
            let mut state = PrivateImage::default();
            state.take_whole(image);
            Outcome::present(state, private)
        }
        None => Outcome::absent().with(Diagnostic::error(
            format!("Cannot import private image {id}: the service does not have it"),
            "The import id is the image's number (image_id), not its name. Check the id, base_url and the account of the API token.",
        )),
    }
}
