//! Plans of instances.

use serde_json::Value;

use super::{
    candidates::{self, DEFAULT_GPU_NUM},
    checks, choices, disks, max_age, names,
    schema::Instance,
};
use crate::{
    api,
    framework::{Attr, CreatePlan, DestroyPlan, Diagnostics, Path, UpdatePlan, Walk, to_value},
    provider::{
        PlanContext, ProviderClient, account_budget::Replaced, client::planning_limits, errors::missing_region,
        lifecycle::ManagedExt as _, protection, rules::keep_path,
    },
};

/// Refines the plan of a create: the provider's region, the requirements, and the checks against the service.
pub(super) async fn create(plan: &mut CreatePlan<Instance>, context: &PlanContext<'_>) {
    let client = context.client.map(AsRef::as_ref);
    forget_credentials(&mut plan.planned);
    if let Some(client) = client {
        max_age::plan_default(&plan.config, &mut plan.planned, client);
        disks::plan_protected(plan, client);
    }
    offline(plan, client);
    let (client, limits) = (client.filter(|client| client.preflight), planning_limits(context));
    if plan.config.candidates.known().is_some_and(Vec::is_empty) {
        let available = match client {
            Some(client) => checks::available(&plan.planned, client, &limits).await,
            None => String::new(),
        };
        plan.diagnostics.error_at(
            Path::to("candidates"),
            "No candidates",
            format!(
                "The list is empty. Add at least one specification, or check the filters of the data source that it \
                 comes from.{available}"
            ),
        );
    }
    if let Some(client) = client.filter(|_| !plan.diagnostics.has_errors()) {
        live(plan, client, &limits).await;
    }
}

fn forget_credentials(planned: &mut Instance) {
    if planned.store_credentials == Attr::Known(false) {
        planned.forget_credentials();
    }
}

/// Plans what needs no request to the service.
fn offline(plan: &mut CreatePlan<Instance>, client: Option<&ProviderClient>) {
    let CreatePlan { config, planned, .. } = plan;
    let has_choice = candidates::has_choice(config);
    if has_choice {
        let each = candidates::each(config, planned, client);
        candidates::plan_common(config, planned, &each);
    } else {
        planned.gpu_num = candidates::gpu_num(config);
    }
    let needs_region = !has_choice || config.candidates.elements().any(|(_, candidate)| candidate.region.is_null());
    if let (Attr::Null, true, Some(client)) = (&config.region, needs_region, client) {
        match &client.region {
            Some(region) if !has_choice => planned.region = Attr::Known(region.clone()),
            Some(_) => {}
            None => plan.diagnostics.push(missing_region(client)),
        }
    }
    needs(config, &mut plan.diagnostics);
}

/// Checks the create against the live service, and plans its price.
async fn live(plan: &mut CreatePlan<Instance>, client: &ProviderClient, limits: &api::Context) {
    let planned = &mut plan.planned;
    let replaced = protection::replaced(&plan.private);
    plan.diagnostics.extend(checks::check_mounts(planned, replaced.as_deref(), client, limits).await);
    let name = planned.name.as_str().map(str::to_owned);
    let is_renewed = planned.is_prepaid() && planned.auto_renew.known() == Some(&true);
    if client.max_prepaid_total.is_some() && is_renewed {
        plan.diagnostics.warning_at(
            Path::to("auto_renew"),
            "Further terms are not limited",
            "The provider's max_prepaid_total limits one term, and auto_renew = true buys further ones.",
        );
    }
    // The apply looks before it buys.
    if plan.walk != Walk::Apply {
        plan.diagnostics.extend(names::check(&plan.planned, replaced.as_deref(), client, limits).await);
    }
    let replaced = Replaced { uid: replaced.as_deref(), tainted: name.as_deref() };
    let billed = match client.billed_for_plan(replaced, limits).await {
        Ok(billed) => billed,
        Err(diagnostics) => {
            plan.diagnostics.extend(diagnostics);
            None
        }
    };
    choices::plan(plan, billed.as_ref(), client, limits).await;
}

/// Checks the arguments that only a create needs; an imported instance may lack them.
fn needs(config: &Instance, diagnostics: &mut Diagnostics) {
    if config.spec_id.is_null() && config.spec_type.is_null() && !candidates::has_choice(config) {
        diagnostics.error_at(
            Path::to("spec_id"),
            "Missing specification",
            "Set spec_id, spec_type or candidates. The data source damodel_specs lists the specifications of a region.",
        );
    }
    if config.image.is_null() && config.image_id.is_null() {
        diagnostics.error_at(
            Path::to("image"),
            "Missing image",
            "Set image to a full address, or image_id and image_type. The data source damodel_public_images lists \
             images.",
        );
    }
    if let Some(payment @ ("Daily" | "Weekly" | "Monthly")) = config.payment_type.as_str()
        && config.purchase_duration.is_null()
    {
        diagnostics.error_at(
            Path::to("purchase_duration"),
            "Missing required argument",
            format!(
                "A new instance with payment_type = {payment:?} needs purchase_duration: the number of days, weeks or \
                 months to buy."
            ),
        );
    }
    if config.login_method.as_str() == Some("ssh_key") {
        for (name, is_null) in
            [("ssh_pubkey_id", config.ssh_pubkey_id.is_null()), ("ssh_pubkey_name", config.ssh_pubkey_name.is_null())]
        {
            if is_null {
                diagnostics.error_at(
                    Path::to(name),
                    "Missing required argument",
                    format!(
                        "An instance with login_method = \"ssh_key\" needs {name}. The console shows id and name of \
                         each registered key."
                    ),
                );
            }
        }
    }
}

/// Warns about the disks that a replacement deletes.
pub(super) async fn update(plan: &mut UpdatePlan<Instance>, context: &PlanContext<'_>) {
    let client = context.client.map(AsRef::as_ref);
    forget_credentials(&mut plan.planned);
    match client {
        Some(client) => max_age::plan_default(&plan.config, &mut plan.planned, client),
        // The plan within the apply knows the default, and only repeats what this plan left unknown.
        None if plan.config.max_age.is_null() && to_value(&plan.planned).ok() != to_value(&plan.prior).ok() => {
            plan.planned.max_age = Attr::Unknown;
        }
        None => {}
    }
    let prior = &plan.prior;
    // The specification in the state is checked even without the service.
    if let Some(id) = prior.spec_id.known()
        && plan.config.spec_id.known() == Some(id)
        && let Some(disagreement) = checks::disagreement(&plan.config, *id, prior.spec_type.as_str())
    {
        plan.diagnostics.push(disagreement);
        return;
    }
    protection::note(&mut plan.private, prior.id.as_str().unwrap_or_default());
    // The specification's number changes with arguments that say more to the operator.
    let config = to_value(&plan.config).unwrap_or_default();
    let set = plan.replace.iter().find(|path| !config.attribute(&path.to_string()).is_null());
    let Some(path) = set.or_else(|| plan.replace.first()).cloned() else { return };
    if prior.is_protected() {
        return;
    }
    let (losses, protected) = disks::losses(prior, client, &planning_limits(context)).await;
    plan.diagnostics.extend(protected.map(|error| error.at(path.clone())).into_iter().collect());
    if let Some(ignored) = client.and_then(|client| prior.never_abandoned(client)) {
        plan.diagnostics.push(ignored);
    }
    // The plan within the apply has no state, so a replacement cannot keep the number.
    let is_open = plan.config.gpu_num.is_null() && !candidates::has_choice(&plan.config);
    let count = match prior.gpu_num.known() {
        Some(gpus) if is_open && *gpus != DEFAULT_GPU_NUM => {
            format!(" gpu_num is not set, so the new instance has {DEFAULT_GPU_NUM} GPU; the old instance has {gpus}.")
        }
        _ => String::new(),
    };
    let what = format!("The change of {path} replaces {}.", prior.title());
    let losses = format!(
        "{losses}{count} Without lifecycle {{ create_before_destroy = true }} the old instance is released first, \
         before price and stock are checked again. With lifecycle {{ destroy = false }} (OpenTofu) it is not released \
         and is still billed."
    );
    let said = disks::released(prior, client, ["The replacement deletes the instance's disks", &what, &losses]);
    plan.diagnostics.extend(said.into_iter().flatten().map(|warning| warning.at(path.clone())).collect());
}

/// The term of an hourly instance is never sent, so a change of it does not replace the instance.
pub(super) fn spare_hourly(plan: &mut UpdatePlan<Instance>) {
    let is_hourly = |instance: &Instance| instance.payment_type.as_str() == Some("Hourly");
    if is_hourly(&plan.prior) && is_hourly(&plan.planned) {
        plan.replace.retain(|path| *path != Path::to("purchase_duration"));
    }
}

/// Keeps what is only spelled in another way, and replaces no instance: mount paths with and without a slash at their
/// end, and documents with other white space or order.
pub(super) fn keep_spellings(plan: &mut UpdatePlan<Instance>) {
    let UpdatePlan { prior, planned, replace, .. } = plan;
    let documents = |instance: &Instance| {
        let texts = instance.object_mounts.known().into_iter().flatten();
        let documents = texts.map(|text| serde_json::from_str::<Value>(text.as_str()?).ok());
        documents.collect::<Option<Vec<_>>>().filter(|documents| !documents.is_empty())
    };
    if documents(planned).is_some_and(|documents_now| Some(documents_now) == documents(prior)) {
        planned.object_mounts = prior.object_mounts.clone();
    }
    keep_path(&mut planned.data_disk_mount_path, &prior.data_disk_mount_path);
    for ((_, disk), (_, before)) in planned.exist_disks.elements_mut().zip(prior.exist_disks.elements()) {
        keep_path(&mut disk.mount_path, &before.mount_path);
    }
    for ((_, disk), (_, before)) in planned.new_disks.elements_mut().zip(prior.new_disks.elements()) {
        keep_path(&mut disk.mount_path, &before.mount_path);
    }
    for (name, is_kept) in [
        ("data_disk_mount_path", planned.data_disk_mount_path == prior.data_disk_mount_path),
        ("exist_disks", planned.exist_disks == prior.exist_disks),
        ("new_disks", planned.new_disks == prior.new_disks),
        ("object_mounts", planned.object_mounts == prior.object_mounts),
    ] {
        if is_kept {
            replace.retain(|path| *path != Path::to(name));
        }
    }
}

/// Warns about the disks that a destroy deletes.
pub(super) async fn destroy(plan: &mut DestroyPlan<Instance>, context: &PlanContext<'_>) {
    let prior = &plan.prior;
    if prior.is_protected() {
        return;
    }
    let client = context.client.map(AsRef::as_ref);
    let (losses, protected) = disks::losses(prior, client, &planning_limits(context)).await;
    plan.diagnostics.extend(protected.into_iter().collect());
    if let Some(ignored) = client.and_then(|client| prior.never_abandoned(client)) {
        plan.diagnostics.push(ignored);
    }
    let what = format!("This plan destroys {}.", prior.title());
    let said = disks::released(prior, client, ["The instance's disks are deleted with it", &what, &losses]);
    plan.diagnostics.extend(said.into_iter().flatten().collect());
}
