use std::{future::Future, sync::Arc};

use super::{
    data_source::DataSource,
    diagnostics::Diagnostics,
    erased::{AnyDataSource, AnyResource, Erased},
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

    /// All resources and data sources.
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
    pub(super) resources: Vec<Box<dyn AnyResource<C>>>,
    pub(super) data_sources: Vec<Box<dyn AnyDataSource<C>>>,
}

impl<C: Send + Sync + 'static> Registry<C> {
    /// Nothing yet.
    pub fn new() -> Self {
        Self { resources: Vec::new(), data_sources: Vec::new() }
    }

    /// Adds a resource.
    #[must_use]
    pub fn resource<R: Resource<Client = C>>(mut self, resource: R) -> Self {
        self.resources.push(Box::new(Erased::resource(resource)));
        self
    }

    /// Adds a data source.
    #[must_use]
    pub fn data_source<D: DataSource<Client = C>>(mut self, data_source: D) -> Self {
        self.data_sources.push(Box::new(Erased::data_source(data_source)));
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
            .field("resources", &self.resources.len())
            .field("data_sources", &self.data_sources.len())
            .finish()
    }
}
