//! A report in the forms that people and programs read. Everything that a plan says is escaped for the form.

mod chart;
mod document;
mod html;
mod markdown;
mod words;

use super::report::Report;

/// A form of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// One file with a chart, that needs nothing else.
    Html,
    /// The report as data; see [`Report`].
    Json,
    /// For a comment of a pull request: at most 65,536 characters.
    #[default]
    Markdown,
}

/// Writes a report. Every form ends with a line break.
///
/// # Errors
///
/// When it cannot be written in this form. Usual cause: a defect of this program.
pub fn render(report: &Report, format: Format) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    Ok(match format {
        Format::Html => html::write(report)?,
        Format::Json => serde_json::to_string_pretty(report)? + "\n",
        Format::Markdown => markdown::write(report),
    })
}
