//! The import block and configuration of one object, as HCL in the layout of `terraform fmt`.
//!
//! hcl-edit, which reads HCL for `install`, is not used here: it leaves a `${` of `${a}%${b}` unescaped, and does not
//! align arguments.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use unicode_normalization::UnicodeNormalization;

use crate::{api::ObjectKind, framework::Value, provider::words::type_name};

/// The configuration of one object.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) kind: ObjectKind,
    /// The import id.
    pub(super) id: String,
    /// The object's name.
    pub(super) name: String,
    /// The label of its resource.
    pub(super) label: String,
    /// Its arguments, in the order of the schema.
    pub(super) arguments: Vec<(String, Value)>,
    /// Required arguments that the service never reports: guesses whose changes the plan ignores.
    pub(super) untold: Vec<(String, Value)>,
}

impl Draft {
    /// Its address in the configuration.
    pub(super) fn address(&self) -> String {
        format!("{}.{}", type_name(self.kind), self.label)
    }

    /// Its import block.
    pub(super) fn import(&self) -> String {
        format!("import {{\n  to = {}\n  id = {}\n}}\n", self.address(), quoted(&self.id))
    }

    /// Its resource block.
    pub(super) fn resource(&self) -> String {
        let mut paragraphs = vec![arguments(&self.arguments)];
        if !self.untold.is_empty() {
            let names: Vec<&str> = self.untold.iter().map(|(name, _)| name.as_str()).collect();
            paragraphs.push(format!(
                "  # The service does not report this. Set the true value before you remove it from \
                 ignore_changes.\n{}",
                arguments(&self.untold)
            ));
            paragraphs.push(format!("  lifecycle {{\n    ignore_changes = [{}]\n  }}\n", names.join(", ")));
        }
        let (kind, label) = (quoted(&type_name(self.kind)), quoted(&self.label));
        format!("resource {kind} {label} {{\n{}}}\n", paragraphs.join("\n"))
    }
}

/// Lines of `name = value` in a block, aligned.
pub(super) fn arguments(arguments: &[(String, Value)]) -> String {
    let width = arguments.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    arguments.iter().map(|(name, value)| format!("  {name:width$} = {}\n", expression(value))).collect()
}

/// A text as an HCL string without templates, which reads back unchanged (HCL, string literals and template literals).
///
/// Invisible characters and those that change the text direction are written by number, so that they cannot mislead
/// readers.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '"' | '\\' => quoted.extend(['\\', character]),
            '$' | '%' if characters.peek() == Some(&'{') => quoted.extend([character, character]),
            unseen if is_unseen(unseen) => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(unseen));
            }
            plain => quoted.push(plain),
        }
    }
    quoted.push('"');
    quoted
}

fn expression(value: &Value) -> String {
    match value {
        Value::Null | Value::Unknown => "null".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => quoted(text),
        Value::List(elements) | Value::Set(elements) | Value::Tuple(elements) => {
            format!("[{}]", elements.iter().map(expression).collect::<Vec<_>>().join(", "))
        }
        Value::Map(elements) => object(elements.iter().map(|(key, value)| (quoted(key), value))),
        Value::Object(attributes) => object(
            attributes.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.to_string(), value)),
        ),
        Value::Dynamic(dynamic) => expression(&dynamic.value),
    }
}

fn object<'a>(members: impl Iterator<Item = (String, &'a Value)>) -> String {
    let members: Vec<String> = members.map(|(key, value)| format!("{key} = {}", expression(value))).collect();
    if members.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", members.join(", ")) }
}

/// Whether this is a control character, an invisible separator or mark, or changes the text direction. All are below
/// 65,536.
fn is_unseen(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{ad}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(character, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

/// The longest label that is derived from a name.
const LONGEST: usize = 60;

/// Gives every draft a label that is unique in its kind. Objects of the same name get labels with their ids. If names
/// differ, a label thus does not depend on the filters.
pub(super) fn name(drafts: &mut [Draft]) {
    let mut of_this_name: BTreeMap<(ObjectKind, String), usize> = BTreeMap::new();
    for draft in drafts.iter() {
        *of_this_name.entry((draft.kind, label(draft.kind, &draft.name, &draft.id))).or_default() += 1;
    }
    let mut taken: BTreeSet<(ObjectKind, String)> = BTreeSet::new();
    for draft in drafts {
        let plain = label(draft.kind, &draft.name, &draft.id);
        let is_alone = of_this_name.get(&(draft.kind, plain.clone())) == Some(&1);
        let wanted = if is_alone { plain } else { format!("{plain}_{}", words(&draft.id)) };
        let numbered = (2..).map(|number| format!("{wanted}_{number}"));
        let is_free = |label: &String| !taken.contains(&(draft.kind, label.clone()));
        let free = [wanted.clone()].into_iter().chain(numbered).find(is_free);
        draft.label = free.unwrap_or(wanted);
        taken.insert((draft.kind, draft.label.clone()));
    }
}

/// A name in Terraform's form: lower case with underscores. A name without such a form is replaced by the id.
fn label(kind: ObjectKind, name: &str, id: &str) -> String {
    let of_name = words(name);
    let label = if of_name.is_empty() { words(id) } else { of_name };
    if label.starts_with(|first: char| first.is_ascii_alphabetic()) {
        label
    } else {
        format!("{}_{label}", kind.noun().rsplit(' ').next().unwrap_or_default())
    }
}

/// The ASCII letters and digits of a decomposed text (é becomes e), with one underscore for all characters between
/// them.
fn words(text: &str) -> String {
    let mut words = String::new();
    for character in text.nfkd().filter(|character| !is_mark(*character)) {
        if character.is_ascii_alphanumeric() {
            words.push(character.to_ascii_lowercase());
        } else if !words.is_empty() && !words.ends_with('_') {
            words.push('_');
        }
        if words.len() == LONGEST {
            break;
        }
    }
    words.trim_end_matches('_').to_owned()
}

fn is_mark(character: char) -> bool {
    unicode_normalization::char::is_combining_mark(character)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_guess_is_told_apart_from_what_is_known() {
        let draft = Draft {
            kind: ObjectKind::Instance,
            id: "ins-\"1".to_owned(),
            name: "X".to_owned(),
            label: "x".to_owned(),
            arguments: vec![("name".to_owned(), "X".into()), ("gpu_num".to_owned(), 1.into())],
            untold: vec![("purchase_duration".to_owned(), 1.into())],
        };
        assert_eq!(draft.import(), "import {\n  to = damodel_instance.x\n  id = \"ins-\\\"1\"\n}\n");
        let expected = "resource \"damodel_instance\" \"x\" {\n  name    = \"X\"\n  gpu_num = 1\n\n  # The service \
                        does not report this. Set the true value before you remove it from ignore_changes.\n  \
                        purchase_duration = 1\n\n  lifecycle {\n    ignore_changes = [purchase_duration]\n  }\n}\n";
        assert_eq!(draft.resource(), expected);
    }

    #[test]
    fn nothing_of_a_text_is_evaluated() {
        for (text, expected) in [
            ("a\"b\\", r#""a\"b\\""#),
            ("${oops} %{if}", r#""$${oops} %%{if}""#),
            ("${a}%${b}$${c}%%{d}", r#""$${a}%$${b}$$${c}%%%{d}""#),
            ("$ % {} $%", r#""$ % {} $%""#),
            ("a\n\r\t\0\u{1b}[2J", r#""a\n\r\t\u0000\u001b[2J""#),
            ("\u{202e}txt.exe\u{feff}\u{85}", r#""\u202etxt.exe\ufeff\u0085""#),
            ("训练 🙂", "\"训练 🙂\""),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }

    #[test]
    fn a_value_is_written_in_its_own_shape() {
        let inner = Value::object([("b", true.into()), ("a", Value::Null)]);
        let map = Value::Map([("k ${".into(), Value::from(1))].into());
        let all = vec![
            ("list".to_owned(), Value::List(vec!["x".into(), Value::Null])),
            ("of_objects".to_owned(), Value::List(vec![inner])),
            ("map".to_owned(), map),
            ("empty".to_owned(), Value::Map([].into())),
        ];
        let expected = "  list       = [\"x\", null]\n  of_objects = [{ b = true }]\n  map        = { \"k $${\" = 1 \
                        }\n  empty      = {}\n";
        assert_eq!(arguments(&all), expected);
    }

    fn labels(objects: &[(ObjectKind, &str, &str)]) -> Vec<String> {
        let mut drafts: Vec<Draft> = objects
            .iter()
            .map(|(kind, name, id)| Draft {
                kind: *kind,
                id: (*id).to_owned(),
                name: (*name).to_owned(),
                label: String::new(),
                arguments: Vec::new(),
                untold: Vec::new(),
            })
            .collect();
        name(&mut drafts);
        drafts.into_iter().map(|draft| draft.label).collect()
    }

    #[test]
    fn a_label_is_the_name_as_far_as_it_can_be() {
        for (name, expected) in [
            ("Trainer-01", "trainer_01"),
            ("  a\"b ${oops}\n", "a_b_oops"),
            ("Café", "cafe"),
            ("4090", "instance_4090"),
            ("_x_", "x"),
            ("训练", "ins_0a1b"),
            ("🙂", "ins_0a1b"),
            ("", "ins_0a1b"),
        ] {
            assert_eq!(labels(&[(ObjectKind::Instance, name, "ins-0a1b")]), [expected], "{name}");
        }
        assert_eq!(labels(&[(ObjectKind::CloudDisk, "数据", "801")]), ["disk_801"]);
        assert_eq!(labels(&[(ObjectKind::Instance, &"x".repeat(500), "ins-1")]), ["x".repeat(60)]);
    }

    #[test]
    fn things_of_one_name_are_told_apart() {
        let (disk, instance) = (ObjectKind::CloudDisk, ObjectKind::Instance);
        assert_eq!(labels(&[(disk, "a", "1"), (disk, "A", "2"), (instance, "a", "ins-1")]), ["a_1", "a_2", "a"]);
        assert_eq!(labels(&[(disk, "a", "1"), (disk, "a 1", "7"), (disk, "a", "2")]), ["a_1", "a_1_2", "a_2"]);
    }

    proptest! {
        #[test]
        fn every_label_is_an_identifier_and_its_own(names in prop::collection::vec("\\PC{0,8}|[aA _-]{0,3}|.{0,4}",
            0..12)) {
            let ids: Vec<String> = (0..names.len()).map(|number| number.to_string()).collect();
            let objects: Vec<_> =
                names.iter().zip(&ids).map(|(name, id)| (ObjectKind::CloudDisk, name.as_str(), id.as_str())).collect();
            let labels = labels(&objects);
            for label in &labels {
                prop_assert!(label.starts_with(|first: char| first.is_ascii_lowercase()), "{label}");
                prop_assert!(label.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'),
                    "{label}");
            }
            prop_assert_eq!(labels.iter().collect::<BTreeSet<_>>().len(), labels.len());
        }
    }
}
