//! The settings before the program: assignments of `DAMODEL_` variables.

use super::program::{path, quote};

/// Assignments, and the names of those that the detached work is given through its environment.
#[derive(Default)]
pub(super) struct Settings {
    text: String,
    handed_over: Vec<String>,
}

impl Settings {
    /// Sets a variable for the verb alone.
    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.assign(name, &quote(value));
    }

    /// The same with a path of the instance.
    pub(super) fn set_path(&mut self, name: &str, value: &str) {
        self.assign(name, &path(value));
    }

    /// Sets a variable for the detached work too.
    pub(super) fn hand(&mut self, name: &str, value: &str) {
        self.set(name, value);
        self.handed_over.push(name.to_owned());
    }

    /// The same with a path of the instance; an empty one is none.
    pub(super) fn hand_path(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            return self.hand(name, value);
        }
        self.set_path(name, value);
        self.handed_over.push(name.to_owned());
    }

    /// Hands over a variable that is set already.
    pub(super) fn hand_over(&mut self, name: &str) {
        self.handed_over.push(name.to_owned());
    }

    /// The text, after the names that are handed over.
    pub(super) fn end(mut self) -> String {
        if !self.handed_over.is_empty() {
            self.set("HANDED_OVER", &self.handed_over.join(" "));
        }
        self.text
    }

    fn assign(&mut self, name: &str, word: &str) {
        for part in ["DAMODEL_", name, "=", word, "\n"] {
            self.text.push_str(part);
        }
    }
}
