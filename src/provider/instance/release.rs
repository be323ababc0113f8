//! What a destroy does when the service forbids the release.

use super::model::Instance;
use crate::{
    api::{self, Code, InstanceStatus},
    framework::Diagnostic,
    provider::{
        OnUnreleasable,
        errors::Failure,
        lifecycle::{Forbidden, ManagedExt as _, Release},
        words::capitalized,
    },
};

impl Release<'_, Instance> {
    /// What a refusal with 160012 comes to (service API, Errors).
    pub(super) async fn forbidden(&self, error: &api::Error) -> Option<Forbidden> {
        if error.code() != Some(Code::InstanceCanNotBeReleased) {
            return None;
        }
        let (state, title) = (&self.current.state, capitalized(&self.current.state.title()));
        let detail = self.client.api.instances().detail(&self.key, &self.limits).await;
        if detail.ok().and_then(|detail| detail.instance.status) == Some(InstanceStatus::Failed) {
            return Some(Forbidden::Abandoned(Diagnostic::warning(
                format!("{title} was not released"),
                "Its creation failed, and the service refuses to release such an instance (160012). It was removed \
                 from the state.",
            )));
        }
        let wanted = state.on_unreleasable.as_str().and_then(OnUnreleasable::parse);
        let until = state
            .release_time
            .as_str()
            .or(state.rent_deadline.as_str())
            .unwrap_or("a time that the service does not report");
        Some(match self.client.on_unreleasable.or(wanted) {
            Some(OnUnreleasable::Abandon) if state.auto_renew.known() == Some(&true) => {
                Forbidden::Kept(Diagnostic::error(
                    format!("{title} would be billed indefinitely"),
                    "The service forbids its release, and auto_renew = true renews its term indefinitely, so it is \
                     not abandoned. Turn the renewal off in the console. It stays in the state.",
                ))
            }
            Some(OnUnreleasable::Abandon) => Forbidden::Abandoned(Diagnostic::warning(
                format!("{title} was abandoned"),
                format!(
                    "The service forbids its release, and on_unreleasable is \"abandon\": it was removed from the \
                     state, keeps running, and is paid for until {until}."
                ),
            )),
            _ => Forbidden::Kept(
                Failure {
                    error,
                    tried: format!("release {}", state.title()),
                    now: format!("It stays in the state, and is paid for until {until}."),
                }
                .whole(),
            ),
        })
    }
}
