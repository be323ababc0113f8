//! The calls of ephemeral resources.

use jiff::Timestamp;

use super::{
    Deferral, Server,
    configure::{Configuration, model_fault},
};
use crate::framework::{
    Diagnostics, Kind, Private, Provider, Value,
    ephemeral::{Open, Renewed},
    fill::fill_defaults,
    held::Holder,
    plan_rules::planned_state,
    settle::settled,
};

/// What the open of an ephemeral resource led to.
#[derive(Debug)]
pub struct OpenResponse {
    /// The result: what the configuration says, and what was found. Wholly known, unless it was put off; null with
    /// errors.
    pub result: Value,
    /// For renewals and the close.
    pub private: Private,
    /// When to renew, if ever.
    pub renew_at: Option<Timestamp>,
    /// Messages for the operator.
    pub diagnostics: Diagnostics,
    /// Whether it was put off, and why.
    pub deferred: Option<Deferral>,
}

impl OpenResponse {
    fn failed(diagnostics: Diagnostics) -> Self {
        Self { result: Value::Null, private: Private::default(), renew_at: None, diagnostics, deferred: None }
    }
}

impl<P: Provider> Server<P> {
    /// Opens an ephemeral resource (plugin protocol, ephemeral resources).
    pub async fn open_ephemeral_resource(
        &self,
        type_name: &str,
        config: Value,
        deferral_allowed: bool,
    ) -> OpenResponse {
        let resource = match self.registry.find(Kind::EphemeralResource, type_name) {
            Ok(resource) => resource,
            Err(diagnostics) => return OpenResponse::failed(diagnostics),
        };
        let expected = planned_state(&resource.schema, &config, &Value::Null);
        let configuration = self.configuration();
        if deferral_allowed && matches!(configuration, Configuration::Unknown(_)) {
            let deferred = Some(Deferral::ProviderConfigUnknown);
            return OpenResponse { result: expected, deferred, ..OpenResponse::failed(Diagnostics::new()) };
        }
        let client = match configuration.client() {
            Ok(client) => client,
            Err(diagnostics) => return OpenResponse::failed(diagnostics),
        };
        let context = self.context(client, resource.timeout());
        let caller = self.current_caller();
        let opened = match resource.steps.open(fill_defaults(&resource.schema, &config), context).await {
            Ok(opened) => opened,
            Err(error) => return OpenResponse::failed(model_fault(&error)),
        };
        let (mut diagnostics, mut private) = (opened.diagnostics, opened.private);
        match opened.result {
            _ if diagnostics.has_errors() => OpenResponse::failed(diagnostics),
            Some(result) => {
                // Without a caller nobody will close it: it is dropped here.
                if let Some(held) = opened.held.filter(|_| !caller.gone.is_cancelled()) {
                    self.held.hold(held, &mut private, caller.disconnected);
                }
                let result = settled(&expected, &result);
                OpenResponse { result, private, renew_at: opened.renew_at, diagnostics, deferred: None }
            }
            None => {
                diagnostics.error(
                    "The open led to nothing",
                    format!(
                        "This is a bug in the provider, please report it: {type_name} opened without a result and \
                             without an error."
                    ),
                );
                OpenResponse::failed(diagnostics)
            }
        }
    }

    /// Renews what is open.
    pub async fn renew_ephemeral_resource(&self, type_name: &str, private: Private) -> Renewed {
        let failed = |diagnostics| Renewed { private: private.clone(), renew_at: None, diagnostics };
        let (resource, client) = match self.ready(Kind::EphemeralResource, type_name) {
            Ok(ready) => ready,
            Err(diagnostics) => return failed(diagnostics),
        };
        let open = Open { held: self.held.find(&private), private: private.clone() };
        match resource.steps.renew(open, self.context(client, resource.timeout())).await {
            Ok(mut renewed) => {
                Holder::follow(&private, &mut renewed.private);
                renewed
            }
            Err(error) => failed(model_fault(&error)),
        }
    }

    /// Closes what is open. What was held for it is dropped, whatever comes of the rest.
    pub async fn close_ephemeral_resource(&self, type_name: &str, private: Private) -> Diagnostics {
        let open = Open { held: self.held.release(&private), private };
        match self.ready(Kind::EphemeralResource, type_name) {
            Ok((resource, client)) => {
                let closed = resource.steps.close(open, self.context(client, resource.timeout())).await;
                closed.unwrap_or_else(|error| model_fault(&error))
            }
            Err(diagnostics) => diagnostics,
        }
    }
}
