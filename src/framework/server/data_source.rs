//! The calls of data sources.

use super::{
    Server,
    configure::{Configuration, model_fault},
};
use crate::framework::{Diagnostics, Kind, Outcome, Private, Provider, State, Value, fill::fill_defaults, steps::Step};

/// Why an answer is put off to a later round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deferral {
    /// The provider's configuration is not known yet.
    ProviderConfigUnknown,
}

/// What a data source read.
#[derive(Debug)]
pub struct DataSourceResponse {
    /// The result; the configuration itself when it was put off or failed.
    pub state: Value,
    /// Messages for the operator.
    pub diagnostics: Diagnostics,
    /// Whether it was put off, and why.
    pub deferred: Option<Deferral>,
}

impl<P: Provider> Server<P> {
    /// Reads a data source (plugin protocol, data sources).
    pub async fn read_data_source(&self, type_name: &str, config: Value, deferral_allowed: bool) -> DataSourceResponse {
        let answer = |diagnostics, deferred| DataSourceResponse { state: config.clone(), diagnostics, deferred };
        if deferral_allowed && matches!(self.configuration(), Configuration::Unknown(_)) {
            return answer(Diagnostics::new(), Some(Deferral::ProviderConfigUnknown));
        }
        let (source, client) = match self.ready(Kind::DataSource, type_name) {
            Ok(ready) => ready,
            Err(diagnostics) => return answer(diagnostics, None),
        };
        let context = self.context(client, source.timeout());
        let read = State { state: fill_defaults(&source.schema, &config), private: Private::default() };
        match source.steps.act(Step::Read(read), context).await {
            Err(error) => answer(model_fault(&error), None),
            Ok(Outcome { state: Some(state), diagnostics, .. }) => {
                DataSourceResponse { state: state.unknown_as_null(), diagnostics, deferred: None }
            }
            Ok(Outcome { state: None, mut diagnostics, .. }) => {
                if !diagnostics.has_errors() {
                    diagnostics.error(
                        "The data source has no result",
                        format!(
                            "This is a bug in the provider, please report it: {type_name} was read without a \
                                 result and without an error."
                        ),
                    );
                }
                answer(diagnostics, None)
            }
        }
    }
}
