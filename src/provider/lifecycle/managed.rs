//! What differs from kind to kind: the trait of a kind, and the types of its steps.

use std::{borrow::Borrow as _, fmt, future::Future, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::{
    api::{self, Code, Context, Creation, Object},
    creation::{Accepted, Attempt, WhileBusy},
    framework::{
        Attr, CreatePlan, DestroyPlan, Diagnostic, Diagnostics, IdentityAttribute, Model, Outcome, Private, Result,
        Schema, State, Update, UpdatePlan, timeouts::DefaultTimeouts,
    },
    provider::{PlanContext, ProviderClient, StepContext, words::title},
};

/// The record of an object in a list.
pub(in crate::provider) type ObjectRecord<M> = <M as Managed>::Object;

/// The result of a look at an object.
pub(in crate::provider) type Shown<M> = <<M as Managed>::Object as Object>::Shown;

/// The key of an object.
pub(in crate::provider) type Key<M> = <<M as Managed>::Object as api::Record>::Key;

/// The constants of a kind.
pub(in crate::provider) struct Kind {
    /// Its type in HCL.
    pub(in crate::provider) type_name: &'static str,
    /// The schema, without the `timeouts` block.
    pub(in crate::provider) schema: fn() -> Schema,
    /// The timeouts of steps without a configured one.
    pub(in crate::provider) timeouts: DefaultTimeouts,
    /// The handling of a service that is busy with another create of this kind.
    pub(in crate::provider) while_busy: WhileBusy,
    /// Whether a release ends only some time after the service has accepted it.
    pub(in crate::provider) releases_later: bool,
    /// The resource identity.
    pub(in crate::provider) identity: fn() -> IdentityAttribute,
    /// The description of its import id, as text after "The import id is".
    pub(in crate::provider) import_id: &'static str,
}

/// A kind of object that Terraform manages, described by its differences in the order of its life: what is created,
/// plan, create, read, update, release, import. The implementing type is its resource model.
pub(in crate::provider) trait Managed: Model + Default + Clone + fmt::Debug {
    /// The kind in the service's client.
    type Object: Object;
    /// The request of its create.
    type Request: Creation<Object = Self::Object>;

    /// The constants.
    const KIND: Kind;

    /// The objects that a create may create for a plan, in order of preference: only the planned object, unless the
    /// kind has candidates.
    fn choices(_config: &Self, planned: &Self, _private: &Private, _client: &ProviderClient) -> Vec<Choice<Self>> {
        vec![Choice { object: planned.clone(), ruled_out: None }]
    }

    /// The request as far as the plan has its values; `None` while too little is known.
    fn planned_request(&self, client: &ProviderClient) -> Option<Self::Request>;

    /// Prepares the create, and returns its request.
    fn request(
        &mut self,
        client: &ProviderClient,
        limits: &Context,
    ) -> impl Future<Output = Result<Self::Request, Diagnostic>> + Send;

    /// Checks the rules between attributes without the service.
    fn validate(_config: &Self, _diagnostics: &mut Diagnostics) {}

    /// Refines the plan of a create: live checks, early computed values, warnings.
    fn plan_create(plan: &mut CreatePlan<Self>, context: &PlanContext<'_>) -> impl Future<Output = ()> + Send;

    /// Makes values unknown that differ if the create adopts an earlier run's object.
    fn plan_adoption(_plan: &mut CreatePlan<Self>) {}

    /// Decides which attributes an update changes and replaces, before all other checks.
    fn decide_changes(_plan: &mut UpdatePlan<Self>) {}

    /// Refines the plan of an update in the same way.
    fn plan_update(plan: &mut UpdatePlan<Self>, context: &PlanContext<'_>) -> impl Future<Output = ()> + Send;

    /// Warns about what a destroy loses.
    fn plan_destroy(_plan: &mut DestroyPlan<Self>, _context: &PlanContext<'_>) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Removes the data that only the plan needed.
    fn forget_plan(_private: &mut Private, _client: &ProviderClient) {}

    /// Checks whether it may be bought now. Called before each request.
    fn confirm(
        &self,
        _attempt: &Attempt,
        _client: &ProviderClient,
        _limits: &Context,
    ) -> impl Future<Output = Result<Self, Diagnostic>> + Send {
        let confirmed = self.clone();
        async { Ok(confirmed) }
    }

    /// How long the create is repeated while there is no stock.
    fn wait_for_capacity(&self) -> Option<Duration> {
        None
    }

    /// Additional advice for a create that the service refused.
    fn explain_refusal(
        &self,
        _error: &api::Error,
        _client: &ProviderClient,
        _limits: &Context,
    ) -> impl Future<Output = Option<String>> + Send {
        async { None }
    }

    /// Settles what the plan and the confirmations of a create reserved.
    fn create_ended(_ended: CreateEnd<'_>, _client: &ProviderClient) {}

    /// Whether the creation of an object has ended.
    fn creation_ended(record: &Self::Object) -> bool;

    /// The diagnostic for an object whose creation has ended badly.
    fn unfit(&self, record: &Self::Object, accepted: &Accepted<Self::Object>) -> Option<Diagnostic>;

    /// Reads the attributes that only a look shows, at the end of a create.
    fn look_after_create(
        _creation: &mut ManagedCreate<'_, Self>,
        _accepted: &Accepted<Self::Object>,
    ) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Restores what the plan knew about the object and the service may show differently.
    fn keep_plan(&mut self, _planned: &Self, _private: &mut Private) {}

    /// The common attributes of all kinds.
    fn common(&self) -> Common<'_>;

    /// The `name`, to be changed.
    fn name_mut(&mut self) -> &mut Attr<String>;

    /// A search term for it besides its id.
    fn hint(&self) -> Option<&str> {
        self.common().name.as_str()
    }

    /// Sets the attributes that a list shows.
    fn take_record(&mut self, record: &Self::Object);

    /// Sets the attributes that a look shows.
    fn take(&mut self, shown: &Shown<Self>) {
        self.take_record(shown.borrow());
    }

    /// Completes attributes that the service reports only in part.
    fn complete(&mut self, _client: &ProviderClient, _limits: &Context) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Completes a refresh, and returns its messages.
    fn refreshed(&mut self, _private: &mut Private, _client: &ProviderClient) -> Diagnostics {
        Diagnostics::new()
    }

    /// Updates the object in place, after its rename: the prior state has the new name.
    fn update(change: Update<Self>, _context: &StepContext) -> impl Future<Output = Result<Outcome<Self>>> + Send {
        async { Ok(Outcome::present(change.planned, change.private)) }
    }

    /// Waits until the service would accept the release.
    fn until_free(_release: &Release<'_, Self>) -> impl Future<Output = Result<Free, Diagnostic>> + Send {
        async { Ok(Free::Ready) }
    }

    /// The handling of a forbidden release; `None` for any other error. `is_first` is false if the release was refused
    /// after a look that should have allowed it.
    fn forbidden(
        _release: &Release<'_, Self>,
        _error: &api::Error,
        _is_first: bool,
    ) -> impl Future<Output = Option<Forbidden>> + Send {
        async { None }
    }

    /// Whether this code may mean that the object no longer exists.
    fn may_be_gone(code: Code) -> bool;

    /// The handling of a refused release of an object that exists.
    fn after_refusal(error: &api::Error, shown: &Shown<Self>) -> AfterRefusal;

    /// Finds the object of an import id.
    fn find(
        id: &str,
        client: &ProviderClient,
        limits: &Context,
    ) -> impl Future<Output = Result<ImportTarget<Self>, api::Error>> + Send;

    /// Corrects a configuration that was generated from a state.
    fn generate(_config: &mut Self) {}
}

/// How a create ended.
pub(in crate::provider) struct CreateEnd<'a> {
    /// The marker of the confirmed requests, if their outcome is known.
    pub(in crate::provider) marker: Option<&'a str>,
    /// The id of the object, if one was created.
    pub(in crate::provider) made: Option<&'a str>,
}

/// The common attributes of all kinds.
#[derive(Clone, Copy, Debug)]
pub(in crate::provider) struct Common<'a> {
    pub(in crate::provider) id: &'a Attr<String>,
    pub(in crate::provider) name: &'a Attr<String>,
    pub(in crate::provider) status: &'a Attr<String>,
    pub(in crate::provider) deletion_protection: &'a Attr<bool>,
    /// The unique id, if `id` is a number.
    pub(in crate::provider) uid: Option<&'a Attr<String>>,
}

/// An object that a create may create.
#[derive(Clone, Debug)]
pub(in crate::provider) struct Choice<M> {
    /// The planned object.
    pub(in crate::provider) object: M,
    /// Why the plan ruled it out, as a sentence: it is then not requested, but adopted if an earlier run created it.
    pub(in crate::provider) ruled_out: Option<String>,
}

/// The handling of a forbidden release.
pub(in crate::provider) enum Forbidden {
    /// The object is removed from the state, with this warning.
    Abandoned(Diagnostic),
    /// The object can be released now.
    Again,
    /// The object stays in the state, with this error.
    Kept(Diagnostics),
    /// The object may have become releasable meanwhile.
    Later,
}

/// An accepted create and its results so far.
pub(in crate::provider) struct ManagedCreate<'a, M> {
    /// The state, from planned to completely known.
    pub(in crate::provider) state: M,
    /// The private data of the state.
    pub(in crate::provider) private: Private,
    /// Messages for the operator.
    pub(in crate::provider) diagnostics: Diagnostics,
    pub(in crate::provider) client: &'a ProviderClient,
    /// The create timeout.
    pub(in crate::provider) limits: Context,
    /// Cancelled when the answer will not reach Terraform.
    pub(in crate::provider) caller_gone: CancellationToken,
}

/// The release of one object.
pub(in crate::provider) struct Release<'a, M: Managed> {
    pub(in crate::provider) key: Key<M>,
    pub(in crate::provider) current: &'a State<M>,
    pub(in crate::provider) client: &'a ProviderClient,
    pub(in crate::provider) limits: Context,
}

/// Whether an object can be released now.
pub(in crate::provider) enum Free {
    /// It is being released already.
    Going,
    /// It can be released, as far as is known.
    Ready,
    /// The service does not show it.
    Unseen,
}

/// The handling of a refused release of an object that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::provider) enum AfterRefusal {
    /// Release it again when it is free.
    Again,
    /// Report the error.
    Fail,
    /// An earlier request was accepted: wait for its end.
    Wait,
}

/// The object of an import id.
pub(in crate::provider) enum ImportTarget<M: Managed> {
    One(Box<Shown<M>>),
    /// A released object.
    Released,
    /// No object.
    None,
}

/// An object in a diagnostic, and the witness of its account.
#[derive(Clone, Debug)]
pub(in crate::provider) struct Subject {
    /// The name in diagnostics: `instance "trainer" (ins-…)`.
    pub(in crate::provider) title: String,
    /// The key under which it, or its instance, is a witness for others.
    pub(in crate::provider) witness: String,
    /// The status in the state.
    pub(in crate::provider) status: String,
}

/// The methods that all kinds share.
pub(in crate::provider) trait ManagedExt: Managed {
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

    /// Keeps a name that the service shows in other letters or with other blanks; whether it does.
    fn keep_spelling(&mut self, name: &Attr<String>) -> bool {
        let shown = self.name().zip(name.as_str());
        let is_respelled = shown.is_some_and(|(shown, name)| shown != name && api::is_same_name(shown, name));
        if is_respelled {
            *self.name_mut() = name.clone();
        }
        is_respelled
    }

    /// The unique id, if `id` is a number and it is known.
    fn uid(&self) -> Option<&str> {
        self.common().uid.and_then(Attr::as_str)
    }

    /// The name in diagnostics: `instance "trainer" (ins-…)`.
    fn title(&self) -> String {
        title(noun::<Self>(), self.name(), self.id())
    }

    /// The object in the diagnostics of a refresh.
    fn subject(&self) -> Subject {
        Subject {
            title: self.title(),
            witness: witness(Self::Object::KIND, self.id().unwrap_or_default()),
            status: self.status().unwrap_or("unknown").to_owned(),
        }
    }

    /// The service's key; `None` for a state without a valid id.
    fn key(&self) -> Option<Key<Self>> {
        self.id().and_then(Self::Object::of_id).map(|object| api::Record::key(&object))
    }
}

impl<M: Managed> ManagedExt for M {}

/// The noun for one object.
pub(in crate::provider) fn noun<M: Managed>() -> &'static str {
    M::Object::KIND.noun()
}

/// The key of an object as a witness for others.
pub(in crate::provider) fn witness(kind: api::ObjectKind, id: &str) -> String {
    format!("{}/{id}", kind.as_str())
}
