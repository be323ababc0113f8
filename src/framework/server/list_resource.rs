//! The calls of list resources.

use tokio::sync::mpsc;

use super::{Server, configure::model_fault};
use crate::framework::{
    Diagnostic, Diagnostics, Kind, ListEvent, Provider, Value, fill::fill_defaults, list_resource::Told,
};

/// A list asked for.
#[derive(Debug)]
pub struct ListRequest {
    /// The `config` block.
    pub config: Value,
    /// Whether whole states are wanted.
    pub wants_state: bool,
    /// How many things are wanted at most.
    pub limit: usize,
}

impl<P: Provider> Server<P> {
    /// Lists what there is of a resource's type (plugin protocol, list resources). It ends early when nobody takes the
    /// events.
    pub async fn list(&self, type_name: &str, request: ListRequest, events: mpsc::Sender<ListEvent>) -> Diagnostics {
        let ready = self.registry.find(Kind::ListResource, type_name).and_then(|list| {
            let resource = self.resource(type_name)?;
            let identity = resource.identity.as_ref().ok_or_else(|| {
                let detail = format!("A {type_name} has no identity in this version of the provider.");
                Diagnostics::from(Diagnostic::error("It cannot be listed", detail))
            })?;
            Ok((list, &resource.schema, identity, self.configuration().client()?))
        });
        let (list, schema, identity, client) = match ready {
            Ok(ready) => ready,
            Err(diagnostics) => return diagnostics,
        };
        let mut fault = None;
        let mut told = Told {
            schema,
            identity,
            wants_state: request.wants_state,
            wanted: request.limit,
            events: events.clone(),
            fault: &mut fault,
        };
        let config = fill_defaults(&list.schema, &request.config);
        let listing = list.steps.list(config, &mut told, self.context(client, list.timeout()));
        let listed = tokio::select! {
            listed = listing => listed,
            () = events.closed() => return Diagnostics::new(),
        };
        match listed {
            Ok(diagnostics) => fault.map_or(diagnostics, |error| model_fault(&error)),
            Err(error) => model_fault(&error),
        }
    }
}
