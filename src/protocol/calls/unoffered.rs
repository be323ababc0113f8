//! Calls for what this provider does not have. The core makes none of them, since no schema offers anything of the kind; whoever
//! makes one gets an answer in the form that the call has for errors, never a transport status.

use crate::{
    framework::{Diagnostics, Provider},
    protocol::{
        service::{Call, Driver, not_offered},
        tfplugin6::{
            StateRange, configure_state_store, delete_state, get_states, lock_state, move_resource_state,
            read_state_bytes, unlock_state, validate_state_store, write_state_bytes,
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
    "ConfigureStateStore" configure_state_store.type_name -> Response: "state store";
    "DeleteState" delete_state.type_name -> Response: "state store";
    "GetStates" get_states.type_name -> Response: "state store";
    "LockState" lock_state.type_name -> Response: "state store";
    "MoveResourceState" move_resource_state.target_type_name -> Response: "move from another type to";
    "UnlockState" unlock_state.type_name -> Response: "state store";
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
