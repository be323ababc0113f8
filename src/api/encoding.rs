//! The encoding of text files.

use std::borrow::Cow;

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

/// The certificates of a file in PEM format, for [`Settings`](crate::api::Settings); `None` if it has none.
#[must_use]
pub fn certificates(file: &[u8]) -> Option<Vec<u8>> {
    const BEGIN: &[u8] = b"-----BEGIN CERTIFICATE-----";
    let text = utf_8(file)?;
    text.windows(BEGIN.len()).any(|line| line == BEGIN).then(|| text.into_owned())
}
