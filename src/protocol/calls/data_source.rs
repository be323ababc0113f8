use crate::{
    framework::{Diagnostics, Provider},
    protocol::{
        convert,
        service::{Answer as _, Call, Driver},
        tfplugin6::{read_data_source, validate_data_resource_config},
    },
};

impl Call for validate_data_resource_config::Request {
    type Response = validate_data_resource_config::Response;
    const NAME: &'static str = "ValidateDataResourceConfig";

    fn type_name(&self) -> &str {
        &self.type_name
    }

    async fn answer<P: Provider>(&self, driver: &Driver<P>) -> Result<Self::Response, Diagnostics> {
        let ty = driver.data_source_type(&self.type_name)?;
        let config = convert::read(ty, self.config.as_ref(), "configuration")?;
        let mut response = Self::Response::default();
        response.say(driver.server.validate_data_source(&self.type_name, &config));
        Ok(response)
    }
}

impl Call for read_data_source::Request {
    type Response = read_data_source::Response;
    const NAME: &'static str = "ReadDataSource";

    fn type_name(&self) -> &str {
        &self.type_name
    }

    async fn answer<P: Provider>(&self, driver: &Driver<P>) -> Result<Self::Response, Diagnostics> {
        let ty = driver.data_source_type(&self.type_name)?;
        let config = convert::read(ty, self.config.as_ref(), "configuration")?;
        let deferral_allowed = self.client_capabilities.is_some_and(|client| client.deferral_allowed);
        let read = driver.server.read_data_source(&self.type_name, config, deferral_allowed).await;
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
