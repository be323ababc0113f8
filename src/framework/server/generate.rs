//! The call that writes a configuration for an import.

use super::{Server, configure::model_fault};
use crate::framework::{Diagnostics, Provider, Value, generate::configuration};

impl<P: Provider> Server<P> {
    /// The configuration that a state could have come from (plugin protocol, import: config generation). It needs no
    /// service; null with errors.
    pub fn generate_config(&self, type_name: &str, state: &Value) -> (Value, Diagnostics) {
        let resource = match self.resource(type_name) {
            Ok(resource) => resource,
            Err(diagnostics) => return (Value::Null, diagnostics),
        };
        let mut diagnostics = Diagnostics::new();
        match resource.steps.generate(configuration(&resource.schema, state), &mut diagnostics) {
            Ok(config) => (config, diagnostics),
            Err(error) => (Value::Null, model_fault(&error)),
        }
    }
}
