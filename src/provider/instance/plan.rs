use super::model::Instance;
use crate::{
    api::Kind,
    framework::{Attr, Diagnostics, Path, Plan, PlanKind},
    provider::Client,
};

/// Under this key the first plan of a replacement tells the second one that the machine is protected: the second one, all
/// that a forced replacement has to say no with, sees no state.
const PROTECTED: &str = "protected";

/// Refines a plan: the provider's region, what a create needs, protection, and what a destroy takes with it.
pub(super) fn plan(plan: &mut Plan<Instance>, client: Option<&Client>) {
    if let (Some(prior), Some(client)) = (&plan.prior, client) {
        known_in_a_state(prior, client);
    }
    match plan.kind {
        PlanKind::Create => create(plan, client),
        PlanKind::Destroy => destroy(plan),
        PlanKind::Update => update(plan),
    }
}

/// A state that shows an instance proves that the core stored what a create answered.
fn known_in_a_state(prior: &Instance, client: &Client) {
    if let Some(id) = prior.id.as_str()
        && let Err(error) = client.journal.seen(Kind::Instance, id)
    {
        tracing::warn!(%error, "the note of a finished create could not be cleared");
    }
}

fn create(plan: &mut Plan<Instance>, client: Option<&Client>) {
    if plan.private.entry::<bool>(PROTECTED) == Some(true) {
        plan.diagnostics.error_at(
            Path::to("deletion_protection"),
            "The instance is protected",
            "It cannot be replaced while the state says deletion_protection = true. Set it to false, apply, and try again. \
             Nothing was changed.",
        );
    }
    let (Some(config), Some(planned)) = (&plan.config, &mut plan.planned) else { return };
    if let (Attr::Null, Some(client)) = (&config.region, client) {
        match &client.region {
            Some(region) => planned.region = Attr::Known(region.clone()),
            None => plan.diagnostics.error_at(
                Path::to("region"),
                "Missing region",
                "Set region here, or for all in the provider (or with DAMODEL_REGION).",
            ),
        }
    }
    needs(config, &mut plan.diagnostics);
    if let (Some(host), Some(address)) =
        (client.and_then(|client| client.registry_host.as_deref()), image_address(config))
    {
        check_address(address, host, &mut plan.diagnostics);
    }
}

/// What only a create needs: an imported machine has it already.
fn needs(config: &Instance, diagnostics: &mut Diagnostics) {
    if config.spec_id.is_null() && config.spec_type.is_null() {
        diagnostics.error_at(
            Path::to("spec_id"),
            "Missing specification",
            "Set spec_id or spec_type. The data source damodel_specs lists what a region has.",
        );
    }
    if config.image.is_null() && config.image_id.is_null() {
        diagnostics.error_at(
            Path::to("image"),
            "Missing image",
            "Set image to a full address, or image_id and image_type. The data source damodel_public_images lists images.",
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
                    format!("A create with login_method = \"ssh_key\" needs {name}."),
                );
            }
        }
    }
}

/// The address that a create would send.
fn image_address(config: &Instance) -> Option<&str> {
    config.image.as_str().filter(|_| config.image_id.is_null())
}

/// Checks an address as the service does (service API, POST /api/instance/create, rule 4).
fn check_address(address: &str, host: &str, diagnostics: &mut Diagnostics) {
    let detail = match address.strip_prefix(host).and_then(|rest| rest.strip_prefix('/')) {
        None => format!("It must start with {host}/, the provider's registry_host."),
        Some(path) => match (path.contains("model_library"), path.contains("user_private")) {
            (true, true) | (false, false) => {
                "Its path must contain either model_library (a public image) or user_private (a private one)."
                    .to_owned()
            }
            _ => return,
        },
    };
    diagnostics.error_at(Path::to("image"), "Not an address of this registry", format!("{address:?}: {detail}"));
}

fn update(plan: &mut Plan<Instance>) {
    let Some(prior) = &plan.prior else { return };
    let protected = prior.deletion_protection.known() == Some(&true);
    plan.private.insert(PROTECTED, protected);
    let Some(path) = plan.replace.first().cloned() else { return };
    if protected {
        plan.diagnostics.error_at(
            path.clone(),
            "The instance is protected",
            format!(
                "The change of {path} would replace {}, and the state says deletion_protection = true. Set that to false, apply, \
                 and try again. Nothing was changed.",
                prior.title()
            ),
        );
    } else {
        plan.diagnostics.warning_at(
            path.clone(),
            "The replacement deletes the machine's disks",
            format!(
                "The change of {path} replaces {}: its system disk and its local data disk ({}) are deleted for good. The machine is \
                 released before price and stock are asked again; with lifecycle {{ create_before_destroy = true }} the new one \
                 comes first.",
                prior.title(),
                mount_path(prior)
            ),
        );
    }
}

fn destroy(plan: &mut Plan<Instance>) {
    let Some(prior) = &plan.prior else { return };
    if prior.deletion_protection.known() == Some(&true) {
        plan.diagnostics.push(protected(prior));
    } else {
        plan.diagnostics.warning(
            "The destroy deletes the machine's disks",
            format!(
                "Destroying {} deletes its system disk and its local data disk ({}) for good.",
                prior.title(),
                mount_path(prior)
            ),
        );
    }
}

/// Why a protected instance is not destroyed.
pub(super) fn protected(instance: &Instance) -> crate::framework::Diagnostic {
    crate::framework::Diagnostic::error(
        "The instance is protected",
        format!(
            "{} is not destroyed while the state says deletion_protection = true. Set it to false, apply, and destroy again. \
             Nothing was changed.",
            instance.title()
        ),
    )
}

fn mount_path(instance: &Instance) -> &str {
    instance.data_disk_mount_path.as_str().unwrap_or(super::schema::DEFAULT_MOUNT_PATH)
}
