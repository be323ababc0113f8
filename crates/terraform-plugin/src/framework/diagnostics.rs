//! Errors and warnings for the operator, and the paths of the attributes they are about.

use std::{error::Error, fmt};

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The step failed.
    Error,
    /// The step continued; the operator should know.
    Warning,
}

/// One message to the operator, shown by the core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// What happened, in one line without a full stop.
    pub summary: String,
    /// The cause, the current state, and what to do. It never contains a secret or a body.
    pub detail: String,
    /// The attribute that caused it, if one did.
    pub path: Option<Path>,
}

impl Diagnostic {
    /// An error.
    pub fn error(summary: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { severity: Severity::Error, summary: summary.into(), detail: detail.into(), path: None }
    }

    /// A warning.
    pub fn warning(summary: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, summary: summary.into(), detail: detail.into(), path: None }
    }

    /// The same, with the path of an attribute.
    #[must_use]
    pub fn at(mut self, path: Path) -> Self {
        self.path = Some(path);
        self
    }

    /// Whether this is an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// The messages of one step, in the order in which they were added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one. A duplicate is dropped, because the core repeats calls.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if !self.0.contains(&diagnostic) {
            self.0.push(diagnostic);
        }
    }

    /// Adds an error about the whole object.
    pub fn error(&mut self, summary: impl Into<String>, detail: impl Into<String>) {
        self.push(Diagnostic::error(summary, detail));
    }

    /// Adds an error about one attribute.
    pub fn error_at(&mut self, path: Path, summary: impl Into<String>, detail: impl Into<String>) {
        self.push(Diagnostic::error(summary, detail).at(path));
    }

    /// Adds a warning about the whole object.
    pub fn warning(&mut self, summary: impl Into<String>, detail: impl Into<String>) {
        self.push(Diagnostic::warning(summary, detail));
    }

    /// Adds a warning about one attribute.
    pub fn warning_at(&mut self, path: Path, summary: impl Into<String>, detail: impl Into<String>) {
        self.push(Diagnostic::warning(summary, detail).at(path));
    }

    /// Adds all of another step.
    pub fn extend(&mut self, other: Self) {
        for diagnostic in other.0 {
            self.push(diagnostic);
        }
    }

    /// The same with further messages.
    #[must_use]
    pub fn with(mut self, other: impl Into<Self>) -> Self {
        self.extend(other.into());
        self
    }

    /// The warnings alone.
    pub(super) fn warnings(self) -> Self {
        self.into_iter().filter(|diagnostic| !diagnostic.is_error()).collect()
    }

    /// Adds to errors how to destroy nevertheless: a destroy first reads and plans the configuration, to refresh.
    pub fn advise_destroy(&mut self) {
        if let Some(error) = self.errors_mut().last() {
            error.detail.push_str("\n\nIf this error stops a destroy: terraform destroy -refresh=false.");
        }
    }

    /// The errors, mutable.
    pub(super) fn errors_mut(&mut self) -> impl Iterator<Item = &mut Diagnostic> {
        self.0.iter_mut().filter(|diagnostic| diagnostic.is_error())
    }

    /// Whether any of them is an error.
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(Diagnostic::is_error)
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.0.iter()
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl FromIterator<Diagnostic> for Diagnostics {
    fn from_iter<I: IntoIterator<Item = Diagnostic>>(diagnostics: I) -> Self {
        Self(diagnostics.into_iter().collect())
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Self {
        Self(vec![diagnostic])
    }
}

impl From<Box<Diagnostic>> for Diagnostics {
    fn from(diagnostic: Box<Diagnostic>) -> Self {
        (*diagnostic).into()
    }
}

/// The error as the summary, and its causes as the detail. A provider converts the errors of its own client itself,
/// with a path and an advice: `impl From<ClientError> for Diagnostics`.
impl From<Box<dyn Error + Send + Sync>> for Diagnostics {
    fn from(error: Box<dyn Error + Send + Sync>) -> Self {
        let (mut causes, mut cause) = (Vec::new(), error.source());
        while let Some(error) = cause {
            causes.push(error.to_string());
            cause = error.source();
        }
        Diagnostic::error(error.to_string(), causes.join(": ")).into()
    }
}

impl From<std::io::Error> for Diagnostics {
    fn from(error: std::io::Error) -> Self {
        Box::<dyn Error + Send + Sync>::from(error).into()
    }
}

/// The result of a step that ends with the first error.
pub type Result<T, E = Diagnostics> = std::result::Result<T, E>;

/// One step from a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathStep {
    /// Into an attribute of an object, by name.
    Attribute(String),
    /// Into an element of a list, counted from 0.
    Index(i64),
    /// Into an element of a map, by key.
    Key(String),
}

impl PathStep {
    /// Into an element of a list.
    pub fn index(index: usize) -> Self {
        Self::Index(i64::try_from(index).unwrap_or(i64::MAX))
    }
}

/// The path from a whole configuration to the part that a diagnostic is about. Sets have no steps: a path ends at the
/// set (plugin protocol, messages).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(Vec<PathStep>);

impl Path {
    /// The whole.
    pub fn root() -> Self {
        Self::default()
    }

    /// An attribute of the whole.
    pub fn to(name: &str) -> Self {
        Self::root().attribute(name)
    }

    /// One step further, into an attribute.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Self {
        self.step(PathStep::Attribute(name.to_owned()))
    }

    /// One step further, into an element of a list.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.step(PathStep::index(index))
    }

    /// One step further, into an element of a map.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.step(PathStep::Key(key.to_owned()))
    }

    /// The steps, outermost first.
    pub fn steps(&self) -> &[PathStep] {
        &self.0
    }

    fn step(&self, step: PathStep) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }
}

impl FromIterator<PathStep> for Path {
    fn from_iter<I: IntoIterator<Item = PathStep>>(steps: I) -> Self {
        Self(steps.into_iter().collect())
    }
}

/// As written in HCL: `new_disks[0].size_gb`.
impl fmt::Display for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                PathStep::Attribute(name) if position == 0 => formatter.write_str(name)?,
                PathStep::Attribute(name) => write!(formatter, ".{name}")?,
                PathStep::Index(index) => write!(formatter, "[{index}]")?,
                PathStep::Key(key) => write!(formatter, "[{key:?}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_as_hcl() {
        let path = Path::to("new_disks").index(0).attribute("labels").key("a b");
        assert_eq!(path.to_string(), r#"new_disks[0].labels["a b"]"#);
    }

    #[test]
    fn an_error_ends_a_step_as_its_text_with_its_causes() {
        #[derive(Debug, thiserror::Error)]
        #[error("no number")]
        struct Outer(#[source] std::num::ParseIntError);

        fn step(text: &str) -> Result<i64> {
            if text.is_empty() {
                Err(std::io::Error::other("no text"))?;
            }
            let number = text.parse::<i64>().map_err(Outer);
            Ok(number.map_err(Box::<dyn Error + Send + Sync>::from)?)
        }
        assert_eq!(step("1"), Ok(1));
        assert_eq!(step(""), Err(Diagnostic::error("no text", "").into()));
        assert_eq!(step("x"), Err(Diagnostic::error("no number", "invalid digit found in string").into()));
    }
}
