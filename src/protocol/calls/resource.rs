use crate::{
    framework::{Diagnostic, Diagnostics, Private, Provider, server::ReadRequest},
    protocol::{
        convert,
        service::{Answer as _, Call, Driver},
        tfplugin6::{RawState, import_resource_state, read_resource, upgrade_resource_state, validate_resource_config},
    },
};

impl Call for validate_resource_config::Request {
    type Response = validate_resource_config::Response;
    const NAME: &'static str = "ValidateResourceConfig";

    fn type_name(&self) -> &str {
        &self.type_name
    }

    async fn answer<P: Provider>(&self, driver: &Driver<P>) -> Result<Self::Response, Diagnostics> {
        let ty = driver.resource_type(&self.type_name)?;
        let config = convert::read(ty, self.config.as_ref(), "configuration")?;
        let write_only_allowed = self.client_capabilities.is_some_and(|client| client.write_only_attributes_allowed);
        let mut response = Self::Response::default();
        response.say(driver.server.validate_resource(&self.type_name, &config, write_only_allowed));
        Ok(response)
    }
}

impl Call for upgrade_resource_state::Request {
    type Response = upgrade_resource_state::Response;
    const NAME: &'static str = "UpgradeResourceState";

    fn type_name(&self) -> &str {
        &self.type_name
    }

    async fn answer<P: Provider>(&self, driver: &Driver<P>) -> Result<Self::Response, Diagnostics> {
        let ty = driver.resource_type(&self.type_name)?;
        let stored = stored_state(self.raw_state.as_ref())?;
        let upgraded = driver.server.upgrade(&self.type_name, self.version, stored)?;
        let state = driver.server.without_write_only(&self.type_name, &convert::read_state(ty, &upgraded)?);
        let mut diagnostics = Diagnostics::new();
        let mut response = upgrade_resource_state::Response {
            upgraded_state: convert::written(ty, &state, &mut diagnostics),
            diagnostics: Vec::new(),
        };
        response.say(diagnostics);
        Ok(response)
    }
}

impl Call for read_resource::Request {
    type Response = read_resource::Response;
    const NAME: &'static str = "ReadResource";

    fn type_name(&self) -> &str {
        &self.type_name
    }

    /// The state as it was: an empty answer would say that the thing is gone.
    fn fallback(&self) -> Self::Response {
        read_resource::Response {
            new_state: self.current_state.clone(),
            private: self.private.clone(),
            ..Self::Response::default()
        }
    }

    async fn answer<P: Provider>(&self, driver: &Driver<P>) -> Result<Self::Response, Diagnostics> {
        let ty = driver.resource_type(&self.type_name)?;
        let request = ReadRequest {
            state: convert::read(ty, self.current_state.as_ref(), "state")?,
            private: Private::decode(&self.private),
        };
        let read = driver.server.read(&self.type_name, request).await;
        let mut diagnostics = read.diagnostics;
        let mut response = read_resource::Response {
            new_state: convert::written(ty, &read.state, &mut diagnostics),
            private: read.private.encode(),
            ..Self::Response::default()
        };
        response.say(diagnostics);
        Ok(response)
    }
}

impl Call for import_resource_state::Request {
    type Response = import_resource_state::Response;
    const NAME: &'static str = "ImportResourceState";

    fn type_name(&self) -> &str {
        &self.type_name
    }

    async fn answer<P: Provider>(&self, driver: &Driver<P>) -> Result<Self::Response, Diagnostics> {
        let ty = driver.resource_type(&self.type_name)?;
        let import = driver.server.import(&self.type_name, &self.id).await;
        let mut diagnostics = import.diagnostics;
        let mut response = Self::Response::default();
        if !diagnostics.has_errors() {
            response.imported_resources.push(import_resource_state::ImportedResource {
                type_name: self.type_name.clone(),
                state: convert::written(ty, &import.state, &mut diagnostics),
                private: import.private.encode(),
                identity: None,
            });
        }
        response.say(diagnostics);
        Ok(response)
    }
}

/// The JSON of a stored state (plugin protocol, UpgradeResourceState input).
fn stored_state(raw: Option<&RawState>) -> Result<serde_json::Value, Diagnostics> {
    let (json, flatmap) = raw.map_or((&[][..], None), |raw| (raw.json.as_slice(), Some(&raw.flatmap)));
    if json.is_empty() && flatmap.is_some_and(|flatmap| !flatmap.is_empty()) {
        return Err(Diagnostic::error(
            "The state is too old",
            "It was written by a Terraform before 0.12, in a form that this provider never used. \
             The state is unchanged. Remove the resource from the state, and import it.",
        )
        .into());
    }
    serde_json::from_slice(json).map_err(|_| {
        Diagnostic::error(
            "The stored state cannot be read",
            "What the core sent as the stored state is not JSON. The state is unchanged.",
        )
        .into()
    })
}
