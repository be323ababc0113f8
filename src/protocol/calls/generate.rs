//! Messages of generated configurations.

use crate::{
    framework::{Diagnostics, Kind, Provider, Server},
    protocol::{
        convert,
        service::{Answer as _, Call},
        tfplugin6::generate_resource_config,
    },
};

impl Call for generate_resource_config::Request {
    type Response = generate_resource_config::Response;
    const NAME: &'static str = "GenerateResourceConfig";

    fn type_name(&self) -> &str {
        &self.type_name
    }

    async fn answer<P: Provider>(&self, server: &Server<P>) -> Result<Self::Response, Diagnostics> {
        let ty = &server.registry().find(Kind::Resource, &self.type_name)?.ty;
        let state = convert::read(ty, self.state.as_ref(), "state")?;
        let (config, mut diagnostics) = server.generate_config(&self.type_name, &state);
        let mut response = generate_resource_config::Response {
            config: convert::written(ty, &config, &mut diagnostics),
            diagnostics: Vec::new(),
        };
        response.say(diagnostics);
        Ok(response)
    }
}
