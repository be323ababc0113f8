//! Data sources, as their authors write them.

use std::{future::Future, time::Duration};

use super::{
    diagnostics::Diagnostics,
    model::Model,
    resource::{Context, Outcome},
    schema::Schema,
    server::DEFAULT_TIMEOUT,
};

/// A thing that is only read.
pub trait DataSource: Send + Sync + 'static {
    /// What the provider's configuration became.
    type Client: Send + Sync + 'static;
    /// The typed form of a configuration and its result.
    type Model: Model;

    /// The full type name, such as `damodel_specs`.
    fn type_name(&self) -> &'static str;

    /// The schema.
    fn schema(&self) -> Schema;

    /// How long a read may take.
    fn timeout(&self) -> Duration {
        DEFAULT_TIMEOUT
    }

    /// Rules between attributes, judged without the service. Unknown values obey every rule.
    fn validate(&self, _config: &Self::Model, _diagnostics: &mut Diagnostics) {}

    /// Reads. The configuration is wholly known and has its defaults; the outcome has a state unless it has errors.
    fn read(
        &self,
        config: Self::Model,
        context: Context<Self::Client>,
    ) -> impl Future<Output = Outcome<Self::Model>> + Send;
}
