use super::{model::Instance, witness_key};
use crate::{
    api::{self, Code, InstanceStatus, InstanceUid, Presence, Sighting},
    framework::{Context, Diagnostic, Outcome, State},
    provider::{
        Client, OnUnreleasable,
        client::limits,
        errors::Failure,
        presence::{self, Absence},
        protection::{Protected as _, refusal},
    },
};

/// Releases an instance and waits until it is gone for sure. It stays in the state on every doubt.
pub(super) async fn delete(current: State<Instance>, context: &Context<Client>) -> Outcome<Instance> {
    if current.state.is_protected() {
        let diagnostic = refusal(&current.state);
        return current.unchanged(diagnostic);
    }
    let release =
        Release { uid: current.state.uid(), client: context.client.as_ref(), limits: limits(context), current };
    release.run().await
}

struct Release<'a> {
    uid: InstanceUid,
    client: &'a Client,
    limits: api::Context,
    current: State<Instance>,
}

impl Release<'_> {
    async fn run(self) -> Outcome<Instance> {
        tracing::info!(instance.id = %self.uid, "releasing");
        match self.client.api.instances().release(&self.uid, &self.limits).await {
            Ok(()) => self.wait().await,
            Err(error) => match error.code() {
                Some(Code::InstanceCanNotBeReleased) => self.refused(&error).await,
                Some(Code::InstanceNotExistOrAlreadyReleased | Code::InstanceNotExistOrNoPrivilege) => {
                    self.gone_already(&error).await
                }
                _ => self.failed(&error),
            },
        }
    }

    /// Waits for Released. An instance that lists stop showing is looked for once more before it counts as gone.
    async fn wait(self) -> Outcome<Instance> {
        let is_gone = |seen: &Sighting<api::Instance>| seen.record().is_none_or(api::Instance::is_released);
        loop {
            match self.client.api.instances().wait(&self.uid, &self.limits, is_gone).await {
                Ok(Sighting::Present(_)) => return Outcome::absent(),
                Ok(Sighting::Missing) => match self.client.api.instances().look(&self.uid, &self.limits).await {
                    Ok(Presence::Absent { .. } | Presence::Released(_)) => return Outcome::absent(),
                    Ok(_) => tracing::debug!(instance.id = %self.uid, "still there"),
                    Err(error) => return self.stopped(&error),
                },
                Err(error) => return self.stopped(&error),
            }
        }
    }

    /// The release was accepted, and its end not seen.
    fn stopped(self, error: &api::Error) -> Outcome<Instance> {
        let title = self.current.state.title();
        self.current.unchanged(Diagnostic::error(
            format!("The release of {title} has not ended"),
            format!(
                "The service accepted the release, and then: {error}. The instance stays in the state until it is seen as released; \
                 destroy again to go on. To wait longer set timeouts {{ delete = \"…\" }}."
            ),
        ))
    }

    fn failed(self, error: &api::Error) -> Outcome<Instance> {
        let failure = Failure {
            error,
            tried: format!("release {}", self.current.state.title()),
            now: "It stays in the state.".to_owned(),
        };
        let diagnostic = failure.whole();
        self.current.unchanged(diagnostic)
    }

    /// The service forbids the release (service API, 160012).
    async fn refused(self, error: &api::Error) -> Outcome<Instance> {
        let title = self.current.state.title();
        let status = self.status().await;
        if status == Some(InstanceStatus::Failed) {
            return Outcome::absent().with(Diagnostic::warning(
                format!("{title} was not released"),
                "Its creation failed, and the service refuses to release such an instance (160012). It leaves the state.",
            ));
        }
        let state = &self.current.state;
        let wanted = state.on_unreleasable.as_str().and_then(OnUnreleasable::parse);
        let until =
            state.release_time.as_str().or(state.rent_deadline.as_str()).unwrap_or("a time that it does not tell");
        match self.client.on_unreleasable.or(wanted) {
            Some(OnUnreleasable::Abandon) if state.auto_renew.known() == Some(&true) => {
                self.current.unchanged(Diagnostic::error(
                    format!("{title} would be billed for ever"),
                    "The service forbids its release, and auto_renew = true renews its term again and again, so it is not abandoned. \
                     Turn the renewal off in the console. It stays in the state.",
                ))
            }
            Some(OnUnreleasable::Abandon) => Outcome::absent().with(Diagnostic::warning(
                format!("{title} was abandoned"),
                format!(
                    "The service forbids its release, and on_unreleasable says abandon: it has left the state, runs on, and is paid \
                     for until {until}."
                ),
            )),
            _ => {
                let failure = Failure {
                    error,
                    tried: format!("release {title}"),
                    now: format!("It stays in the state, and is paid for until {until}."),
                };
                let diagnostic = failure.whole();
                self.current.unchanged(diagnostic)
            }
        }
    }

    async fn status(&self) -> Option<InstanceStatus> {
        let detail = self.client.api.instances().detail(&self.uid, &self.limits).await;
        detail.ok().and_then(|detail| detail.instance.status)
    }

    /// The service says that there is nothing to release. That is proof only when the instance is seen as released, or when
    /// it is absent from the account that it was made in. One that is still there may be on its way.
    async fn gone_already(self, error: &api::Error) -> Outcome<Instance> {
        let key = witness_key(&self.uid);
        match self.client.api.instances().look(&self.uid, &self.limits).await {
            Ok(Presence::Released(_)) => Outcome::absent(),
            Ok(Presence::Absent { .. }) => {
                match presence::judge(&self.current.private, &key, self.client, &self.limits).await {
                    Ok(Absence::Proved) => Outcome::absent(),
                    Ok(_) => self.failed(error),
                    Err(looking) => self.failed(&looking),
                }
            }
            // An earlier request was accepted, and its answer lost; or an earlier destroy did not see its end.
            Ok(Presence::Present(_)) if error.code() == Some(Code::InstanceNotExistOrAlreadyReleased) => {
                self.wait().await
            }
            Ok(_) => self.failed(error),
            Err(looking) => self.failed(&looking),
        }
    }
}
