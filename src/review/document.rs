//! Documents as programs and shells write them into a file or a pipe.

use std::borrow::Cow;

/// The reason why a document is not the bare output of Terraform or OpenTofu.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// It begins like UTF-16. Usual cause: it is truncated, or another program added text in another encoding.
    #[error("it is not valid UTF-16, although it begins as UTF-16. Write the file again")]
    Encoding,
    /// A workflow's wrapper added lines.
    #[error(
        "it has lines of the wrapper of hashicorp/setup-terraform (`[command]…`, `::debug::…`). Set \
         `terraform_wrapper: false` in that step, or `tofu_wrapper: false` of opentofu/setup-opentofu"
    )]
    Wrapper,
}

/// A document in UTF-8, without its byte order mark.
///
/// `>` of Windows PowerShell 5 writes UTF-16. Without a mark the first character, ASCII in JSON and TOML, shows the
/// order of its bytes.
///
/// # Errors
///
/// If it begins as UTF-16 and is not.
pub fn decoded(document: &[u8]) -> Result<Cow<'_, [u8]>, DocumentError> {
    let (units, is_big_endian) = match document {
        [0xff, 0xfe, units @ ..] => (units, false),
        [0xfe, 0xff, units @ ..] => (units, true),
        [1..=u8::MAX, 0, ..] => (document, false),
        [0, 1..=u8::MAX, ..] => (document, true),
        [0xef, 0xbb, 0xbf, text @ ..] => return Ok(Cow::Borrowed(text)),
        _ => return Ok(Cow::Borrowed(document)),
    };
    let (units, []) = units.as_chunks::<2>() else { return Err(DocumentError::Encoding) };
    let units =
        units.iter().map(|unit| if is_big_endian { u16::from_be_bytes(*unit) } else { u16::from_le_bytes(*unit) });
    let text: Result<String, _> = char::decode_utf16(units).collect();
    text.map(|text| Cow::Owned(text.into_bytes())).map_err(|_| DocumentError::Encoding)
}

/// Whether a wrapper added lines: setup-terraform and setup-opentofu print the command before its output, and commands
/// for GitHub Actions after it. No line of JSON begins so.
pub fn is_wrapped(document: &[u8]) -> bool {
    document.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"[command]") || line.starts_with(b"::"))
}
