//! The trait of providers, and their registry: one ordered list with an entry for each offer.

use std::{fmt, future::Future, ops::Deref, sync::Arc, time::Duration};

use tokio::time::Instant;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

#[cfg(any(test, feature = "testing"))]
use super::model::{FromValue, ModelError, ToValue, to_value};
use super::{
    diagnostics::{Diagnostic, Diagnostics},
    ephemeral::EphemeralResource,
    function::{CallError, Function, FunctionError, Parameter, Signature},
    identity::IdentitySchema,
    model::{Model, from_value},
    resource::{Action, DataSource, ListResource, Resource, Walk},
    schema::Schema,
    steps::{
        ActionSteps, DataSourceSteps, EphemeralSteps, FunctionSteps, ListSteps, OfAction, OfDataSource,
        OfEphemeralResource, OfFunction, OfListResource, OfResource, ResourceSteps,
    },
    timeouts::{DEFAULT_TIMEOUT, DefaultTimeouts, TIMEOUTS, Timeouts, tell_overrun},
    value::{Type, Value},
};

/// A provider: its configuration and its registry.
pub trait Provider: Send + Sync + 'static {
    /// The client that a configuration yields; resources and data sources work with it.
    type Client: Send + Sync + 'static;
    /// The typed form of the configuration.
    type Model: Model;

    /// The schema of the configuration.
    fn schema(&self) -> Schema;

    /// Everything that it offers.
    fn registry(&self) -> Registry<Self::Client>;

    /// Checks rules of the configuration without the service. Unknown values satisfy every rule.
    fn validate(&self, _config: &Self::Model, _diagnostics: &mut Diagnostics) {}

    /// Turns a wholly known configuration into a client. When it is stopped or out of time, it still does: what could
    /// not be learned by then shows when the client is used.
    fn configure(
        &self,
        config: Self::Model,
        context: ConfigureContext<'_>,
    ) -> impl Future<Output = Result<(Arc<Self::Client>, Diagnostics), Diagnostics>> + Send;
}

/// The context of a configure.
#[derive(Debug)]
pub struct ConfigureContext<'a> {
    /// The core's version. It does not distinguish Terraform from OpenTofu (plugin protocol, field notes).
    pub core_version: &'a str,
    /// The phase of the run.
    pub walk: Walk,
    /// Ends waits when the core is interrupted.
    pub stopping: CancellationToken,
    /// When its time runs out.
    pub deadline: Instant,
    /// The end of the process waits for the tasks in it: for changes whose call does not wait for them any more. They
    /// end soon after it was told to stop.
    pub work: TaskTracker,
}

/// The kinds of offers of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OfferKind {
    /// An object that the core manages.
    Resource,
    /// An object that is only read.
    DataSource,
    /// An object that exists while a run uses it.
    EphemeralResource,
    /// A list of the objects of a resource, under the name of the resource.
    ListResource,
    /// An operation that runs on request.
    Action,
    /// A function.
    Function,
}

impl fmt::Display for OfferKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Resource => "resource",
            Self::DataSource => "data source",
            Self::EphemeralResource => "ephemeral resource",
            Self::ListResource => "list resource",
            Self::Action => "action",
            Self::Function => "function",
        })
    }
}

/// What an offer of a provider declares.
pub struct Offering {
    /// The kind.
    pub kind: OfferKind,
    /// The full type name, or the name of the function.
    pub name: &'static str,
    /// The schema, with the `timeouts` block of a resource that has one; empty for a function.
    pub schema: Schema,
    /// The type of a value of the schema.
    pub ty: Type,
    /// The identity of a resource that has one.
    pub identity: Option<IdentitySchema>,
    timeouts: DefaultTimeouts,
    /// Readers of its models: first of the schema's values or the arguments, then of a list's items or the result.
    #[cfg(any(test, feature = "testing"))]
    pub(super) readers: Vec<ModelReader>,
}

impl Offering {
    fn new(kind: OfferKind, name: &'static str, schema: Schema, timeout: Duration) -> Self {
        Self {
            kind,
            name,
            ty: schema.ty(),
            schema: schema.described(),
            identity: None,
            timeouts: DefaultTimeouts::all(timeout),
            #[cfg(any(test, feature = "testing"))]
            readers: Vec::new(),
        }
    }

    /// The timeouts of the steps that a state or configuration asks for.
    pub(super) fn timeouts(&self, value: &Value) -> DefaultTimeouts {
        let configured: Timeouts = from_value(value.attribute(TIMEOUTS)).unwrap_or_default();
        self.timeouts.with(&configured)
    }

    /// The diagnostics of a step, with the advice to raise its timeout if that can be configured and the step failed
    /// after its deadline.
    pub(super) fn tell_overrun(
        &self,
        step: &str,
        timeout: Duration,
        deadline: Instant,
        mut diagnostics: Diagnostics,
    ) -> Diagnostics {
        if self.schema.blocks.iter().any(|block| block.name == TIMEOUTS) {
            tell_overrun(step, timeout, deadline, &mut diagnostics);
        }
        diagnostics
    }

    /// The timeout of a step without a configured one.
    pub(super) fn timeout(&self) -> Duration {
        self.timeouts.read
    }
}

impl fmt::Debug for Offering {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Offering").field("kind", &self.kind).field("name", &self.name).finish_non_exhaustive()
    }
}

/// An offering with the steps of its kind.
#[derive(Debug)]
pub(crate) struct Offered<S: ?Sized> {
    offering: Offering,
    pub(super) steps: Box<S>,
}

impl<S: ?Sized> Deref for Offered<S> {
    type Target = Offering;

    fn deref(&self) -> &Offering {
        &self.offering
    }
}

pub(crate) type OfferedAction<C> = Offered<dyn ActionSteps<C>>;
pub(crate) type OfferedDataSource<C> = Offered<dyn DataSourceSteps<C>>;
pub(crate) type OfferedEphemeralResource<C> = Offered<dyn EphemeralSteps<C>>;
pub(crate) type OfferedFunction = Offered<dyn FunctionSteps>;
pub(crate) type OfferedList<C> = Offered<dyn ListSteps<C>>;
pub(crate) type OfferedResource<C> = Offered<dyn ResourceSteps<C>>;

impl OfferedFunction {
    /// Parameters, result and description.
    pub(crate) fn signature(&self) -> &Signature {
        self.steps.signature()
    }

    /// Calls a function (plugin protocol, functions). The core's checks of the arguments are repeated here. With an
    /// unknown argument the result is unknown.
    pub(crate) fn call(&self, arguments: Vec<Value>) -> Result<Value, CallError> {
        let signature = self.signature();
        if arguments.len() < signature.parameters.len() {
            return Err(CallError::whole(format!("it takes {} arguments", signature.parameters.len())));
        }
        for (position, (parameter, argument)) in signature.parameters.iter().zip(&arguments).enumerate() {
            if let Some(text) = objection(parameter, argument) {
                return Err(CallError { text, argument: Some(position) });
            }
        }
        if !arguments.iter().all(Value::is_wholly_known) {
            return Ok(Value::Unknown);
        }
        let mut arguments = arguments.into_iter();
        let names = signature.parameters.iter().map(|parameter| parameter.name.clone());
        let object = Value::object(names.map(|name| (name, arguments.next().unwrap_or_default())));
        self.steps.call(&object).map_err(|FunctionError { text, parameter }| {
            let mut parameters = signature.parameters.iter();
            let argument = parameter.and_then(|blamed| parameters.position(|parameter| parameter.name == blamed));
            CallError { text, argument }
        })
    }
}

/// The rule of its parameter that an argument breaks. The argument is not repeated, because it may be a secret.
fn objection(parameter: &Parameter, argument: &Value) -> Option<String> {
    if argument.is_null() {
        return (!parameter.takes_null).then(|| "must not be null".to_owned());
    }
    let broken = parameter.validators.iter().find(|rule| !argument.is_unknown() && !rule.accepts(argument));
    broken.map(|rule| format!("must be {}", rule.rule()))
}

/// Reads a value as a model, and writes it again.
#[cfg(any(test, feature = "testing"))]
pub(super) type ModelReader = fn(&Value) -> Result<Value, ModelError>;

#[cfg(any(test, feature = "testing"))]
pub(super) fn reader<M: ToValue + FromValue>(value: &Value) -> Result<Value, ModelError> {
    to_value(&from_value::<M>(value)?)
}

/// Reads the arguments of a function, which are never written.
#[cfg(any(test, feature = "testing"))]
fn argument_reader<A: FromValue>(value: &Value) -> Result<Value, ModelError> {
    from_value::<A>(value).map(|_| value.clone())
}

/// An offer of one of the kinds.
enum Offer<C> {
    Action(OfferedAction<C>),
    DataSource(OfferedDataSource<C>),
    EphemeralResource(OfferedEphemeralResource<C>),
    Function(OfferedFunction),
    ListResource(OfferedList<C>),
    Resource(OfferedResource<C>),
}

impl<C> Deref for Offer<C> {
    type Target = Offering;

    fn deref(&self) -> &Offering {
        match self {
            Self::Action(action) => action,
            Self::DataSource(source) => source,
            Self::EphemeralResource(resource) => resource,
            Self::Function(function) => function,
            Self::ListResource(list) => list,
            Self::Resource(resource) => resource,
        }
    }
}

/// Everything that a provider offers.
pub struct Registry<C> {
    /// By kind and name.
    offers: Vec<Offer<C>>,
}

impl<C: Send + Sync + 'static> Registry<C> {
    /// An empty registry.
    pub fn new() -> Self {
        Self { offers: Vec::new() }
    }

    /// Adds an action.
    #[must_use]
    pub fn action<A: Action<Client = C>>(self, action: A) -> Self {
        let offering = Offering {
            #[cfg(any(test, feature = "testing"))]
            readers: vec![reader::<A::Model>],
            ..Offering::new(OfferKind::Action, action.type_name(), action.schema(), action.timeout())
        };
        self.with(Offer::Action(Offered { offering, steps: Box::new(OfAction(action)) }))
    }

    /// Adds a data source.
    #[must_use]
    pub fn data_source<D: DataSource<Client = C>>(self, source: D) -> Self {
        let offering = Offering {
            #[cfg(any(test, feature = "testing"))]
            readers: vec![reader::<D::Model>],
            ..Offering::new(OfferKind::DataSource, source.type_name(), source.schema(), source.timeout())
        };
        self.with(Offer::DataSource(Offered { offering, steps: Box::new(OfDataSource(source)) }))
    }

    /// Adds an ephemeral resource.
    #[must_use]
    pub fn ephemeral_resource<E: EphemeralResource<Client = C>>(self, resource: E) -> Self {
        let offering = Offering {
            #[cfg(any(test, feature = "testing"))]
            readers: vec![reader::<E::Model>],
            ..Offering::new(OfferKind::EphemeralResource, resource.type_name(), resource.schema(), resource.timeout())
        };
        self.with(Offer::EphemeralResource(Offered { offering, steps: Box::new(OfEphemeralResource(resource)) }))
    }

    /// Adds a function.
    #[must_use]
    pub fn function<F: Function>(self, function: F) -> Self {
        let offering = Offering {
            #[cfg(any(test, feature = "testing"))]
            readers: vec![argument_reader::<F::Arguments>, reader::<F::Output>],
            ..Offering::new(OfferKind::Function, function.name(), Schema::default(), Duration::MAX)
        };
        let signature = function.signature().described();
        self.with(Offer::Function(Offered { offering, steps: Box::new(OfFunction(function, signature)) }))
    }

    /// Adds a list resource.
    #[must_use]
    pub fn list_resource<L: ListResource<Client = C>>(self, list: L) -> Self {
        let offering = Offering {
            #[cfg(any(test, feature = "testing"))]
            readers: vec![reader::<L::Model>, reader::<L::Resource>],
            ..Offering::new(OfferKind::ListResource, list.type_name(), list.schema(), list.timeout())
        };
        self.with(Offer::ListResource(Offered { offering, steps: Box::new(OfListResource(list)) }))
    }

    /// Adds a resource.
    #[must_use]
    pub fn resource<R: Resource<Client = C>>(self, resource: R) -> Self {
        let (mut schema, timeouts) = (resource.schema(), resource.timeouts());
        schema.blocks.extend(timeouts.as_ref().map(DefaultTimeouts::block));
        let offering = Offering {
            identity: resource.identity(),
            timeouts: timeouts.unwrap_or_else(|| DefaultTimeouts::all(DEFAULT_TIMEOUT)),
            #[cfg(any(test, feature = "testing"))]
            readers: vec![reader::<R::Model>],
            ..Offering::new(OfferKind::Resource, resource.type_name(), schema, DEFAULT_TIMEOUT)
        };
        self.with(Offer::Resource(Offered { offering, steps: Box::new(OfResource(resource)) }))
    }

    fn with(mut self, offer: Offer<C>) -> Self {
        let key = |offer: &Offer<C>| (offer.kind, offer.name);
        let place = self.offers.partition_point(|other| key(other) < key(&offer));
        self.offers.insert(place, offer);
        self
    }

    /// All offers, by kind and name.
    pub fn entries(&self) -> impl Iterator<Item = &Offering> {
        self.offers.iter().map(Deref::deref)
    }

    /// All offers of a kind, by name.
    pub fn of(&self, kind: OfferKind) -> impl Iterator<Item = &Offering> {
        self.entries().filter(move |entry| entry.kind == kind)
    }

    /// What an offer declares.
    ///
    /// # Errors
    ///
    /// If the provider does not offer it.
    pub fn find(&self, kind: OfferKind, name: &str) -> Result<&Offering, Diagnostics> {
        self.offer(kind, name, |offer| Some(offer))
    }

    /// The names and signatures of the functions, by name.
    pub fn signatures(&self) -> impl Iterator<Item = (&'static str, &Signature)> {
        self.offers.iter().filter_map(|offer| match offer {
            Offer::Function(function) => Some((function.name, function.signature())),
            _ => None,
        })
    }

    /// The offer of this kind and name, with its steps.
    fn offer<'a, T>(
        &'a self,
        kind: OfferKind,
        name: &str,
        typed: fn(&'a Offer<C>) -> Option<&'a T>,
    ) -> Result<&'a T, Diagnostics> {
        let found = self.offers.iter().find(|offer| (offer.kind, offer.name) == (kind, name));
        found.and_then(typed).ok_or_else(|| {
            let detail = format!("This version of the provider has no {kind} {name:?}.");
            Diagnostic::error(format!("No such {kind}"), detail).into()
        })
    }
}

macro_rules! find {
    ($($find:ident $kind:ident $offered:ty;)*) => {
        impl<C: Send + Sync + 'static> Registry<C> {
            $(
                #[doc = concat!("Finds the offer of this name with its steps: ", stringify!($kind), ".")]
                pub(crate) fn $find(&self, name: &str) -> Result<&$offered, Diagnostics> {
                    self.offer(OfferKind::$kind, name, |offer| match offer {
                        Offer::$kind(offered) => Some(offered),
                        _ => None,
                    })
                }
            )*
        }
    };
}

find! {
    find_action Action OfferedAction<C>;
    find_data_source DataSource OfferedDataSource<C>;
    find_ephemeral_resource EphemeralResource OfferedEphemeralResource<C>;
    find_function Function OfferedFunction;
    find_list ListResource OfferedList<C>;
    find_resource Resource OfferedResource<C>;
}

impl<C: Send + Sync + 'static> Default for Registry<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C: Send + Sync + 'static> fmt::Debug for Registry<C> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.entries()).finish()
    }
}
