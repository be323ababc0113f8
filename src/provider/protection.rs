//! The argument `deletion_protection`: a provider-side guard that uses the value in the state.

use super::{
    lifecycle::{Managed, ManagedExt as _},
    words::capitalized,
};
use crate::framework::{CreatePlan, Diagnostic, Path, Private, UpdatePlan};

/// The private entry with which the first plan of a replacement marks the object as protected. The second plan, the
/// only one of a forced replacement that can fail, has no state.
const PROTECTED: &str = "protected";

/// Fails the second plan of a replacement of a protected object.
pub(super) fn check_create<M: Managed>(plan: &mut CreatePlan<M>) {
    if plan.private.entry::<bool>(PROTECTED) == Some(true) {
        plan.diagnostics.error_at(
            Path::to("deletion_protection"),
            "The object to replace has deletion_protection = true",
            "It cannot be replaced while deletion_protection is true in the state. First apply only \
             deletion_protection = false, then try again.",
        );
    }
}

/// Warns that a planned replacement of an unprotected object deletes what it stores.
pub(super) fn warn_of_loss<M: Managed>(plan: &mut UpdatePlan<M>, loss: &str) {
    if let (false, Some(path)) = (plan.prior.is_protected(), plan.replace.first()) {
        let detail = format!("The change of {path} replaces {}. {loss}", plan.prior.title());
        plan.diagnostics.warning_at(path.clone(), "The replacement deletes data", detail);
    }
}

/// Fails the plan of a replacement of a protected object.
pub(super) fn check_update<M: Managed>(plan: &mut UpdatePlan<M>) {
    let prior = &plan.prior;
    plan.private.insert(PROTECTED, prior.is_protected());
    if let (true, Some(path)) = (prior.is_protected(), plan.replace.first()) {
        plan.diagnostics.error_at(
            path.clone(),
            format!("{} has deletion_protection = true", capitalized(&prior.title())),
            format!(
                "The change of {path} would replace it, which deletion_protection in the state forbids. First apply \
                 only deletion_protection = false, then try again."
            ),
        );
    }
}

/// The error for the destroy of a protected object.
pub(super) fn refusal<M: Managed>(state: &M) -> Diagnostic {
    Diagnostic::error(
        format!("{} has deletion_protection = true", capitalized(&state.title())),
        "It cannot be destroyed while deletion_protection is true in the state. First apply only deletion_protection \
         = false, then try again.",
    )
}

/// The error for the release of an instance that would delete a protected cloud disk.
pub(super) fn refusal_of_disk(instance: &str, disk: &str) -> Diagnostic {
    Diagnostic::error(
        format!("{} has deletion_protection = true", capitalized(disk)),
        format!(
            "The release of {instance} would delete it (release_with_instance = true). The instance is not released. \
             To delete the disk and its data too, first apply only its deletion_protection = false, then try again."
        ),
    )
}

const KEY: &str = "replaced";

/// Records the object's id in a plan that may become a replacement: a forced replacement looks like any update.
pub(super) fn note(private: &mut Private, id: &str) {
    private.insert(KEY, id);
}

/// The id of the object that the planned one replaces.
pub(super) fn replaced(private: &Private) -> Option<String> {
    private.entry(KEY)
}
