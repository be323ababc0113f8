//! Messages of data sources.

use crate::{
    framework::{Diagnostics, Kind, Provider, Server},
    protocol::{
        convert,
        service::{Answer as _, Call},
        tfplugin6::read_data_source,
    },
};

impl Call for read_data_source::Request {
    type Response = read_data_source::Response;
    const NAME: &'static str = "ReadDataSource";

    fn type_name(&self) -> &str {
        &self.type_name
    }

    async fn answer<P: Provider>(&self, server: &Server<P>) -> Result<Self::Response, Diagnostics> {
        let ty = &server.registry().find(Kind::DataSource, &self.type_name)?.ty;
        let config = convert::read(ty, self.config.as_ref(), "configuration")?;
        let deferral_allowed = self.client_capabilities.is_some_and(|client| client.deferral_allowed);
        let read = server.read_data_source(&self.type_name, config, deferral_allowed).await;
        let mut diagnostics = read.diagnostics;
        let mut response = read_data_source::Response {
            state: convert::written(ty, &read.state, &mut diagnostics),
            diagnostics: Vec::new(),
            deferred: read.deferred.map(convert::deferred),
        };
        response.say(diagnostics);
        Ok(response)
    }
}
