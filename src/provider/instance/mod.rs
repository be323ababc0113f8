//! `damodel_instance`: a machine, from its create to its release (service API, Instances).

mod access;
mod checks;
mod create;
mod delete;
mod disks;
mod generate;
mod import;
mod list;
mod listed;
mod losses;
mod model;
mod plan;
mod price;
mod read;
mod report;
mod schema;
mod single;
mod update;
mod validate;

use std::time::Duration;

use self::model::Instance;
pub(super) use self::{access::Access, list::ListAll, listed::List, single::Single};
use super::{Client, protection::Protected, words::title};
use crate::{
    api::InstanceUid,
    framework::{
        self, Context, Create, Diagnostics, IdentityAttribute, IdentitySchema, Outcome, Plan, PlanContext, Schema,
        State, Type, Update, timeouts::DefaultTimeouts,
    },
};

/// The resource.
#[derive(Debug)]
pub(super) struct Resource;

impl framework::Resource for Resource {
    type Client = Client;
    type Model = Instance;

    fn type_name(&self) -> &'static str {
        "damodel_instance"
    }

    fn schema(&self) -> Schema {
        schema::schema()
    }

    fn identity(&self) -> Option<IdentitySchema> {
        Some(IdentitySchema::new(vec![IdentityAttribute::required(
            "instance_uid",
            "id",
            Type::String,
            "The instance's UID (`ins-…`).",
        )]))
    }

    fn timeouts(&self) -> DefaultTimeouts {
        let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
        DefaultTimeouts { create: minutes(30), read: minutes(2), update: minutes(5), delete: minutes(15) }
    }

    fn validate(&self, config: &Instance, diagnostics: &mut Diagnostics) {
        validate::validate(config, diagnostics);
    }

    async fn plan(&self, plan: &mut Plan<Instance>, context: PlanContext<'_, Client>) {
        plan::plan(plan, &context).await;
    }

    async fn create(&self, change: Create<Instance>, context: Context<Client>) -> Outcome<Instance> {
        Box::pin(create::create(change, &context)).await
    }

    async fn read(&self, current: State<Instance>, context: Context<Client>) -> Outcome<Instance> {
        Box::pin(read::read(current, &context)).await
    }

    async fn update(&self, change: Update<Instance>, context: Context<Client>) -> Outcome<Instance> {
        Box::pin(update::update(change, &context)).await
    }

    async fn delete(&self, current: State<Instance>, context: Context<Client>) -> Outcome<Instance> {
        Box::pin(delete::delete(current, &context)).await
    }

    fn generate(&self, config: &mut Instance, diagnostics: &mut Diagnostics) {
        generate::generate(config, diagnostics);
    }

    async fn import(&self, id: &str, context: Context<Client>) -> Outcome<Instance> {
        import::import(id, &context).await
    }
}

impl Instance {
    /// The UID under which the service knows it.
    fn uid(&self) -> InstanceUid {
        InstanceUid::new(self.id.as_str().unwrap_or_default())
    }
}

impl Protected for Instance {
    fn is_protected(&self) -> bool {
        self.deletion_protection.known() == Some(&true)
    }

    fn title(&self) -> String {
        title("instance", self.name.as_str(), self.id.as_str())
    }
}

/// The key under which an instance is a witness for others.
fn witness_key(uid: &InstanceUid) -> String {
    format!("instance/{uid}")
}
