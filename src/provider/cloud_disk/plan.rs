//! Plans of cloud disks: sizes.

use super::schema::CloudDisk;
use crate::{
    api::{self, CloudDiskSpecFilter},
    framework::{Diagnostics, Path, Plan, PlanContext, PlanKind},
    provider::{Client, client::planning_limits, errors::Failure, lifecycle::ManagedExt as _},
};

/// Refines a plan: no disk shrinks, and none is larger than its specification allows.
pub(super) async fn plan(plan: &mut Plan<CloudDisk>, context: &PlanContext<'_, Client>) {
    let client = context.client.map(AsRef::as_ref);
    let Some(planned) = &plan.planned else { return };
    let size = planned.size_gb.known().copied();
    let prior_size = plan.prior.as_ref().and_then(|prior| prior.size_gb.known().copied());
    if let (Some(before), Some(after), true) = (prior_size, size, plan.replace.is_empty())
        && after < before
    {
        plan.diagnostics.error_at(
            Path::to("size_gb"),
            "A disk cannot shrink",
            format!(
                "{} has {before} GB and {after} GB are asked for. Disks only grow. Ask for at least {before} GB, or \
                 create a new, smaller disk and copy the data.",
                plan.prior.as_ref().map(CloudDisk::title).unwrap_or_default()
            ),
        );
        return;
    }
    let changes = plan.kind == PlanKind::Create || prior_size != size;
    if let (Some(client), Some(size), Some(spec), true) =
        (client.filter(|client| client.preflight), size, planned.spec_id.known().copied(), changes)
    {
        check_size(size, spec, client, &planning_limits(context), &mut plan.diagnostics).await;
    }
}

/// Holds a size to its specification (service API, Cloud disk specification).
async fn check_size(size: i64, spec: i64, client: &Client, limits: &api::Context, diagnostics: &mut Diagnostics) {
    match client.api.cloud_disks().specs(&CloudDiskSpecFilter::default(), limits).await {
        Ok(specs) => match specs.find(&spec) {
            None if specs.complete => diagnostics.error_at(
                Path::to("spec_id"),
                "No such disk specification",
                format!(
                    "Cloud disk specification {spec} does not exist. The data source damodel_cloud_disk_specs lists \
                     them."
                ),
            ),
            Some(found) if found.max_size_g.is_some_and(|most| size > most) => diagnostics.error_at(
                Path::to("size_gb"),
                "The disk would be too large",
                format!(
                    "A disk of specification {spec} has at most {} GB, and {size} GB are asked for.",
                    found.max_size_g.unwrap_or_default()
                ),
            ),
            _ => {}
        },
        Err(error) => {
            let now = "The plan continues without this check.".to_owned();
            let failure = Failure { error: &error, tried: "check the disk's size".to_owned(), now };
            diagnostics.extend(failure.of_a_check(client));
        }
    }
}
