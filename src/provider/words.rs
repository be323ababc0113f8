//! The words for the service's numbers, and the text forms of times, links and undescribed values.

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    api::{ObjectKind, disk_status::DISK_STATUSES},
    framework::Attr,
    review::rules::{likeness, nearest, thousands},
};

/// The name of an object in diagnostics, from its known parts: `instance "trainer" (ins-…)`.
pub(super) fn title(noun: &str, name: Option<&str>, id: Option<&str>) -> String {
    match (name, id) {
        (Some(name), Some(id)) => format!("{noun} {name:?} ({id})"),
        (Some(name), None) => format!("{noun} {name:?}"),
        (None, Some(id)) => format!("{noun} {id}"),
        (None, None) => format!("the {noun}"),
    }
}

/// The resource type of a kind.
pub(crate) fn type_name(kind: ObjectKind) -> String {
    format!("damodel_{}", kind.as_str())
}

/// The name by which the command `release` takes an object: the numbers of a disk and of an image may be equal.
pub(crate) fn release_target(kind: ObjectKind, id: &str) -> String {
    match kind {
        ObjectKind::CloudDisk => format!("disk:{id}"),
        ObjectKind::Instance => id.to_owned(),
        ObjectKind::PrivateImage => format!("image:{id}"),
    }
}

/// What to do about an object that no state has, in two lines.
pub(crate) fn keep_or_delete(kind: ObjectKind, id: &str) -> String {
    format!("To keep it: terraform import {}.<name> {id}\n{}", type_name(kind), to_delete(kind, id))
}

/// Lines below an element of a list.
pub(super) fn indented(lines: &str) -> String {
    format!("\n{lines}").replace('\n', "\n  ")
}

/// How to delete an object that no state has.
pub(crate) fn to_delete(kind: ObjectKind, id: &str) -> String {
    let target = release_target(kind, id);
    format!("To delete it, if no other stack uses it: terraform-provider-damodel release {target}")
}

/// The known files whose names are most similar to that of a wrong path, at most three.
pub(super) fn nearest_files<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let name = |path: &'a str| path.rsplit('/').next().unwrap_or(path);
    let wrong = wrong.rsplit('/').next().unwrap_or(wrong);
    let mut known: Vec<_> = known.into_iter().map(|path| (likeness(wrong, name(path)), path)).collect();
    known.sort_by(|(one, a), (other, b)| other.total_cmp(one).then(a.cmp(b)));
    known.into_iter().take(3).map(|(_, path)| path).collect()
}

/// The nearest known value as a sentence; empty if none is similar.
pub(super) fn the_nearest<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> String {
    nearest(wrong, known).map(|known| format!(" The nearest is {known:?}.")).unwrap_or_default()
}

/// Sets an attribute to the reported value; without one, the attribute keeps its value.
pub(super) fn keep<T>(attribute: &mut Attr<T>, reported: Option<T>) {
    if let Some(reported) = reported {
        *attribute = Attr::Known(reported);
    }
}

/// The text with an upper-case first letter. An address stays as it is, and so does a login.
pub(super) fn capitalized(text: &str) -> String {
    if text.split_whitespace().next().is_some_and(|word| word.contains("://") || word.contains('@')) {
        return text.to_owned();
    }
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// How often something happened.
pub(super) fn times(count: i64) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{} times", thousands(&count.to_string())),
    }
}

/// A noun with its indefinite article.
pub(super) fn with_article(noun: &str) -> String {
    let article = if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {noun}")
}

/// The word for a number in a table; any other number as text.
fn word(table: &[(i64, &'static str)], number: i64) -> String {
    table
        .iter()
        .find(|(known, _)| *known == number)
        .map_or_else(|| format!("unknown({number})"), |(_, word)| (*word).to_owned())
}

/// `login_method` (service API, Instance).
pub(super) fn login_method(number: i64) -> String {
    word(&[(1, "ssh_key"), (2, "password")], number)
}

/// A storage class (service API, Cloud disk).
pub(super) fn storage_class(number: i64) -> String {
    word(&STORAGE_CLASSES, number)
}

/// The number of a storage class.
pub(super) fn storage_class_number(class: &str) -> Option<i64> {
    STORAGE_CLASSES.iter().find(|(_, word)| *word == class).map(|(number, _)| *number)
}

const STORAGE_CLASSES: [(i64, &str); 3] = [(1, "RBD"), (2, "FS"), (3, "S3")];

/// The status of a private image (service API, Private image).
pub(crate) fn image_status(number: i64) -> String {
    word(&[(0, "creating"), (1, "ready")], number)
}

/// The status of a cloud disk (service API, Cloud disk).
pub(crate) fn disk_status(number: i64) -> String {
    word(&DISK_STATUSES, number)
}

/// The number of a cloud disk's status.
pub(super) fn disk_status_number(status: &str) -> Option<i64> {
    DISK_STATUSES.iter().find(|(_, word)| *word == status).map(|(number, _)| *number)
}

/// `image_type`, which the service returns as a number or a word (service API, POST /api/instance/create).
pub(super) fn image_type(text: &str) -> String {
    match text {
        "1" | "public" => "public".to_owned(),
        "2" | "private" => "private".to_owned(),
        other => format!("unknown({other})"),
    }
}

/// A discount's status (service API, Instance specification).
pub(super) fn discount_status(number: i64) -> String {
    const TABLE: [(i64, &str); 6] = [
        (0, "none"),
        (1, "voided"),
        (2, "not_yet_effective"),
        (3, "expired"),
        (4, "effective"),
        (5, "effective_with_next"),
    ];
    word(&TABLE, number)
}

/// Unix seconds as RFC 3339 in UTC; `None` for 0 and for times outside the calendar.
pub(super) fn time(seconds: Option<i64>) -> Option<String> {
    let seconds = seconds.filter(|seconds| *seconds > 0)?;
    Timestamp::from_second(seconds).ok().map(|time| time.to_string())
}

/// An undescribed value as text: a string unchanged, anything else as JSON.
pub(super) fn text_or_json(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// A JSON document without the given secrets in any of its texts.
pub(super) fn json_without(value: &Value, secrets: &[&str]) -> Value {
    match value {
        Value::String(text) => Value::String(cut(text, secrets)),
        Value::Array(elements) => elements.iter().map(|element| json_without(element, secrets)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), json_without(value, secrets))).collect()
        }
        other => other.clone(),
    }
}

/// A text without the given secrets.
pub(super) fn cut(text: &str, secrets: &[&str]) -> String {
    secrets.iter().filter(|secret| !secret.is_empty()).fold(text.to_owned(), |text, secret| text.replace(secret, "***"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_become_words() {
        assert_eq!(login_method(1), "ssh_key");
        assert_eq!(login_method(9), "unknown(9)");
        assert_eq!(image_type("2"), "private");
        assert_eq!(discount_status(5), "effective_with_next");
    }

    #[test]
    fn a_noun_has_its_article() {
        assert_eq!(with_article("instance"), "an instance");
        assert_eq!(with_article("cloud disk"), "a cloud disk");
    }

    #[test]
    fn an_address_and_a_login_begin_as_they_are() {
        for (text, expected) in [
            ("no model at /m", "No model at /m"),
            ("https://h/m answered 404", "https://h/m answered 404"),
            ("root@h:22 refused the login", "root@h:22 refused the login"),
        ] {
            assert_eq!(capitalized(text), expected);
        }
    }

    #[test]
    fn a_number_of_times_is_a_word_if_there_is_one() {
        assert_eq!([1, 2, 3, 1229].map(times), ["once", "twice", "3 times", "1,229 times"]);
    }

    #[test]
    fn times_are_rfc_3339_and_zero_is_none() {
        assert_eq!(time(Some(1_700_000_000)).as_deref(), Some("2023-11-14T22:13:20Z"));
        assert_eq!(time(Some(0)), None);
        assert_eq!(time(Some(i64::MAX)), None);
    }

    #[test]
    fn secrets_are_cut_out_of_undescribed_structures() {
        let value = json!({ "url": "https://x/?token=abc", "list": ["abc", 1] });
        let text = json_without(&value, &["abc", ""]).to_string();
        assert!(!text.contains("abc") && text.contains("***"), "{text}");
    }
}
