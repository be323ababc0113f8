//! An action that sends its arguments as progress.

use serde::{Deserialize, Serialize};
use terraform_plugin::framework::{
    Action, ActionProgress, Attr, Diagnostic, Diagnostics, Path, PlanContext, Result, Schema, StepContext, Type,
    schema::Attribute,
};

use super::Signals;

pub(crate) const SHOUT: &str = "echo_shout";

#[derive(Debug)]
pub(super) struct Shout;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Words {
    text: Attr<String>,
    times: Attr<i64>,
}

impl Action for Shout {
    type Client = Signals;
    type Model = Words;

    fn type_name(&self) -> &'static str {
        SHOUT
    }

    fn schema(&self) -> Schema {
        Schema::new(
            "Shouts.",
            vec![
                Attribute::required("text", Type::String, "What."),
                Attribute::with_default("times", Type::Number, 2, "How often."),
            ],
        )
    }

    fn validate(&self, config: &Words, diagnostics: &mut Diagnostics) {
        if config.text.as_str() == Some("") {
            diagnostics.error_at(Path::to("text"), "Nothing to shout", "Say something.");
        }
    }

    async fn plan(&self, config: Words, context: PlanContext<'_, Signals>) -> Diagnostics {
        let client = if context.client.is_some() { "a client" } else { "no client" };
        let text = config.text.as_str().unwrap_or("what is not known yet").to_owned();
        Diagnostic::warning("Shouting ahead", format!("{text}, with {client}")).into()
    }

    async fn invoke(
        &self,
        config: Words,
        progress: ActionProgress,
        context: StepContext<Signals>,
    ) -> Result<Diagnostics> {
        let text = config.text.as_str().unwrap().to_owned();
        for time in 1..=*config.times.known().unwrap() {
            progress.say(format!("{text} {time}"));
        }
        match text.as_str() {
            "panic" => panic!("planted"),
            "fail" => return Err(Diagnostic::error("Hoarse", "No voice is left.").at(Path::to("text")).into()),
            "wait" => {
                context.client.started.notify_one();
                context.client.go_on.notified().await;
                progress.say("late");
                context.client.finished.notify_one();
            }
            "until-stopped" => {
                context.client.started.notify_one();
                context.stopping.cancelled().await;
                return Err(Diagnostic::error("Stopped", "It was told to.").into());
            }
            _ => {}
        }
        Ok(Diagnostics::new())
    }
}
