use super::model::PrivateImage;
use crate::{
    api::Presence,
    framework::{Context, Outcome, State},
    provider::{Client, client::limits, presence},
};

/// Refreshes, from a list that all images of the run share. Only what that list lacks is looked for with calls of its own.
pub(super) async fn read(mut current: State<PrivateImage>, context: &Context<Client>) -> Outcome<PrivateImage> {
    let (client, limits) = (context.client.as_ref(), limits(context));
    let images = client.api.images();
    let (number, subject) = (current.state.number(), current.state.subject());
    let shared = match images.private_snapshot(&limits).await {
        Ok(shared) => shared,
        Err(error) => return presence::failed(current, &subject, &error),
    };
    let looked = match shared.find(&number) {
        Some(image) => Ok(Presence::Present(Box::new(image.clone()))),
        None => images.look(number, current.state.name.as_str(), &limits).await,
    };
    match looked {
        Ok(Presence::Present(image)) => {
            presence::seen(&mut current.private, &subject.key, client, &limits).await;
            current.state.take_whole(&image);
            Outcome::present(current.state, current.private)
        }
        Ok(Presence::Released(_)) => presence::released(&subject, client),
        Ok(Presence::Absent { .. }) => presence::absent(current, &subject, context).await,
        Ok(Presence::Unproved { reason }) => presence::unproved(current, &subject, reason),
        Err(error) => presence::failed(current, &subject, &error),
    }
}
