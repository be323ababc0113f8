//! An answer, word by word, in the model's time.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{sync::mpsc, time::sleep};

use super::{load::Model, routes::App};

/// What will be said.
#[derive(Debug)]
pub(super) struct Answer {
    pieces: Vec<String>,
    /// `stop` or `length`.
    pub(super) finish: &'static str,
}

impl Answer {
    /// The answer to a prompt, cut after so many tokens.
    pub(super) fn to(prompt: &str, max_tokens: Option<usize>) -> Self {
        let text = format!("You said: {prompt}");
        let words = text.split_whitespace().enumerate();
        let mut pieces: Vec<String> =
            words.map(|(at, word)| if at == 0 { word.to_owned() } else { format!(" {word}") }).collect();
        let is_cut = max_tokens.is_some_and(|most| most < pieces.len());
        if let Some(most) = max_tokens {
            pieces.truncate(most);
        }
        Self { pieces, finish: if is_cut { "length" } else { "stop" } }
    }

    pub(super) fn empty() -> Self {
        Self { pieces: Vec::new(), finish: "stop" }
    }

    /// Says it, when a slot is free. It ends early when the server is told to end, or the receiver is dropped.
    pub(super) fn generate(self, app: Arc<App>, model: &Model, prompt_tokens: u64) -> mpsc::Receiver<String> {
        let (sender, receiver) = mpsc::channel(1);
        let token = model.token;
        tokio::spawn(async move {
            let say = async {
                app.metrics.wait(1);
                let slot = app.slots.acquire().await;
                app.metrics.wait(-1);
                app.metrics.process(1);
                app.metrics.prompt(prompt_tokens);
                for piece in self.pieces {
                    sleep(token).await;
                    app.metrics.token(token);
                    if sender.send(piece).await.is_err() {
                        break;
                    }
                }
                app.metrics.process(-1);
                drop(slot);
            };
            tokio::select! {
                () = app.stopping.cancelled() => {}
                () = say => {}
            }
        });
        receiver
    }
}

/// How long what took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timings {
    pub(super) prompt: u64,
    pub(super) predicted: u64,
    pub(super) took: Duration,
}

impl Timings {
    /// As answers show it. One token tells no speed.
    pub(super) fn json(self) -> Value {
        let ms = self.took.as_secs_f64() * 1000.0;
        let count = |number: u64| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
        let each = |number: u64| if number == 0 { 0.0 } else { ms / count(number) };
        let speed = if self.predicted > 1 && ms > 0.0 { count(self.predicted) * 1000.0 / ms } else { 0.0 };
        json!({
            "prompt_n": self.prompt,
            "prompt_ms": ms / 10.0,
            "prompt_per_token_ms": each(self.prompt) / 10.0,
            "prompt_per_second": speed * 10.0,
            "predicted_n": self.predicted,
            "predicted_ms": ms,
            "predicted_per_token_ms": each(self.predicted),
            "predicted_per_second": speed,
        })
    }
}
