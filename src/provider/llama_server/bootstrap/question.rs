//! What the instance is asked: commands, whose answers are the facts.

use super::program::{path, quote};

/// A command that the program runs for at most two minutes. Its standard output is the answer, whatever its exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    /// The name of the fact.
    pub(crate) key: &'static str,
    /// The command.
    words: Vec<Word>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    Path(String),
    Text(String),
}

impl Question {
    /// A command, with its arguments.
    pub(crate) fn of(key: &'static str, words: &[&str]) -> Self {
        Self { key, words: words.iter().map(|word| Word::Text((*word).to_owned())).collect() }
    }

    /// A line of the shell, whose parameters are what [`Self::on`] and [`Self::with`] add.
    pub(crate) fn line(key: &'static str, line: &str) -> Self {
        Self::of(key, &["sh", "-c", line, "sh"])
    }

    /// Adds a path of the instance, which may begin with `~/`.
    pub(crate) fn on(mut self, path: &str) -> Self {
        self.words.push(Word::Path(path.to_owned()));
        self
    }

    /// Adds an argument.
    pub(crate) fn with(mut self, word: &str) -> Self {
        self.words.push(Word::Text(word.to_owned()));
        self
    }

    /// As the program asks it.
    pub(super) fn statement(&self) -> String {
        let words: String = self
            .words
            .iter()
            .map(|word| match word {
                Word::Path(text) => format!(" {}", path(text)),
                Word::Text(text) => format!(" {}", quote(text)),
            })
            .collect();
        format!("ask {PREFIX}{}{words}\n", self.key)
    }
}

/// What the name of a fact begins with in a report.
pub(super) const PREFIX: &str = "fact_";
