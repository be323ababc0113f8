//! The schema section of a page.

use super::attribute::{self, Flag};
use crate::framework::schema::{Attribute, AttributeType, Block, Presence, Replacement, Schema};

/// What replacement means, for those who meet it in the lists below it.
const REPLACEMENT: &str = "Where it says *forces replacement*, a change destroys the thing and makes a new one. An \
                           argument that is null in the state, as after an import, may be set without that, unless it \
                           says otherwise.";

/// The groups of a list, in the registry's order and words.
const GROUPS: [(&str, &[Presence]); 3] = [
    ("Required", &[Presence::Required]),
    ("Optional", &[Presence::Optional, Presence::OptionalComputed]),
    ("Read-Only", &[Presence::Computed]),
];

/// A list within the schema that has a section of its own.
struct Nested<'a> {
    /// Its own name last.
    path: Vec<&'a str>,
    attributes: &'a [Attribute],
    is_block: bool,
}

/// The section of a page that lists what a schema has.
pub(super) fn section(schema: &Schema) -> Vec<String> {
    let mut paragraphs = vec!["## Schema".to_owned()];
    if schema.attributes.iter().any(|attribute| attribute.replacement != Replacement::Never) {
        paragraphs.push(REPLACEMENT.to_owned());
    }
    for (group, presences) in GROUPS {
        let mut lines = lines(&schema.attributes, presences, &[]);
        if presences.contains(&Presence::Optional) {
            lines.extend(schema.blocks.iter().map(block));
        }
        if !lines.is_empty() {
            paragraphs.extend([format!("### {group}"), lines.join("\n")]);
        }
    }
    let blocks = schema.blocks.iter().map(|block| Nested {
        path: vec![&block.name],
        attributes: &block.attributes,
        is_block: true,
    });
    for nested in nested(&schema.attributes, &[]).into_iter().chain(blocks) {
        paragraphs.extend(nested.section());
    }
    paragraphs
}

impl Nested<'_> {
    fn section(&self) -> Vec<String> {
        let title = format!("### Nested Schema for `{}`", self.path.join("."));
        let mut paragraphs = vec![format!("<a id=\"{}\"></a>\n{title}", anchor(self.is_block, &self.path))];
        for (group, presences) in GROUPS {
            let lines = lines(self.attributes, presences, &self.path);
            if !lines.is_empty() {
                paragraphs.extend([format!("{group}:"), lines.join("\n")]);
            }
        }
        paragraphs.extend(nested(self.attributes, &self.path).iter().flat_map(Self::section));
        paragraphs
    }
}

/// The nested attributes, one level down.
fn nested<'a>(attributes: &'a [Attribute], parents: &[&'a str]) -> Vec<Nested<'a>> {
    let below = |attribute: &'a Attribute| match &attribute.ty {
        AttributeType::Nested(_, children) => {
            Some(Nested { path: path(parents, &attribute.name), attributes: children, is_block: false })
        }
        AttributeType::Plain(_) => None,
    };
    attributes.iter().filter_map(below).collect()
}

fn lines(attributes: &[Attribute], presences: &[Presence], parents: &[&str]) -> Vec<String> {
    let of_group = attributes.iter().filter(|attribute| presences.contains(&attribute.presence));
    let line = |attribute: &Attribute| match attribute.ty {
        AttributeType::Nested(..) => {
            see_below(&attribute::line(attribute), &anchor(false, &path(parents, &attribute.name)))
        }
        AttributeType::Plain(_) => attribute::line(attribute),
    };
    of_group.map(line).collect()
}

fn block(block: &Block) -> String {
    let line = attribute::named(&block.name, "Block", &[Flag::Optional], &block.description);
    see_below(&line, &anchor(true, &[&block.name]))
}

fn see_below(line: &str, anchor: &str) -> String {
    format!("{line} (see [below for nested schema](#{anchor}))")
}

fn path<'a>(parents: &[&'a str], name: &'a str) -> Vec<&'a str> {
    parents.iter().copied().chain([name]).collect()
}

/// The anchor as the registry's own generator names it, so that links from outside are the expected ones.
fn anchor(is_block: bool, path: &[&str]) -> String {
    format!("{}--{}", if is_block { "nestedblock" } else { "nestedatt" }, path.join("--"))
}
