//! Calls for what this provider does not have. The core makes none of them, since no schema offers anything of the kind; whoever
//! makes one gets an answer in the form that the call has for errors, never a transport status.

use crate::{
    framework::{Diagnostics, Provider},
    protocol::{
        service::{Call, Driver, not_offered},
        tfplugin6::{
            StateRange, call_function, close_ephemeral_resource, configure_state_store, delete_state,
            generate_resource_config, get_states, invoke_action, list_resource, lock_state, move_resource_state,
            open_ephemeral_resource, plan_action, read_state_bytes, renew_ephemeral_resource, unlock_state,
            upgrade_resource_identity, validate_action_config, validate_ephemeral_resource_config,
            validate_list_resource_config, validate_state_store, write_state_bytes,
        },
    },
};

macro_rules! unoffered {
    ($($name:literal $message:ident.$field:ident -> $response:ident: $kind:literal;)*) => {
        $(impl Call for $message::Request {
            type Response = $message::$response;
            const NAME: &'static str = $name;

            fn type_name(&self) -> &str {
                &self.$field
            }

            async fn answer<P: Provider>(&self, _: &Driver<P>) -> Result<Self::Response, Diagnostics> {
                Err(not_offered($kind, &self.$field))
            }
        })*
    };
}

unoffered! {
    "CallFunction" call_function.name -> Response: "function";
    "CloseEphemeralResource" close_ephemeral_resource.type_name -> Response: "ephemeral resource";
    "ConfigureStateStore" configure_state_store.type_name -> Response: "state store";
    "DeleteState" delete_state.type_name -> Response: "state store";
    "GenerateResourceConfig" generate_resource_config.type_name -> Response: "generator of configuration for";
    "GetStates" get_states.type_name -> Response: "state store";
    "InvokeAction" invoke_action.action_type -> Event: "action";
    "ListResource" list_resource.type_name -> Event: "list resource";
    "LockState" lock_state.type_name -> Response: "state store";
    "MoveResourceState" move_resource_state.target_type_name -> Response: "move from another type to";
    "OpenEphemeralResource" open_ephemeral_resource.type_name -> Response: "ephemeral resource";
    "PlanAction" plan_action.action_type -> Response: "action";
    "RenewEphemeralResource" renew_ephemeral_resource.type_name -> Response: "ephemeral resource";
    "UnlockState" unlock_state.type_name -> Response: "state store";
    "UpgradeResourceIdentity" upgrade_resource_identity.type_name -> Response: "identity of";
    "ValidateActionConfig" validate_action_config.type_name -> Response: "action";
    "ValidateEphemeralResourceConfig" validate_ephemeral_resource_config.type_name -> Response: "ephemeral resource";
    "ValidateListResourceConfig" validate_list_resource_config.type_name -> Response: "list resource";
    "ValidateStateStoreConfig" validate_state_store.type_name -> Response: "state store";
}

impl Call for read_state_bytes::Request {
    type Response = read_state_bytes::Response;
    const NAME: &'static str = "ReadStateBytes";

    fn type_name(&self) -> &str {
        &self.type_name
    }

    /// A chunk without a range crashes the core (plugin protocol, missing-field crashes).
    fn fallback(&self) -> Self::Response {
        read_state_bytes::Response { range: Some(StateRange::default()), ..Self::Response::default() }
    }

    async fn answer<P: Provider>(&self, _: &Driver<P>) -> Result<Self::Response, Diagnostics> {
        Err(not_offered("state store", &self.type_name))
    }
}

impl Call for write_state_bytes::RequestChunk {
    type Response = write_state_bytes::Response;
    const NAME: &'static str = "WriteStateBytes";

    fn type_name(&self) -> &str {
        self.meta.as_ref().map_or("", |meta| &meta.type_name)
    }

    async fn answer<P: Provider>(&self, _: &Driver<P>) -> Result<Self::Response, Diagnostics> {
        Err(not_offered("state store", self.type_name()))
    }
}
