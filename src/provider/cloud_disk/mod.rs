//! `damodel_cloud_disk`: a disk that outlives the instances it is mounted in (service API, Cloud disks).

mod listed;
mod model;
mod plan;
mod release;
mod schema;
mod single;
mod update;

use std::sync::Arc;

use tokio::sync::OnceCell;

use self::model::CloudDisk;
pub(super) use self::{
    listed::{CloudDisks, Filters},
    model::Record as SingleDisk,
};
use super::{
    Client, lifecycle,
    lifecycle::{AfterRefusal, Common, Found, Free, Managed, ManagedExt as _, Release},
    words::{AVAILABLE, MOUNTED, MOUNTING, STARTING, capitalized, disk_status},
};
use crate::{
    api::{self, Accepted, Code, Context as Limits, CreateCloudDisk, Listing},
    framework::{Attr, Context, Diagnostic, IdentityAttribute, Outcome, Plan, PlanContext, Schema, Type, Update},
};

/// The resource.
pub(super) type Resource = lifecycle::Resource<CloudDisk>;

impl Managed for CloudDisk {
    type Object = api::CloudDisk;
    type Request = CreateCloudDisk;

    const TYPE_NAME: &'static str = "damodel_cloud_disk";
    const IMPORT_ID: &'static str = "the disk's database number or its UID, not its name";

    fn schema() -> Schema {
        schema::schema()
    }

    fn identity() -> IdentityAttribute {
        IdentityAttribute::required("id", "id", Type::String, "The disk's database number, as text.")
    }

    fn minutes() -> [u64; 4] {
        [10, 2, 10, 10]
    }

    async fn plan(plan: &mut Plan<Self>, context: &PlanContext<'_, Client>) {
        plan::plan(plan, context).await;
    }

    async fn update(change: Update<Self>, context: &Context<Client>) -> Outcome<Self> {
        update::update(change, context).await
    }

    fn common(&self) -> Common<'_> {
        Common { id: &self.id, name: &self.name, status: &self.status, deletion_protection: &self.deletion_protection }
    }

    fn name_mut(&mut self) -> &mut Attr<String> {
        &mut self.name
    }

    fn hint(&self) -> Option<&str> {
        self.uid.as_str().or_else(|| self.name())
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

    async fn request(&mut self, client: &Client, _limits: &Limits) -> Result<CreateCloudDisk, Diagnostic> {
        let missing = || Diagnostic::error("Missing required argument", "A new disk needs size_gb and spec_id.");
        self.planned_request(client).ok_or_else(missing)
    }

    fn planned_request(&self, _client: &Client) -> Option<CreateCloudDisk> {
        Some(CreateCloudDisk {
            name: self.name.known().cloned(),
            mount_path: self.mount_path.known().cloned(),
            purchase_duration: self.purchase_duration.known().copied(),
            ..CreateCloudDisk::new(*self.size_gb.known()?, *self.spec_id.known()?)
        })
    }

    fn is_settled(disk: &api::CloudDisk) -> bool {
        disk.status.is_some_and(|status| ![STARTING, MOUNTING].contains(&status))
    }

    fn unfit(&self, disk: &api::CloudDisk, accepted: &Accepted<api::CloudDisk>) -> Option<Diagnostic> {
        (!matches!(disk.status, Some(AVAILABLE | MOUNTED))).then(|| {
            Diagnostic::warning(
                format!("{} is {}", capitalized(&self.title()), disk_status(disk.status.unwrap_or_default())),
                format!(
                    "The service accepted the create and then shows this status instead of available. The state holds \
                     the disk. Check it in the console{}.",
                    accepted.ids
                ),
            )
        })
    }

    fn is_like(&self, disk: &api::CloudDisk) -> bool {
        let same = |wanted: &Attr<i64>, own: Option<i64>| match (wanted.known(), own) {
            (Some(wanted), Some(own)) => *wanted == own,
            _ => true,
        };
        same(&self.size_gb, disk.size_gb) && same(&self.spec_id, disk.spec_id)
    }

    async fn until_free(release: &Release<'_, Self>) -> Result<Free, Diagnostic> {
        release.until_free().await
    }

    fn may_be_gone(code: Code) -> bool {
        matches!(code, Code::InvalidParameter | Code::InternalError | Code::Other(_))
    }

    fn after_refusal(_error: &api::Error, disk: &api::CloudDisk) -> AfterRefusal {
        release::after_refusal(disk)
    }

    async fn find(id: &str, client: &Client, limits: &Limits) -> Result<Found<Self>, api::Error> {
        let is_wanted = |disk: &api::CloudDisk| {
            !disk.is_released() && (disk.id.to_string() == id || disk.uid.as_deref() == Some(id))
        };
        lifecycle::in_list(client, limits, is_wanted).await
    }

    fn before(client: &Client) -> &OnceCell<Arc<Listing<api::CloudDisk>>> {
        &client.before.cloud_disks
    }
}
