//! The trait of providers, and their registry: one ordered map with an entry for each offer.

use std::{collections::BTreeMap, fmt, future::Future, sync::Arc, time::Duration};

#[cfg(test)]
use super::faults::{ModelReader, argument_reader, reader};
use super::{
    diagnostics::{Diagnostic, Diagnostics},
    ephemeral::EphemeralResource,
    function::{Function, Signature},
    identity::IdentitySchema,
    model::{Model, from_value},
    resource::{Action, DataSource, ListResource, Resource},
    schema::Schema,
    steps::{OfAction, OfDataSource, OfEphemeralResource, OfFunction, OfListResource, OfResource, Steps},
    timeouts::{DefaultTimeouts, TIMEOUTS, Timeouts},
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

    /// Turns a wholly known configuration into a client.
    fn configure(
        &self,
        config: Self::Model,
        core_version: &str,
    ) -> impl Future<Output = Result<(Arc<Self::Client>, Diagnostics), Diagnostics>> + Send;
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

/// One offer of a provider.
pub struct Offering<C: Send + Sync + 'static> {
    /// The kind.
    pub kind: OfferKind,
    /// The full type name, or the name of the function.
    pub name: &'static str,
    /// The schema, with the `timeouts` block of a resource; empty for a function.
    pub schema: Schema,
    /// The type of a value of the schema, or of the function's result.
    pub ty: Type,
    /// The identity of a resource that has one.
    pub identity: Option<IdentitySchema>,
    /// The parameters and the result of a function.
    pub signature: Option<Signature>,
    timeouts: DefaultTimeouts,
    pub(super) steps: Box<dyn Steps<C>>,
    /// Readers of its models: first of the schema's values or the arguments, then of a list's items or the result.
    #[cfg(test)]
    pub(super) readers: Vec<ModelReader>,
}

impl<C: Send + Sync + 'static> Offering<C> {
    fn new(
        kind: OfferKind,
        name: &'static str,
        schema: Schema,
        timeouts: DefaultTimeouts,
        steps: Box<dyn Steps<C>>,
    ) -> Self {
        Self {
            kind,
            name,
            ty: schema.ty(),
            schema,
            identity: None,
            signature: None,
            timeouts,
            steps,
            #[cfg(test)]
            readers: Vec::new(),
        }
    }

    /// The timeouts of the steps that a state or configuration asks for.
    pub(super) fn timeouts(&self, value: &Value) -> DefaultTimeouts {
        let configured: Timeouts = from_value(value.attribute(TIMEOUTS)).unwrap_or_default();
        self.timeouts.with(&configured)
    }

    /// The timeout of a step without a configured one.
    pub(super) fn timeout(&self) -> Duration {
        self.timeouts.read
    }
}

impl<C: Send + Sync + 'static> fmt::Debug for Offering<C> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Offering").field("kind", &self.kind).field("name", &self.name).finish_non_exhaustive()
    }
}

/// Everything that a provider offers.
pub struct Registry<C: Send + Sync + 'static> {
    entries: BTreeMap<(OfferKind, &'static str), Offering<C>>,
}

impl<C: Send + Sync + 'static> Registry<C> {
    /// An empty registry.
    pub fn new() -> Self {
        Self { entries: BTreeMap::new() }
    }

    /// Adds an action.
    #[must_use]
    pub fn action<A: Action<Client = C>>(self, action: A) -> Self {
        let (name, schema, timeouts) = (action.type_name(), action.schema(), DefaultTimeouts::all(action.timeout()));
        self.with(Offering {
            #[cfg(test)]
            readers: vec![reader::<A::Model>],
            ..Offering::new(OfferKind::Action, name, schema, timeouts, Box::new(OfAction(action)))
        })
    }

    /// Adds a data source.
    #[must_use]
    pub fn data_source<D: DataSource<Client = C>>(self, source: D) -> Self {
        let (name, schema, timeouts) = (source.type_name(), source.schema(), DefaultTimeouts::all(source.timeout()));
        self.with(Offering {
            #[cfg(test)]
            readers: vec![reader::<D::Model>],
            ..Offering::new(OfferKind::DataSource, name, schema, timeouts, Box::new(OfDataSource(source)))
        })
    }

    /// Adds an ephemeral resource.
    #[must_use]
    pub fn ephemeral_resource<E: EphemeralResource<Client = C>>(self, resource: E) -> Self {
        let (name, schema, timeouts) =
            (resource.type_name(), resource.schema(), DefaultTimeouts::all(resource.timeout()));
        self.with(Offering {
            #[cfg(test)]
            readers: vec![reader::<E::Model>],
            ..Offering::new(
                OfferKind::EphemeralResource,
                name,
                schema,
                timeouts,
                Box::new(OfEphemeralResource(resource)),
            )
        })
    }

    /// Adds a function.
    #[must_use]
    pub fn function<F: Function>(self, function: F) -> Self {
        let (name, signature) = (function.name(), function.signature());
        let (schema, timeouts) = (Schema::default(), DefaultTimeouts::all(Duration::MAX));
        self.with(Offering {
            ty: signature.returns.clone(),
            signature: Some(signature),
            #[cfg(test)]
            readers: vec![argument_reader::<F::Arguments>, reader::<F::Output>],
            ..Offering::new(OfferKind::Function, name, schema, timeouts, Box::new(OfFunction(function)))
        })
    }

    /// Adds a list resource.
    #[must_use]
    pub fn list_resource<L: ListResource<Client = C>>(self, list: L) -> Self {
        let (name, schema, timeouts) = (list.type_name(), list.schema(), DefaultTimeouts::all(list.timeout()));
        self.with(Offering {
            #[cfg(test)]
            readers: vec![reader::<L::Model>, reader::<L::Resource>],
            ..Offering::new(OfferKind::ListResource, name, schema, timeouts, Box::new(OfListResource(list)))
        })
    }

    /// Adds a resource.
    #[must_use]
    pub fn resource<R: Resource<Client = C>>(self, resource: R) -> Self {
        let timeouts = resource.timeouts();
        let (name, schema) = (resource.type_name(), resource.schema().with_block(timeouts.block()));
        self.with(Offering {
            identity: resource.identity(),
            #[cfg(test)]
            readers: vec![reader::<R::Model>],
            ..Offering::new(OfferKind::Resource, name, schema, timeouts, Box::new(OfResource(resource)))
        })
    }

    fn with(mut self, entry: Offering<C>) -> Self {
        self.entries.insert((entry.kind, entry.name), entry);
        self
    }

    /// All offers, by kind and name.
    pub fn entries(&self) -> impl Iterator<Item = &Offering<C>> {
        self.entries.values()
    }

    /// All offers of a kind, by name.
    pub fn of(&self, kind: OfferKind) -> impl Iterator<Item = &Offering<C>> {
        self.entries().filter(move |entry| entry.kind == kind)
    }

    /// One offer.
    ///
    /// # Errors
    ///
    /// If the provider does not offer it.
    pub fn find(&self, kind: OfferKind, name: &str) -> Result<&Offering<C>, Diagnostics> {
        self.of(kind).find(|entry| entry.name == name).ok_or_else(|| {
            let detail = format!("This version of the provider has no {kind} {name:?}.");
            Diagnostic::error(format!("No such {kind}"), detail).into()
        })
    }
}

impl<C: Send + Sync + 'static> Default for Registry<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C: Send + Sync + 'static> fmt::Debug for Registry<C> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.entries.values()).finish()
    }
}
