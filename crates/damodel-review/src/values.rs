//! Values of a plan with the masks of unknown and sensitive parts.

use std::collections::BTreeSet;

use serde_json::{Number, Value};

/// One step of a path: an attribute, a key, or an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathPart {
    Index(usize),
    Key(String),
}

/// One side of a change: a value, and which of its parts are unknown or sensitive.
#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    value: Value,
    unknown: Value,
    sensitive: Value,
}

/// The visible form of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ShownValue<'a> {
    /// It is known, and no part of it is sensitive.
    Known(&'a Value),
    /// It is null or missing.
    Null,
    /// It, or a part of it, is marked as sensitive.
    Sensitive,
    /// It, or a part of it, is known only after the apply.
    Unknown,
}

impl Values {
    /// A value with its masks: null, a boolean, or the form of the value.
    pub(super) fn new(value: Value, unknown: Value, sensitive: Value) -> Self {
        Self { value, unknown, sensitive }
    }

    /// The visible form of the value at a path of attribute names.
    pub(super) fn at(&self, path: &[&str]) -> ShownValue<'_> {
        let path: Vec<PathPart> = path.iter().map(|name| PathPart::Key((*name).to_owned())).collect();
        self.at_steps(&path)
    }

    pub(super) fn at_steps(&self, path: &[PathPart]) -> ShownValue<'_> {
        let (value, masks) = (find(&self.value, path), [&self.sensitive, &self.unknown].map(|mask| marks(mask, path)));
        match (masks, value) {
            // A missing value is not a secret, but one that the apply sets is.
            ([_, false], None | Some(Value::Null)) => ShownValue::Null,
            ([true, _], _) => ShownValue::Sensitive,
            ([_, true], _) => ShownValue::Unknown,
            (_, Some(value)) => ShownValue::Known(value),
        }
    }

    /// The text at a path, if it is known and not sensitive.
    pub(super) fn text(&self, path: &[&str]) -> Option<&str> {
        match self.at(path) {
            ShownValue::Known(value) => value.as_str(),
            ShownValue::Null | ShownValue::Sensitive | ShownValue::Unknown => None,
        }
    }

    /// The number at a path, if it is known and not sensitive.
    pub(super) fn number(&self, path: &[&str]) -> Option<&Number> {
        match self.at(path) {
            ShownValue::Known(Value::Number(number)) => Some(number),
            ShownValue::Known(_) | ShownValue::Null | ShownValue::Sensitive | ShownValue::Unknown => None,
        }
    }

    /// The value at a path if it is known, even a sensitive one: to compare, never to show.
    pub(super) fn raw(&self, path: &[&str]) -> Option<&Value> {
        let path: Vec<PathPart> = path.iter().map(|name| PathPart::Key((*name).to_owned())).collect();
        set(&self.value, &path).filter(|_| !marks(&self.unknown, &path))
    }

    /// Whether a list is known to have no element.
    pub(super) fn is_empty_list(&self, name: &str) -> bool {
        let list = self.value.get(name).and_then(Value::as_array);
        list.is_none_or(Vec::is_empty) && !marks(&self.unknown, &[PathPart::Key(name.to_owned())])
    }

    /// The elements of a list, each with its part of the masks.
    pub(super) fn elements(&self, name: &str) -> Vec<Self> {
        let list = self.value.get(name).and_then(Value::as_array);
        let count = list.map_or(0, Vec::len);
        (0..count).map(|index| self.part(&[PathPart::Key(name.to_owned()), PathPart::Index(index)])).collect()
    }

    /// The names of the existing attributes, unless the whole value is sensitive.
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        let fields = self.value.as_object().filter(|_| !is_marked_above(&self.sensitive, &[]));
        fields.into_iter().flat_map(|fields| fields.keys())
    }

    /// The visible form of the whole value.
    pub(super) fn whole(&self) -> ShownValue<'_> {
        self.at_steps(&[])
    }

    /// The paths of sensitive values, including those that the apply sets.
    pub(super) fn secrets(&self) -> Vec<Vec<PathPart>> {
        let mut found = Vec::new();
        collect(&self.sensitive, &mut Vec::new(), &mut found);
        found.retain(|path| self.at_steps(path) != ShownValue::Null);
        found
    }

    /// Whether the value at a path is the same on another side. Values are compared, and never shown.
    pub(super) fn is_same(&self, other: &Self, path: &[PathPart]) -> bool {
        // Missing and null are the same.
        !marks(&self.unknown, path) && set(&self.value, path) == set(&other.value, path)
    }

    /// The part of a path down to the first value that is sensitive as a whole on one of two sides: the keys below it
    /// are sensitive too.
    pub(super) fn shown_path<'a>(&self, before: &Self, path: &'a [PathPart]) -> &'a [PathPart] {
        let above = |length: &usize| path.get(..*length).unwrap_or(path);
        let masks = [&self.sensitive, &before.sensitive];
        let masked = (0..path.len()).find(|length| masks.iter().any(|mask| is_marked_above(mask, above(length))));
        masked.map_or(path, |length| above(&length))
    }

    /// The paths at which two sides differ: into objects, but not into lists and not into what is sensitive as a whole.
    /// An unknown value on this side differs.
    pub(super) fn differences(&self, before: &Self) -> Vec<Vec<PathPart>> {
        let mut paths = Vec::new();
        self.differ(before, &mut Vec::new(), &mut paths);
        paths
    }

    fn differ(&self, before: &Self, path: &mut Vec<PathPart>, found: &mut Vec<Vec<PathPart>>) {
        if self.is_same(before, path) {
            return;
        }
        let is_masked = |side: &Self| is_marked_above(&side.sensitive, path);
        let is_masked = is_masked(self) || is_masked(before);
        let object = |value| set(value, path).and_then(Value::as_object).filter(|_| !is_masked);
        let (Some(old), Some(new)) = (object(&before.value), object(&self.value)) else {
            found.push(path.clone());
            return;
        };
        let unknown = object(&self.unknown).into_iter().flat_map(|fields| fields.keys());
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).chain(unknown).collect();
        for name in names {
            path.push(PathPart::Key(name.clone()));
            self.differ(before, path, found);
            path.pop();
        }
    }

    pub(super) fn part(&self, path: &[PathPart]) -> Self {
        let part = |mask: &Value| match find(mask, path) {
            Some(part) => part.clone(),
            None => Value::Bool(is_marked_above(mask, path)),
        };
        let value = find(&self.value, path).cloned().unwrap_or(Value::Null);
        Self { value, unknown: part(&self.unknown), sensitive: part(&self.sensitive) }
    }
}

/// Whether a mask marks the value at a path, a value around it, or a part of it.
fn marks(mask: &Value, path: &[PathPart]) -> bool {
    is_marked_above(mask, path) || find(mask, path).is_some_and(any)
}

/// Whether a mask marks the value at a path, or a value around it.
fn is_marked_above(mask: &Value, path: &[PathPart]) -> bool {
    let mut place = Some(mask);
    for step in path {
        match place {
            Some(Value::Bool(true)) => return true,
            Some(mask) => place = child(mask, step),
            None => return false,
        }
    }
    place == Some(&Value::Bool(true))
}

fn any(mask: &Value) -> bool {
    match mask {
        Value::Bool(marked) => *marked,
        Value::Array(elements) => elements.iter().any(any),
        Value::Object(fields) => fields.values().any(any),
        Value::Null | Value::Number(_) | Value::String(_) => false,
    }
}

fn find<'a>(value: &'a Value, path: &[PathPart]) -> Option<&'a Value> {
    path.iter().try_fold(value, child)
}

/// The value at a path, unless it is null.
fn set<'a>(value: &'a Value, path: &[PathPart]) -> Option<&'a Value> {
    find(value, path).filter(|value| !value.is_null())
}

fn child<'a>(value: &'a Value, step: &PathPart) -> Option<&'a Value> {
    match step {
        PathPart::Index(index) => value.get(index),
        PathPart::Key(key) => value.get(key),
    }
}

fn collect(mask: &Value, path: &mut Vec<PathPart>, found: &mut Vec<Vec<PathPart>>) {
    let mut within = |step: PathPart, mask: &Value| {
        path.push(step);
        collect(mask, path, found);
        path.pop();
    };
    match mask {
        Value::Bool(true) => found.push(path.clone()),
        Value::Array(elements) => {
            elements.iter().enumerate().for_each(|(index, mask)| within(PathPart::Index(index), mask));
        }
        Value::Object(fields) => fields.iter().for_each(|(key, mask)| within(PathPart::Key(key.clone()), mask)),
        Value::Bool(false) | Value::Null | Value::Number(_) | Value::String(_) => {}
    }
}

/// A path in HCL: `timeouts.create`, `exist_disks[0].disk_id`, `environment["a b"]`.
pub(super) fn written(path: &[PathPart]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            PathPart::Index(index) => text.extend(["[", &index.to_string(), "]"]),
            PathPart::Key(key) if is_name(key) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(key);
            }
            PathPart::Key(key) => text.extend(["[", &Value::from(key.as_str()).to_string(), "]"]),
        }
    }
    text
}

fn is_name(key: &str) -> bool {
    let may_begin = |c: char| c.is_ascii_alphabetic() || c == '_';
    key.starts_with(may_begin) && key.chars().all(|c| may_begin(c) || c.is_ascii_digit() || c == '-')
}

/// The texts for a sensitive and an unknown value. Known values are JSON, which has no such text.
pub(super) const SENSITIVE: &str = "(sensitive)";
pub(super) const UNKNOWN: &str = "(known after apply)";

/// The value as JSON, or the text shown instead.
pub(super) fn shown(seen: ShownValue<'_>) -> String {
    match seen {
        ShownValue::Known(value) => value.to_string(),
        ShownValue::Null => "null".to_owned(),
        ShownValue::Sensitive => SENSITIVE.to_owned(),
        ShownValue::Unknown => UNKNOWN.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn values() -> Values {
        Values::new(
            json!({"name": "x", "password": "secret", "none": null, "list": [{"a": 1, "b": "s"}], "map": {"k": "s"}}),
            json!({"id": true, "later": {"part": true}}),
            json!({"password": true, "id": true, "none": true, "list": [{"b": true}], "map": true}),
        )
    }

    #[test]
    fn nothing_sensitive_or_unknown_is_seen() {
        let values = values();
        assert_eq!(values.at(&["name"]), ShownValue::Known(&json!("x")));
        assert_eq!(values.at(&["password"]), ShownValue::Sensitive);
        assert_eq!(values.at(&["id"]), ShownValue::Sensitive);
        assert_eq!(values.at(&["later"]), ShownValue::Unknown);
        assert_eq!(values.at(&["none"]), ShownValue::Null);
        assert_eq!(values.at(&["list"]), ShownValue::Sensitive);
        assert_eq!(values.at(&["map", "k"]), ShownValue::Sensitive);
        assert_eq!(values.whole(), ShownValue::Sensitive);
        let elements = values.elements("list");
        assert_eq!(elements[0].at(&["a"]), ShownValue::Known(&json!(1)));
        assert_eq!(elements[0].at(&["b"]), ShownValue::Sensitive);
    }

    #[test]
    fn a_secret_is_what_is_marked_and_there() {
        let written: Vec<String> = values().secrets().iter().map(|path| written(path)).collect();
        assert_eq!(written, ["id", "list[0].b", "map", "password"]);
    }

    #[test]
    fn a_mark_on_the_whole_marks_every_element() {
        let values = Values::new(json!({"list": ["a"]}), Value::Null, json!({"list": true}));
        assert_eq!(values.elements("list")[0].whole(), ShownValue::Sensitive);
    }

    #[test]
    fn paths_are_written_as_in_hcl() {
        let key = |key: &str| PathPart::Key(key.to_owned());
        assert_eq!(written(&[key("a"), PathPart::Index(0), key("b"), key("c d"), key("\"")]), r#"a[0].b["c d"]["\""]"#);
    }
}
