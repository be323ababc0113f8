//! Rules about instances, terms and texts that the provider shares.

use std::{borrow::Cow, collections::BTreeSet};

use serde_json::Value;

/// The hours of a month in every sum.
pub const HOURS_A_MONTH: u32 = 730;

/// The hours of a period, if it has a price.
#[must_use]
pub fn hours(payment_type: &str) -> Option<u32> {
    match payment_type {
        "Hourly" => Some(1),
        "Daily" => Some(24),
        "Monthly" => Some(HOURS_A_MONTH),
        _ => None,
    }
}

/// Whether a cloud disk is released with its instance, by each source that marks it: one mark suffices, because its
/// data is lost then.
#[must_use]
pub fn goes_with_instance(marks: [Option<bool>; 2]) -> bool {
    marks.contains(&Some(true))
}

/// Adds the texts in a binding of a cloud disk, a document of a structure that the service does not describe: one is
/// the instance.
pub fn bound_to(binding: &Value, found: &mut BTreeSet<String>) {
    match binding {
        Value::String(text) => match serde_json::from_str(text) {
            Ok(inner @ (Value::Array(_) | Value::Object(_) | Value::String(_))) => bound_to(&inner, found),
            _ => drop(found.insert(text.clone())),
        },
        Value::Array(elements) => elements.iter().for_each(|element| bound_to(element, found)),
        Value::Object(fields) => fields.values().for_each(|field| bound_to(field, found)),
        Value::Bool(_) | Value::Null | Value::Number(_) => {}
    }
}

/// How similar two words are: 1 if they are equal.
#[must_use]
pub fn likeness(one: &str, other: &str) -> f64 {
    strsim::jaro_winkler(one, other)
}

/// The known value most similar to a wrong one, if one is similar.
#[must_use]
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = |known: &'a str| (likeness(wrong, known), known);
    let best = known.into_iter().map(likeness).max_by(|(one, _), (other, _)| one.total_cmp(other));
    best.filter(|(likeness, _)| *likeness > 0.85).map(|(_, known)| known)
}

/// A text in UTF-8, without its byte order mark; `None` if it begins as UTF-16 and is not.
///
/// `>` of Windows PowerShell 5 writes UTF-16. Without a mark the first character, ASCII in JSON, TOML and PEM, shows
/// the order of its bytes.
#[must_use]
pub fn utf_8(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    let (units, is_big_endian) = match text {
        [0xff, 0xfe, units @ ..] => (units, false),
        [0xfe, 0xff, units @ ..] => (units, true),
        [1..=u8::MAX, 0, ..] => (text, false),
        [0, 1..=u8::MAX, ..] => (text, true),
        [0xef, 0xbb, 0xbf, text @ ..] => return Some(Cow::Borrowed(text)),
        _ => return Some(Cow::Borrowed(text)),
    };
    let (units, []) = units.as_chunks::<2>() else { return None };
    let units =
        units.iter().map(|unit| if is_big_endian { u16::from_be_bytes(*unit) } else { u16::from_le_bytes(*unit) });
    let text: Result<String, _> = char::decode_utf16(units).collect();
    text.ok().map(|text| Cow::Owned(text.into_bytes()))
}

/// A number with separated thousands: `1,460,000.00`.
#[must_use]
pub fn thousands(number: &str) -> String {
    let begin = number.find(|c: char| c.is_ascii_digit()).unwrap_or(0);
    let end = number.find('.').unwrap_or(number.len());
    let mut text = String::with_capacity(number.len() + number.len() / 3);
    for (place, c) in number.char_indices() {
        if place > begin && place < end && (end - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(c);
    }
    text
}

/// The end of a list whose first elements are shown: the number of the others.
#[must_use]
pub fn and_more(others: usize) -> String {
    format!("and {} more", thousands(&others.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_apart() {
        for (number, expected) in [
            ("0.00", "0.00"),
            ("999.50", "999.50"),
            ("1000", "1,000"),
            ("1460000.00", "1,460,000.00"),
            ("\u{2212}1234567.89", "\u{2212}1,234,567.89"),
            ("+123456.00", "+123,456.00"),
        ] {
            assert_eq!(thousands(number), expected);
        }
    }
}
