use std::{future::Future, sync::Arc};

use super::{
    action::Action,
    data_source::DataSource,
    diagnostics::Diagnostics,
    ephemeral::EphemeralResource,
    erased::{AnyAction, AnyDataSource, AnyEphemeralResource, AnyFunction, AnyListResource, AnyResource, Erased},
    function::Function,
    list_resource::ListResource,
    model::Model,
    resource::Resource,
    schema::Schema,
};

/// A provider: its configuration and the list of what it offers.
pub trait Provider: Send + Sync + 'static {
    /// What a configuration becomes; resources and data sources work with it.
    type Client: Send + Sync + 'static;
    /// The typed form of the configuration.
    type Model: Model;

    /// The schema of the configuration.
    fn schema(&self) -> Schema;

    /// Everything that it offers.
    fn registry(&self) -> Registry<Self::Client>;

    /// Rules of the configuration, judged without the service. Unknown values obey every rule.
    fn validate(&self, _config: &Self::Model, _diagnostics: &mut Diagnostics) {}

    /// Turns a wholly known configuration into a client.
    fn configure(
        &self,
        config: Self::Model,
        core_version: &str,
    ) -> impl Future<Output = Result<(Arc<Self::Client>, Diagnostics), Diagnostics>> + Send;
}

/// What a provider offers, in the order in which the docs list it.
pub struct Registry<C> {
    pub(super) actions: Vec<Box<dyn AnyAction<C>>>,
    pub(super) data_sources: Vec<Box<dyn AnyDataSource<C>>>,
    pub(super) ephemeral_resources: Vec<Box<dyn AnyEphemeralResource<C>>>,
    pub(super) functions: Vec<Box<dyn AnyFunction>>,
    pub(super) list_resources: Vec<Box<dyn AnyListResource<C>>>,
    pub(super) resources: Vec<Box<dyn AnyResource<C>>>,
}

impl<C: Send + Sync + 'static> Registry<C> {
    /// Nothing yet.
    pub fn new() -> Self {
        Self {
            actions: Vec::new(),
            data_sources: Vec::new(),
            ephemeral_resources: Vec::new(),
            functions: Vec::new(),
            list_resources: Vec::new(),
            resources: Vec::new(),
        }
    }

    /// Adds an action.
    #[must_use]
    pub fn action<A: Action<Client = C>>(mut self, action: A) -> Self {
        self.actions.push(Box::new(Erased::action(action)));
        self
    }

    /// Adds a data source.
    #[must_use]
    pub fn data_source<D: DataSource<Client = C>>(mut self, data_source: D) -> Self {
        self.data_sources.push(Box::new(Erased::data_source(data_source)));
        self
    }

    /// Adds an ephemeral resource.
    #[must_use]
    pub fn ephemeral_resource<E: EphemeralResource<Client = C>>(mut self, ephemeral_resource: E) -> Self {
        self.ephemeral_resources.push(Box::new(Erased::ephemeral_resource(ephemeral_resource)));
        self
    }

    /// Adds a function.
    #[must_use]
    pub fn function<F: Function>(mut self, function: F) -> Self {
        self.functions.push(Box::new(Erased::function(function)));
        self
    }

    /// Adds a list resource.
    #[must_use]
    pub fn list_resource<L: ListResource<Client = C>>(mut self, list_resource: L) -> Self {
        self.list_resources.push(Box::new(Erased::list_resource(list_resource)));
        self
    }

    /// Adds a resource.
    #[must_use]
    pub fn resource<R: Resource<Client = C>>(mut self, resource: R) -> Self {
        self.resources.push(Box::new(Erased::resource(resource)));
        self
    }
}

impl<C: Send + Sync + 'static> Default for Registry<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C> std::fmt::Debug for Registry<C> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Registry")
            .field("actions", &self.actions.len())
            .field("data_sources", &self.data_sources.len())
            .field("ephemeral_resources", &self.ephemeral_resources.len())
            .field("functions", &self.functions.len())
            .field("list_resources", &self.list_resources.len())
            .field("resources", &self.resources.len())
            .finish()
    }
}
