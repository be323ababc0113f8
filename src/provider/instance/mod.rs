//! The resource `damodel_instance` (service API, Instances).

mod access;
mod budgets;
mod candidates;
mod checks;
mod choices;
mod disks;
mod listed;
mod max_age;
mod names;
mod plan;
mod price;
mod report;
mod schema;
mod validate;

use std::time::Duration;

use self::schema::{Instance, schema};
use super::{
    DestroyFallback, PlanContext, ProviderClient, StepContext,
    client::limits,
    errors::Failure,
    lifecycle::{
        self, AfterRefusal, Choice, Common, CreateEnd, Forbidden, Free, ImportTarget, Kind, Managed, ManagedCreate,
        ManagedExt as _, Release,
    },
    words::capitalized,
};
use crate::{
    api::{self, Code, Context, CreateInstance, InstanceStatus, InstanceUid, Presence, Sighting},
    creation::{Accepted, Attempt, WhileBusy},
    framework::{
        Attr, CreatePlan, DestroyPlan, Diagnostic, Diagnostics, IdentityAttribute, Outcome, Private, Result, Type,
        Update, UpdatePlan,
        timeouts::{DefaultTimeouts, minutes, parse_duration},
        to_value,
    },
};

pub(super) use self::{
    access::InstanceAccessResource,
    listed::{COLUMNS, list_all, plural, singular},
};

pub(super) type Resource = lifecycle::Resource<Instance>;

impl Managed for Instance {
    type Object = api::Instance;
    type Request = CreateInstance;

    const KIND: Kind = Kind {
        type_name: "damodel_instance",
        schema,
        timeouts: DefaultTimeouts { create: minutes(30), read: minutes(2), update: minutes(5), delete: minutes(15) },
        while_busy: WhileBusy::Fail,
        releases_later: true,
        identity: || IdentityAttribute::required("instance_uid", "id", Type::String, "The instance's UID (`ins-…`)."),
        import_id: "the instance's UID (ins-…) as the console shows it, neither its name nor its database_id",
    };

    fn choices(config: &Self, planned: &Self, private: &Private, client: &ProviderClient) -> Vec<Choice<Self>> {
        choices::choices(config, planned, private, client)
    }

    fn planned_request(&self, client: &ProviderClient) -> Option<CreateInstance> {
        report::request(self, client).ok()
    }

    async fn request(&mut self, client: &ProviderClient, limits: &Context) -> Result<CreateInstance, Diagnostic> {
        let mut request = report::request(self, client)?;
        report::find_disks(self, &mut request.exist_disks, client, limits).await?;
        Ok(request)
    }

    fn validate(config: &Self, diagnostics: &mut Diagnostics) {
        validate::validate(config, diagnostics);
    }

    async fn plan_create(plan: &mut CreatePlan<Self>, context: &PlanContext<'_>) {
        plan::create(plan, context).await;
    }

    fn plan_adoption(plan: &mut CreatePlan<Self>) {
        candidates::plan_adoption(plan);
    }

    fn decide_changes(plan: &mut UpdatePlan<Self>) {
        plan::spare_hourly(plan);
        plan::keep_spellings(plan);
        candidates::pin(plan);
    }

    async fn plan_update(plan: &mut UpdatePlan<Self>, context: &PlanContext<'_>) {
        plan::update(plan, context).await;
    }

    async fn plan_destroy(plan: &mut DestroyPlan<Self>, context: &PlanContext<'_>) {
        plan::destroy(plan, context).await;
    }

    fn forget_plan(private: &mut Private, client: &ProviderClient) {
        budgets::end_plan(private, client);
        choices::forget(private);
        disks::forget_protected(private);
    }

    async fn confirm(&self, attempt: &Attempt, client: &ProviderClient, limits: &Context) -> Result<Self, Diagnostic> {
        price::confirm(self, attempt, client, limits).await
    }

    fn wait_for_capacity(&self) -> Option<Duration> {
        self.wait_for_capacity.as_str().and_then(parse_duration)
    }

    async fn explain_refusal(&self, error: &api::Error, _client: &ProviderClient, _limits: &Context) -> Option<String> {
        error.code().filter(|code| code.is_out_of_stock())?;
        Some(match self.wait_for_capacity.as_str() {
            Some(wait) => format!(
                "The request was repeated for {wait} (wait_for_capacity). To wait longer, raise \
                                   wait_for_capacity."
            ),
            None => "To wait for stock, set wait_for_capacity.".to_owned(),
        })
    }

    fn create_ended(ended: CreateEnd<'_>, client: &ProviderClient) {
        if let (Some(budget), Some(marker)) = (&client.account_budget, ended.marker) {
            budget.ended(marker, ended.made);
        }
    }

    fn creation_ended(instance: &api::Instance) -> bool {
        matches!(instance.status, Some(InstanceStatus::Running | InstanceStatus::Failed | InstanceStatus::Released))
    }

    fn unfit(&self, instance: &api::Instance, accepted: &Accepted<api::Instance>) -> Option<Diagnostic> {
        let status = instance.status.as_ref().filter(|status| **status != InstanceStatus::Running)?;
        Some(Diagnostic::error(
            format!("{} was created with status {status}", capitalized(&self.title())),
            format!(
                "The service could not complete the instance: its status is {status}. The instance is in the state \
                 and tainted. The next apply releases it and tries again. For the service's support: instance UID \
                 {}{}.",
                instance.uid, accepted.ids
            ),
        ))
    }

    /// Reads all reported attributes. The configured name stays in the state; the next refresh shows a difference.
    async fn look_after_create(creation: &mut ManagedCreate<'_, Self>, accepted: &Accepted<api::Instance>) {
        let limits = creation.last_calls();
        match creation.client.api.instances().detail(&accepted.made.uid, &limits).await {
            Ok(detail) => {
                creation.state.take_detail(&detail);
                creation.state.complete_image(creation.client, &limits).await;
            }
            Err(api::Error::Cancelled { .. }) => {}
            Err(error) => {
                let failure = Failure {
                    error: &error,
                    tried: format!("read {} after the create", creation.state.title()),
                    now: "The instance exists; the next refresh completes the state.".to_owned(),
                };
                creation.diagnostics.push(failure.warning());
            }
        }
    }

    fn keep_plan(&mut self, planned: &Self, private: &mut Private) {
        self.take_quoted(planned);
        price::keep_quote(self, planned, private);
    }

    fn common(&self) -> Common<'_> {
        Common {
            id: &self.id,
            name: &self.name,
            status: &self.status,
            deletion_protection: &self.deletion_protection,
            uid: None,
        }
    }

    fn name_mut(&mut self) -> &mut Attr<String> {
        &mut self.name
    }

    fn take_record(&mut self, instance: &api::Instance) {
        self.take_instance(instance);
    }

    fn take(&mut self, detail: &api::InstanceDetail) {
        self.take_detail(detail);
    }

    async fn complete(&mut self, client: &ProviderClient, limits: &Context) {
        self.complete_image(client, limits).await;
    }

    fn refreshed(&mut self, private: &mut Private, client: &ProviderClient) -> Diagnostics {
        price::take_bought(self, private);
        let mut said: Diagnostics = max_age::overdue(self, client.api.last_date()).map(Into::into).unwrap_or_default();
        if self.status() == Some(InstanceStatus::Failed.as_str()) {
            said.push(Diagnostic::warning(
                format!("{} has failed", capitalized(&self.title())),
                format!(
                    "Its status is Failed. If the state still contains {} after this run, replace it: terraform apply \
                     -replace=<address>.",
                    self.id.as_str().unwrap_or_default()
                ),
            ));
        }
        said
    }

    /// Except for the name, attributes that change without a replacement are not sent to the service.
    async fn update(change: Update<Self>, context: &StepContext) -> Result<Outcome<Self>> {
        let Update { prior, planned, private, .. } = change;
        let (client, limits) = (context.client.as_ref(), limits(context));
        let has_new_age = planned.max_age != prior.max_age;
        // Without an answer of the service in this run, the age is that of this computer's clock.
        let date = client.api.last_date().unwrap_or_else(|| jiff::Timestamp::now().as_second());
        let overdue = || Some(date).filter(|_| has_new_age);
        if to_value(&planned).is_ok_and(|planned| planned.is_wholly_known()) {
            let said = max_age::overdue(&planned, overdue()).map(Diagnostics::from).unwrap_or_default();
            return Ok(Outcome::present(planned, private).with(said));
        }
        let mut state = planned.clone();
        let uid = InstanceUid::new(prior.id.as_str().unwrap_or_default());
        match client.api.instances().detail(&uid, &limits).await {
            Ok(detail) => {
                state.take_detail(&detail);
                // What the plan names may have changed since, and the service may show the old name for a moment: the
                // next refresh reads it again.
                state.keep_known(&planned);
                let said = max_age::overdue(&state, overdue()).map(Diagnostics::from).unwrap_or_default();
                Ok(Outcome::present(state, private).with(said))
            }
            Err(error) => {
                let failure = Failure {
                    error: &error,
                    tried: format!("read {} after its change", prior.title()),
                    now: "The change was made. The next refresh completes the state.".to_owned(),
                };
                Ok(Outcome::present(state, private).with(failure.warning()))
            }
        }
    }

    async fn until_free(release: &Release<'_, Self>) -> Result<Free, Diagnostic> {
        let current = release.current;
        disks::planned_protected(&current.state, &current.private).map_or(Ok(Free::Ready), Err)
    }

    /// The handling of a release refused with 160012 (service API, Errors). A status that may still become releasable
    /// is waited out; one that looks releasable is tried once more, because it may be new.
    async fn forbidden(release: &Release<'_, Self>, error: &api::Error, is_first: bool) -> Option<Forbidden> {
        if error.code() != Some(Code::InstanceCanNotBeReleased) {
            return None;
        }
        let instances = release.client.api.instances();
        let status = match instances.detail(&release.key, &release.limits).await {
            Ok(detail) => detail.instance.status,
            Err(error) => return Some(release.kept(release.failed(&error))),
        };
        match &status {
            Some(InstanceStatus::Failed) => Some(Forbidden::Abandoned(Diagnostic::warning(
                format!("{} was not released", capitalized(&release.current.state.title())),
                "The instance failed to start, and the service does not release failed instances (160012). The \
                 resource was removed from the state.",
            ))),
            Some(InstanceStatus::Running | InstanceStatus::Stopped | InstanceStatus::Released) => {
                Some(if is_first { Forbidden::Again } else { release.lastingly_forbidden(error) })
            }
            Some(InstanceStatus::Creating | InstanceStatus::Other(_)) | None => {
                let changes = |seen: &Sighting<api::Instance>| seen.record().is_none_or(|it| it.status != status);
                let limits = release.limits.at_most(TRY_AGAIN);
                let waited = instances.wait(&release.key, &limits, changes).await;
                let is_over = release.limits.cancel.is_cancelled() || release.limits.remaining().is_zero();
                match waited {
                    Err(ended) if is_over => Some(release.kept(release.not_yet(&ended))),
                    Ok(_) | Err(_) => Some(Forbidden::Later),
                }
            }
        }
    }

    fn may_be_gone(code: Code) -> bool {
        matches!(code, Code::InstanceNotExistOrAlreadyReleased | Code::InstanceNotExistOrNoPrivilege)
    }

    /// An instance that is still there may be in release: an earlier request was accepted, and its answer lost.
    fn after_refusal(error: &api::Error, _detail: &api::InstanceDetail) -> AfterRefusal {
        match error.code() {
            Some(Code::InstanceNotExistOrAlreadyReleased) => AfterRefusal::Wait,
            _ => AfterRefusal::Fail,
        }
    }

    async fn find(id: &str, client: &ProviderClient, limits: &Context) -> Result<ImportTarget<Self>, api::Error> {
        Ok(match client.api.instances().look(&InstanceUid::new(id), None, limits).await? {
            Presence::Present(detail) => ImportTarget::One(detail),
            Presence::Released => ImportTarget::Released,
            _ => ImportTarget::None,
        })
    }

    fn generate(config: &mut Self) {
        report::generate(config);
    }
}

impl Instance {
    /// When its term ends.
    fn paid_until(&self) -> Option<&str> {
        let reported = self.reported.known()?;
        reported.release_time.as_str().or(reported.rent_deadline.as_str())
    }

    /// Whether a term is paid in advance.
    fn is_prepaid(&self) -> bool {
        self.payment_type.as_str().is_some_and(|payment| payment != "Hourly")
    }

    /// The warning about a variable that does not act on an instance whose billing does not end by itself.
    fn never_abandoned(&self, client: &ProviderClient) -> Option<Diagnostic> {
        client.on_unreleasable.filter(|wanted| *wanted == DestroyFallback::Abandon)?;
        let whose = match (self.is_prepaid(), self.auto_renew.known()) {
            (false, _) => "hourly instances",
            (true, Some(true)) => "instances with auto_renew = true",
            (true, _) => return None,
        };
        Some(Diagnostic::warning(
            "DAMODEL_ON_UNRELEASABLE is ignored",
            format!(
                "DAMODEL_ON_UNRELEASABLE is ignored for {whose}: they would be billed indefinitely. If the service \
                 refuses to release {}, it stays in the state.",
                self.title()
            ),
        ))
    }
}

/// How long a status that does not allow a release is waited out before the release is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(15);

impl Release<'_, Instance> {
    /// The handling of an instance whose status will not allow a release by itself: only a term can end.
    fn lastingly_forbidden(&self, error: &api::Error) -> Forbidden {
        let state = &self.current.state;
        let title = capitalized(&state.title());
        let asked = || state.on_unreleasable.as_str().and_then(DestroyFallback::parse);
        let wanted = self.client.on_unreleasable.or_else(asked);
        let is_abandoned = wanted == Some(DestroyFallback::Abandon);
        let failed = |now: String| Failure { error, tried: format!("release {}", state.title()), now }.whole();
        if !state.is_prepaid() {
            let now = "The resource stays in the state, and is billed by the hour until it is released. Destroy again \
                       later, or release it in the console.";
            return self.kept(failed(now.to_owned()));
        }
        let until = state.paid_until().unwrap_or("a time that the service does not report");
        if !is_abandoned {
            return Forbidden::Kept(
                failed(format!(
                    "The resource stays in the state, and is paid for until {until}. A prepaid instance can often be \
                     released only when its term ends: try again then, or set DAMODEL_ON_UNRELEASABLE=abandon to \
                     remove it from the state and leave it until then."
                ))
                .into(),
            );
        }
        if state.auto_renew.known() == Some(&true) {
            return Forbidden::Kept(
                Diagnostic::error(
                    format!("{title} would be billed indefinitely"),
                    "The service forbids its release, and auto_renew = true renews its term indefinitely, so it is not \
                     abandoned. Turn the renewal off in the console. The resource stays in the state.",
                )
                .into(),
            );
        }
        Forbidden::Abandoned(Diagnostic::warning(
            format!("{title} was abandoned"),
            format!(
                "The service forbids its release, and on_unreleasable is \"abandon\": it was removed from the state, \
                 keeps running, and is paid for until {until}."
            ),
        ))
    }

    /// The handling of an instance that stays in the state, whatever the variable says.
    fn kept(&self, error: Diagnostic) -> Forbidden {
        let mut said = Diagnostics::from(error);
        if let Some(ignored) = self.current.state.never_abandoned(self.client) {
            said.push(ignored);
        }
        Forbidden::Kept(said)
    }

    /// The diagnostic for a release that its status did not allow in time.
    fn not_yet(&self, ended: &api::Error) -> Diagnostic {
        let title = self.current.state.title();
        Diagnostic::error(
            format!("{} cannot be released yet", capitalized(&title)),
            format!(
                "The service refuses the release in this status (160012): {ended}. The resource stays in the state and \
                 is billed. Destroy again to continue."
            ),
        )
    }
}
