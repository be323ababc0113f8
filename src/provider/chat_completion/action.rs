//! The action `damodel_chat_completion`: a question to a hosted model, with the answer printed while it arrives.

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::{MessageModel, failed, question, request};
use crate::{
    api::{ChatAnswer, ChatRequest, Error},
    framework::{self, ActionProgress, Attr, Diagnostics, Schema, StepContext, value::Number},
    provider::{ProviderClient, client::limits},
};

/// The longest line that is printed, in characters. An answer may have no line breaks.
const LONGEST: usize = 120;

#[derive(Debug)]
pub(in crate::provider) struct ChatAction;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::provider) struct ChatQuestion {
    model: Attr<String>,
    messages: Attr<Vec<Attr<MessageModel>>>,
    temperature: Attr<Number>,
    max_tokens: Attr<i64>,
}

impl framework::Action for ChatAction {
    type Client = ProviderClient;
    type Model = ChatQuestion;

    fn type_name(&self) -> &'static str {
        "damodel_chat_completion"
    }

    fn schema(&self) -> Schema {
        Schema::new(
            "Sends a chat to a hosted model and shows the answer as it arrives, for example as a test after an apply. \
             A model that does not answer is an error. The provider's `api_key` is required.",
            question(),
        )
    }

    async fn invoke(
        &self,
        config: ChatQuestion,
        progress: ActionProgress,
        context: StepContext<ProviderClient>,
    ) -> Diagnostics {
        let request = request(&config.model, &config.messages, &config.temperature, &config.max_tokens);
        match ask(&request, &progress, &context).await {
            Ok(answer) => {
                progress.say(ended(&answer));
                Diagnostics::new()
            }
            Err(error) => failed(&error, &request, |name| match name {
                "max_tokens" => !config.max_tokens.is_null(),
                "temperature" => !config.temperature.is_null(),
                _ => true,
            })
            .into(),
        }
    }
}

async fn ask(
    request: &ChatRequest,
    progress: &ActionProgress,
    context: &StepContext<ProviderClient>,
) -> Result<ChatAnswer, Error> {
    let (sender, mut pieces) = mpsc::unbounded_channel();
    let telling = async {
        let (mut lines, mut told) = (Lines::default(), 0);
        while let Some(piece) = pieces.recv().await {
            told += String::len(&piece);
            lines.push(&piece).into_iter().for_each(|line| progress.say(line));
        }
        (lines, told)
    };
    let limits = limits(context);
    let asking = context.client.api.chat_in_pieces(request, sender, &limits);
    let (answer, (mut lines, told)) = tokio::join!(asking, telling);
    let answer = answer?;
    // An answer in one document was not sent in pieces.
    let rest = lines.push(answer.content.get(told..).unwrap_or_default());
    rest.into_iter().chain(lines.rest()).for_each(|line| progress.say(line));
    Ok(answer)
}

fn ended(answer: &ChatAnswer) -> String {
    let reason = answer.finish_reason.as_deref().unwrap_or("not reported");
    match answer.usage.and_then(|usage| usage.completion_tokens) {
        Some(tokens) => format!("(ended: {reason}, {tokens} tokens)"),
        None => format!("(ended: {reason})"),
    }
}

/// Splits a text that arrives in pieces into lines.
#[derive(Debug, Default)]
struct Lines(String);

impl Lines {
    /// The lines that this piece completes: at a line break, or at the last space of a line that is too long.
    fn push(&mut self, piece: &str) -> Vec<String> {
        self.0.push_str(piece);
        let mut lines = Vec::new();
        loop {
            let end = match self.0.find('\n') {
                Some(end) => end,
                None => match self.0.char_indices().nth(LONGEST) {
                    Some((end, _)) => self.0.get(..end).and_then(|start| start.rfind(' ')).unwrap_or(end),
                    None => return lines,
                },
            };
            let rest = self.0.split_off(end);
            let line = std::mem::replace(&mut self.0, rest.trim_start_matches([' ', '\n']).to_owned());
            if !line.trim().is_empty() {
                lines.push(line.trim_end().to_owned());
            }
        }
    }

    /// The remaining text.
    fn rest(self) -> Option<String> {
        Some(self.0).filter(|line| !line.trim().is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_become_lines() {
        let mut lines = Lines::default();
        assert!(lines.push("Hello").is_empty());
        assert_eq!(lines.push(" there\n\nSecond"), ["Hello there"]);
        assert_eq!(lines.push(" line\r\n"), ["Second line"]);
        assert_eq!(lines.rest(), None);
    }

    #[test]
    fn a_line_that_grows_too_long_is_broken_at_a_blank() {
        let mut lines = Lines::default();
        let told = lines.push(&format!("{} b", "a".repeat(LONGEST)));
        assert_eq!(told, ["a".repeat(LONGEST)]);
        assert_eq!(lines.rest().unwrap(), "b");
        let mut lines = Lines::default();
        let told = lines.push(&"é ".repeat(LONGEST));
        assert!(told.iter().all(|line| line.chars().count() <= LONGEST), "{told:?}");
        assert_eq!(told.len(), 1);
    }
}
