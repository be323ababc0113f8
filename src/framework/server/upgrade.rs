//! The calls that read stored states and identities.

use super::Server;
use crate::framework::{Diagnostic, Diagnostics, Provider, Value, fill::without_write_only};

impl<P: Provider> Server<P> {
    /// Brings the JSON of a stored state into today's layout. Cores ask for every stored state, whatever its version
    /// (plugin protocol, UpgradeResourceState).
    pub fn upgrade(
        &self,
        type_name: &str,
        version: i64,
        state: serde_json::Value,
    ) -> Result<serde_json::Value, Diagnostics> {
        let resource = self.resource(type_name)?;
        if version == resource.schema.version { Ok(state) } else { resource.steps.upgrade(version, state) }
    }

    /// Brings the JSON of a stored identity into today's layout. Cores ask only where the version is another one.
    pub fn upgrade_identity(
        &self,
        type_name: &str,
        version: i64,
        identity: serde_json::Value,
    ) -> Result<serde_json::Value, Diagnostics> {
        let resource = self.resource(type_name)?;
        match &resource.identity {
            Some(schema) if schema.version == version => Ok(identity),
            Some(_) => resource.steps.upgrade_identity(version, identity),
            None => Err(Diagnostic::error(
                "No identity",
                format!("This version of the provider has no identity for {type_name}. The state is unchanged."),
            )
            .into()),
        }
    }

    /// A state with null for its write-only attributes: an upgraded one may hold values from before they were
    /// write-only.
    pub fn without_write_only(&self, type_name: &str, state: &Value) -> Value {
        self.resource(type_name).map_or_else(|_| state.clone(), |resource| without_write_only(&resource.schema, state))
    }
}
