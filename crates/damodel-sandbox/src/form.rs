//! The forms that the document leaves open; a client has to understand each of them.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The choices that the document leaves open ("not shown"). The default is the plainest reading.
///
/// Parsed from `name=value` pairs separated by commas; a name alone means `true`:
/// `error_status=matched,integers=floats,extra_fields,clock_skew=-3600`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Form {
    /// The HTTP status of errors (service API, Errors: "not shown").
    pub error_status: ErrorStatus,
    /// The structure of `response_metadata.error` (service API, Errors: "not shown").
    pub error_shape: ErrorShape,
    /// How an empty field of a record is written: "", an empty array, or a time of 0. With `null`, a whole empty list
    /// is null, too.
    pub empty: Empty,
    /// How an integer of a result is written.
    pub integers: Integers,
    /// How a boolean of a result is written.
    pub booleans: Booleans,
    /// The largest page served, whatever size was requested; 0 in the request still means all. `None`: no cap.
    pub page_cap: Option<u32>,
    /// Whether the cap also applies to a page of size 0, as in gateways before a service.
    pub page_cap_for_all: bool,
    /// Whether a capped page reports the requested size, not the size served.
    pub page_size_as_asked: bool,
    /// Whether `total` is a string.
    pub total_as_string: bool,
    /// The order of lists.
    pub order: ListOrder,
    /// By how many seconds the service's clock is ahead of the computer's; the Date header shows it.
    pub clock_skew: i64,
    /// Whether records and envelopes carry fields that the document does not name.
    pub extra_fields: bool,
    /// Which response metadata is sent.
    pub metadata: Metadata,
    /// Whether statuses appear that the document does not name: "Scheduling" before Running, "Releasing" before
    /// Released, 9 instead of 1 for a cloud disk.
    pub undocumented_statuses: bool,
    /// Whether `image_type` of an instance is "1" or "2", not "public" or "private"; requests may use either.
    pub image_type_as_number: bool,
    /// Whether spec_id, image_id and gpu_num of an instance are 0 while it is being created, and its spec_type,
    /// gpu_name and capacity_type null.
    pub zeros_while_creating: bool,
    /// Whether the gpu_name of an instance has spaces where that of its specification has hyphens.
    pub spaced_gpu_names: bool,
    /// Whether names are shown in capital letters.
    pub capital_names: bool,
    /// Whether the mount paths in answers end with a slash.
    pub trailing_slash: bool,
    /// Whether the uids of new instances count from `ins-1`, so that one can be a prefix of another.
    pub counted_uids: bool,
    /// How Released instances are shown.
    pub released: Released,
    /// Whether an instance that is still being created refuses its release with 160012.
    pub creating_unreleasable: bool,
    /// Whether a Failed instance refuses its release with 160012.
    pub failed_unreleasable: bool,
    /// The code with which the downstream service refuses a cloud disk operation that its status forbids.
    pub disk_refusal: DiskRefusal,
    /// How a cloud disk is shown while it grows (service API, States, Cloud disk: "may complete asynchronously").
    pub resize: Resize,
    /// How the list shows Released cloud disks.
    pub released_disks: ReleasedDisks,
    /// The scope in which only one image can be created at a time (130002).
    pub uploading: Uploading,
    /// Whether another account's private image is refused with 130004 by rename and delete, not with 130006.
    pub foreign_images_forbidden: bool,
    /// The errors of the chat endpoint (service API, Errors: "not shown").
    pub chat_error: ChatError,
    /// How a streamed chat answer is written (service API, Chat completions: "not shown").
    pub chat_stream: ChatStream,
}

impl Form {
    /// A name in the form of answers.
    pub(super) fn name(&self, name: &str) -> String {
        if self.capital_names { name.to_uppercase() } else { name.to_owned() }
    }

    /// A mount path in the form of answers.
    pub(super) fn path(&self, path: &str) -> String {
        if self.trailing_slash { format!("{path}/") } else { path.to_owned() }
    }
}

/// The HTTP status of errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorStatus {
    /// 200, as for success.
    #[default]
    Always200,
    /// The 4xx or 5xx that fits the code.
    Matched,
}

/// The structure of `response_metadata.error`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorShape {
    /// `[{"code_n": 160003, "code": "…", "message": "…"}]`
    Array,
    /// `{"Code": "…", "Message": "…"}`
    Capitalised,
    /// `{"code_n": 160003, "code": "…", "message": "…"}`
    #[default]
    Full,
    /// `{"error": {"code_n": 160003, "code": "…", "message": "…"}}`
    Nested,
    /// `{"code": 160003, "message": "…"}`
    NumericCode,
    /// `{"code_n": "160003", "code": "…", "message": "…"}`
    StringNumber,
    /// `"160003 …: …"`
    Text,
}

/// How an empty field is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Empty {
    /// As it is: "", [], 0.
    #[default]
    AsIs,
    /// Left out.
    Missing,
    /// `null`.
    Null,
    /// `""`, whatever type was promised.
    Text,
}

/// How an integer is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Integers {
    /// `3`
    #[default]
    AsIs,
    /// `3.0`
    Floats,
    /// `"3"`
    Strings,
}

/// How a boolean is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Booleans {
    /// `true`
    #[default]
    AsIs,
    /// `1`
    Numbers,
    /// `"true"`
    Strings,
}

/// The order of lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListOrder {
    /// By id.
    #[default]
    Ascending,
    /// By id, the newest first.
    Descending,
    /// Another order inside each page on each request; each page keeps its records.
    Shuffled,
    /// Another order of the whole list on each request, so that following pages can miss a record.
    ShuffledAcrossPages,
}

/// Which response metadata is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metadata {
    /// All fields.
    #[default]
    Full,
    /// None on success, only the error on failure.
    Missing,
    /// All fields, with empty identifiers.
    WithoutIdentifiers,
}

/// How Released instances are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Released {
    /// Neither list nor detail show them.
    Forgotten,
    /// List and detail show them.
    #[default]
    Listed,
    /// Lists show them, detail answers 160003.
    WithoutDetail,
}

/// The code with which a cloud disk's status forbids an operation (service API, States, Cloud disk: "a business
/// error").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiskRefusal {
    /// 100014.
    #[default]
    InternalError,
    /// 100002.
    InvalidParameter,
}

/// How a cloud disk is shown while it grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resize {
    /// The new capacity at once, with status 1.
    SizeFirst,
    /// The old capacity, with status 1.
    #[default]
    Starting,
    /// The old capacity, with the old status.
    Unchanged,
}

/// How the list shows Released cloud disks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReleasedDisks {
    /// Not at all.
    Forgotten,
    /// They stay, with status 7.
    #[default]
    Listed,
    /// They stay for as long again as a release takes, then disappear.
    Lingering,
}

/// The scope in which only one image can be created at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Uploading {
    /// An account.
    PerAccount,
    /// An instance.
    #[default]
    PerInstance,
}

/// The errors of the chat endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatError {
    /// The envelope of every other endpoint, with its form and status.
    Envelope,
    /// `{"error": {"message", "type", "param", "code"}}` with the fitting HTTP status, which OpenAI-compatible clients
    /// evaluate.
    #[default]
    #[serde(rename = "openai")]
    OpenAi,
    /// The same with status 200.
    #[serde(rename = "openai_200")]
    OpenAi200,
    /// The message as plain text, with the fitting HTTP status.
    Text,
}

/// How a streamed chat answer is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatStream {
    /// With comments and other fields between the events.
    Comments,
    /// Lines end with CR LF, and no space follows `data:`.
    Crlf,
    /// `data: …`, LF, LF; one event at a time.
    #[default]
    Events,
    /// The same bytes, a few at a time, so that events and characters are cut anywhere.
    Pieces,
    /// One JSON answer, although a stream was requested.
    Whole,
}

/// Why a list of forms cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("read the forms {text:?}")]
pub struct FormError {
    text: String,
    source: serde_json::Error,
}

impl FromStr for Form {
    type Err = FormError;

    fn from_str(text: &str) -> Result<Self, FormError> {
        let fields: Map<String, Value> = text
            .split(',')
            .map(str::trim)
            .filter(|pair| !pair.is_empty())
            .map(|pair| match pair.split_once('=') {
                Some((name, value)) => (name.trim().to_owned(), scalar(value.trim())),
                None => (pair.to_owned(), Value::Bool(true)),
            })
            .collect();
        serde_json::from_value(Value::Object(fields)).map_err(|source| FormError { text: text.to_owned(), source })
    }
}

/// The number or boolean that the text is, else the text itself.
fn scalar(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(value @ (Value::Bool(_) | Value::Number(_))) => value,
        _ => Value::String(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_and_bare_names_are_read() {
        let form: Form =
            "error_status=matched, integers=floats,extra_fields,clock_skew=-3600,page_cap=100".parse().unwrap();
        let expected = Form {
            error_status: ErrorStatus::Matched,
            integers: Integers::Floats,
            extra_fields: true,
            clock_skew: -3600,
            page_cap: Some(100),
            ..Form::default()
        };
        assert_eq!(form, expected);
    }

    #[rstest::rstest]
    #[case("colour=red")]
    #[case("integers=roman")]
    #[case("page_cap=-1")]
    #[case("clock_skew=soon")]
    fn what_is_no_form_is_refused(#[case] text: &str) {
        assert!(text.parse::<Form>().is_err());
    }
}
