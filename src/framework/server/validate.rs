use super::{Server, configure::model_fault};
use crate::framework::{Diagnostics, Provider, Value, config_rules::check, fill::fill_defaults, model::from_value};

impl<P: Provider> Server<P> {
    /// Checks the provider's configuration.
    pub fn validate_provider(&self, config: &Value) -> Diagnostics {
        let mut diagnostics = check(&self.schemas().provider, config, true);
        if !diagnostics.has_errors() {
            match from_value(&fill_defaults(&self.schemas().provider, config)) {
                Ok(model) => self.provider.validate(&model, &mut diagnostics),
                Err(error) => diagnostics.extend(model_fault(&error)),
            }
        }
        diagnostics
    }

    /// Checks a resource's configuration. `write_only_allowed` says whether the core understands write-only attributes.
    pub fn validate_resource(&self, type_name: &str, config: &Value, write_only_allowed: bool) -> Diagnostics {
        let resource = match self.resource(type_name) {
            Ok(resource) => resource,
            Err(diagnostics) => return diagnostics,
        };
        let mut diagnostics = check(resource.schema(), config, write_only_allowed);
        if !diagnostics.has_errors()
            && let Err(error) = resource.validate(&fill_defaults(resource.schema(), config), &mut diagnostics)
        {
            diagnostics.extend(model_fault(&error));
        }
        diagnostics
    }

    /// Checks a data source's configuration.
    pub fn validate_data_source(&self, type_name: &str, config: &Value) -> Diagnostics {
        let source = match self.any_data_source(type_name) {
            Ok(source) => source,
            Err(diagnostics) => return diagnostics,
        };
        let mut diagnostics = check(source.schema(), config, true);
        if !diagnostics.has_errors()
            && let Err(error) = source.validate(&fill_defaults(source.schema(), config), &mut diagnostics)
        {
            diagnostics.extend(model_fault(&error));
        }
        diagnostics
    }
}
