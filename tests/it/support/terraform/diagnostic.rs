//! The diagnostics of a run, from its JSON output.

use serde_json::Value;

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    Error,
    Warning,
}

/// An error or a warning.
#[derive(Clone, Debug)]
pub(crate) struct Diagnostic {
    pub(crate) severity: Severity,
    pub(crate) summary: String,
    pub(crate) detail: String,
    /// The address of the resource.
    pub(crate) address: Option<String>,
    /// The attribute on whose line of the configuration it is; `None` if it is on the whole block.
    pub(crate) attribute: Option<String>,
    /// The first line of its place in the configuration.
    pub(crate) line: Option<u64>,
}

/// Whether a diagnostic of this severity contains this word.
pub(crate) fn says(said: &[Diagnostic], severity: Severity, word: &str) -> bool {
    said.iter().any(|diagnostic| diagnostic.severity == severity && diagnostic.text().contains(word))
}

/// The only error; panics if there is none or several, or if it lacks one of the words.
pub(crate) fn refusal<'a>(said: &'a [Diagnostic], words: &[&str]) -> &'a Diagnostic {
    only(said.iter().filter(|said| said.is_error()), words).unwrap_or_else(|| panic!("not one error: {said:#?}"))
}

/// The only error of the resource with this address.
pub(crate) fn refusal_of<'a>(said: &'a [Diagnostic], address: &str, words: &[&str]) -> &'a Diagnostic {
    let of_it = said.iter().filter(|said| said.is_error() && said.address.as_deref() == Some(address));
    only(of_it, words).unwrap_or_else(|| panic!("not one error of {address}: {said:#?}"))
}

fn only<'a>(mut errors: impl Iterator<Item = &'a Diagnostic>, words: &[&str]) -> Option<&'a Diagnostic> {
    let error = errors.next().filter(|_| errors.next().is_none())?;
    for word in words {
        assert!(error.text().contains(word), "{word:?}: {error:#?}");
    }
    Some(error)
}

impl Diagnostic {
    /// The diagnostics of `validate -json`.
    pub(crate) fn of_document(text: &str) -> Vec<Self> {
        let document: Value = serde_json::from_str(text).unwrap();
        document["diagnostics"].as_array().unwrap().iter().map(Self::read).collect()
    }

    /// The diagnostics of `plan -json` and `apply -json`: one JSON document a line.
    pub(crate) fn of_lines(text: &str) -> Vec<Self> {
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let said = lines.filter(|line| line["type"] == "diagnostic").map(|line| Self::read(&line["diagnostic"]));
        // The warning about the installation of the provider under test is left out.
        said.filter(|said| !said.summary.contains("development overrides are in effect")).collect()
    }

    fn read(value: &Value) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let code = value["snippet"]["code"].as_str().unwrap_or_default();
        let attribute =
            code.split_once('=').map(|(name, _)| name.trim()).filter(|name| !name.contains(['"', '{', ' ']));
        Self {
            severity: if value["severity"] == "error" { Severity::Error } else { Severity::Warning },
            summary: text(&value["summary"]).unwrap_or_default(),
            detail: text(&value["detail"]).unwrap_or_default(),
            address: text(&value["address"]),
            attribute: attribute.map(str::to_owned),
            line: value["range"]["start"]["line"].as_u64(),
        }
    }

    pub(crate) fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Summary and detail.
    pub(crate) fn text(&self) -> String {
        format!("{}\n{}", self.summary, self.detail)
    }

    /// The word after `name` in the text, as in `request_id req-1`.
    pub(crate) fn id(&self, name: &str) -> Option<String> {
        let (_, rest) = self.detail.split_once(name)?;
        let rest = rest.trim_start_matches([' ', ':', '=', '"']);
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(rest.len());
        Some(rest[..end].to_owned()).filter(|id| !id.is_empty())
    }
}
