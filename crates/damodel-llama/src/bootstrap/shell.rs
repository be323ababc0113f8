//! Words and assignments of the shell.

/// A text as one word of the shell. NULs are left out.
pub(super) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\0', "").replace('\'', r"'\''"))
}

/// Such words, each with a space before it.
pub(super) fn quoted(words: &[impl AsRef<str>]) -> String {
    words.iter().map(|word| format!(" {}", quote(word.as_ref()))).collect()
}

/// A path of the instance as a word of the shell: `~/` is the home, and a relative path begins there.
pub(super) fn path(path: &str) -> String {
    match path.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("\"${{HOME:-/root}}\"{}", quote(rest)),
        _ if path.starts_with('/') => quote(path),
        _ => format!("\"${{HOME:-/root}}\"/{}", quote(path)),
    }
}

/// Assignments, and the names of those that the detached work gets in its environment.
#[derive(Default)]
pub(super) struct ProgramSettings {
    text: String,
    handed_over: Vec<String>,
}

impl ProgramSettings {
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
        self.hand_over(name);
    }

    /// The same with a path of the instance; an empty path stays empty.
    pub(super) fn hand_path(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            return self.hand(name, value);
        }
        self.set_path(name, value);
        self.hand_over(name);
    }

    /// Hands over a variable that is set already.
    pub(super) fn hand_over(&mut self, name: &str) {
        self.handed_over.push(format!("DAMODEL_{name}"));
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
