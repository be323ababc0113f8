//! The calls of actions.

use tokio::sync::mpsc;

use super::{
    Deferral, Server,
    configure::{Configuration, model_fault},
};
use crate::framework::{Diagnostics, Kind, PlanContext, Progress, Provider, Value, fill::fill_defaults};

impl<P: Provider> Server<P> {
    /// Plans an action (plugin protocol, actions). While the provider's configuration is unknown it is put off where
    /// the core takes that, and planned without the service where not.
    pub async fn plan_action(
        &self,
        type_name: &str,
        config: &Value,
        deferral_allowed: bool,
    ) -> (Diagnostics, Option<Deferral>) {
        let action = match self.registry.find(Kind::Action, type_name) {
            Ok(action) => action,
            Err(diagnostics) => return (diagnostics, None),
        };
        let configuration = self.configuration();
        if deferral_allowed && matches!(configuration, Configuration::Unknown(_)) {
            return (Diagnostics::new(), Some(Deferral::ProviderConfigUnknown));
        }
        let client = if let Configuration::Ready(client) = &configuration { Some(client) } else { None };
        let config = fill_defaults(&action.schema, config);
        let planned = action.steps.plan_action(config, PlanContext { client, cancel: self.stopping() }).await;
        (planned.unwrap_or_else(|error| model_fault(&error)), None)
    }

    /// Invokes an action. What it tells on the way goes to `progress`; the answer is its end.
    pub async fn invoke_action(
        &self,
        type_name: &str,
        config: &Value,
        progress: mpsc::UnboundedSender<String>,
    ) -> Diagnostics {
        let (action, client) = match self.ready(Kind::Action, type_name) {
            Ok(ready) => ready,
            Err(diagnostics) => return diagnostics,
        };
        let context = self.context(client, action.timeout());
        let invoked = action.steps.invoke(fill_defaults(&action.schema, config), Progress(progress), context).await;
        invoked.unwrap_or_else(|error| model_fault(&error))
    }
}
