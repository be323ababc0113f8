//! The resource `damodel_cloud_disk`: a disk that outlives the instances that mount it (service API, Cloud disks).

mod listed;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    PlanContext, ProviderClient, StepContext,
    client::{limits, planning_limits},
    columns::{self, Column, flag, id, moment, text, texts, whole, word},
    disk_sizes,
    errors::Failure,
    lifecycle::{self, AfterRefusal, Common, Free, ImportTarget, Kind, Managed, ManagedExt as _, Release},
    protection,
    rules::{self, keep_path, same_path},
    words::{capitalized, disk_status, keep, storage_class, time},
};
use crate::{
    api::{
        self, CloudDiskSpecFilter, Code, Context, CreateCloudDisk, Objects,
        disk_status::{AVAILABLE, MOUNTED, MOUNTING, RELEASED, RELEASING, STARTING, UNMOUNTING},
    },
    creation::{Accepted, WhileBusy},
    framework::{
        Attr, CreatePlan, Diagnostic, Diagnostics, IdentityAttribute, Outcome, Path, Private, Result, Schema, Type,
        Update, UpdatePlan,
        schema::{Attribute, Replacement, Validator},
        timeouts::{DefaultTimeouts, Timeouts, minutes},
    },
};

pub(super) use self::listed::{list_all, plural, singular};

pub(super) type Resource = lifecycle::Resource<CloudDisk>;

/// A cloud disk of a list (service API, Cloud disk).
pub(super) static COLUMNS: &[Column] = &[
    id("id", "The disk's database number, as text.").logged(),
    whole("disk_id", "The disk's database number; an instance takes it as `disk_id`.").of_field("id").logged(),
    text("uid", "The disk's UID.").logged(),
    text("name", "The disk's name.").logged(),
    whole("size_gb", "The capacity in GB.").logged(),
    word(
        "status",
        disk_status,
        "`starting`, `available`, `mounting`, `unmounting`, `releasing`, `mounted`, `released` or `in_arrears`.",
    )
    .logged(),
    whole("spec_id", "The cloud disk specification.").logged(),
    text("spec_type", "The specification's name.").logged(),
    word("storage_class", storage_class, "`RBD`, `FS` or `S3`.").of_field("storage_class_type").logged(),
    flag("multiple_mounting", "Whether several instances can mount it at the same time.").logged(),
    text("mount_path", "Where the disk is mounted by default.").logged(),
    texts("binding_instances", "The mounts on instances, each a JSON document as the service reports it."),
    texts("binding_clusters", "The mounts on clusters, each a JSON document as the service reports it."),
    flag("release_with_instance", "Whether the disk is released with its instance.").logged(),
    flag("release_with_cluster", "Whether the disk is released with its cluster."),
    moment("create_time", "When it was created (RFC 3339, UTC).").logged(),
    moment("stop_time", "When it stopped (RFC 3339, UTC).").logged(),
];

fn schema() -> Schema {
    let mut attributes = vec![
        Attribute::optional_computed("name", Type::String, "The disk's name. Changed in place.")
            .validate(rules::non_empty()),
        Attribute::required(
            "size_gb",
            Type::Number,
            "The capacity in GB. A larger value grows the disk in place; a smaller one is an error.",
        )
        .validate(Validator::between(20..=i64::MAX)),
        Attribute::required("spec_id", Type::Number, "The cloud disk specification (see `damodel_cloud_disk_specs`).")
            .replaces(Replacement::Always)
            .validate(Validator::between(1..=i64::MAX)),
        Attribute::optional_computed(
            "mount_path",
            Type::String,
            "Where the disk is mounted if the instance sets no path.",
        )
        .replaces(Replacement::IfKnown)
        .validate(Validator::text(rules::ABSOLUTE_PATH, rules::is_absolute_path))
        .validate(Validator::text(rules::DISK_PATH_RULE, rules::is_allowed_disk_path)),
        Attribute::with_default(
            "deletion_protection",
            Type::Bool,
            false,
            "If `true`, destroying or replacing the disk fails, and so does a plan that deletes it with its instance \
             (`release_with_instance`). A `destroy -target` of the instance alone does not check it. To destroy it, \
             first set this to `false` and apply.",
        ),
    ];
    let of_the_spec = ["spec_type", "storage_class", "multiple_mounting"];
    let reported = columns::reported(COLUMNS, &attributes);
    attributes.extend(reported.into_iter().map(|attribute| {
        if of_the_spec.contains(&&*attribute.name) { attribute.follows(&["spec_id"]) } else { attribute }
    }));
    Schema::new(
        "A cloud disk. Instances mount it with `exist_disks`; it remains when an instance is released. A disk grows in \
         place and cannot shrink. Destroying it waits until it is unmounted, and deletes its data.",
        attributes,
    )
}

/// A `damodel_cloud_disk`, as configured, planned or stored. Its attributes are described in the schema.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct CloudDisk {
    deletion_protection: Attr<bool>,
    timeouts: Attr<Timeouts>,
    id: Attr<String>,
    disk_id: Attr<i64>,
    uid: Attr<String>,
    name: Attr<String>,
    size_gb: Attr<i64>,
    status: Attr<String>,
    spec_id: Attr<i64>,
    spec_type: Attr<String>,
    storage_class: Attr<String>,
    multiple_mounting: Attr<bool>,
    mount_path: Attr<String>,
    binding_instances: Attr<Vec<String>>,
    binding_clusters: Attr<Vec<String>>,
    release_with_instance: Attr<bool>,
    release_with_cluster: Attr<bool>,
    create_time: Attr<String>,
    stop_time: Attr<String>,
}

impl Managed for CloudDisk {
    type Object = api::CloudDisk;
    type Request = CreateCloudDisk;

    const KIND: Kind = Kind {
        type_name: "damodel_cloud_disk",
        schema,
        timeouts: DefaultTimeouts { create: minutes(10), read: minutes(2), update: minutes(10), delete: minutes(10) },
        while_busy: WhileBusy::Fail,
        releases_later: true,
        identity: || IdentityAttribute::required("id", "id", Type::String, "The disk's database number, as text."),
        import_id: "the disk's database number or its UID, not its name",
    };

    fn planned_request(&self, _client: &ProviderClient) -> Option<CreateCloudDisk> {
        Some(CreateCloudDisk {
            name: self.name.known().cloned(),
            mount_path: self.mount_path.known().cloned(),
            ..CreateCloudDisk::new(*self.size_gb.known()?, *self.spec_id.known()?)
        })
    }

    async fn request(&mut self, client: &ProviderClient, _limits: &Context) -> Result<CreateCloudDisk, Diagnostic> {
        let missing = || Diagnostic::error("Missing required argument", "A new disk needs size_gb and spec_id.");
        self.planned_request(client).ok_or_else(missing)
    }

    async fn plan_create(plan: &mut CreatePlan<Self>, context: &PlanContext<'_>) {
        check_size(&plan.planned, context, &mut plan.diagnostics).await;
    }

    fn creation_ended(disk: &api::CloudDisk) -> bool {
        disk.status.is_some_and(|status| ![STARTING, MOUNTING].contains(&status))
    }

    fn unfit(&self, disk: &api::CloudDisk, accepted: &Accepted<api::CloudDisk>) -> Option<Diagnostic> {
        (!matches!(disk.status, Some(AVAILABLE | MOUNTED))).then(|| {
            Diagnostic::warning(
                format!("{} is {}", capitalized(&self.title()), disk_status(disk.status.unwrap_or_default())),
                format!(
                    "The service created the disk, but its status is not available. The disk is in the state: check \
                     it in the console{}.",
                    accepted.ids
                ),
            )
        })
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

    /// Arguments missing in the record keep their values.
    fn take_record(&mut self, disk: &api::CloudDisk) {
        self.id = Attr::Known(disk.id.to_string());
        self.disk_id = disk.id.into();
        keep(&mut self.uid, disk.uid.clone());
        keep(&mut self.name, disk.name.clone());
        keep(&mut self.size_gb, disk.size_gb);
        self.status = disk.status.map(disk_status).into();
        keep(&mut self.spec_id, disk.spec_id.filter(|id| *id != 0));
        self.spec_type = disk.spec_type.clone().into();
        self.storage_class = disk.storage_class_type.map(storage_class).into();
        self.multiple_mounting = disk.multiple_mounting.into();
        // The service may return the configured path with a slash at its end.
        let is_same = |path: &String| self.mount_path.as_str().is_some_and(|own| same_path(own, path));
        let path = disk.mount_path.clone().filter(|path| !is_same(path));
        keep(&mut self.mount_path, path.map(|path| path.trim_end_matches('/').to_owned()));
        self.binding_instances = documents(&disk.binding_instances);
        self.binding_clusters = documents(&disk.binding_clusters);
        self.release_with_instance = disk.release_with_instance.into();
        self.release_with_cluster = disk.release_with_cluster.into();
        self.create_time = time(disk.create_time).into();
        self.stop_time = time(disk.stop_time).into();
    }

    /// A slash at the end of its path is no other path.
    fn decide_changes(plan: &mut UpdatePlan<Self>) {
        let UpdatePlan { prior, planned, replace, .. } = plan;
        keep_path(&mut planned.mount_path, &prior.mount_path);
        if planned.mount_path == prior.mount_path {
            replace.retain(|path| *path != Path::to("mount_path"));
        }
    }

    fn refreshed(&mut self, _private: &mut Private, client: &ProviderClient) -> Diagnostics {
        self.is_ended(client);
        Diagnostics::new()
    }

    /// A disk cannot shrink, and one that is protected does not end with an instance.
    async fn plan_update(plan: &mut UpdatePlan<Self>, context: &PlanContext<'_>) {
        if let Some(instance) = context.client.and_then(|client| plan.prior.is_ended(client)) {
            plan.diagnostics.push(protection::refusal_of_disk(&instance, &plan.prior.title()));
        }
        protection::warn_of_loss(plan, "Its data is deleted permanently, and the new disk is empty.");
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
                    capitalized(&plan.prior.title())
                ),
            );
        } else if before != after {
            check_size(&plan.planned, context, &mut plan.diagnostics).await;
        }
    }

    /// Resizes the disk.
    async fn update(change: Update<Self>, context: &StepContext) -> Result<Outcome<Self>> {
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
        match disks
            .wait(&number, &limits, |seen| {
                seen.record().is_some_and(|disk| {
                    disk.size_gb.is_some_and(|now| now >= size) && matches!(disk.status, Some(AVAILABLE | MOUNTED))
                })
            })
            .await
        {
            Ok(_) => Ok(Outcome::present(planned, private)),
            Err(error) => {
                let diagnostic = not_grown(&error, &prior, size);
                let state = if diagnostic.is_error() { prior } else { planned };
                Ok(Outcome::present(state, private).with(diagnostic))
            }
        }
    }

    /// Waits until the disk is neither mounted, being mounted nor being unmounted.
    async fn until_free(release: &Release<'_, Self>) -> Result<Free, Diagnostic> {
        let state = &release.current.state;
        let (mut was_held, mut another) = (false, None);
        let seen = release
            .client
            .api
            .cloud_disks()
            .wait(&release.key, &release.limits, |seen| {
                let Some(disk) = seen.record() else { return true };
                was_held = matches!(disk.status, Some(MOUNTING | UNMOUNTING | MOUNTED));
                another = lifecycle::absence::another(state, disk.uid.as_deref());
                !was_held || another.is_some()
            })
            .await;
        match (another, seen) {
            (Some(another), _) => Err(another),
            (None, Ok(seen)) => Ok(match seen.record().map(|disk| disk.status) {
                None => Free::Unseen,
                Some(Some(RELEASING | RELEASED)) => Free::Going,
                Some(_) => Free::Ready,
            }),
            (None, Err(error)) => Err(release.still_held(&error, was_held).await),
        }
    }

    fn may_be_gone(code: Code) -> bool {
        matches!(code, Code::InvalidParameter | Code::InternalError | Code::Other(_))
    }

    /// The disk may have been mounted meanwhile, or an earlier request was accepted and its answer lost.
    fn after_refusal(_error: &api::Error, disk: &api::CloudDisk) -> AfterRefusal {
        match disk.status {
            Some(MOUNTING | UNMOUNTING | MOUNTED) => AfterRefusal::Again,
            Some(RELEASING | RELEASED) => AfterRefusal::Wait,
            _ => AfterRefusal::Fail,
        }
    }

    async fn find(id: &str, client: &ProviderClient, limits: &Context) -> Result<ImportTarget<Self>, api::Error> {
        lifecycle::in_list(client, limits, |disk: &api::CloudDisk| {
            !disk.is_released() && (disk.id.to_string() == id || disk.uid.as_deref() == Some(id))
        })
        .await
    }
}

impl CloudDisk {
    /// Records it if it is protected. Returns the instance of this plan whose release deletes it nevertheless.
    fn is_ended(&self, client: &ProviderClient) -> Option<String> {
        let disk = *self.disk_id.known().filter(|_| self.is_protected())?;
        client.protects_disk(disk, self.title())
    }
}

/// Checks a size against its specification (service API, Cloud disk specification).
async fn check_size(planned: &CloudDisk, context: &PlanContext<'_>, diagnostics: &mut Diagnostics) {
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

fn documents(values: &[Value]) -> Attr<Vec<String>> {
    Attr::Known(values.iter().map(Value::to_string).collect())
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
                    "The provider must know whether the disk is mounted before it releases it, but {why}. The \
                     resource stays in the state; destroy again to continue.\n\nThe error: {error}."
                ),
            );
        }
        let holders = self.holders().await;
        Diagnostic::error(
            format!("{} is still mounted", capitalized(&title)),
            format!(
                "A mounted disk cannot be released, and the wait for the unmount ended. {holders} The resource stays \
                 in the state. Unmount it or release its instance, then destroy again.\n\nThe error: {error}."
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
