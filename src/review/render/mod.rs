//! A review in the forms that people and programs read. Everything that a plan says is escaped for the form.

mod document;
mod github;
mod gitlab;
mod html;
mod junit;
mod markdown;
mod sarif;
mod terminal;
mod words;

pub use self::markdown::code;

use super::{
    findings::{Finding, Location},
    reviewed::Review,
};

/// A form of a review.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Commands that annotate a pull request (GitHub Actions, workflow commands).
    Github,
    /// A report of GitLab's Code Quality.
    Gitlab,
    /// One file with a chart, that needs nothing else.
    Html,
    /// The review as data; see [`Report`](super::Report).
    Json,
    /// A report of tests.
    Junit,
    /// For a comment of a pull request: at most 65,536 characters.
    #[default]
    Markdown,
    /// For code scanning (SARIF 2.1.0).
    Sarif,
    /// For a terminal.
    Text,
}

/// How a review is to be written.
#[derive(Clone, Debug, Default)]
pub struct Style {
    /// The form.
    pub format: Format,
    /// The name by which a program finds the comment again, in Markdown and HTML.
    pub id: Option<String>,
    /// Whether text has colours.
    pub is_coloured: bool,
    /// The file of the plan, if there is one of it.
    pub plan_file: Option<String>,
}

/// Writes a review. Every form ends with a line break, but that of annotations without any.
///
/// # Errors
///
/// When it cannot be written in this form. Usual cause: a defect of this program.
pub fn render(review: &Review, style: &Style) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let id = style.id.as_deref();
    Ok(match style.format {
        Format::Github => github::write(review),
        Format::Gitlab => gitlab::write(review, style)?,
        Format::Html => html::write(review, id)?,
        Format::Json => review.to_json()? + "\n",
        Format::Junit => junit::write(review)?,
        Format::Markdown => markdown::write(review, id),
        Format::Sarif => sarif::write(review, style)?,
        Format::Text => terminal::write(review, style.is_coloured),
    })
}

/// The file that a finding is about, where no other is known.
const PLAN_FILE: &str = "plan.json";

/// The place that a finding is about, relative to the working directory: where its object is configured, or its plan.
fn place(finding: &Finding, style: &Style) -> Location {
    let of_plan = || {
        let file = finding.plan.as_deref().or(style.plan_file.as_deref()).unwrap_or(PLAN_FILE);
        Location { file: file.trim_start_matches("./").trim_start_matches('/').to_owned(), line: 1 }
    };
    finding.location.clone().unwrap_or_else(of_plan)
}

/// What marks a text as the review of this name, invisible to people.
fn marker(id: &str) -> String {
    format!("<!-- damodel-review: {id} -->")
}
