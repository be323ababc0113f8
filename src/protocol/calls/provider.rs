//! Messages of the provider's configuration.

use crate::{
    framework::{Diagnostics, Provider, Server, server::ConfigureRequest},
    protocol::{
        convert,
        service::{Answer as _, Call},
        tfplugin6::{configure_provider, validate_provider_config},
    },
};

impl Call for validate_provider_config::Request {
    type Response = validate_provider_config::Response;
    const NAME: &'static str = "ValidateProviderConfig";

    async fn answer<P: Provider>(&self, server: &Server<P>) -> Result<Self::Response, Diagnostics> {
        let config = convert::read(server.config_type(), self.config.as_ref(), "provider's configuration")?;
        let mut response = Self::Response::default();
        response.say(server.validate_provider(&config));
        Ok(response)
    }
}

impl Call for configure_provider::Request {
    type Response = configure_provider::Response;
    const NAME: &'static str = "ConfigureProvider";

    async fn answer<P: Provider>(&self, server: &Server<P>) -> Result<Self::Response, Diagnostics> {
        let request = ConfigureRequest {
            config: convert::read(server.config_type(), self.config.as_ref(), "provider's configuration")?,
            core_version: self.terraform_version.clone(),
        };
        let mut response = Self::Response::default();
        response.say(server.configure(request).await);
        Ok(response)
    }
}
