//! Messages that read, import, move and upgrade resources.

use crate::{
    framework::{
        Diagnostic, Diagnostics, IdentitySchema, Kind, Private, Provider, Server, Type,
        server::{ImportTarget, ReadRequest},
    },
    protocol::{
        convert,
        service::{Answer as _, Call},
        tfplugin6::{
            RawState, import_resource_state, move_resource_state, read_resource, upgrade_resource_identity,
            upgrade_resource_state,
        },
    },
};

impl Call for upgrade_resource_state::Request {
    type Response = upgrade_resource_state::Response;
    const NAME: &'static str = "UpgradeResourceState";

    fn type_name(&self) -> &str {
        &self.type_name
    }

    async fn answer<P: Provider>(&self, server: &Server<P>) -> Result<Self::Response, Diagnostics> {
        let ty = &server.registry().find(Kind::Resource, &self.type_name)?.ty;
        let stored = stored_state(self.raw_state.as_ref())?;
        let upgraded = server.upgrade(&self.type_name, self.version, stored)?;
        let state = convert::read_stored(ty, &upgraded, "stored state")?;
        let state = server.without_write_only(&self.type_name, &state);
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
            new_identity: self.current_identity.clone(),
            ..Self::Response::default()
        }
    }

    async fn answer<P: Provider>(&self, server: &Server<P>) -> Result<Self::Response, Diagnostics> {
        let resource = server.registry().find(Kind::Resource, &self.type_name)?;
        let ty = &resource.ty;
        let request = ReadRequest {
            state: convert::read(ty, self.current_state.as_ref(), "state")?,
            private: Private::decode(&self.private),
        };
        let read = server.read(&self.type_name, request).await;
        let mut diagnostics = read.diagnostics;
        let mut response = read_resource::Response {
            new_state: convert::written(ty, &read.state, &mut diagnostics),
            private: read.private.encode(),
            new_identity: convert::identity(resource.identity.as_ref(), read.identity.as_ref(), &mut diagnostics),
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

    async fn answer<P: Provider>(&self, server: &Server<P>) -> Result<Self::Response, Diagnostics> {
        let resource = server.registry().find(Kind::Resource, &self.type_name)?;
        let ty = &resource.ty;
        let target = match (&resource.identity, &self.identity) {
            (Some(schema), Some(identity)) if self.id.is_empty() => {
                ImportTarget::Identity(convert::read(&schema.ty(), identity.identity_data.as_ref(), "identity")?)
            }
            _ => ImportTarget::Id(self.id.clone()),
        };
        let import = server.import(&self.type_name, target).await;
        let mut diagnostics = import.diagnostics;
        let mut response = Self::Response::default();
        if !diagnostics.has_errors() {
            response.imported_resources.push(import_resource_state::ImportedResource {
                type_name: self.type_name.clone(),
                state: convert::written(ty, &import.state, &mut diagnostics),
                private: import.private.encode(),
                identity: convert::identity(resource.identity.as_ref(), import.identity.as_ref(), &mut diagnostics),
            });
        }
        response.say(diagnostics);
        Ok(response)
    }
}

impl Call for upgrade_resource_identity::Request {
    type Response = upgrade_resource_identity::Response;
    const NAME: &'static str = "UpgradeResourceIdentity";

    fn type_name(&self) -> &str {
        &self.type_name
    }

    async fn answer<P: Provider>(&self, server: &Server<P>) -> Result<Self::Response, Diagnostics> {
        let schema = server.registry().find(Kind::Resource, &self.type_name)?.identity.as_ref();
        // A state without an identity comes with no JSON at all.
        let json = self.raw_identity.as_ref().map(|raw| raw.json.as_slice()).filter(|json| !json.is_empty());
        let stored = stored_json(json.unwrap_or(b"{}"), "identity")?;
        let upgraded = server.upgrade_identity(&self.type_name, self.version, stored)?;
        let ty = schema.map(IdentitySchema::ty).unwrap_or(Type::Dynamic);
        let identity = convert::read_stored(&ty, &upgraded, "stored identity")?;
        let mut diagnostics = Diagnostics::new();
        let mut response = upgrade_resource_identity::Response {
            upgraded_identity: convert::identity(schema, Some(&identity), &mut diagnostics),
            diagnostics: Vec::new(),
        };
        response.say(diagnostics);
        Ok(response)
    }
}

/// No state of another type holds what a state here needs.
impl Call for move_resource_state::Request {
    type Response = move_resource_state::Response;
    const NAME: &'static str = "MoveResourceState";

    fn type_name(&self) -> &str {
        &self.target_type_name
    }

    async fn answer<P: Provider>(&self, _: &Server<P>) -> Result<Self::Response, Diagnostics> {
        let (from, to) = (&self.source_type_name, &self.target_type_name);
        Err(Diagnostic::error(
            format!("{from} cannot be moved to {to}"),
            format!(
                "The state is unchanged. Instead of the moved block, write a removed block for the {from} with \
                 destroy = false, and an import block for the {to}."
            ),
        )
        .into())
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
    stored_json(json, "state")
}

fn stored_json(json: &[u8], what: &str) -> Result<serde_json::Value, Diagnostics> {
    serde_json::from_slice(json).map_err(|_| {
        Diagnostic::error(
            format!("The stored {what} cannot be read"),
            format!("What the core sent as the stored {what} is not JSON. The state is unchanged."),
        )
        .into()
    })
}
