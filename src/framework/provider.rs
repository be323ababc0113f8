//! A provider, as its author writes it.

use std::{future::Future, sync::Arc};

use super::{diagnostics::Diagnostics, model::Model, registry::Registry, schema::Schema};

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
