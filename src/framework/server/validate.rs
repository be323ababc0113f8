//! The calls that validate configurations.

use super::{Server, configure::model_fault};
use crate::framework::{
    Diagnostics, Kind, Provider, Schema, Value,
    config_rules::check,
    fill::fill_defaults,
    model::{ModelError, from_value},
};

impl<P: Provider> Server<P> {
    /// Checks the provider's configuration.
    pub fn validate_provider(&self, config: &Value) -> Diagnostics {
        judged(&self.schema, config, true, |config, diagnostics| {
            self.provider.validate(&from_value(config)?, diagnostics);
            Ok(())
        })
    }

    /// Checks the configuration of a thing. `write_only_allowed` says whether the core understands write-only
    /// attributes.
    pub fn validate(&self, kind: Kind, name: &str, config: &Value, write_only_allowed: bool) -> Diagnostics {
        match self.registry.find(kind, name) {
            Ok(entry) => judged(&entry.schema, config, write_only_allowed, |config, diagnostics| {
                entry.steps.validate(config, diagnostics)
            }),
            Err(diagnostics) => diagnostics,
        }
    }
}

/// The rules of the schema, and where they are kept those of the thing itself.
fn judged(
    schema: &Schema,
    config: &Value,
    write_only_allowed: bool,
    validate: impl FnOnce(&Value, &mut Diagnostics) -> Result<(), ModelError>,
) -> Diagnostics {
    let mut diagnostics = check(schema, config, write_only_allowed);
    if !diagnostics.has_errors()
        && let Err(error) = validate(&fill_defaults(schema, config), &mut diagnostics)
    {
        diagnostics.extend(model_fault(&error));
    }
    diagnostics
}
