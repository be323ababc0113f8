//! Messages of ephemeral resources.

use jiff::Timestamp;
use prost_types::Timestamp as WireTimestamp;

use crate::{
    framework::{Diagnostics, Kind, Private, Provider, Server},
    protocol::{
        convert,
        service::{Answer as _, Call},
        tfplugin6::{close_ephemeral_resource, open_ephemeral_resource, renew_ephemeral_resource},
    },
};

impl Call for open_ephemeral_resource::Request {
    type Response = open_ephemeral_resource::Response;
    const NAME: &'static str = "OpenEphemeralResource";

    fn type_name(&self) -> &str {
        &self.type_name
    }

    async fn answer<P: Provider>(&self, server: &Server<P>) -> Result<Self::Response, Diagnostics> {
        let ty = &server.registry().find(Kind::EphemeralResource, &self.type_name)?.ty;
        let config = convert::read(ty, self.config.as_ref(), "configuration")?;
        let deferral_allowed = self.client_capabilities.is_some_and(|client| client.deferral_allowed);
        let opened = server.open_ephemeral_resource(&self.type_name, config, deferral_allowed).await;
        let mut diagnostics = opened.diagnostics;
        let mut response = open_ephemeral_resource::Response {
            result: convert::written(ty, &opened.result, &mut diagnostics),
            private: Some(opened.private.encode()),
            renew_at: opened.renew_at.map(moment),
            deferred: opened.deferred.map(convert::deferred),
            diagnostics: Vec::new(),
        };
        response.say(diagnostics);
        Ok(response)
    }
}

impl Call for renew_ephemeral_resource::Request {
    type Response = renew_ephemeral_resource::Response;
    const NAME: &'static str = "RenewEphemeralResource";

    fn type_name(&self) -> &str {
        &self.type_name
    }

    /// What there was: without it the close would not find what is open.
    fn fallback(&self) -> Self::Response {
        renew_ephemeral_resource::Response { private: self.private.clone(), ..Self::Response::default() }
    }

    async fn answer<P: Provider>(&self, server: &Server<P>) -> Result<Self::Response, Diagnostics> {
        server.registry().find(Kind::EphemeralResource, &self.type_name)?;
        let private = Private::decode(self.private.as_deref().unwrap_or_default());
        let renewed = server.renew_ephemeral_resource(&self.type_name, private).await;
        let mut response = renew_ephemeral_resource::Response {
            private: Some(renewed.private.encode()),
            renew_at: renewed.renew_at.map(moment),
            diagnostics: Vec::new(),
        };
        response.say(renewed.diagnostics);
        Ok(response)
    }
}

impl Call for close_ephemeral_resource::Request {
    type Response = close_ephemeral_resource::Response;
    const NAME: &'static str = "CloseEphemeralResource";

    fn type_name(&self) -> &str {
        &self.type_name
    }

    async fn answer<P: Provider>(&self, server: &Server<P>) -> Result<Self::Response, Diagnostics> {
        let private = Private::decode(self.private.as_deref().unwrap_or_default());
        let mut response = Self::Response::default();
        response.say(server.close_ephemeral_resource(&self.type_name, private).await);
        Ok(response)
    }
}

fn moment(time: Timestamp) -> WireTimestamp {
    let whole = time.as_nanosecond().div_euclid(1_000_000_000);
    WireTimestamp {
        seconds: i64::try_from(whole).unwrap_or(i64::MAX),
        nanos: i32::try_from(time.as_nanosecond().rem_euclid(1_000_000_000)).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_before_1970_counts_its_nanoseconds_forward() {
        let wire = |nanoseconds| moment(Timestamp::from_nanosecond(nanoseconds).unwrap());
        assert_eq!(wire(1_500_000_000), WireTimestamp { seconds: 1, nanos: 500_000_000 });
        assert_eq!(wire(-1), WireTimestamp { seconds: -1, nanos: 999_999_999 });
    }
}
