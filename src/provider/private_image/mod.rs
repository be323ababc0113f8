//! `damodel_private_image`: an instance's system disk, saved (service API, Images).

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

use self::model::PrivateImage;
pub(super) use self::{list::ListAll, listed::List, single::Single};
use super::{Client, creation::Noun, presence::Subject, protection::Protected, words::title};
use crate::{
    api::Kind,
    framework::{
        self, Context, Create, IdentityAttribute, IdentitySchema, Outcome, Plan, PlanContext, Schema, State, Type,
        Update, timeouts::DefaultTimeouts,
    },
};

const PRIVATE_IMAGE: Noun =
    Noun { kind: Kind::PrivateImage, word: "private image", type_name: "damodel_private_image" };

/// The resource.
#[derive(Debug)]
pub(super) struct Resource;

impl framework::Resource for Resource {
    type Client = Client;
    type Model = PrivateImage;

    fn type_name(&self) -> &'static str {
        "damodel_private_image"
    }

    fn schema(&self) -> Schema {
        schema::schema()
    }

    fn identity(&self) -> Option<IdentitySchema> {
        Some(IdentitySchema::new(vec![IdentityAttribute::required(
            "image_id",
            "image_id",
            Type::Number,
            "The image's number.",
        )]))
    }

    fn timeouts(&self) -> DefaultTimeouts {
        let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
        DefaultTimeouts { create: minutes(120), read: minutes(2), update: minutes(5), delete: minutes(10) }
    }

    async fn plan(&self, plan: &mut Plan<PrivateImage>, context: PlanContext<'_, Client>) {
        plan::plan(plan, &context).await;
    }

    async fn create(&self, change: Create<PrivateImage>, context: Context<Client>) -> Outcome<PrivateImage> {
        Box::pin(create::create(change, &context)).await
    }

    async fn read(&self, current: State<PrivateImage>, context: Context<Client>) -> Outcome<PrivateImage> {
        Box::pin(read::read(current, &context)).await
    }

    async fn update(&self, change: Update<PrivateImage>, context: Context<Client>) -> Outcome<PrivateImage> {
        update::update(change, &context).await
    }

    async fn delete(&self, current: State<PrivateImage>, context: Context<Client>) -> Outcome<PrivateImage> {
        Box::pin(delete::delete(current, &context)).await
    }

    async fn import(&self, id: &str, context: Context<Client>) -> Outcome<PrivateImage> {
        import::import(id, &context).await
    }
}

impl PrivateImage {
    /// The number under which the service knows it; 0 is none.
    fn number(&self) -> i64 {
        self.id.as_str().and_then(|id| id.parse().ok()).unwrap_or_default()
    }

    /// The image as a refresh speaks of it.
    fn subject(&self) -> Subject {
        Subject {
            title: self.title(),
            key: witness_key(self.number()),
            last: self.status.as_str().unwrap_or("of unknown status").to_owned(),
        }
    }
}

impl Protected for PrivateImage {
    fn is_protected(&self) -> bool {
        self.deletion_protection.known() == Some(&true)
    }

    fn title(&self) -> String {
        title("private image", self.name.as_str(), self.id.as_str())
    }
}

/// The key under which an image is a witness for others.
fn witness_key(id: i64) -> String {
    format!("private_image/{id}")
}
