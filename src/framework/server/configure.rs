//! The calls that validate configurations, and take the provider's.

use std::sync::{Arc, PoisonError};

use super::Server;
use crate::framework::{
    Diagnostic, Diagnostics, Entry, Provider, Schema, Value, config_rules::check, fill::fill_defaults,
    model::from_value,
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
    /// Checks the provider's configuration.
    pub fn validate_provider(&self, config: &Value) -> Diagnostics {
        judged(&self.schema, config, true, |config, diagnostics| {
            self.provider.validate(&from_value(config)?, diagnostics);
            Ok(())
        })
    }

    /// Takes a configuration. One with unknown values is accepted in silence: the plan goes on without the service.
    pub async fn configure(&self, request: ConfigureRequest) -> Diagnostics {
        let names = self.schema.attributes.iter().map(|attribute| &attribute.name);
        let unknown: Vec<String> =
            names.filter(|name| !request.config.attribute(name).is_wholly_known()).cloned().collect();
        if !unknown.is_empty() || request.config.is_unknown() {
            self.set_configuration(Configuration::Unknown(unknown));
            return Diagnostics::new();
        }
        let model = match from_value::<P::Model>(&fill_defaults(&self.schema, &request.config)) {
            Ok(model) => model,
            Err(error) => return error.into(),
        };
        let (configuration, diagnostics) = match self.provider.configure(model, &request.core_version).await {
            Ok((client, diagnostics)) => (Configuration::Ready(client), diagnostics),
            Err(diagnostics) => (Configuration::Missing, diagnostics),
        };
        self.set_configuration(configuration);
        diagnostics
    }

    fn set_configuration(&self, configuration: Configuration<P::Client>) {
        *self.configuration.write().unwrap_or_else(PoisonError::into_inner) = configuration;
    }
}

impl<C: Send + Sync + 'static> Entry<C> {
    /// Checks a configuration. `write_only_allowed` says whether the core understands write-only attributes.
    pub fn validate(&self, config: &Value, write_only_allowed: bool) -> Diagnostics {
        judged(&self.schema, config, write_only_allowed, |config, diagnostics| self.steps.validate(config, diagnostics))
    }
}

/// The rules of the schema, and where they are kept those of the author.
fn judged(
    schema: &Schema,
    config: &Value,
    write_only_allowed: bool,
    validate: impl FnOnce(&Value, &mut Diagnostics) -> Result<(), Diagnostics>,
) -> Diagnostics {
    let mut diagnostics = check(schema, config, write_only_allowed);
    if !diagnostics.has_errors()
        && let Err(bug) = validate(&fill_defaults(schema, config), &mut diagnostics)
    {
        diagnostics.extend(bug);
    }
    diagnostics
}

impl<C> Configuration<C> {
    /// The client, or why it is missing.
    pub(super) fn client(self) -> Result<Arc<C>, Diagnostics> {
        let missing = match self {
            Self::Ready(client) => return Ok(client),
            Self::Missing => Diagnostic::error(
                "The provider is not configured",
                "Terraform called the provider before configuring it.",
            ),
            Self::Unknown(arguments) => Diagnostic::error(
                "The provider's configuration is not known yet",
                format!(
                    "This needs the service, but the provider's {} will be known only after an apply of what it comes \
                     from. Apply that first (with -target), or give the provider a value that is known while planning.",
                    arguments.join(", ")
                ),
            ),
        };
        Err(missing.into())
    }
}
