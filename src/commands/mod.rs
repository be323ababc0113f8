//! The commands of the program. Each is a module with its arguments and its `run`, and may use every layer.
//!
//! Arguments and environment are not read here: clap reads them, or `main` passes them in.

mod account;
pub mod audit;
#[cfg(feature = "sandbox")]
pub mod demo;
#[cfg(feature = "docs")]
pub mod docs;
pub mod expire;
pub mod install;
pub mod pending;
pub mod release;
pub mod review;
#[cfg(feature = "sandbox")]
pub mod sandbox;
#[cfg(not(feature = "sandbox"))]
pub mod sandbox_elsewhere;
mod service;
pub mod ssh;
pub mod terraform;
pub mod watch;

use std::{
    error::Error,
    ffi::{OsStr, OsString},
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::ValueEnum;
use jiff::SignedDuration;

pub use self::service::ServiceArguments;
use crate::{
    plugin::with_causes,
    provider::{Environment, NoHome},
    review::visible,
};

/// Why a command could not do its work.
#[derive(Debug, thiserror::Error)]
#[error("{doing}")]
pub struct Failure {
    doing: String,
    #[source]
    because: Option<Box<dyn Error + Send + Sync>>,
}

impl Failure {
    /// A failure whose sentence is whole.
    pub(crate) fn new(doing: impl Into<String>) -> Self {
        Self { doing: doing.into(), because: None }
    }

    /// A failure with its cause: "cannot read plan.json" because of the system's error.
    pub(crate) fn because(doing: impl Into<String>, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { doing: doing.into(), because: Some(cause.into()) }
    }

    /// A file or folder that cannot be read.
    pub(crate) fn reading(place: impl std::fmt::Display, cause: std::io::Error) -> Self {
        Self::because(format!("cannot read {place}"), cause)
    }

    /// A file or folder that cannot be written.
    pub(crate) fn writing(place: impl std::fmt::Display, cause: std::io::Error) -> Self {
        Self::because(format!("cannot write {place}"), cause)
    }

    /// Standard output or standard error that cannot be written.
    pub(crate) fn terminal(cause: std::io::Error) -> Self {
        Self::because("cannot write the output", cause)
    }
}

impl From<NoHome> for Failure {
    fn from(error: NoHome) -> Self {
        Self::new(error.to_string())
    }
}

/// An error with its causes, made safe for a terminal: a cause may be the words of the service or of a file.
#[must_use]
pub fn sentence(error: &dyn Error) -> String {
    plain(&with_causes(error))
}

/// A text of several lines, made safe for a terminal.
fn plain(text: &str) -> String {
    text.split('\n').map(|line| visible(line, usize::MAX)).collect::<Vec<_>>().join("\n")
}

/// Reports an error as wrong usage.
fn wrong_usage(failure: &Failure, told: &mut impl Write) -> Result<ExitCode, Failure> {
    writeln!(told, "error: {}", sentence(failure)).map_err(Failure::terminal)?;
    Ok(ExitCode::from(2))
}

/// The form of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    /// For a terminal.
    Table,
    /// For programs.
    Json,
}

/// An age in its two largest units; from two days on, in days.
fn age(seconds: i64) -> String {
    let age = SignedDuration::from_secs(seconds);
    match age.as_hours() {
        0 => format!("{age:#}"),
        1..48 => format!("{:#}", SignedDuration::from_mins(age.as_mins())),
        hours => format!("{}d", hours / 24),
    }
}

/// Rows with aligned columns, and the columns of these numbers to the right.
fn aligned<const N: usize>(rows: &[[String; N]], numbers: &[usize]) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let lines = rows.iter().map(|row| {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| {
            if numbers.contains(&column) { format!("{cell:>width$}") } else { format!("{cell:width$}") }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    });
    lines.collect()
}

/// The executable and the environment of the process, which only `main` reads.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The running program, which is also the provider.
    pub executable: PathBuf,
    /// The environment variables.
    pub variables: Vec<(OsString, OsString)>,
}

impl Surroundings {
    /// The provider's environment in a folder.
    pub(crate) fn environment(&self, folder: &Path) -> Environment {
        let text = |(name, value): &(OsString, OsString)| Some((name.to_str()?.to_owned(), value.to_str()?.to_owned()));
        Environment::made_of(self.variables.iter().filter_map(text), folder.to_owned())
    }

    /// A variable as a text; an empty one counts as unset.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.path(name).and_then(|value| value.into_os_string().into_string().ok())
    }

    /// A variable as a path; an empty one counts as unset.
    #[must_use]
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        let found = self.variables.iter().find(|(known, _)| known == OsStr::new(name));
        found.map(|(_, value)| PathBuf::from(value)).filter(|path| !path.as_os_str().is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_two_units_at_most_and_days_alone() {
        let text = |hours: i64, minutes: i64, seconds: i64| age(hours * 3600 + minutes * 60 + seconds);
        assert_eq!([text(0, 0, 0), text(0, 0, 45), text(0, 12, 0), text(0, 12, 3)], ["0s", "45s", "12m", "12m 3s"]);
        assert_eq!(
            [text(7, 40, 59), text(9, 0, 1), text(25, 0, 0), text(47, 59, 59)],
            ["7h 40m", "9h", "25h", "47h 59m"]
        );
        assert_eq!([text(48, 0, 0), text(95, 59, 59), text(24 * 400, 0, 0)], ["2d", "3d", "400d"]);
    }
}
