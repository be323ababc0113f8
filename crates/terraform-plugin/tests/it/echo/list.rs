//! A list of made-up resources, controlled by its `config` block.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use terraform_plugin::framework::{
    Attr, Diagnostic, Diagnostics, ListResource, ListSender, Listed, Result, Schema, Secret, StepContext, Type,
    schema::Attribute,
};

use super::{Signals, THING, Thing};

#[derive(Debug)]
pub(super) struct ThingList;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Filters {
    count_of: Attr<i64>,
    then: Attr<String>,
}

impl ListResource for ThingList {
    type Client = Signals;
    type Model = Filters;
    type Resource = Thing;

    fn type_name(&self) -> &'static str {
        THING
    }

    fn schema(&self) -> Schema {
        Schema::new(
            "Things.",
            vec![
                Attribute::with_default("count_of", Type::Number, 3, "How many."),
                Attribute::optional("then", Type::String, "What comes after them."),
            ],
        )
    }

    fn validate(&self, config: &Filters, diagnostics: &mut Diagnostics) {
        if config.then.as_str() == Some("") {
            diagnostics.error("Nothing then", "Say something, or nothing.");
        }
    }

    async fn list(
        &self,
        config: Filters,
        mut found: ListSender<'_, Thing>,
        context: StepContext<Signals>,
    ) -> Result<Diagnostics> {
        let _open = context.client.loans.lend();
        for number in 0..*config.count_of.known().unwrap() {
            let mut state = super::nothing();
            state.id = format!("id-{number}").into();
            if found.wants_state() {
                state.name = format!("{} wanted", found.wanted()).into();
                state.password = Attr::Known(Secret::new("planted"));
            }
            if let ControlFlow::Break(()) = found.send(Listed { display_name: format!("Thing {number}"), state }).await
            {
                return Ok(Diagnostics::new());
            }
        }
        match config.then.as_str() {
            Some("panic") => panic!("planted"),
            Some("fail") => Err(Diagnostic::error("Failed", "The rest is not known.").into()),
            Some("warn") => Ok(Diagnostic::warning("Not all", "Some could not be read.").into()),
            Some("wait") => {
                context.client.started.notify_one();
                std::future::pending().await
            }
            _ => Ok(Diagnostics::new()),
        }
    }
}
