use super::{Server, configure::model_fault};
use crate::framework::{
    Diagnostics, Provider, Schema, Value,
    config_rules::check,
    fill::fill_defaults,
    model::{ModelError, from_value},
};

impl<P: Provider> Server<P> {
    /// Checks the provider's configuration.
    pub fn validate_provider(&self, config: &Value) -> Diagnostics {
        judged(&self.schemas().provider, config, true, |config, diagnostics| {
            self.provider.validate(&from_value(config)?, diagnostics);
            Ok(())
        })
    }

    /// Checks a resource's configuration. `write_only_allowed` says whether the core understands write-only attributes.
    pub fn validate_resource(&self, type_name: &str, config: &Value, write_only_allowed: bool) -> Diagnostics {
        match self.resource(type_name) {
            Ok(resource) => judged(resource.schema(), config, write_only_allowed, |config, diagnostics| {
                resource.validate(config, diagnostics)
            }),
            Err(diagnostics) => diagnostics,
        }
    }

    /// Checks a data source's configuration.
    pub fn validate_data_source(&self, type_name: &str, config: &Value) -> Diagnostics {
        match self.any_data_source(type_name) {
            Ok(source) => {
                judged(source.schema(), config, true, |config, diagnostics| source.validate(config, diagnostics))
            }
            Err(diagnostics) => diagnostics,
        }
    }

    /// Checks an ephemeral resource's configuration.
    pub fn validate_ephemeral_resource(&self, type_name: &str, config: &Value) -> Diagnostics {
        match self.ephemeral_resource(type_name) {
            Ok(resource) => {
                judged(resource.schema(), config, true, |config, diagnostics| resource.validate(config, diagnostics))
            }
            Err(diagnostics) => diagnostics,
        }
    }

    /// Checks the `config` block of a list resource.
    pub fn validate_list_resource(&self, type_name: &str, config: &Value) -> Diagnostics {
        match self.list_resource(type_name) {
            Ok(list) => judged(list.schema(), config, true, |config, diagnostics| list.validate(config, diagnostics)),
            Err(diagnostics) => diagnostics,
        }
    }

    /// Checks the `config` block of an action.
    pub fn validate_action(&self, type_name: &str, config: &Value) -> Diagnostics {
        match self.any_action(type_name) {
            Ok(action) => {
                judged(action.schema(), config, true, |config, diagnostics| action.validate(config, diagnostics))
            }
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
