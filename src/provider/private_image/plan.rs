use super::{PRIVATE_IMAGE, model::PrivateImage};
use crate::{
    api::{self, Phase},
    framework::{Diagnostics, Path, Plan, PlanContext, PlanKind},
    provider::{Client, client::planning_limits, errors::Failure, protection, replacement},
};

/// Refines a plan: a create needs an instance, a name is unique in the account, and a protected image stays.
pub(super) async fn plan(plan: &mut Plan<PrivateImage>, context: &PlanContext<'_, Client>) {
    let client = context.client.map(AsRef::as_ref);
    if let (Some(id), Some(client)) = (plan.prior.as_ref().and_then(|prior| prior.id.as_str()), client) {
        client.known_in_a_state(PRIVATE_IMAGE.kind, id);
    }
    protection::check(plan);
    if let (PlanKind::Update, Some(prior)) = (plan.kind, &plan.prior) {
        replacement::note(&mut plan.private, prior.id.as_str().unwrap_or_default());
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
        let replaced = || replacement::replaced(&plan.private).and_then(|id| id.parse().ok());
        let own = prior.map(PrivateImage::number).or_else(replaced);
        check_name(name, own, client, &planning_limits(context), &mut plan.diagnostics).await;
    }
}

/// A name that another image has is refused by the service (130001): better told before anything else of the apply is made.
async fn check_name(
    name: &str,
    own: Option<i64>,
    client: &Client,
    limits: &api::Context,
    diagnostics: &mut Diagnostics,
) {
    match client.api.images().private_snapshot(limits).await {
        Ok(listing) => {
            let holder = listing
                .records
                .iter()
                .find(|image| image.image_name.as_deref() == Some(name) && Some(image.image_id) != own);
            if let Some(holder) = holder
                && !is_ours(name, holder.image_id, client)
            {
                diagnostics.error_at(
                    Path::to("name"),
                    "The image name exists",
                    format!(
                        "Private image {} of this account has the name {name:?}, and names are unique. Choose another, or import \
                         that one: terraform import {}.<name> {}.",
                        holder.image_id, PRIVATE_IMAGE.type_name, holder.image_id
                    ),
                );
            }
        }
        Err(error) => {
            let now = "The plan goes on without this check.".to_owned();
            let failure = Failure { error: &error, tried: "check the image's name".to_owned(), now };
            diagnostics.push(failure.of_a_check());
        }
    }
}

/// Whether a create of this name is under way or was left behind by a killed run, which the apply takes up; or ended in a tainted
/// image, which the apply replaces: the plan of one is not told of it.
fn is_ours(name: &str, holder: i64, client: &Client) -> bool {
    let entries = client.journal.list().map(|report| report.entries).unwrap_or_default();
    entries.iter().map(|listed| &listed.record).any(|record| {
        record.kind == PRIVATE_IMAGE.kind
            && record.marker == name
            && match record.phase {
                Phase::Sent | Phase::Accepted => true,
                Phase::HandedOver => record.ids.as_ref().is_some_and(|ids| ids.id == holder.to_string()),
                Phase::Unexplained => false,
            }
    })
}
