use std::{collections::BTreeMap, path::Path};

use super::{
    Error,
    examples::Examples,
    function,
    page::{self, Kind, MARK, provider_name},
    schema,
};
use crate::framework::{Schema, Signature, server::Schemas};

/// What is written by hand in the first page.
const PROSE: &str = include_str!("index.md");

/// The first page: what the provider is, what it is configured with, and what it offers.
pub(super) fn page(
    schemas: &Schemas,
    kinds: &[(Kind, &BTreeMap<&'static str, Schema>)],
    examples: &Examples,
) -> Result<String, Error> {
    let (name, description) = (provider_name(), &schemas.provider.description);
    let mut paragraphs = vec![
        page::front_matter(&format!("Provider: {name}"), description),
        MARK.to_owned(),
        format!("# {name} Provider"),
        description.clone(),
        "## Example Usage".to_owned(),
        examples.block(Path::new("provider/provider.tf"), "terraform")?,
        PROSE.trim_end().to_owned(),
        "## Environment Variables".to_owned(),
        variables(schemas),
    ];
    for (kind, things) in kinds.iter().filter(|(_, things)| !things.is_empty()) {
        let line = |(type_name, schema): (&&str, &Schema)| {
            let path = kind.path(type_name);
            format!("- [`{type_name}`]({}): {}", path.display(), first_sentence(&schema.description))
        };
        paragraphs.push(format!("## {}", kind.plural));
        paragraphs.push(things.iter().map(line).collect::<Vec<_>>().join("\n"));
    }
    if !schemas.functions.is_empty() {
        let line = |(name, signature): (&&str, &Signature)| {
            format!("- [`{name}`]({}): {}.", function::path(name).display(), signature.summary)
        };
        paragraphs.push("## Functions".to_owned());
        paragraphs.push(schemas.functions.iter().map(line).collect::<Vec<_>>().join("\n"));
    }
    paragraphs.extend(schema::section(&schemas.provider));
    Ok(page::text(&paragraphs))
}

/// The variables that descriptions name, each with the argument that it is described at.
fn variables(schemas: &Schemas) -> String {
    let mut named: BTreeMap<&str, String> = BTreeMap::new();
    for (type_name, schema) in &schemas.resources {
        for (variable, argument) in variables_of(schema) {
            let page = Kind::RESOURCE.path(type_name);
            named.insert(variable, format!("`{argument}` of [`{type_name}`]({})", page.display()));
        }
    }
    for (variable, argument) in variables_of(&schemas.provider) {
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
