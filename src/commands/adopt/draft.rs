//! The import block and configuration of one object, as HCL that is laid out as `terraform fmt` lays it out.
//!
//! hcl-edit reads HCL for `install`, but is not used here: it leaves the `${` of `${a}%${b}` to be evaluated, and
//! aligns nothing.

use std::fmt::Write;

use super::Kind;
use crate::framework::Value;

/// The configuration of one object.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) kind: Kind,
    /// The import id.
    pub(super) id: String,
    /// What the operator knows it by.
    pub(super) name: String,
    /// What the configuration calls it.
    pub(super) label: String,
    /// What is said of it, in the order of the schema.
    pub(super) arguments: Vec<(String, Value)>,
    /// What has to be said and the service never tells: a guess that the plan passes over.
    pub(super) untold: Vec<(String, Value)>,
}

impl Draft {
    /// Its address in the configuration.
    pub(super) fn address(&self) -> String {
        format!("{}.{}", self.kind.type_name(), self.label)
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
                "  # The service never tells this. Write what is true before it leaves ignore_changes.\n{}",
                arguments(&self.untold)
            ));
            paragraphs.push(format!("  lifecycle {{\n    ignore_changes = [{}]\n  }}\n", names.join(", ")));
        }
        let (kind, label) = (quoted(self.kind.type_name()), quoted(&self.label));
        format!("resource {kind} {label} {{\n{}}}\n", paragraphs.join("\n"))
    }
}

/// Lines of `name = value` in a block, aligned.
pub(super) fn arguments(arguments: &[(String, Value)]) -> String {
    let width = arguments.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    arguments.iter().map(|(name, value)| format!("  {name:width$} = {}\n", expression(value))).collect()
}

/// A text that HCL reads back as it is, and evaluates nothing of (HCL, string literals and template literals).
///
/// What cannot be seen, or changes the direction of what is seen, is written by number, so that no reader is
/// deceived.
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
        Value::Object(attributes) => {
            object(attributes.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.clone(), value)))
        }
        Value::Dynamic(dynamic) => expression(&dynamic.value),
    }
}

fn object<'a>(members: impl Iterator<Item = (String, &'a Value)>) -> String {
    let members: Vec<String> = members.map(|(key, value)| format!("{key} = {}", expression(value))).collect();
    if members.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", members.join(", ")) }
}

/// Control characters, the separators and marks that no editor shows, and what turns the direction of a text. All are
/// below 65,536.
fn is_unseen(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{ad}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(character, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guess_is_told_apart_from_what_is_known() {
        let draft = Draft {
            kind: Kind::Instance,
            id: "ins-\"1".to_owned(),
            name: "X".to_owned(),
            label: "x".to_owned(),
            arguments: vec![("name".to_owned(), "X".into()), ("gpu_num".to_owned(), 1.into())],
            untold: vec![("purchase_duration".to_owned(), 1.into())],
        };
        assert_eq!(draft.import(), "import {\n  to = damodel_instance.x\n  id = \"ins-\\\"1\"\n}\n");
        let expected = "resource \"damodel_instance\" \"x\" {\n  name    = \"X\"\n  gpu_num = 1\n\n  # The service \
                        never tells this. Write what is true before it leaves ignore_changes.\n  purchase_duration = \
                        1\n\n  lifecycle {\n    ignore_changes = [purchase_duration]\n  }\n}\n";
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
        let map = Value::Map([("k ${".to_owned(), Value::from(1))].into());
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
}
