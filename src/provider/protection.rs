//! deletion_protection: a provider-side guard, judged by what the state says.

use crate::framework::{Diagnostic, Path, Plan, PlanKind};

/// Under this key the first plan of a replacement tells the second one that the thing is protected: the second one, all that a
/// forced replacement has to say no with, sees no state.
const PROTECTED: &str = "protected";

/// A thing that can be protected.
pub(super) trait Protected {
    /// Whether the state says deletion_protection = true.
    fn is_protected(&self) -> bool;

    /// As an error names it.
    fn title(&self) -> String;
}

/// Refuses the destroy or replacement of a protected thing, in its plan.
pub(super) fn check<M: Protected>(plan: &mut Plan<M>) {
    match (plan.kind, &plan.prior) {
        (PlanKind::Create, _) if plan.private.entry::<bool>(PROTECTED) == Some(true) => {
            plan.diagnostics.error_at(
                Path::to("deletion_protection"),
                "It is protected",
                "It cannot be replaced while the state says deletion_protection = true. Set it to false, apply, and try again. \
                 Nothing was changed.",
            );
        }
        (PlanKind::Destroy, Some(prior)) if prior.is_protected() => plan.diagnostics.push(refusal(prior)),
        (PlanKind::Update, Some(prior)) => {
            plan.private.insert(PROTECTED, prior.is_protected());
            if let (true, Some(path)) = (prior.is_protected(), plan.replace.first()) {
                plan.diagnostics.error_at(
                    path.clone(),
                    "It is protected",
                    format!(
                        "The change of {path} would replace {}, and the state says deletion_protection = true. Set that to false, \
                         apply, and try again. Nothing was changed.",
                        prior.title()
                    ),
                );
            }
        }
        _ => {}
    }
}

/// Why a protected thing is not destroyed.
pub(super) fn refusal<M: Protected>(thing: &M) -> Diagnostic {
    Diagnostic::error(
        "It is protected",
        format!(
            "{} is not destroyed while the state says deletion_protection = true. Set it to false, apply, and destroy again. \
             Nothing was changed.",
            thing.title()
        ),
    )
}
