//! Messages that plan and apply changes.

use crate::{
    framework::{
        Diagnostics, Kind, Private, Provider, Server,
        server::{ApplyRequest, PlanRequest},
    },
    protocol::{
        convert,
        service::{Answer as _, Call},
        tfplugin6::{apply_resource_change, plan_resource_change},
    },
};

/// The msgpack of null.
const NIL: u8 = 0xc0;

impl Call for plan_resource_change::Request {
    type Response = plan_resource_change::Response;
    const NAME: &'static str = "PlanResourceChange";

    fn type_name(&self) -> &str {
        &self.type_name
    }

    fn fallback(&self) -> Self::Response {
        plan_resource_change::Response {
            planned_state: self.proposed_new_state.clone(),
            planned_private: self.prior_private.clone(),
            planned_identity: self.prior_identity.clone(),
            ..Self::Response::default()
        }
    }

    async fn answer<P: Provider>(&self, server: &Server<P>) -> Result<Self::Response, Diagnostics> {
        let resource = server.registry().find(Kind::Resource, &self.type_name)?;
        let ty = &resource.ty;
        let request = PlanRequest {
            config: convert::read(ty, self.config.as_ref(), "configuration")?,
            prior: convert::read(ty, self.prior_state.as_ref(), "prior state")?,
            proposed: convert::read(ty, self.proposed_new_state.as_ref(), "proposed state")?,
            private: Private::decode(&self.prior_private),
            earlier: (!self.planned_private.is_empty()).then(|| Private::decode(&self.planned_private)),
        };
        let plan = server.plan(&self.type_name, request).await;
        let mut diagnostics = plan.diagnostics;
        let mut response = plan_resource_change::Response {
            planned_state: convert::written(ty, &plan.planned, &mut diagnostics),
            requires_replace: convert::paths(&plan.replace),
            planned_private: plan.private.encode(),
            planned_identity: convert::identity(resource.identity.as_ref(), plan.identity.as_ref(), &mut diagnostics),
            ..Self::Response::default()
        };
        response.say(diagnostics);
        Ok(response)
    }
}

impl Call for apply_resource_change::Request {
    type Response = apply_resource_change::Response;
    const NAME: &'static str = "ApplyResourceChange";

    fn type_name(&self) -> &str {
        &self.type_name
    }

    /// What was there before. A transport error in its place would lose what exists (plugin protocol, status errors).
    fn fallback(&self) -> Self::Response {
        // The planned identity of what did not exist may hold unknown values, which an apply must not answer.
        let prior = self.prior_state.as_ref().map_or(&[][..], |prior| &prior.msgpack);
        let existed = !matches!(prior, [] | [NIL]);
        apply_resource_change::Response {
            new_state: self.prior_state.clone(),
            private: self.planned_private.clone(),
            new_identity: self.planned_identity.clone().filter(|_| existed),
            ..Self::Response::default()
        }
    }

    async fn answer<P: Provider>(&self, server: &Server<P>) -> Result<Self::Response, Diagnostics> {
        let resource = server.registry().find(Kind::Resource, &self.type_name)?;
        let ty = &resource.ty;
        let request = ApplyRequest {
            config: convert::read(ty, self.config.as_ref(), "configuration")?,
            prior: convert::read(ty, self.prior_state.as_ref(), "prior state")?,
            planned: convert::read(ty, self.planned_state.as_ref(), "planned state")?,
            private: Private::decode(&self.planned_private),
        };
        let apply = server.apply(&self.type_name, request).await;
        let mut diagnostics = apply.diagnostics;
        let mut response = apply_resource_change::Response {
            new_state: convert::written(ty, &apply.state, &mut diagnostics),
            private: apply.private.encode(),
            new_identity: convert::identity(resource.identity.as_ref(), apply.identity.as_ref(), &mut diagnostics),
            ..Self::Response::default()
        };
        response.say(diagnostics);
        Ok(response)
    }
}
