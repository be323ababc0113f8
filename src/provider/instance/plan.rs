//! Plans of instances.

use super::{
    candidates::{self, DEFAULT_GPU_NUM},
    checks::{self, check_disks},
    choices,
    disks::{self, find_uids, keep_uids, recall_uids},
    schema::Instance,
};
use crate::{
    api,
    framework::{Attr, CreatePlan, DestroyPlan, Diagnostics, Path, PlanContext, UpdatePlan},
    provider::{
        ProviderClient, account_budget::Replaced, client::planning_limits, errors::missing_region,
        lifecycle::ManagedExt as _, protection, words::capitalized,
    },
};

/// Refines the plan of a create: the provider's region, the requirements, and the checks against the service.
pub(super) async fn create(plan: &mut CreatePlan<Instance>, context: &PlanContext<'_, ProviderClient>) {
    let client = context.client.map(AsRef::as_ref);
    forget_credentials(&mut plan.planned);
    offline(plan, client);
    if let Some(client) = client.filter(|client| client.preflight)
        && !plan.diagnostics.has_errors()
    {
        live(plan, client, &planning_limits(context)).await;
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
    if client.max_prepaid_total.is_some() && planned.is_prepaid() && planned.auto_renew.known() == Some(&true) {
        plan.diagnostics.warning_at(
            Path::to("auto_renew"),
            "Further terms are not limited",
            "The provider's max_prepaid_total holds for one term, and auto_renew = true buys further ones.",
        );
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
    if config.candidates.known().is_some_and(Vec::is_empty) {
        diagnostics.error_at(
            Path::to("candidates"),
            "No candidates",
            "The list is empty. Add at least one specification, or check the filters of the data source that it comes \
             from.",
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
pub(super) async fn update(plan: &mut UpdatePlan<Instance>, context: &PlanContext<'_, ProviderClient>) {
    let client = context.client.map(AsRef::as_ref).filter(|client| client.preflight);
    let limits = &planning_limits(context);
    forget_credentials(&mut plan.planned);
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
    let Some(path) = plan.replace.first().cloned() else {
        // After an import, the disks have no uids yet.
        if let Some(client) = client {
            let disks = &mut plan.planned.exist_disks;
            match find_uids(disks, client, limits).await {
                Ok(()) => keep_uids(disks, client, limits).await,
                Err(error) => {
                    tracing::warn!(%error, "the uids of the cloud disks could not be looked up: the apply tries again");
                    recall_uids(disks, client, limits).await;
                }
            }
        }
        return;
    };
    if prior.is_protected() {
        return;
    }
    let losses = disks::told(prior, client, limits).await;
    plan.diagnostics.extend(disks::prepaid(prior).map(Into::into).unwrap_or_default());
    if let Some(ignored) = context.client.and_then(|client| prior.never_abandoned(client)) {
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
    plan.diagnostics.warning_at(
        path.clone(),
        "The replacement deletes the instance's disks",
        format!(
            "The change of {path} replaces {}. {losses}{count} The old instance is released before price and \
             stock are checked again. With lifecycle {{ create_before_destroy = true }} the new one is created first; \
             with lifecycle {{ destroy = false }} (OpenTofu) the old one is not released and is still billed.",
            prior.title()
        ),
    );
}

/// The term of an hourly instance is never sent, so a change of it does not replace the instance.
pub(super) fn spare_hourly(plan: &mut UpdatePlan<Instance>) {
    let is_hourly = |instance: &Instance| instance.payment_type.as_str() == Some("Hourly");
    if is_hourly(&plan.prior) && is_hourly(&plan.planned) {
        plan.replace.retain(|path| *path != Path::to("purchase_duration"));
    }
}

/// Warns about the disks that a destroy deletes.
pub(super) async fn destroy(plan: &mut DestroyPlan<Instance>, context: &PlanContext<'_, ProviderClient>) {
    let prior = &plan.prior;
    if prior.is_protected() {
        return;
    }
    let client = context.client.map(AsRef::as_ref).filter(|client| client.preflight);
    let losses = disks::told(prior, client, &planning_limits(context)).await;
    plan.diagnostics.extend(disks::prepaid(prior).map(Into::into).unwrap_or_default());
    if let Some(ignored) = context.client.and_then(|client| prior.never_abandoned(client)) {
        plan.diagnostics.push(ignored);
    }
    plan.diagnostics.warning(
        "The instance's disks are deleted with it",
        format!("{} is destroyed. {losses}", capitalized(&prior.title())),
    );
}

/// Checks the rules between arguments without the service (service API, POST /api/instance/create).
pub(super) fn validate(config: &Instance, diagnostics: &mut Diagnostics) {
    candidates::validate(config, diagnostics);
    payment(config, diagnostics);
    image_pair(config, diagnostics);
    login(config, diagnostics);
    check_disks(config, diagnostics);
    prepaid_age(config, diagnostics);
    let is_hourly = config.payment_type.is_null() || config.payment_type.as_str() == Some("Hourly");
    if config.on_unreleasable.as_str() == Some("abandon") && is_hourly {
        diagnostics.error_at(
            Path::to("on_unreleasable"),
            "An abandoned instance would be billed indefinitely",
            "on_unreleasable = \"abandon\" leaves the instance until its term ends, but one that is paid by the hour \
             has no term. Set on_unreleasable = \"fail\", or another payment_type.",
        );
    } else if config.on_unreleasable.as_str() == Some("abandon") && config.auto_renew.known() == Some(&true) {
        diagnostics.error_at(
            Path::to("on_unreleasable"),
            "An abandoned instance would be billed indefinitely",
            "on_unreleasable = \"abandon\" leaves the instance until its term ends, but auto_renew = true renews the \
             term. Set auto_renew = false, or on_unreleasable = \"fail\".",
        );
    }
}

/// Warns that `expire` does not release a prepaid instance.
fn prepaid_age(config: &Instance, diagnostics: &mut Diagnostics) {
    if let (false, Some(payment)) = (config.max_age.is_null(), config.payment_type.as_str())
        && config.is_prepaid()
    {
        diagnostics.warning_at(
            Path::to("max_age"),
            "The command expire leaves prepaid instances",
            format!(
                "With payment_type = {payment:?} the term is prepaid: a refresh warns when max_age is over, and expire \
                 does not release the instance."
            ),
        );
    }
}

/// Ten years in the periods of each payment type: a longer term is a slip of the keyboard.
const TEN_YEARS: [(&str, i64, &str); 3] =
    [("Daily", 3653, "days"), ("Weekly", 522, "weeks"), ("Monthly", 120, "months")];

fn payment(config: &Instance, diagnostics: &mut Diagnostics) {
    match (config.payment_type.as_str(), config.purchase_duration.is_null()) {
        (Some("Hourly"), false) => diagnostics.warning_at(
            Path::to("purchase_duration"),
            "purchase_duration has no effect",
            "An instance that is paid by the hour has no term: purchase_duration is not sent.",
        ),
        (Some(payment), false) => {
            let (most, periods) =
                TEN_YEARS.iter().find(|(it, _, _)| *it == payment).map_or((i64::MAX, ""), |it| (it.1, it.2));
            if config.purchase_duration.known().is_some_and(|duration| *duration > most) {
                diagnostics.error_at(
                    Path::to("purchase_duration"),
                    "The term is too long",
                    format!(
                        "With payment_type = {payment:?}, purchase_duration is at most {most} {periods}: ten years."
                    ),
                );
            }
        }
        (Some(payment), true) if payment != "Hourly" => diagnostics.error_at(
            Path::to("purchase_duration"),
            "Missing required argument",
            format!(
                "purchase_duration is required with payment_type = {payment:?}: the number of days, weeks or months to \
                     buy."
            ),
        ),
        _ => {}
    }
}

fn image_pair(config: &Instance, diagnostics: &mut Diagnostics) {
    let (lonely, missing) = match (config.image_id.is_null(), config.image_type.is_null()) {
        (false, true) => ("image_id", "image_type"),
        (true, false) => ("image_type", "image_id"),
        _ => return,
    };
    diagnostics.error_at(
        Path::to(lonely),
        "Incomplete image",
        format!("{lonely} also needs {missing}. Alternatively, set image to the full address of the image."),
    );
}

fn login(config: &Instance, diagnostics: &mut Diagnostics) {
    if config.login_method.as_str() == Some("ssh_key") || config.login_method.is_unknown() {
        return;
    }
    for (name, is_set) in
        [("ssh_pubkey_id", !config.ssh_pubkey_id.is_null()), ("ssh_pubkey_name", !config.ssh_pubkey_name.is_null())]
    {
        if is_set {
            diagnostics.error_at(
                Path::to(name),
                format!("{name} needs login_method = \"ssh_key\""),
                format!("Set login_method = \"ssh_key\", or remove {name}."),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::candidates::Candidate, *};

    fn paths(config: &Instance) -> Vec<String> {
        let mut diagnostics = Diagnostics::new();
        validate(config, &mut diagnostics);
        diagnostics.iter().map(|diagnostic| diagnostic.path.clone().unwrap_or_default().to_string()).collect()
    }

    #[test]
    fn a_term_is_needed_unless_hourly() {
        let mut config = Instance { payment_type: "Monthly".into(), ..Instance::default() };
        assert_eq!(paths(&config), ["purchase_duration"]);
        config.purchase_duration = Attr::Unknown;
        assert!(paths(&config).is_empty());
    }

    #[test]
    fn a_term_is_at_most_ten_years() {
        for (payment_type, most) in [("Daily", 3653), ("Weekly", 522), ("Monthly", 120)] {
            let config = |term| Instance {
                payment_type: payment_type.into(),
                purchase_duration: Attr::Known(term),
                ..Instance::default()
            };
            assert!(paths(&config(most)).is_empty(), "{payment_type}");
            assert_eq!(paths(&config(most + 1)), ["purchase_duration"], "{payment_type}");
        }
    }

    #[test]
    fn each_candidate_has_its_number_of_gpus_or_none_has() {
        let candidate = |gpu_num| Attr::Known(Candidate { spec_id: Attr::Known(103), gpu_num, ..Candidate::default() });
        let (two, none) = (Attr::Known(2), Attr::Null);
        for (gpu_num, counts, expected) in [
            (none, [none, none], &[][..]),
            (none, [two, two], &[]),
            (none, [two, none], &["candidates[1].gpu_num"]),
            (none, [Attr::Unknown, none], &[]),
            (two, [none, none], &[]),
            (two, [two, none], &["candidates[0].gpu_num"]),
        ] {
            let candidates = Attr::Known(counts.map(candidate).into());
            let config = Instance { gpu_num, candidates, ..Instance::default() };
            assert_eq!(paths(&config), expected, "{gpu_num:?} {counts:?}");
        }
    }

    #[test]
    fn half_an_image_pair_is_refused() {
        let config = Instance { image_id: Attr::Known(1), ..Instance::default() };
        assert_eq!(paths(&config), ["image_id"]);
        let config = Instance { image_type: "public".into(), ..Instance::default() };
        assert_eq!(paths(&config), ["image_type"]);
        let config = Instance { image_id: Attr::Unknown, image_type: "public".into(), ..Instance::default() };
        assert!(paths(&config).is_empty());
    }

    #[test]
    fn a_key_needs_its_login_method() {
        let config = Instance { ssh_pubkey_id: Attr::Known(1), login_method: "password".into(), ..Instance::default() };
        assert_eq!(paths(&config), ["ssh_pubkey_id"]);
    }

    #[test]
    fn nothing_renews_what_is_abandoned() {
        let mut config = Instance { on_unreleasable: "abandon".into(), ..Instance::default() };
        assert_eq!(paths(&config), ["on_unreleasable"], "by the hour");
        config = Instance { payment_type: "Daily".into(), purchase_duration: Attr::Known(1), ..config };
        assert!(paths(&config).is_empty());
        config.auto_renew = Attr::Known(true);
        assert_eq!(paths(&config), ["on_unreleasable"]);
    }
}
