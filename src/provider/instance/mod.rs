//! `damodel_instance`: a machine, from its create to its release (service API, Instances).

mod create;
mod delete;
mod import;
mod model;
mod plan;
mod read;
mod report;
mod schema;
mod update;
mod validate;

use std::time::Duration;

use self::model::Instance;
use super::Client;
use crate::{
    api::InstanceUid,
    framework::{
        self, Context, Create, Diagnostics, Outcome, Plan, PlanContext, Schema, State, Update,
        timeouts::DefaultTimeouts,
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

    fn timeouts(&self) -> DefaultTimeouts {
        let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
        DefaultTimeouts { create: minutes(30), read: minutes(2), update: minutes(5), delete: minutes(15) }
    }

    fn validate(&self, config: &Instance, diagnostics: &mut Diagnostics) {
        validate::validate(config, diagnostics);
    }

    async fn plan(&self, plan: &mut Plan<Instance>, context: PlanContext<'_, Client>) {
        plan::plan(plan, context.client.map(AsRef::as_ref));
    }

    async fn create(&self, change: Create<Instance>, context: Context<Client>) -> Outcome<Instance> {
        create::create(change, &context).await
    }

    async fn read(&self, current: State<Instance>, context: Context<Client>) -> Outcome<Instance> {
        read::read(current, &context).await
    }

    async fn update(&self, change: Update<Instance>, context: Context<Client>) -> Outcome<Instance> {
        update::update(change, &context).await
    }

    async fn delete(&self, current: State<Instance>, context: Context<Client>) -> Outcome<Instance> {
        delete::delete(current, &context).await
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

    /// The instance as an error names it: `instance "trainer" (ins-…)`, with what is known.
    fn title(&self) -> String {
        match (self.name.as_str(), self.id.as_str()) {
            (Some(name), Some(id)) => format!("instance {name:?} ({id})"),
            (Some(name), None) => format!("instance {name:?}"),
            (None, Some(id)) => format!("instance {id}"),
            (None, None) => "the instance".to_owned(),
        }
    }
}

/// The key under which an instance is a witness for others.
fn witness_key(uid: &InstanceUid) -> String {
    format!("instance/{uid}")
}
