//! Actions, as their authors write them.

use std::{future::Future, time::Duration};

use tokio::sync::mpsc;

use super::{
    diagnostics::Diagnostics,
    model::Model,
    resource::{Context, PlanContext},
    schema::Schema,
};

/// Something that is done when a configuration or an operator asks for it, and leaves no state (plugin protocol,
/// actions).
pub trait Action: Send + Sync + 'static {
    /// What the provider's configuration became.
    type Client: Send + Sync + 'static;
    /// The typed form of the `config` block.
    type Model: Model;

    /// The full type name, such as `damodel_chat_completion`.
    fn type_name(&self) -> &'static str;

    /// The schema of the `config` block.
    fn schema(&self) -> Schema;

    /// How long an invocation may take.
    fn timeout(&self) -> Duration {
        Duration::from_secs(30 * 60)
    }

    /// Rules between attributes, judged without the service. Unknown values obey every rule.
    fn validate(&self, _config: &Self::Model, _diagnostics: &mut Diagnostics) {}

    /// Checks while planning what an invocation would meet. Parts of the configuration may be unknown.
    fn plan(
        &self,
        _config: Self::Model,
        _context: PlanContext<'_, Self::Client>,
    ) -> impl Future<Output = Diagnostics> + Send {
        async { Diagnostics::new() }
    }

    /// Does it. The configuration is wholly known and has its defaults.
    fn invoke(
        &self,
        config: Self::Model,
        progress: Progress,
        context: Context<Self::Client>,
    ) -> impl Future<Output = Diagnostics> + Send;
}

/// Where an action tells how far it is. Nobody hears it any more when the core is gone; the action need not mind.
#[derive(Clone, Debug)]
pub struct Progress(pub(super) mpsc::UnboundedSender<String>);

impl Progress {
    /// Tells the operator a line. It holds no secret.
    pub fn say(&self, line: impl Into<String>) {
        let _ = self.0.send(line.into());
    }
}
