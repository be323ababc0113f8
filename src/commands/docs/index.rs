//! The first page.

use std::{collections::BTreeMap, path::Path};

use super::{
    Error, function,
    page::{self, Examples, Kind, MARK, provider_name},
    schema,
};
use crate::framework::{self, Entry, Provider, Schema, Server};

/// What is written by hand in the first page.
const PROSE: &str = include_str!("index.md");

/// The first page: what the provider is, what it is configured with, and what it offers.
pub(super) fn page<P: Provider>(server: &Server<P>, examples: &Examples) -> Result<String, Error> {
    let (name, description) = (provider_name(), &server.schema().description);
    let mut paragraphs = vec![
        page::front_matter(&format!("Provider: {name}"), description),
        MARK.to_owned(),
        format!("# {name} Provider"),
        description.clone(),
        "## Example Usage".to_owned(),
        examples.block(Path::new("provider/provider.tf"), "terraform")?,
        PROSE.trim_end().to_owned(),
        "## Environment Variables".to_owned(),
        variables(server),
    ];
    for kind in Kind::ALL {
        let line = |entry: &Entry<P::Client>| {
            let path = kind.path(entry.name);
            format!("- [`{}`]({}): {}", entry.name, path.display(), first_sentence(&entry.schema.description))
        };
        paragraphs.extend(listed(kind.plural, server.registry().of(kind.offered).map(line).collect()));
    }
    let line = |entry: &Entry<P::Client>| {
        let summary = entry.signature.as_ref().map_or("", |signature| &signature.summary);
        format!("- [`{}`]({}): {summary}.", entry.name, function::path(entry.name).display())
    };
    paragraphs.extend(listed("Functions", server.registry().of(framework::Kind::Function).map(line).collect()));
    paragraphs.extend(schema::section(server.schema()));
    Ok(page::text(&paragraphs))
}

/// A section with these lines; none without any.
fn listed(heading: &str, lines: Vec<String>) -> Vec<String> {
    if lines.is_empty() { Vec::new() } else { vec![format!("## {heading}"), lines.join("\n")] }
}

/// The variables that descriptions name, each with the argument that it is described at.
fn variables<P: Provider>(server: &Server<P>) -> String {
    let mut named: BTreeMap<&str, String> = BTreeMap::new();
    for resource in server.registry().of(framework::Kind::Resource) {
        for (variable, argument) in variables_of(&resource.schema) {
            let page = Kind::RESOURCE.path(resource.name);
            named.insert(variable, format!("`{argument}` of [`{}`]({})", resource.name, page.display()));
        }
    }
    for (variable, argument) in variables_of(server.schema()) {
        named.insert(variable, format!("`{argument}` of the provider"));
    }
    let rows = named.iter().map(|(variable, argument)| format!("| `{variable}` | {argument} |"));
    let head = ["| variable | see |", "|---|---|"].map(str::to_owned);
    head.into_iter().chain(rows).collect::<Vec<_>>().join("\n")
}

fn variables_of(schema: &Schema) -> impl Iterator<Item = (&str, &str)> {
    let prefix = format!("{}_", provider_name().to_ascii_uppercase());
    schema.attributes.iter().flat_map(move |attribute| {
        let prefix = prefix.clone();
        let words = attribute.description.split(|c: char| !c.is_ascii_uppercase() && c != '_');
        words.filter(move |word| word.starts_with(&prefix)).map(|word| (word, attribute.name.as_str()))
    })
}

/// Up to the first full stop or colon that ends a sentence.
fn first_sentence(description: &str) -> String {
    let paragraph = page::first_paragraph(description);
    let sentence = paragraph.split_once(". ").map_or(paragraph, |(first, _)| first);
    format!("{}.", sentence.trim_end_matches('.'))
}
