use std::{collections::BTreeMap, sync::OnceLock};

use crate::{
    framework::{Diagnostic, Diagnostics, Ends, Provider, Schema, Server, Type},
    protocol::tfplugin6::get_provider_schema,
};

/// What every call works with: the provider being served, and what is made from its schemas once.
pub(in crate::protocol) struct Driver<P: Provider> {
    pub(in crate::protocol) server: Server<P>,
    /// The type of the provider's configuration.
    pub(in crate::protocol) config_type: Type,
    resource_types: BTreeMap<&'static str, Type>,
    data_source_types: BTreeMap<&'static str, Type>,
    ephemeral_resource_types: BTreeMap<&'static str, Type>,
    list_resource_types: BTreeMap<&'static str, Type>,
    action_types: BTreeMap<&'static str, Type>,
    identity_types: BTreeMap<&'static str, Type>,
    /// Made when it is first asked for, which many processes never are.
    pub(in crate::protocol) schemas: OnceLock<get_provider_schema::Response>,
}

impl<P: Provider> Driver<P> {
    pub(super) fn new(provider: P, ends: Ends) -> Self {
        let server = Server::new(provider, ends);
        let schemas = server.schemas();
        Self {
            config_type: schemas.provider.ty(),
            resource_types: types(&schemas.resources),
            data_source_types: types(&schemas.data_sources),
            ephemeral_resource_types: types(&schemas.ephemeral_resources),
            list_resource_types: types(&schemas.list_resources),
            action_types: types(&schemas.actions),
            identity_types: schemas.identities.iter().map(|(name, schema)| (*name, schema.ty())).collect(),
            schemas: OnceLock::new(),
            server,
        }
    }

    /// The type of a resource's values.
    pub(in crate::protocol) fn resource_type(&self, type_name: &str) -> Result<&Type, Diagnostics> {
        self.resource_types.get(type_name).ok_or_else(|| not_offered("resource", type_name))
    }

    /// The type of a resource's identity, where it has one.
    pub(in crate::protocol) fn identity_type(&self, type_name: &str) -> Option<&Type> {
        self.identity_types.get(type_name)
    }

    /// The type of a data source's values.
    pub(in crate::protocol) fn data_source_type(&self, type_name: &str) -> Result<&Type, Diagnostics> {
        self.data_source_types.get(type_name).ok_or_else(|| not_offered("data source", type_name))
    }

    /// The type of a list resource's `config` block.
    pub(in crate::protocol) fn list_resource_type(&self, type_name: &str) -> Result<&Type, Diagnostics> {
        self.list_resource_types.get(type_name).ok_or_else(|| not_offered("list resource", type_name))
    }

    /// The type of an action's `config` block.
    pub(in crate::protocol) fn action_type(&self, type_name: &str) -> Result<&Type, Diagnostics> {
        self.action_types.get(type_name).ok_or_else(|| not_offered("action", type_name))
    }

    /// The type of an ephemeral resource's values.
    pub(in crate::protocol) fn ephemeral_resource_type(&self, type_name: &str) -> Result<&Type, Diagnostics> {
        self.ephemeral_resource_types.get(type_name).ok_or_else(|| not_offered("ephemeral resource", type_name))
    }
}

fn types(schemas: &BTreeMap<&'static str, Schema>) -> BTreeMap<&'static str, Type> {
    schemas.iter().map(|(name, schema)| (*name, schema.ty())).collect()
}

/// The answer to a question about something that this provider does not have.
pub(in crate::protocol) fn not_offered(kind: &str, name: &str) -> Diagnostics {
    Diagnostic::error(format!("No such {kind}"), format!("This version of the provider has no {kind} {name:?}.")).into()
}
