//! The schema section of a page, with a line for each attribute.
use std::path::PathBuf;

use super::page::PageKind;
use crate::framework::{
    Offering, Type,
    schema::{Attribute, AttributeType, Block, Nesting, Replacement, Requirement, Schema, Validator},
};

/// The explanation of replacement, above the lists that mention it.
const REPLACEMENT: &str = "*Forces replacement*: changing the argument destroys the resource and creates a new one. \
                           Setting one that is null in the state does too, unless an import left it null because the \
                           service does not report it.";

/// The groups of a list, in the registry's order and wording.
const GROUPS: [(&str, &[Requirement]); 3] = [
    ("Required", &[Requirement::Required]),
    ("Optional", &[Requirement::Optional, Requirement::OptionalComputed]),
    ("Read-Only", &[Requirement::Computed]),
];

/// The groups of a long list of arguments, each with its heading and its arguments in order. What is in no group comes
/// first.
const ARGUMENTS: [(&str, &str); 10] = [
    ("What to buy", "region spec_id spec_type gpu_num candidates payment_type purchase_duration auto_renew"),
    ("Image and network", "image image_id image_type hostname external_ip"),
    ("Disks", "data_disk_expand_size_gb data_disk_mount_path exist_disks new_disks object_mounts"),
    ("Login", "login_method ssh_pubkey_id ssh_pubkey_name ssh ssh_private_key_wo ssh_password_wo store_credentials"),
    ("Model", "model_source model_source_token_wo additional_files"),
    ("Build", "build package source workspace"),
    ("Key", "api_key api_key_wo api_key_wo_version"),
    (
        "Options",
        "host port context_size parallel gpu_layers flash_attention cache_type_k cache_type_v jinja metrics extra_args \
         environment triggers",
    ),
    ("Safety", "deletion_protection max_age on_unreleasable on_unreachable on_failure restart_policy"),
    ("Waiting", "wait_for_capacity probe ready_timeout timeouts"),
];

/// The lines from which on a list is long.
const LONG: usize = 10;

/// What the page of a schema does not repeat, because another page explains it.
#[derive(Clone, Debug)]
pub(super) struct Links<'a> {
    /// The way from the page to the folder of the documentation.
    root: &'static str,
    /// Nested attributes, each with the page of the resource that explains it.
    nested: Vec<(&'a Attribute, PathBuf)>,
    /// The groups of a long list.
    groups: &'static [(&'static str, &'static str)],
}

impl<'a> Links<'a> {
    /// Of the index page.
    pub(super) fn of_the_index() -> Self {
        Self { root: "", nested: Vec::new(), groups: &[] }
    }

    /// Of the page of a resource.
    pub(super) fn of_a_resource() -> Self {
        Self { root: "../", nested: Vec::new(), groups: &ARGUMENTS }
    }

    /// Of any other page: what one of these resources has under the same name, with the same arguments.
    pub(super) fn of_others(resources: impl Iterator<Item = &'a Offering>) -> Self {
        let nested = resources.flat_map(|resource| {
            let nested = resource.schema.attributes.iter().filter(|it| children(it).is_some());
            nested.map(|attribute| (attribute, PageKind::RESOURCE.path(resource.name)))
        });
        Self { root: "../", nested: nested.collect(), groups: &[] }
    }

    /// The place that explains a nested attribute.
    fn of(&self, attribute: &Attribute) -> Option<String> {
        let names = |attribute: &Attribute| {
            children(attribute).map(|all| all.iter().map(|it| it.name.clone()).collect::<Vec<_>>())
        };
        let of_one = names(attribute)?;
        let same = |other: &Attribute| other.name == attribute.name && names(other).as_ref() == Some(&of_one);
        let (_, page) = self.nested.iter().find(|(other, _)| same(other))?;
        Some(format!("{}{}#{}", self.root, page.display(), anchor(false, &[&attribute.name])))
    }

    /// The paragraphs of a list: one, or one for each group of a long one, below its heading.
    fn grouped(&self, mut lines: Vec<String>) -> Vec<String> {
        let mut paragraphs = Vec::new();
        for (heading, names) in self.groups.iter().filter(|_| lines.len() >= LONG) {
            let is_of = |name: &str, line: &&String| line.starts_with(&format!("- `{name}` "));
            let group = names.split(' ').filter_map(|name| lines.iter().find(|line| is_of(name, line)).cloned());
            paragraphs.push((heading, group.collect::<Vec<String>>()));
        }
        lines.retain(|line| !paragraphs.iter().any(|(_, group)| group.contains(line)));
        let groups = paragraphs.into_iter().filter(|(_, group)| !group.is_empty());
        let groups = groups.flat_map(|(heading, group)| [format!("{heading}:"), group.join("\n")]);
        (!lines.is_empty()).then(|| lines.join("\n")).into_iter().chain(groups).collect()
    }

    /// A text in which the rule of durations is a link.
    fn linked(&self, text: &str) -> String {
        let rule = Validator::DURATION.replace('"', "`");
        text.replace(&rule, &format!("a [duration]({}index.md#durations)", self.root))
    }
}

fn children(attribute: &Attribute) -> Option<&[Attribute]> {
    match &attribute.ty {
        AttributeType::Nested(_, children) => Some(children),
        AttributeType::Plain(_) => None,
    }
}

/// A nested attribute with its own section.
struct Nested<'a> {
    /// The names of its parents, then its own.
    path: Vec<&'a str>,
    attributes: &'a [Attribute],
    is_block: bool,
}

/// The section of a page that lists the attributes and blocks of a schema.
pub(super) fn section(schema: &Schema, links: &Links<'_>) -> Vec<String> {
    let mut paragraphs = vec!["## Schema".to_owned()];
    if schema.attributes.iter().any(|attribute| attribute.replacement != Replacement::Never) {
        paragraphs.push(REPLACEMENT.to_owned());
    }
    for (group, requirements) in GROUPS {
        let mut lines = lines(&schema.attributes, requirements, &[], links);
        let are_arguments = requirements.contains(&Requirement::Optional);
        if are_arguments {
            lines.extend(schema.blocks.iter().map(block));
        }
        if !lines.is_empty() {
            paragraphs.push(format!("### {group}"));
            paragraphs.extend(if are_arguments { links.grouped(lines) } else { vec![lines.join("\n")] });
        }
    }
    let blocks = schema.blocks.iter().map(|block| Nested {
        path: vec![&block.name],
        attributes: &block.attributes,
        is_block: true,
    });
    for nested in nested(&schema.attributes, &[], links).into_iter().chain(blocks) {
        paragraphs.extend(nested.section(links));
    }
    paragraphs
}

impl Nested<'_> {
    fn section(&self, links: &Links<'_>) -> Vec<String> {
        let title = format!("### Nested Schema for `{}`", self.path.join("."));
        let mut paragraphs = vec![format!("<a id=\"{}\"></a>\n{title}", anchor(self.is_block, &self.path))];
        for (group, requirements) in GROUPS {
            let lines = lines(self.attributes, requirements, &self.path, links);
            if !lines.is_empty() {
                paragraphs.extend([format!("{group}:"), lines.join("\n")]);
            }
        }
        let deeper = nested(self.attributes, &self.path, links);
        paragraphs.extend(deeper.iter().flat_map(|nested| nested.section(links)));
        paragraphs
    }
}

/// The nested attributes, one level down, that this page explains.
fn nested<'a>(attributes: &'a [Attribute], parents: &[&'a str], links: &Links<'_>) -> Vec<Nested<'a>> {
    let here = attributes.iter().filter(|attribute| links.of(attribute).is_none());
    here.filter_map(|attribute| {
        let attributes = children(attribute)?;
        Some(Nested { path: path(parents, &attribute.name), attributes, is_block: false })
    })
    .collect()
}

fn lines(attributes: &[Attribute], requirements: &[Requirement], parents: &[&str], links: &Links<'_>) -> Vec<String> {
    let of_group = attributes.iter().filter(|attribute| requirements.contains(&attribute.requirement));
    let lines = of_group.map(|attribute| {
        let line = links.linked(&line(attribute));
        match (links.of(attribute), &attribute.ty) {
            (Some(place), _) => format!("{line} (see [its arguments]({place}))"),
            (None, AttributeType::Nested(..)) => see_below(&line, &anchor(false, &path(parents, &attribute.name))),
            (None, AttributeType::Plain(_)) => line,
        }
    });
    lines.collect()
}

fn block(block: &Block) -> String {
    let line = named(&block.name, "Block", &[Flag::Optional], &block.description);
    see_below(&line, &anchor(true, &[&block.name]))
}

fn see_below(line: &str, anchor: &str) -> String {
    format!("{line} (see [below for nested schema](#{anchor}))")
}

fn path<'a>(parents: &[&'a str], name: &'a str) -> Vec<&'a str> {
    parents.iter().copied().chain([name]).collect()
}

/// The anchor in the form of the registry's generator, so that external links work.
fn anchor(is_block: bool, path: &[&str]) -> String {
    format!("{}--{}", if is_block { "nestedblock" } else { "nestedatt" }, path.join("--"))
}

/// A property that is shown after the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flag {
    Optional,
    Sensitive,
    WriteOnly,
}

/// The line of an attribute in the registry's form: name, type and description.
pub(super) fn line(attribute: &Attribute) -> String {
    let flags: Vec<Flag> = [(attribute.sensitive, Flag::Sensitive), (attribute.write_only, Flag::WriteOnly)]
        .into_iter()
        .filter_map(|(is_set, flag)| is_set.then_some(flag))
        .collect();
    named(&attribute.name, &attribute_type(&attribute.ty), &flags, &attribute.description)
}

/// A line of a list. Further paragraphs of the text are indented, so that they belong to the line.
pub(super) fn named(name: &str, ty: &str, flags: &[Flag], text: &str) -> String {
    let flags: String = flags.iter().map(|flag| format!(", {}", flag.word())).collect();
    format!("- `{name}` ({ty}{flags}) {}", text.replace("\n", "\n  ").replace("\n  \n", "\n\n"))
}

impl Flag {
    fn word(self) -> &'static str {
        match self {
            Self::Optional => "Optional",
            Self::Sensitive => "Sensitive",
            Self::WriteOnly => {
                "[Write-only](https://developer.hashicorp.com/terraform/language/resources/ephemeral#write-only-arguments)"
            }
        }
    }
}

fn attribute_type(ty: &AttributeType) -> String {
    match ty {
        AttributeType::Plain(ty) => plain_type(ty),
        AttributeType::Nested(Nesting::List, _) => "Attributes List".to_owned(),
        AttributeType::Nested(Nesting::Single, _) => "Attributes".to_owned(),
    }
}

/// A type in the registry's wording.
pub(super) fn plain_type(ty: &Type) -> String {
    match ty {
        Type::Bool => "Boolean".to_owned(),
        Type::Dynamic => "Dynamic".to_owned(),
        Type::List(element) => format!("List of {}", plain_type(element)),
        Type::Map(element) => format!("Map of {}", plain_type(element)),
        Type::Number => "Number".to_owned(),
        Type::Object(_) => "Object".to_owned(),
        Type::Set(element) => format!("Set of {}", plain_type(element)),
        Type::String => "String".to_owned(),
        Type::Tuple(_) => "Tuple".to_owned(),
    }
}
