//! What a plan of a private image checks.

use super::schema::PrivateImage;
use crate::{
    api::{self, Kind},
    framework::{Diagnostics, Path, Plan, PlanContext, PlanKind},
    provider::{Client, client::planning_limits, errors::Failure, lifecycle::ManagedExt as _, protection},
};

/// Refines a plan: a create needs an instance, and a name is unique in the account.
pub(super) async fn plan(plan: &mut Plan<PrivateImage>, context: &PlanContext<'_, Client>) {
    let client = context.client.map(AsRef::as_ref);
    if let (PlanKind::Update, Some(prior)) = (plan.kind, &plan.prior) {
        protection::note(&mut plan.private, prior.id.as_str().unwrap_or_default());
    }
    let Some(planned) = &plan.planned else { return };
    if plan.kind == PlanKind::Create && planned.instance_id.is_null() {
        plan.diagnostics.error_at(
            Path::to("instance_id"),
            "Missing required argument",
            "A new image needs instance_id: the instance whose system disk is saved.",
        );
    }
    let prior = plan.prior.as_ref();
    let renamed = prior.is_none_or(|prior| prior.name != planned.name);
    if let (Some(name), Some(client), true) = (planned.name.as_str(), client.filter(|client| client.preflight), renamed)
    {
        // The name of an image that is replaced is free when the new one takes it.
        let replaced = || protection::replaced(&plan.private).and_then(|id| id.parse().ok());
        let own = prior.and_then(PrivateImage::key).or_else(replaced);
        check_name(name, own, client, &planning_limits(context), &mut plan.diagnostics).await;
    }
}

/// A name that another image has is refused by the service (130001): better told before anything else of the apply is
/// made.
async fn check_name(
    name: &str,
    own: Option<i64>,
    client: &Client,
    limits: &api::Context,
    diagnostics: &mut Diagnostics,
) {
    match client.api.private_images().snapshot(limits).await {
        Ok(listing) => {
            let holder = listing
                .records
                .iter()
                .find(|image| image.image_name.as_deref() == Some(name) && Some(image.image_id) != own);
            // A tainted image is deleted before the one that replaces it is made.
            if let Some(holder) = holder
                && !client.is_tainted(Kind::PrivateImage, &holder.image_id.to_string())
            {
                diagnostics.error_at(
                    Path::to("name"),
                    format!("The image name {name:?} exists"),
                    format!("Names of private images are unique in an account. {}", super::taken(holder, client)),
                );
            }
        }
        Err(error) => {
            let now = "The plan continues without this check.".to_owned();
            let failure = Failure { error: &error, tried: "check the image's name".to_owned(), now };
            diagnostics.extend(failure.of_a_check(client));
        }
    }
}
