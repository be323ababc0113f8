//! The life cycle of billed objects, shared by all kinds: create, read, delete, import and list of instances, cloud
//! disks and private images. The differences are in [`Managed`]; the folder of a kind has its schema, model and checks.

pub(super) mod absence;
mod create;
mod delete;
mod leftovers;
mod managed;
mod plan;
mod read;

use std::marker::PhantomData;

pub(super) use self::{
    leftovers::taken,
    managed::{
        AfterRefusal, Choice, Common, CreateEnd, Forbidden, Free, ImportTarget, Key, Kind, Managed, ManagedCreate,
        ManagedExt, ObjectRecord, Release, Subject,
    },
    plan::UNKNOWN_QUOTE,
    read::in_list,
};
use super::{PlanContext, ProviderClient, StepContext};
use crate::{
    api::Object,
    framework::{
        self, Create, CreatePlan, DestroyPlan, Diagnostics, IdentitySchema, Outcome, Result, Schema, State, Update,
        UpdatePlan, Value, timeouts::DefaultTimeouts, to_value,
    },
};

/// The states of listed objects, as far as a list shows them.
pub(super) fn rows<M: Managed>(records: &[ObjectRecord<M>], is_shown: impl Fn(&ObjectRecord<M>) -> bool) -> Vec<Value> {
    records
        .iter()
        .filter(|record| is_shown(record))
        .map(|record| {
            let mut state = M::default();
            state.take_record(record);
            to_value(&state).unwrap_or_default()
        })
        .collect()
}

#[derive(Debug)]
pub(super) struct Resource<M>(PhantomData<fn() -> M>);

impl<M> Default for Resource<M> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<M: Managed> framework::Resource for Resource<M> {
    type Client = ProviderClient;
    type Model = M;

    fn type_name(&self) -> &'static str {
        M::KIND.type_name
    }

    fn schema(&self) -> Schema {
        (M::KIND.schema)()
    }

    fn identity(&self) -> Option<IdentitySchema> {
        Some(IdentitySchema::new(vec![(M::KIND.identity)()]))
    }

    fn timeouts(&self) -> Option<DefaultTimeouts> {
        Some(M::KIND.timeouts)
    }

    fn validate(&self, config: &M, diagnostics: &mut Diagnostics) {
        M::validate(config, diagnostics);
    }

    fn stored(&self, state: &serde_json::Value, client: &ProviderClient) {
        let text = |name: &str| state.get(name).and_then(serde_json::Value::as_str);
        if let Some(id) = text("id") {
            client.in_a_state(M::Object::KIND, id, text("uid").or_else(|| text("image_uuid")));
        }
    }

    async fn plan_create(&self, plan: &mut CreatePlan<M>, context: PlanContext<'_>) {
        plan::create(plan, &context).await;
    }

    async fn plan_update(&self, plan: &mut UpdatePlan<M>, context: PlanContext<'_>) {
        plan::change(plan, &context).await;
    }

    async fn plan_destroy(&self, plan: &mut DestroyPlan<M>, context: PlanContext<'_>) {
        plan::destroy(plan, &context).await;
    }

    async fn create(&self, change: Create<M>, context: StepContext) -> Result<Outcome<M>> {
        Box::pin(create::create(change, &context)).await
    }

    async fn read(&self, current: State<M>, context: StepContext) -> Result<Outcome<M>> {
        Ok(Box::pin(read::read(current, &context)).await)
    }

    async fn update(&self, change: Update<M>, context: StepContext) -> Result<Outcome<M>> {
        Box::pin(plan::update(change, &context)).await
    }

    async fn delete(&self, current: State<M>, context: StepContext) -> Result<Outcome<M>> {
        Ok(Box::pin(delete::delete(current, &context)).await)
    }

    fn generate(&self, config: &mut M, _diagnostics: &mut Diagnostics) {
        M::generate(config);
    }

    async fn import(&self, id: &str, context: StepContext) -> Result<Outcome<M>> {
        read::import(id, &context).await
    }
}
