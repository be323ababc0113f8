//! The calls that validate and take the provider's configuration.

use std::sync::{Arc, PoisonError};

use super::Server;
use crate::framework::{
    Diagnostics, Provider, Value,
    fill::fill_defaults,
    model::{ModelError, from_value},
};

/// What the core says when it configures the provider.
#[derive(Debug)]
pub struct ConfigureRequest {
    /// The configuration; parts may be unknown while planning.
    pub config: Value,
    /// The core's version. It does not tell one core from another (plugin protocol, field notes).
    pub core_version: String,
}

/// How far the provider is configured.
pub(super) enum Configuration<C> {
    /// Not at all.
    Missing,
    /// A client is there.
    Ready(Arc<C>),
    /// The named arguments are not known before an apply.
    Unknown(Vec<String>),
}

impl<P: Provider> Server<P> {
    /// Takes a configuration. One with unknown values is accepted in silence: the plan goes on without the service.
    pub async fn configure(&self, request: ConfigureRequest) -> Diagnostics {
        let unknown: Vec<String> = self
            .schema
            .attributes
            .iter()
            .filter(|attribute| !request.config.attribute(&attribute.name).is_wholly_known())
            .map(|attribute| attribute.name.clone())
            .collect();
        if !unknown.is_empty() || request.config.is_unknown() {
            self.set_configuration(Configuration::Unknown(unknown));
            return Diagnostics::new();
        }
        let config = fill_defaults(&self.schema, &request.config);
        let model = match from_value::<P::Model>(&config) {
            Ok(model) => model,
            Err(error) => return model_fault(&error),
        };
        match self.provider.configure(model, &request.core_version).await {
            Ok((client, diagnostics)) => {
                self.set_configuration(Configuration::Ready(client));
                diagnostics
            }
            Err(diagnostics) => {
                self.set_configuration(Configuration::Missing);
                diagnostics
            }
        }
    }

    fn set_configuration(&self, configuration: Configuration<P::Client>) {
        *self.configuration.write().unwrap_or_else(PoisonError::into_inner) = configuration;
    }
}

impl<C> Configuration<C> {
    /// The client, or why it is missing.
    pub(super) fn client(self) -> Result<Arc<C>, Diagnostics> {
        let mut diagnostics = Diagnostics::new();
        match self {
            Self::Ready(client) => return Ok(client),
            Self::Missing => diagnostics.error(
                "The provider is not configured",
                "The core asked for something that needs the service before it configured the provider.",
            ),
            Self::Unknown(arguments) => diagnostics.error(
                "The provider's configuration is not known yet",
                format!(
                    "This needs the service, but the provider's {} will be known only after an apply of what it comes \
                     from. Apply that first (with -target), or give the provider a value that is known while planning.",
                    arguments.join(", ")
                ),
            ),
        }
        Err(diagnostics)
    }
}

/// A value that does not fit its model: the core and the provider disagree about the schema, which only a fault of ours
/// explains.
pub(in crate::framework) fn model_fault(error: &ModelError) -> Diagnostics {
    let mut diagnostics = Diagnostics::new();
    diagnostics.error(
        "The provider could not read a value",
        format!("This is a bug in the provider, please report it: {error}."),
    );
    diagnostics
}
