//! The calls that import and move states.

use super::{Server, configure::model_fault};
use crate::framework::{
    Diagnostic, Diagnostics, Entry, Identity, Private, Provider, Value,
    assumed::assume,
    fill::{fill_defaults, without_write_only},
    steps::Step,
};

/// What an import names.
#[derive(Clone, Debug)]
pub enum ImportTarget {
    /// The import id.
    Id(String),
    /// The identity; newer cores offer that in import blocks.
    Identity(Value),
}

/// What an import found.
#[derive(Debug)]
pub struct ImportResponse {
    /// A state that the following refresh completes; null with errors.
    pub state: Value,
    /// What is kept beside it.
    pub private: Private,
    /// What identifies the thing.
    pub identity: Option<Value>,
    /// Messages for the operator.
    pub diagnostics: Diagnostics,
}

impl<P: Provider> Server<P> {
    /// Imports by id or identity (plugin protocol, import). Arguments with a default get it, so that the plan that
    /// follows is empty.
    pub async fn import(&self, type_name: &str, target: ImportTarget) -> ImportResponse {
        let failed = |diagnostics| ImportResponse {
            state: Value::Null,
            private: Private::default(),
            identity: None,
            diagnostics,
        };
        let ready = self.resource(type_name).and_then(|resource| {
            let id = import_id(resource, &target)?;
            Ok((resource, id, self.configuration().client()?))
        });
        let (resource, id, client) = match ready {
            Ok(ready) => ready,
            Err(diagnostics) => return failed(diagnostics),
        };
        let context = self.context(client, resource.timeout());
        let outcome = match resource.steps.act(Step::Import(id.clone()), context).await {
            Ok(outcome) => outcome,
            Err(error) => return failed(model_fault(&error)),
        };
        let mut diagnostics = outcome.diagnostics;
        match outcome.state {
            _ if diagnostics.has_errors() => failed(diagnostics),
            Some(state) => {
                let schema = &resource.schema;
                let mut private = outcome.private;
                assume(schema, &state, &mut private);
                let state = without_write_only(schema, &fill_defaults(schema, &state.unknown_as_null()));
                let identity = self.identity(type_name, &state);
                ImportResponse { state, private, identity, diagnostics }
            }
            None => {
                diagnostics.error("Nothing to import", format!("{type_name} {id:?} does not exist."));
                failed(diagnostics)
            }
        }
    }
}

fn import_id<C: Send + Sync>(resource: &Entry<C>, target: &ImportTarget) -> Result<String, Diagnostics> {
    let identity = match target {
        ImportTarget::Id(id) => return Ok(id.clone()),
        ImportTarget::Identity(identity) => identity,
    };
    let schema = resource.identity.as_ref().ok_or_else(|| {
        let detail = format!("A {} is imported by its id.", resource.name);
        Diagnostics::from(Diagnostic::error("Nothing is imported by identity here", detail))
    })?;
    match schema.missing(identity) {
        Some(attribute) => {
            let detail = format!("The identity of the import must have {}.", attribute.name);
            Err(Diagnostic::error("An incomplete identity", detail).into())
        }
        None => resource.steps.import_id(&Identity(identity.clone())),
    }
}
