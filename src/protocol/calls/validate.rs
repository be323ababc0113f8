//! Messages that validate configurations.

use crate::{
    framework::{Diagnostics, Kind, Provider, Server},
    protocol::{
        convert,
        service::{Answer as _, Call},
        tfplugin6::{
            validate_action_config, validate_data_resource_config, validate_ephemeral_resource_config,
            validate_list_resource_config, validate_resource_config,
        },
    },
};

/// Cores before 1.11 would keep write-only values in a plan; only this call says whether the core is one of them.
fn takes_write_only(request: &validate_resource_config::Request) -> bool {
    request.client_capabilities.is_some_and(|client| client.write_only_attributes_allowed)
}

macro_rules! validate {
    ($($name:literal $message:ident.$field:ident: $kind:ident, $write_only:expr;)*) => {
        $(impl Call for $message::Request {
            type Response = $message::Response;
            const NAME: &'static str = $name;

            fn type_name(&self) -> &str {
                &self.$field
            }

            async fn answer<P: Provider>(&self, server: &Server<P>) -> Result<Self::Response, Diagnostics> {
                let (kind, write_only): (Kind, fn(&Self) -> bool) = (Kind::$kind, $write_only);
                let ty = &server.registry().find(kind, &self.$field)?.ty;
                let config = convert::read(ty, self.config.as_ref(), "configuration")?;
                let mut response = Self::Response::default();
                response.say(server.validate(kind, &self.$field, &config, write_only(self)));
                Ok(response)
            }
        })*
    };
}

validate! {
    "ValidateActionConfig" validate_action_config.type_name: Action, |_| true;
    "ValidateDataResourceConfig" validate_data_resource_config.type_name: DataSource, |_| true;
    "ValidateEphemeralResourceConfig" validate_ephemeral_resource_config.type_name: EphemeralResource, |_| true;
    "ValidateListResourceConfig" validate_list_resource_config.type_name: ListResource, |_| true;
    "ValidateResourceConfig" validate_resource_config.type_name: Resource, takes_write_only;
}
