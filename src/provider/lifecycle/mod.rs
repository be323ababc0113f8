//! The life cycle of what costs money, written once: create, read, delete, import and list of instances, cloud disks
//! and private images. What differs between them is [`Managed`]; a kind's own folder holds its schema, model and
//! checks.

pub(super) mod absence;
mod create;
mod data;
mod delete;
mod leftovers;
mod list;
mod plan;
mod read;

use std::{fmt, future::Future, marker::PhantomData, sync::Arc, time::Duration};

pub(super) use self::{
    create::ManagedCreate,
    data::{Plural, PluralModel, Singular, SingularModel, snapshot, state, unreadable},
    delete::{AfterRefusal, Free, Release},
    list::{Filters, ListAll},
    read::{ImportTarget, in_list},
};
use super::Client;
use crate::{
    api::{self, Accepted, Attempt, Code, Context, Creation, Listing, Object, WhileBusy},
    framework::{
        self, Attr, Create, Diagnostic, Diagnostics, IdentityAttribute, IdentitySchema, Model, Outcome, Plan,
        PlanContext, Private, Schema, State, StepContext, Update, timeouts::DefaultTimeouts,
    },
};

/// The record of an object in a list.
pub(super) type ObjectRecord<M> = <M as Managed>::Object;
/// What a look at an object shows.
pub(super) type Shown<M> = <<M as Managed>::Object as Object>::Shown;
/// The key of an object.
pub(super) type Key<M> = <<M as Managed>::Object as api::Record>::Key;

/// A kind of object that Terraform manages. The implementing type is the model of its resource.
pub(super) trait Managed: Model + Default + Clone + fmt::Debug {
    /// How the service's client knows it.
    type Object: Object;
    /// What its create asks for.
    type Request: Creation<Object = Self::Object>;

    /// Its type in HCL.
    const TYPE_NAME: &'static str;
    /// What an import id of it is, as it reads after "The import id is".
    const IMPORT_ID: &'static str;
    /// What to do while the service is busy with another create of this kind.
    const WHILE_BUSY: WhileBusy = WhileBusy::Fail;
    /// Whether a release ends later than the service accepts it.
    const RELEASES_LATER: bool = true;

    /// Its schema, without the `timeouts` block.
    fn schema() -> Schema;

    /// What identifies one.
    fn identity() -> IdentityAttribute;

    /// How long the steps may take by default, in minutes: create, read, update, delete.
    fn minutes() -> [u64; 4];

    /// Rules between attributes, judged without the service.
    fn validate(_config: &Self, _diagnostics: &mut Diagnostics) {}

    /// Decides what a plan changes and replaces, before anything is judged by it.
    fn settle_plan(_plan: &mut Plan<Self>) {}

    /// Refines a plan: live checks, computed values that are known early, warnings.
    fn plan(plan: &mut Plan<Self>, context: &PlanContext<'_, Client>) -> impl Future<Output = ()> + Send;

    /// Changes one in place, after it was renamed: the prior state has the new name.
    fn update(change: Update<Self>, _context: &StepContext<Client>) -> impl Future<Output = Outcome<Self>> + Send {
        async { Outcome::present(change.planned, change.private) }
    }

    /// Mends a configuration that was made of a state.
    fn generate(_config: &mut Self, _diagnostics: &mut Diagnostics) {}

    /// Opens what a plan cannot know when its create adopts what an earlier run made.
    fn plan_adoption(_plan: &mut Plan<Self>) {}

    /// The attributes that every kind has.
    fn common(&self) -> Common<'_>;

    /// Its `name`, to be set.
    fn name_mut(&mut self) -> &mut Attr<String>;

    /// What a search finds it by, beside its id.
    fn hint(&self) -> Option<&str> {
        self.common().name.as_str()
    }

    /// Takes over what a list shows.
    fn take_record(&mut self, record: &Self::Object);

    /// Takes over what a look shows.
    fn take(&mut self, shown: &Shown<Self>);

    /// How a look would show what a list shows; none where a look shows more.
    fn shown(record: &Self::Object) -> Option<Shown<Self>>;

    /// Completes what the service reports only in part.
    fn complete(&mut self, _client: &Client, _limits: &Context) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Finishes a refresh: `private` tells whether it belongs to an import.
    fn refreshed(&mut self, _private: &mut Private) -> Diagnostics {
        Diagnostics::new()
    }

    /// What a create may make of a plan, in order of preference: the planned object, unless its kind leaves a choice.
    fn choices(_config: &Self, planned: &Self, _private: &Private, _client: &Client) -> Vec<Choice<Self>> {
        vec![Choice { object: planned.clone(), ruled_out: None }]
    }

    /// Gets ready for the create, and says what it asks for.
    fn request(
        &mut self,
        client: &Client,
        limits: &Context,
    ) -> impl Future<Output = Result<Self::Request, Diagnostic>> + Send;

    /// What it asks for, as far as a plan knows; none while too little is known.
    fn planned_request(&self, client: &Client) -> Option<Self::Request>;

    /// Whether it may be bought now: asked before each request.
    fn confirm(
        &self,
        _attempt: &Attempt,
        _client: &Client,
        _limits: &Context,
    ) -> impl Future<Output = Result<Self, Diagnostic>> + Send {
        let confirmed = self.clone();
        async { Ok(confirmed) }
    }

    /// Drops what only the plan needed: from here on the create speaks for itself.
    fn forget_plan(_private: &mut Private, _client: &Client) {}

    /// Drops what a plan promised, and what did not hold when the create asked again.
    fn forget_promise(_config: &Self, _planned: &Self, _client: &Client) {}

    /// Notes what became of a create that was confirmed under this marker: the id of what it made, or none.
    fn create_ended(_marker: &str, _made: Option<&str>, _client: &Client) {}

    /// How long the create goes on asking while there is no stock.
    fn wait_for_capacity(&self) -> Option<Duration> {
        None
    }

    /// Whether the create waits until the object is ready.
    fn waits(&self) -> bool {
        true
    }

    /// Whether a create's object is not on its way any more.
    fn is_settled(record: &Self::Object) -> bool;

    /// What is wrong with a settled object.
    fn unfit(&self, record: &Self::Object, accepted: &Accepted<Self::Object>) -> Option<Diagnostic>;

    /// Reads, at the end of a create, what only a look shows.
    fn look_after_create(
        _creation: &mut ManagedCreate<'_, Self>,
        _accepted: &Accepted<Self::Object>,
    ) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// More about a create that the service refused.
    fn explain_refusal(
        &self,
        _error: &api::Error,
        _client: &Client,
        _limits: &Context,
    ) -> impl Future<Output = Option<String>> + Send {
        async { None }
    }

    /// Whether an object of a list is what this configuration asks for, as far as the service tells.
    fn is_like(&self, record: &Self::Object) -> bool;

    /// Waits until the service would accept the release.
    fn until_free(_release: &Release<'_, Self>) -> impl Future<Output = Result<Free, Diagnostic>> + Send {
        async { Ok(Free::Ready) }
    }

    /// Whether a refusal may mean that there is nothing to release.
    fn may_be_gone(code: Code) -> bool;

    /// What to do about a refused release of an object that is there.
    fn after_refusal(error: &api::Error, shown: &Shown<Self>) -> AfterRefusal;

    /// What a release that the service forbids for good comes to; none when it is an error like others.
    fn forbidden(_release: &Release<'_, Self>, _error: &api::Error) -> impl Future<Output = Option<Forbidden>> + Send {
        async { None }
    }

    /// Finds what an import id names.
    fn find(
        id: &str,
        client: &Client,
        limits: &Context,
    ) -> impl Future<Output = Result<ImportTarget<Self>, api::Error>> + Send;

    /// Marks a state that was imported.
    fn imported(&mut self, _private: &mut Private) {}

    /// The objects of this kind that there were before this run made any.
    fn before(client: &Client) -> &tokio::sync::OnceCell<Arc<Listing<Self::Object>>>;
}

/// The attributes that every kind has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Common<'a> {
    pub(super) id: &'a Attr<String>,
    pub(super) name: &'a Attr<String>,
    pub(super) status: &'a Attr<String>,
    pub(super) deletion_protection: &'a Attr<bool>,
}

/// One of the objects that a create may make.
#[derive(Clone, Debug)]
pub(super) struct Choice<M> {
    /// As it was planned.
    pub(super) object: M,
    /// Why the plan ruled it out, as a sentence: then it is not asked for, but adopted when an earlier run made it.
    pub(super) ruled_out: Option<String>,
}

/// What a release that the service forbids for good comes to.
pub(super) enum Forbidden {
    /// The object leaves the state, with this warning.
    Abandoned(Diagnostic),
    /// It stays, with this error.
    Kept(Diagnostic),
}

/// What every model has, beside what its kind says.
pub(super) trait ManagedExt: Managed {
    fn id(&self) -> Option<&str> {
        self.common().id.as_str()
    }

    fn name(&self) -> Option<&str> {
        self.common().name.as_str()
    }

    fn status(&self) -> Option<&str> {
        self.common().status.as_str()
    }

    fn is_protected(&self) -> bool {
        self.common().deletion_protection.known() == Some(&true)
    }

    /// As an error names it: `instance "trainer" (ins-…)`.
    fn title(&self) -> String {
        super::words::title(noun::<Self>(), self.name(), self.id())
    }

    /// The object as a refresh speaks of it.
    fn subject(&self) -> absence::Subject {
        absence::Subject {
            title: self.title(),
            witness: witness(Self::Object::KIND, self.id().unwrap_or_default()),
            status: self.status().unwrap_or("unknown").to_owned(),
        }
    }

    /// The key under which the service knows it; none for a state without a sensible id.
    fn key(&self) -> Option<Key<Self>> {
        self.id().and_then(Self::Object::of_id).map(|object| api::Record::key(&object))
    }
}

impl<M: Managed> ManagedExt for M {}

/// How an operator calls one.
pub(super) fn noun<M: Managed>() -> &'static str {
    M::Object::KIND.noun()
}

/// The key under which an object is a witness for others.
pub(super) fn witness(kind: api::ObjectKind, id: &str) -> String {
    format!("{}/{id}", kind.as_str())
}

/// The key of a create: the same configuration in the same folder and workspace has the same.
fn create_key<M: Managed>(request: &M::Request, client: &Client) -> String {
    client.create_key(&format!("{} {}", M::TYPE_NAME, request.wanted()))
}

/// The resource of a kind.
#[derive(Debug)]
pub(super) struct Resource<M>(PhantomData<fn() -> M>);

impl<M> Default for Resource<M> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<M: Managed> framework::Resource for Resource<M> {
    type Client = Client;
    type Model = M;

    fn type_name(&self) -> &'static str {
        M::TYPE_NAME
    }

    fn schema(&self) -> Schema {
        M::schema()
    }

    fn identity(&self) -> Option<IdentitySchema> {
        Some(IdentitySchema::new(vec![M::identity()]))
    }

    fn timeouts(&self) -> DefaultTimeouts {
        let [create, read, update, delete] = M::minutes().map(|minutes| Duration::from_secs(minutes * 60));
        DefaultTimeouts { create, read, update, delete }
    }

    fn validate(&self, config: &M, diagnostics: &mut Diagnostics) {
        M::validate(config, diagnostics);
    }

    async fn plan(&self, plan: &mut Plan<M>, context: PlanContext<'_, Client>) {
        plan::plan(plan, &context).await;
    }

    async fn create(&self, change: Create<M>, context: StepContext<Client>) -> Outcome<M> {
        Box::pin(create::create(change, &context)).await
    }

    async fn read(&self, current: State<M>, context: StepContext<Client>) -> Outcome<M> {
        Box::pin(read::read(current, &context)).await
    }

    async fn update(&self, change: Update<M>, context: StepContext<Client>) -> Outcome<M> {
        Box::pin(plan::update(change, &context)).await
    }

    async fn delete(&self, current: State<M>, context: StepContext<Client>) -> Outcome<M> {
        Box::pin(delete::delete(current, &context)).await
    }

    fn generate(&self, config: &mut M, diagnostics: &mut Diagnostics) {
        M::generate(config, diagnostics);
    }

    async fn import(&self, id: &str, context: StepContext<Client>) -> Outcome<M> {
        read::import(id, &context).await
    }
}
