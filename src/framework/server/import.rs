use super::{Server, configure::model_fault};
use crate::framework::{
    Diagnostics, Private, Provider, Value,
    assumed::assume,
    fill::{fill_defaults, without_write_only},
};

/// What an import found.
#[derive(Debug)]
pub struct ImportResponse {
    /// A state that the following refresh completes; null with errors.
    pub state: Value,
    /// What is kept beside it.
    pub private: Private,
    /// Messages for the operator.
    pub diagnostics: Diagnostics,
}

impl<P: Provider> Server<P> {
    /// Imports by id (plugin protocol, import). Arguments with a default get it, so that the plan that follows is empty.
    pub async fn import(&self, type_name: &str, id: &str) -> ImportResponse {
        let failed = |diagnostics| ImportResponse { state: Value::Null, private: Private::default(), diagnostics };
        let ready = self.resource(type_name).and_then(|resource| Ok((resource, self.configuration().client()?)));
        let (resource, client) = match ready {
            Ok(ready) => ready,
            Err(diagnostics) => return failed(diagnostics),
        };
        let context = self.context(client, resource.timeouts(&Value::Null).read);
        let outcome = match resource.import(id, context).await {
            Ok(outcome) => outcome,
            Err(error) => return failed(model_fault(&error)),
        };
        let mut diagnostics = outcome.diagnostics;
        match outcome.state {
            _ if diagnostics.has_errors() => failed(diagnostics),
            Some(state) => {
                let schema = resource.schema();
                let mut private = outcome.private;
                assume(schema, &state, &mut private);
                let state = without_write_only(schema, &fill_defaults(schema, &state.unknown_as_null()));
                ImportResponse { state, private, diagnostics }
            }
            None => {
                diagnostics.error("Nothing to import", format!("There is no {type_name} with the id {id:?}."));
                failed(diagnostics)
            }
        }
    }
}
