//! `damodel_cloud_disk`: a disk that outlives the machines it is mounted in (service API, Cloud disks).

mod create;
mod delete;
mod import;
mod list;
mod listed;
mod model;
mod plan;
mod read;
mod schema;
mod single;
mod update;

use std::time::Duration;

use self::model::CloudDisk;
pub(super) use self::{list::ListAll, listed::List, single::Single};
use super::{Client, creation::Noun, presence::Subject, protection::Protected, words::title};
use crate::{
    api::Kind,
    framework::{
        self, Context, Create, IdentityAttribute, IdentitySchema, Outcome, Plan, PlanContext, Schema, State, Type,
        Update, timeouts::DefaultTimeouts,
    },
};

const CLOUD_DISK: Noun = Noun { kind: Kind::CloudDisk, word: "cloud disk", type_name: "damodel_cloud_disk" };

/// The resource.
#[derive(Debug)]
pub(super) struct Resource;

impl framework::Resource for Resource {
    type Client = Client;
    type Model = CloudDisk;

    fn type_name(&self) -> &'static str {
        "damodel_cloud_disk"
    }

    fn schema(&self) -> Schema {
        schema::schema()
    }

    fn identity(&self) -> Option<IdentitySchema> {
        Some(IdentitySchema::new(vec![IdentityAttribute::required(
            "id",
            "id",
            Type::String,
            "The disk's database number, as text.",
        )]))
    }

    fn timeouts(&self) -> DefaultTimeouts {
        let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
        DefaultTimeouts { create: minutes(10), read: minutes(2), update: minutes(10), delete: minutes(10) }
    }

    async fn plan(&self, plan: &mut Plan<CloudDisk>, context: PlanContext<'_, Client>) {
        plan::plan(plan, &context).await;
    }

    async fn create(&self, change: Create<CloudDisk>, context: Context<Client>) -> Outcome<CloudDisk> {
        Box::pin(create::create(change, &context)).await
    }

    async fn read(&self, current: State<CloudDisk>, context: Context<Client>) -> Outcome<CloudDisk> {
        Box::pin(read::read(current, &context)).await
    }

    async fn update(&self, change: Update<CloudDisk>, context: Context<Client>) -> Outcome<CloudDisk> {
        Box::pin(update::update(change, &context)).await
    }

    async fn delete(&self, current: State<CloudDisk>, context: Context<Client>) -> Outcome<CloudDisk> {
        Box::pin(delete::delete(current, &context)).await
    }

    async fn import(&self, id: &str, context: Context<Client>) -> Outcome<CloudDisk> {
        import::import(id, &context).await
    }
}

impl CloudDisk {
    /// The database id under which the service knows it; 0 is none.
    fn number(&self) -> i64 {
        self.id.as_str().and_then(|id| id.parse().ok()).unwrap_or_default()
    }

    /// The disk as a refresh speaks of it.
    fn subject(&self) -> Subject {
        Subject {
            title: self.title(),
            key: witness_key(self.number()),
            last: self.status.as_str().unwrap_or("of unknown status").to_owned(),
        }
    }
}

impl Protected for CloudDisk {
    fn is_protected(&self) -> bool {
        self.deletion_protection.known() == Some(&true)
    }

    fn title(&self) -> String {
        title("cloud disk", self.name.as_str(), self.id.as_str())
    }
}

/// The key under which a disk is a witness for others.
fn witness_key(id: i64) -> String {
    format!("cloud_disk/{id}")
}
