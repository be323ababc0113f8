//! Reviews in forms for people and programs. All texts of a plan are escaped for the form.

mod html;
mod json;
mod markdown;
mod sarif;
mod style;
mod text;

pub use self::style::{Format, Style, visible};
use super::{document::Page, verdict::Review};

/// Writes a review. Every form ends with a line break.
///
/// # Errors
///
/// If it cannot be written in this form. Usual cause: a defect of this program.
pub fn render(review: &Review<'_>, style: &Style) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let page = || Page::of(review, style.id.as_deref(), style.currency.as_deref());
    // The invisible mark of the review of this name.
    let marker = style.id.as_ref().map(|id| format!("<!-- damodel-review: {id} -->\n")).unwrap_or_default();
    Ok(match style.format {
        Format::Html => html::write(&page(), review, marker)?,
        Format::Json => json::write(review, style)?,
        Format::Markdown => markdown::write(&page(), &marker),
        Format::Sarif => sarif::write(review, style)?,
        Format::Text => text::write(&page(), style.is_coloured),
    })
}
