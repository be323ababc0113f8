//! The pages: the index, functions, resources, data sources, ephemeral resources, list resources and actions.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use super::schema::{self, Links, plain_type};
use crate::{
    commands::Failure,
    framework::{self, IdentityAttribute, IdentitySchema, Parameter, Provider, Schema, Server, Signature, Type},
    provider::ADDRESS,
};

/// The mark of every generated page, which handwritten pages do not have.
pub(super) const MARK: &str =
    "<!-- Made by `terraform-provider-damodel docs` from the schema, which has these texts. -->";

/// A kind of offer whose offers have pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageKind {
    /// The framework's kind.
    pub(super) offered: framework::OfferKind,
    /// The folder of its pages and its examples.
    pub(super) folder: &'static str,
    /// The singular in headings.
    pub(super) title: &'static str,
    /// The plural in headings.
    pub(super) plural: &'static str,
    /// The file of its example.
    example: &'static str,
    /// The language of the example; "terraform" is a configuration.
    language: &'static str,
    /// Whether existing objects can be imported.
    is_imported: bool,
    /// The cores that support it; `None` if all do.
    needs: Option<&'static str>,
}

impl PageKind {
    /// Resources.
    pub(super) const RESOURCE: Self = Self {
        offered: framework::OfferKind::Resource,
        folder: "resources",
        title: "Resource",
        plural: "Resources",
        example: "resource.tf",
        language: "terraform",
        is_imported: true,
        needs: None,
    };
    const DATA_SOURCE: Self = Self {
        offered: framework::OfferKind::DataSource,
        folder: "data-sources",
        title: "Data Source",
        plural: "Data Sources",
        example: "data-source.tf",
        language: "terraform",
        is_imported: false,
        needs: None,
    };
    const EPHEMERAL_RESOURCE: Self = Self {
        offered: framework::OfferKind::EphemeralResource,
        folder: "ephemeral-resources",
        title: "Ephemeral Resource",
        plural: "Ephemeral Resources",
        example: "ephemeral-resource.tf",
        language: "terraform",
        is_imported: false,
        needs: Some("Terraform 1.10 or newer, or OpenTofu 1.11 or newer"),
    };
    const LIST_RESOURCE: Self = Self {
        offered: framework::OfferKind::ListResource,
        folder: "list-resources",
        title: "List Resource",
        plural: "List Resources",
        example: "list-resource.tfquery.hcl",
        language: "hcl",
        is_imported: false,
        needs: Some("Terraform 1.14 or newer, with `terraform query`"),
    };
    const ACTION: Self = Self {
        offered: framework::OfferKind::Action,
        folder: "actions",
        title: "Action",
        plural: "Actions",
        example: "action.tf",
        language: "terraform",
        is_imported: false,
        needs: Some("Terraform 1.14 or newer"),
    };

    /// All kinds, in the order of the index page.
    pub(super) const ALL: [Self; 5] =
        [Self::RESOURCE, Self::DATA_SOURCE, Self::EPHEMERAL_RESOURCE, Self::LIST_RESOURCE, Self::ACTION];

    /// The page of an offer: its type without the provider's name.
    pub(super) fn path(&self, type_name: &str) -> PathBuf {
        let prefix = format!("{}_", provider_name());
        Path::new(self.folder).join(type_name.strip_prefix(&prefix).unwrap_or(type_name)).with_extension("md")
    }
}

/// The page of one offer.
pub(super) fn page(
    kind: PageKind,
    type_name: &str,
    schema: &Schema,
    identity: Option<&IdentitySchema>,
    links: &Links<'_>,
    examples: &Examples,
) -> Result<String, Failure> {
    let folder = Path::new(kind.folder).join(type_name);
    let mut paragraphs = vec![
        front_matter(&format!("{type_name} {} - {}", kind.title, provider_name()), &schema.description),
        MARK.to_owned(),
        format!("# {type_name} ({})", kind.title),
        schema.description.clone(),
    ];
    paragraphs.extend(kind.needs.map(|needs| format!("-> Requires {needs}.")));
    paragraphs.push("## Example Usage".to_owned());
    paragraphs.push(examples.block(&folder.join(kind.example), kind.language)?);
    paragraphs.extend(examples.scenarios(&folder)?);
    paragraphs.extend(schema::section(schema, links));
    if kind.is_imported {
        paragraphs.extend(import(&folder, identity, examples)?);
    }
    Ok(text(&paragraphs))
}

/// The provider's name, which is the prefix of every type.
pub(super) fn provider_name() -> &'static str {
    ADDRESS.rsplit('/').next().unwrap_or(ADDRESS)
}

/// The front matter for the registry's navigation and search (plugin protocol, documentation layout). It is plain text,
/// so code marks are removed.
pub(super) fn front_matter(title: &str, description: &str) -> String {
    let first = first_paragraph(description).replace('`', "");
    format!("---\npage_title: \"{title}\"\ndescription: |-\n  {first}\n---")
}

/// The first paragraph of a description.
pub(super) fn first_paragraph(description: &str) -> &str {
    description.split("\n\n").next().unwrap_or(description)
}

/// A page of these paragraphs.
pub(super) fn text(paragraphs: &[String]) -> String {
    let mut text = paragraphs.join("\n\n");
    text.push('\n');
    text
}

fn import(folder: &Path, identity: Option<&IdentitySchema>, examples: &Examples) -> Result<Vec<String>, Failure> {
    let mut paragraphs = vec!["## Import".to_owned()];
    if let Some(identity) = identity {
        paragraphs
            .push("With Terraform 1.12, OpenTofu 1.12 or newer, an `import` block takes the identity:".to_owned());
        paragraphs.push(examples.block(&folder.join("import-by-identity.tf"), "terraform")?);
        paragraphs.extend(identity_section(identity));
    }
    paragraphs.push("With Terraform 1.5, OpenTofu 1.6 or newer, an `import` block takes the `id`:".to_owned());
    paragraphs.push(examples.block(&folder.join("import-by-string-id.tf"), "terraform")?);
    paragraphs.push("On the command line:".to_owned());
    paragraphs.push(examples.block(&folder.join("import.sh"), "shell")?);
    Ok(paragraphs)
}

/// The section of an identity's attributes, in the registry's form.
fn identity_section(identity: &IdentitySchema) -> Vec<String> {
    let mut paragraphs = vec!["### Identity Schema".to_owned()];
    for (group, required) in [("Required", true), ("Optional", false)] {
        let line = |it: &IdentityAttribute| format!("- `{}` ({}) {}", it.name, plain_type(&it.ty), it.description);
        let of_group = identity.attributes.iter().filter(|attribute| attribute.required == required);
        let lines: Vec<String> = of_group.map(line).collect();
        if !lines.is_empty() {
            paragraphs.extend([format!("#### {group}"), lines.join("\n")]);
        }
    }
    paragraphs
}

/// The folder of the examples, in the layout of the registry's tools.
#[derive(Debug)]
pub(super) struct Examples(PathBuf);

impl Examples {
    pub(super) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Further examples of an offer, each under the title in its first line.
    fn scenarios(&self, folder: &Path) -> Result<Vec<String>, Failure> {
        let folder = folder.join("scenarios");
        let Ok(entries) = fs::read_dir(self.0.join(&folder)) else { return Ok(Vec::new()) };
        let mut names: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.file_name())).collect();
        names.sort();
        let mut paragraphs = Vec::new();
        for name in names {
            let block = self.block(&folder.join(name).join("main.tf"), "terraform")?;
            let title = block.lines().nth(1).unwrap_or_default().trim_start_matches("# ");
            paragraphs.extend([format!("### {title}"), block.clone()]);
        }
        Ok(paragraphs)
    }

    /// A file as a code block in this language.
    pub(super) fn block(&self, file: &Path, language: &str) -> Result<String, Failure> {
        let path = self.0.join(file);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(format!("```{language}\n{}\n```", text.trim_end())),
            Err(error) => Err(Failure::reading(path.display(), error)),
        }
    }
}

/// The handwritten parts of the index page.
const PROSE: &str = include_str!("index.md");
const GUIDES: &str = include_str!("guides.md");

/// The index page: the provider, its configuration, and its offers.
pub(super) fn index_page<P: Provider>(server: &Server<P>, examples: &Examples) -> Result<String, Failure> {
    let (name, description) = (provider_name(), &server.schema().description);
    let mut paragraphs = vec![
        front_matter(&format!("Provider: {name}"), description),
        MARK.to_owned(),
        format!("# {name} Provider"),
        description.clone(),
        "## Example Usage".to_owned(),
        examples.block(Path::new("provider/provider.tf"), "terraform")?,
        PROSE.trim_end().to_owned(),
    ];
    paragraphs.extend(schema::section(server.schema(), &Links::of_the_index()));
    paragraphs.extend(["## Environment Variables".to_owned(), variables(server), GUIDES.trim_end().to_owned()]);
    for kind in PageKind::ALL {
        let entries = server.registry().of(kind.offered).map(|entry| {
            let path = kind.path(entry.name);
            format!("- [`{}`]({}): {}", entry.name, path.display(), first_sentence(&entry.schema.description))
        });
        paragraphs.extend(listed(kind.plural, entries.collect()));
    }
    let functions = server
        .registry()
        .signatures()
        .map(|(name, signature)| format!("- [`{name}`]({}): {}.", function_path(name).display(), signature.summary));
    paragraphs.extend(listed("Functions", functions.collect()));
    Ok(text(&paragraphs))
}

/// A section with these lines; empty without lines.
fn listed(heading: &str, lines: Vec<String>) -> Vec<String> {
    if lines.is_empty() { Vec::new() } else { vec![format!("## {heading}"), lines.join("\n")] }
}

/// The environment variables in descriptions, each with its argument, and the one that has no argument.
fn variables<P: Provider>(server: &Server<P>) -> String {
    let pending =
        "[Interrupted runs](guides/interrupted-runs.md#what-the-provider-keeps): the directory of the pending records";
    let mut named = BTreeMap::from([("DAMODEL_PENDING_DIR", pending.to_owned())]);
    for resource in server.registry().of(framework::OfferKind::Resource) {
        for (variable, argument) in variables_of(&resource.schema) {
            let page = PageKind::RESOURCE.path(resource.name);
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
        words.filter(move |word| word.starts_with(&prefix)).map(|word| (word, &*attribute.name))
    })
}

/// The text up to the first full stop or colon that ends a sentence.
fn first_sentence(description: &str) -> String {
    let paragraph = first_paragraph(description);
    let sentence = paragraph.split_once(". ").map_or(paragraph, |(first, _)| first);
    format!("{}.", sentence.trim_end_matches('.'))
}

/// The cores that support functions.
const NEEDS: &str = "-> Requires Terraform 1.8 or newer, or OpenTofu 1.7 or newer.";

/// The path of a function's page.
pub(super) fn function_path(name: &str) -> PathBuf {
    Path::new("functions").join(name).with_extension("md")
}

/// The page of a function.
pub(super) fn function_page(name: &str, signature: &Signature, examples: &Examples) -> Result<String, Failure> {
    let example = Path::new("functions").join(name).join("function.tf");
    let mut paragraphs = vec![
        front_matter(&format!("{name} function - {}", provider_name()), &signature.summary),
        MARK.to_owned(),
        format!("# function: {name}"),
        signature.description.clone(),
        NEEDS.to_owned(),
        "## Example Usage".to_owned(),
        examples.block(&example, "terraform")?,
        "## Signature".to_owned(),
        format!("```text\n{}\n```", line(name, signature)),
        "## Arguments".to_owned(),
        arguments(signature),
    ];
    if let Type::Object(attributes) = &signature.returns {
        let attributes = attributes.iter().map(|(name, ty)| format!("- `{name}` ({})", plain_type(ty)));
        paragraphs.push("## Result".to_owned());
        paragraphs.push("An object with these attributes:".to_owned());
        paragraphs.push(attributes.collect::<Vec<_>>().join("\n"));
    }
    Ok(text(&paragraphs))
}

/// The signature in one line, with type constraints.
fn line(name: &str, signature: &Signature) -> String {
    let parameter = |parameter: &Parameter| format!("{} {}", parameter.name, constraint(&parameter.ty));
    let parameters: Vec<String> = signature.parameters.iter().map(parameter).collect();
    format!("{name}({}) {}", parameters.join(", "), constraint(&signature.returns))
}

fn arguments(signature: &Signature) -> String {
    let items = signature.parameters.iter().map(|parameter| {
        let nullable = if parameter.takes_null { ", Nullable" } else { "" };
        let ty = plain_type(&parameter.ty);
        format!("1. `{}` ({ty}{nullable}) {}", parameter.name, parameter.description)
    });
    items.collect::<Vec<_>>().join("\n")
}

fn constraint(ty: &Type) -> String {
    match ty {
        Type::Bool => "bool".to_owned(),
        Type::Dynamic => "any".to_owned(),
        Type::List(element) => format!("list({})", constraint(element)),
        Type::Map(element) => format!("map({})", constraint(element)),
        Type::Number => "number".to_owned(),
        Type::Object(_) => "object".to_owned(),
        Type::Set(element) => format!("set({})", constraint(element)),
        Type::String => "string".to_owned(),
        Type::Tuple(_) => "tuple".to_owned(),
    }
}
