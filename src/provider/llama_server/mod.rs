//! `damodel_llama_server`: the inference server of the guide, run in an instance over SSH (service API, In-instance
//! inference server guide).
//!
//! Questions to the instance are judged by pure functions; one decision names the next step, and the program of
//! `bootstrap` works in the instance.

mod command_line;
mod create;
mod delete;
mod failure;
mod import;
mod job;
mod log_in;
mod memory;
mod model;
mod model_source;
mod outcome;
mod plan;
mod read;
mod restart;
mod schema;
mod tunnel;
mod update;
mod validate;

use self::model::LlamaServer;
pub(super) use self::{restart::Restart, tunnel::Tunnel};
use super::{PlanContext, ProviderClient, StepContext};
use crate::framework::{
    self, Create, CreatePlan, Diagnostics, Identity, IdentitySchema, Outcome, Result, Schema, State, Update,
    UpdatePlan,
    timeouts::{DefaultTimeouts, minutes},
};

/// The resource.
#[derive(Debug)]
pub(super) struct Resource;

impl framework::Resource for Resource {
    type Client = ProviderClient;
    type Model = LlamaServer;

    fn type_name(&self) -> &'static str {
        "damodel_llama_server"
    }

    fn schema(&self) -> Schema {
        schema::schema()
    }

    fn identity(&self) -> Option<IdentitySchema> {
        Some(import::identity())
    }

    fn timeouts(&self) -> Option<DefaultTimeouts> {
        Some(DefaultTimeouts { create: minutes(60), read: minutes(1), update: minutes(60), delete: minutes(5) })
    }

    fn validate(&self, config: &LlamaServer, diagnostics: &mut Diagnostics) {
        validate::validate(config, diagnostics);
    }

    async fn plan_create(&self, plan: &mut CreatePlan<LlamaServer>, context: PlanContext<'_>) {
        plan::create(plan, &context).await;
        plan.diagnostics.advise_destroy();
    }

    async fn plan_update(&self, plan: &mut UpdatePlan<LlamaServer>, context: PlanContext<'_>) {
        plan::update(plan, &context).await;
        plan.diagnostics.advise_destroy();
    }

    /// The work continues in the instance, so the call ends if its caller is gone.
    async fn create(&self, change: Create<LlamaServer>, context: StepContext) -> Result<Outcome<LlamaServer>> {
        tokio::select! {
            outcome = Box::pin(create::create(change, &context)) => outcome,
            () = context.caller_gone.cancelled() => Ok(Outcome::absent()),
        }
    }

    async fn read(&self, current: State<LlamaServer>, context: StepContext) -> Result<Outcome<LlamaServer>> {
        Ok(Box::pin(read::read(current, &context)).await)
    }

    async fn update(&self, change: Update<LlamaServer>, context: StepContext) -> Result<Outcome<LlamaServer>> {
        Ok(Box::pin(update::update(change, &context)).await)
    }

    async fn delete(&self, current: State<LlamaServer>, context: StepContext) -> Result<Outcome<LlamaServer>> {
        Ok(Box::pin(delete::delete(current, &context)).await)
    }

    fn import_id(&self, identity: &Identity) -> Result<String, Diagnostics> {
        import::id_of(identity)
    }

    async fn import(&self, id: &str, context: StepContext) -> Result<Outcome<LlamaServer>> {
        Box::pin(import::import(id, &context)).await
    }
}
