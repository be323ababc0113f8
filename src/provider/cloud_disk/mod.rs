//! The resource `damodel_cloud_disk`: a disk that outlives the instances that mount it (service API, Cloud disks).

mod listed;
mod schema;

use serde_json::Value;

use self::schema::CloudDisk;
use super::{
    ProviderClient,
    client::{limits, planning_limits},
    disk_sizes,
    errors::Failure,
    lifecycle::{
        self, AfterRefusal, Common, Creatable, Free, ImportTarget, Managed, ManagedExt as _, Releasable, Release,
    },
    words::{capitalized, disk_status},
};
use crate::{
    api::{
        self, CloudDiskSpecFilter, Code, Context, CreateCloudDisk, Objects, Sighting,
        disk_status::{AVAILABLE, MOUNTED, MOUNTING, RELEASED, RELEASING, STARTING, UNMOUNTING},
    },
    creation::Accepted,
    framework::{
        Attr, CreatePlan, Diagnostic, Diagnostics, IdentityAttribute, Outcome, Path, PlanContext, Result, Schema,
        StepContext, Type, Update, UpdatePlan,
        timeouts::{DefaultTimeouts, minutes},
    },
};

pub(super) use self::{
    listed::{list_all, plural, singular},
    schema::COLUMNS,
};

pub(super) type Resource = lifecycle::Resource<CloudDisk>;

impl Managed for CloudDisk {
    type Object = api::CloudDisk;

    const TYPE_NAME: &'static str = "damodel_cloud_disk";
    const IMPORT_ID: &'static str = "the disk's database number or its UID, not its name";

    fn schema() -> Schema {
        schema::schema()
    }

    fn identity() -> IdentityAttribute {
        IdentityAttribute::required("id", "id", Type::String, "The disk's database number, as text.")
    }

    fn default_timeouts() -> DefaultTimeouts {
        DefaultTimeouts { create: minutes(10), read: minutes(2), update: minutes(10), delete: minutes(10) }
    }

    async fn plan_update(plan: &mut UpdatePlan<Self>, context: &PlanContext<'_, ProviderClient>) {
        plan_size(plan, context).await;
    }

    async fn update(change: Update<Self>, context: &StepContext<ProviderClient>) -> Result<Outcome<Self>> {
        update(change, context).await
    }

    fn common(&self) -> Common<'_> {
        Common {
            id: &self.id,
            name: &self.name,
            status: &self.status,
            deletion_protection: &self.deletion_protection,
            uid: Some(&self.uid),
        }
    }

    fn name_mut(&mut self) -> &mut Attr<String> {
        &mut self.name
    }

    fn hint(&self) -> Option<&str> {
        self.uid.as_str().or_else(|| self.name())
    }

    fn uid_of(shown: &api::CloudDisk) -> Option<&str> {
        shown.uid.as_deref()
    }

    fn take_record(&mut self, disk: &api::CloudDisk) {
        self.take_disk(disk);
    }

    fn take(&mut self, disk: &api::CloudDisk) {
        self.take_disk(disk);
    }

    fn shown(disk: &api::CloudDisk) -> Option<api::CloudDisk> {
        Some(disk.clone())
    }

    async fn find(id: &str, client: &ProviderClient, limits: &Context) -> Result<ImportTarget<Self>, api::Error> {
        let is_wanted = |disk: &api::CloudDisk| {
            !disk.is_released() && (disk.id.to_string() == id || disk.uid.as_deref() == Some(id))
        };
        lifecycle::in_list(client, limits, is_wanted).await
    }
}

impl Creatable for CloudDisk {
    type Request = CreateCloudDisk;

    async fn plan_create(plan: &mut CreatePlan<Self>, context: &PlanContext<'_, ProviderClient>) {
        check_size(&plan.planned, context, &mut plan.diagnostics).await;
    }

    async fn request(&mut self, client: &ProviderClient, _limits: &Context) -> Result<CreateCloudDisk, Diagnostic> {
        let missing = || Diagnostic::error("Missing required argument", "A new disk needs size_gb and spec_id.");
        self.planned_request(client).ok_or_else(missing)
    }

    fn planned_request(&self, _client: &ProviderClient) -> Option<CreateCloudDisk> {
        Some(CreateCloudDisk {
            name: self.name.known().cloned(),
            mount_path: self.mount_path.known().cloned(),
            ..CreateCloudDisk::new(*self.size_gb.known()?, *self.spec_id.known()?)
        })
    }

    fn creation_ended(disk: &api::CloudDisk) -> bool {
        disk.status.is_some_and(|status| ![STARTING, MOUNTING].contains(&status))
    }

    fn unfit(&self, disk: &api::CloudDisk, accepted: &Accepted<api::CloudDisk>) -> Option<Diagnostic> {
        (!matches!(disk.status, Some(AVAILABLE | MOUNTED))).then(|| {
            Diagnostic::warning(
                format!("{} is {}", capitalized(&self.title()), disk_status(disk.status.unwrap_or_default())),
                format!(
                    "The service created the disk, but its status is not available. The state holds the disk. Check it \
                     in the console{}.",
                    accepted.ids
                ),
            )
        })
    }
}

impl Releasable for CloudDisk {
    async fn until_free(release: &Release<'_, Self>) -> Result<Free, Diagnostic> {
        release.until_free().await
    }

    fn may_be_gone(code: Code) -> bool {
        matches!(code, Code::InvalidParameter | Code::InternalError | Code::Other(_))
    }

    fn after_refusal(_error: &api::Error, disk: &api::CloudDisk) -> AfterRefusal {
        after_refusal(disk)
    }
}

/// Resizes the disk in place.
async fn update(change: Update<CloudDisk>, context: &StepContext<ProviderClient>) -> Result<Outcome<CloudDisk>> {
    let Update { prior, planned, private, .. } = change;
    let (disks, limits) = (context.client.api.cloud_disks(), limits(context));
    let size = planned.size_gb.known().copied().filter(|size| prior.size_gb.known() != Some(size));
    let (Some(number), Some(size)) = (prior.key(), size) else {
        return Ok(Outcome::present(planned, private));
    };
    if let Err(error) = disks.resize(number, size, &limits).await
        && !is_growing(number, size, &disks, &limits).await
    {
        let failure = Failure {
            error: &error,
            tried: format!("grow {} to {size} GB", prior.title()),
            now: "The disk keeps its size.".to_owned(),
        };
        return Ok(Outcome::present(prior, private).with(failure.whole().at(Path::to("size_gb"))));
    }
    let has_grown = |seen: &Sighting<api::CloudDisk>| {
        seen.record().is_some_and(|disk| {
            disk.size_gb.is_some_and(|now| now >= size) && matches!(disk.status, Some(AVAILABLE | MOUNTED))
        })
    };
    match disks.wait(&number, &limits, has_grown).await {
        Ok(_) => Ok(Outcome::present(planned, private)),
        Err(error) => {
            let diagnostic = not_grown(&error, &prior, size);
            let state = if diagnostic.is_error() { prior } else { planned };
            Ok(Outcome::present(state, private).with(diagnostic))
        }
    }
}

/// Whether the disk is growing or has grown although the resize failed: an earlier request, whose answer was lost, was
/// accepted.
async fn is_growing(number: i64, size: i64, disks: &Objects<api::CloudDisk>, limits: &Context) -> bool {
    let listing = disks.fresh(limits).await;
    listing.is_ok_and(|listing| {
        listing.find(&number).is_some_and(|disk| disk.size_gb == Some(size) || disk.status == Some(STARTING))
    })
}

/// The diagnostic for a resize that was accepted and whose end was not observed.
fn not_grown(error: &api::Error, disk: &CloudDisk, size: i64) -> Diagnostic {
    let tried = format!("wait until {} has {size} GB", disk.title());
    let now = "The service accepted the change. The next plan shows the disk's size and repeats the change if \
               necessary.";
    let failure = Failure { error, tried, now: now.to_owned() };
    match error {
        api::Error::WaitEnded(ended) if !ended.cancelled => failure.whole().at(Path::to("size_gb")),
        _ => failure.warning(),
    }
}

impl Release<'_, CloudDisk> {
    /// Waits until the disk is neither mounted, being mounted nor being unmounted.
    async fn until_free(&self) -> Result<Free, Diagnostic> {
        let state = &self.current.state;
        let (mut was_held, mut another) = (false, None);
        let is_free = |seen: &Sighting<api::CloudDisk>| {
            let Some(disk) = seen.record() else { return true };
            was_held = matches!(disk.status, Some(MOUNTING | UNMOUNTING | MOUNTED));
            another = lifecycle::absence::another(state, disk.uid.as_deref());
            !was_held || another.is_some()
        };
        let seen = self.client.api.cloud_disks().wait(&self.key, &self.limits, is_free).await;
        match (another, seen) {
            (Some(another), _) => Err(another),
            (None, Ok(seen)) => Ok(match seen.record().map(|disk| disk.status) {
                None => Free::Unseen,
                Some(Some(RELEASING | RELEASED)) => Free::Going,
                Some(_) => Free::Ready,
            }),
            (None, Err(error)) => Err(self.still_held(&error, was_held).await),
        }
    }

    /// The diagnostic for a wait that ended before the disk was free.
    async fn still_held(&self, error: &api::Error, was_held: bool) -> Diagnostic {
        let title = self.current.state.title();
        let api::Error::WaitEnded(ended) = error else {
            let tried = format!("release {title}");
            return Failure { error, tried, now: "The resource stays in the state.".to_owned() }.whole();
        };
        if !was_held {
            let why = if ended.cancelled { "the run was stopped" } else { "its status could not be read in time" };
            return Diagnostic::error(
                format!("{} was not released", capitalized(&title)),
                format!(
                    "Before a release the provider must know whether it is mounted, but {why}: {error}. The resource \
                     stays in the state; destroy again to continue. To wait longer set timeouts {{ delete = \"…\" }}."
                ),
            );
        }
        let holders = self.holders().await;
        Diagnostic::error(
            format!("{} is still mounted", capitalized(&title)),
            format!(
                "A mounted disk cannot be released, and the wait for the unmount ended: {error}. {holders} The \
                 resource stays in the state. Unmount it or release its instance, then destroy again."
            ),
        )
    }

    /// The instances that have mounted the disk, as the service reports them.
    async fn holders(&self) -> String {
        let limits = Context::within(std::time::Duration::from_secs(5), &self.limits.cancel);
        let Ok(listing) = self.client.api.cloud_disks().fresh(&limits).await else { return String::new() };
        let Some(disk) = listing.find(&self.key) else { return String::new() };
        let bound: Vec<String> =
            disk.binding_instances.iter().chain(&disk.binding_clusters).map(Value::to_string).collect();
        let status = disk.status.map(disk_status).unwrap_or_default();
        if bound.is_empty() {
            format!("Its status is {status}; the service does not report which instance holds it.")
        } else {
            format!("Its status is {status}, by {}.", bound.join(", "))
        }
    }
}

/// A disk whose release was refused may have been mounted meanwhile, or an earlier request was accepted and its answer
/// lost.
fn after_refusal(disk: &api::CloudDisk) -> AfterRefusal {
    match disk.status {
        Some(MOUNTING | UNMOUNTING | MOUNTED) => AfterRefusal::Again,
        Some(RELEASING | RELEASED) => AfterRefusal::Wait,
        _ => AfterRefusal::Fail,
    }
}

/// Refines the plan of an update: a disk cannot shrink.
async fn plan_size(plan: &mut UpdatePlan<CloudDisk>, context: &PlanContext<'_, ProviderClient>) {
    let (before, after) = (plan.prior.size_gb.known(), plan.planned.size_gb.known());
    if let (Some(before), Some(after), true) = (before, after, plan.replace.is_empty())
        && after < before
    {
        plan.diagnostics.error_at(
            Path::to("size_gb"),
            "A disk cannot shrink",
            format!(
                "{} has {before} GB; {after} GB are requested. Set size_gb to at least {before}, or create a new, \
                 smaller disk and copy the data.",
                plan.prior.title()
            ),
        );
    } else if before != after {
        check_size(&plan.planned, context, &mut plan.diagnostics).await;
    }
}

/// Checks a size against its specification (service API, Cloud disk specification).
async fn check_size(planned: &CloudDisk, context: &PlanContext<'_, ProviderClient>, diagnostics: &mut Diagnostics) {
    let client = context.client.filter(|client| client.preflight);
    let (Some(client), Some(&size), Some(&spec)) = (client, planned.size_gb.known(), planned.spec_id.known()) else {
        return;
    };
    let limits = planning_limits(context);
    match client.api.cloud_disks().specs(&CloudDiskSpecFilter::default(), &limits).await {
        Ok(specs) => {
            diagnostics.extend(disk_sizes::check(size, spec, &specs, Path::to).map(Into::into).unwrap_or_default());
        }
        Err(error) => {
            let now = "The plan continues without this check.".to_owned();
            let failure = Failure { error: &error, tried: "check the disk's size".to_owned(), now };
            diagnostics.extend(failure.of_a_check(client));
        }
    }
}
