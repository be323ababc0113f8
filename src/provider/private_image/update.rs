use super::model::PrivateImage;
use crate::{
    framework::{Context, Outcome, Path, Update},
    provider::{Client, client::limits, errors::Failure, lifecycle::ManagedExt as _},
};

/// Renames in place.
pub(super) async fn update(change: Update<PrivateImage>, context: &Context<Client>) -> Outcome<PrivateImage> {
    let Update { prior, planned, private, .. } = change;
    if let Some(name) = planned.name.as_str().filter(|name| prior.name.as_str() != Some(name))
        && let Err(error) = context.client.api.private_images().rename(&prior.number(), name, &limits(context)).await
    {
        let failure = Failure {
            error: &error,
            tried: format!("rename {} to {name:?}", prior.title()),
            now: "The state keeps the old name; nothing else was changed.".to_owned(),
        };
        let diagnostic = failure.whole().at(Path::to("name"));
        return Outcome::present(prior, private).with(diagnostic);
    }
    Outcome::present(planned, private)
}
