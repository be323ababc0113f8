//! The response envelope, read in every plausible form (service API, Response envelope and Errors).
//!
//! The service API leaves the HTTP status and the shape of the error object open, so both are recognized by their
//! content, not by their position.

use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use serde_json::{Map, Value, value::RawValue};

use crate::api::{
    code::Code,
    encoding::without_mark,
    endpoint::Endpoint,
    error::{Error, RequestIds, ServiceError, UnreadAnswer},
    lenient::{Lenient as _, members},
    retry,
    transport::IncomingAnswer,
};

/// The longest message that is kept, in characters.
const LONGEST_MESSAGE: usize = 1000;

/// The members of an answer that are read.
const MEMBERS: &str = "result response_metadata responseMetadata ResponseMetadata metadata error Error errors code_n \
                       codeN CodeN code_num code Code error_code errcode message msg Message detail \
                       error_description reason request_id requestId trace_id traceId";

/// The longest of them but the result, in bytes: as a tree it takes many times as much.
const LONGEST_MEMBER: usize = 64 << 10;

/// A successful answer: its payload and its ids.
#[derive(Debug)]
pub(crate) struct Answer {
    /// `result` unparsed, empty if it is missing: a long list is read record by record, never as one tree.
    pub(crate) result: Bytes,
    pub(crate) ids: RequestIds,
}

#[cfg(test)]
impl Answer {
    /// `result` as a value.
    pub(super) fn value(&self) -> Value {
        serde_json::from_slice(&self.result).unwrap_or_default()
    }
}

/// Reads an answer: its `result`, or its error.
pub(super) fn open(endpoint: Endpoint, incoming: &IncomingAnswer, now: i64) -> Result<Answer, Error> {
    let reader = Reader { endpoint, incoming, now };
    if (300..400).contains(&incoming.status) {
        return Err(Error::Redirected { endpoint, status: incoming.status });
    }
    if incoming.status == 204 {
        return Ok(Answer { result: Bytes::new(), ids: header_ids(&incoming.headers) });
    }
    let text = str::from_utf8(&incoming.body).map(without_mark).unwrap_or_default();
    let mut fields = match members(text, MEMBERS) {
        Ok(fields) => fields,
        Err(error) if error.is_data() => {
            return Err(reader.unread("JSON that is not an object", header_ids(&incoming.headers)));
        }
        Err(_) => return Err(reader.unread("not JSON", header_ids(&incoming.headers))),
    };
    let result = fields.remove("result");
    if fields.values().any(|value| value.get().len() > LONGEST_MEMBER) {
        return Err(reader.unread("JSON with an endless member", header_ids(&incoming.headers)));
    }
    let read = |value: &RawValue| serde_json::from_str(value.get()).unwrap_or_default();
    let document: Map<String, Value> = fields.into_iter().map(|(name, value)| (name.to_owned(), read(value))).collect();
    let metadata = ["response_metadata", "responseMetadata", "ResponseMetadata", "metadata"]
        .iter()
        .find_map(|name| document.get(*name)?.as_object());
    let ids = request_ids(&document, metadata, &incoming.headers);
    if let Some(found) = find_error(&document, metadata, incoming.status) {
        return Err(reader.refusal(found, ids));
    }
    if !(200..300).contains(&incoming.status) {
        return Err(reader.unread("JSON without an error object", ids));
    }
    if metadata.is_none() && result.is_none() {
        return Err(reader.unread("JSON without result and response_metadata", ids));
    }
    let result = result.map(|result| incoming.body.slice_ref(result.get().as_bytes())).unwrap_or_default();
    Ok(Answer { result, ids })
}

struct Reader<'a> {
    endpoint: Endpoint,
    incoming: &'a IncomingAnswer,
    now: i64,
}

impl Reader<'_> {
    fn refusal(&self, found: ErrorParts, ids: RequestIds) -> Error {
        Error::Service(Box::new(ServiceError {
            endpoint: self.endpoint,
            code: found.code(),
            name: found.name,
            // One line: a line break would begin a line of ours.
            message: found
                .message
                .unwrap_or_default()
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .chars()
                .take(LONGEST_MESSAGE)
                .collect(),
            status: self.incoming.status,
            ids,
            retry_after: self.retry_after(),
            server_time: retry::server_time(&self.incoming.headers),
        }))
    }

    fn unread(&self, form: &str, ids: RequestIds) -> Error {
        let kind =
            self.incoming.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("no content type");
        let kind: String = kind.chars().take(80).collect();
        let answer = Box::new(UnreadAnswer {
            endpoint: self.endpoint,
            status: self.incoming.status,
            reason: format!("{form}, {} bytes, {kind}", self.incoming.body.len()),
            ids,
            retry_after: self.retry_after(),
        });
        if (200..300).contains(&self.incoming.status) {
            Error::Undecodable(answer)
        } else {
            Error::UndocumentedStatus(answer)
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        retry::retry_after(&self.incoming.headers, self.now)
    }
}

/// The content of an error object of any shape.
#[derive(Debug, Default, PartialEq)]
struct ErrorParts {
    number: Option<i64>,
    name: Option<String>,
    message: Option<String>,
}

impl ErrorParts {
    fn code(&self) -> Code {
        let by_name = self.name.as_deref().and_then(Code::from_name);
        match (self.number.map(Code::from_number), by_name) {
            (Some(Code::Other(_)) | None, Some(code)) => code,
            (Some(code), _) => code,
            (None, None) => Code::Other(0),
        }
    }

    /// Whether it is an error: `{}`, 0, "", false and `{"code": 0}` stand for success in some services.
    fn says_something(&self) -> bool {
        let quiet = |text: &Option<String>| {
            text.as_deref().is_none_or(|text| {
                text.is_empty() || ["ok", "success", "succeed"].iter().any(|word| text.eq_ignore_ascii_case(word))
            })
        };
        match self.number {
            Some(0) => !quiet(&self.name),
            Some(_) => true,
            None => !quiet(&self.name) || !quiet(&self.message),
        }
    }
}

fn find_error(document: &Map<String, Value>, metadata: Option<&Map<String, Value>>, status: u16) -> Option<ErrorParts> {
    let nested = [
        metadata.and_then(|metadata| metadata.get("error").or_else(|| metadata.get("Error"))),
        document.get("error"),
        document.get("Error"),
        document.get("errors"),
    ];
    for error in nested.into_iter().flatten() {
        let found = read_error(error, 0);
        if found.says_something() {
            return Some(found);
        }
    }
    // At the top level of a success, a message alone is not an error, and some services write 200 for success.
    let found = read_fields(document);
    if !(200..300).contains(&status) {
        return Some(found).filter(ErrorParts::says_something);
    }
    let failed = match found.number {
        Some(number) => number != 0 && !(200..300).contains(&number),
        None => found.name.as_deref().is_some_and(|name| Code::from_name(name).is_some()),
    };
    failed.then_some(found)
}

fn read_error(error: &Value, depth: usize) -> ErrorParts {
    match error {
        Value::Object(fields) => {
            let mut found = read_fields(fields);
            if found.number.is_none() && found.name.is_none() && found.message.is_some() {
                // Chat servers send the kind of an error if they have no code for it.
                found.name = fields.get("type").and_then(String::read);
            }
            let inner = fields.get("error").or_else(|| fields.get("Error"));
            match inner {
                Some(inner) if !found.says_something() && depth < 3 => read_error(inner, depth + 1),
                Some(Value::String(message)) if found.message.is_none() => {
                    ErrorParts { message: Some(message.clone()), ..found }
                }
                _ => found,
            }
        }
        Value::Array(errors) if depth < 3 => {
            errors.first().map(|first| read_error(first, depth + 1)).unwrap_or_default()
        }
        Value::String(text) => read_sentence(text),
        number @ Value::Number(_) => ErrorParts { number: i64::read(number), ..ErrorParts::default() },
        _ => ErrorParts::default(),
    }
}

/// An error in one string: a code's number, a code's name, or a sentence (which may begin with either, or be JSON
/// itself).
fn read_sentence(text: &str) -> ErrorParts {
    if let Ok(number) = text.trim().parse() {
        return ErrorParts { number: Some(number), ..ErrorParts::default() };
    }
    if let Ok(inner @ Value::Object(_)) = serde_json::from_str(text) {
        return read_error(&inner, 3);
    }
    let first = text.split([':', ' ', ',']).next().unwrap_or_default();
    let is_documented = |number: &i64| !matches!(Code::from_number(*number), Code::Other(_));
    ErrorParts {
        number: first.parse().ok().filter(is_documented),
        name: Code::from_name(first).and_then(Code::name).map(str::to_owned),
        message: Some(text.to_owned()).filter(|text| !text.is_empty()),
    }
}

fn read_fields(fields: &Map<String, Value>) -> ErrorParts {
    let first = |names: &[&str]| names.iter().find_map(|name| fields.get(*name)).cloned().unwrap_or(Value::Null);
    let mut found = ErrorParts {
        number: ["code_n", "codeN", "CodeN", "code_num"].iter().find_map(|name| i64::read(fields.get(*name)?)),
        name: None,
        message: ["message", "msg", "Message", "detail", "error_description", "reason"]
            .iter()
            .find_map(|name| String::read(fields.get(*name)?)),
    };
    let code = first(&["code", "Code", "error_code", "errcode"]);
    match (i64::read(&code), found.number) {
        (Some(number), None) => found.number = Some(number),
        (Some(_), Some(_)) => {}
        (None, _) => found.name = String::read(&code),
    }
    found
}

fn request_ids(
    document: &Map<String, Value>,
    metadata: Option<&Map<String, Value>>,
    headers: &HeaderMap,
) -> RequestIds {
    let from_headers = header_ids(headers);
    let find = |names: [&str; 2]| {
        [metadata, Some(document)]
            .into_iter()
            .flatten()
            .find_map(|fields| names.iter().find_map(|name| String::read(fields.get(*name)?)))
    };
    RequestIds {
        request_id: find(["request_id", "requestId"]).or(from_headers.request_id),
        trace_id: find(["trace_id", "traceId"]).or(from_headers.trace_id),
    }
}

fn header_ids(headers: &HeaderMap) -> RequestIds {
    let first = |names: &[&str]| {
        names
            .iter()
            .find_map(|name| headers.get(*name)?.to_str().ok())
            .filter(|text| !text.is_empty())
            .map(|text| text.chars().take(200).collect())
    };
    RequestIds {
        request_id: first(&["x-request-id", "request-id", "x-service-request-id"]),
        trace_id: first(&["x-trace-id", "trace-id", "traceparent"]),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::api::testing::raw;

    fn opened(status: u16, headers: &[(&'static str, &str)], body: &str) -> Result<Answer, Error> {
        open(Endpoint::InstanceCreate, &raw(status, headers, body.to_owned()).unwrap(), 0)
    }

    #[rstest]
    #[case::documented(
        200,
        r#"{"result":null,"response_metadata":{"error":{"code_n":160001,"code":"ResourceInsufficient","message":"why"}}}"#
    )]
    #[case::http_400(
        400,
        r#"{"result":null,"response_metadata":{"error":{"code_n":160001,"code":"ResourceInsufficient","message":"why"}}}"#
    )]
    #[case::http_500(500, r#"{"response_metadata":{"error":{"code_n":160001,"message":"why"}}}"#)]
    #[case::number_as_text(200, r#"{"response_metadata":{"error":{"code_n":"160001","msg":"why"}}}"#)]
    #[case::number_as_float(200, r#"{"response_metadata":{"error":{"code_n":160001.0,"detail":"why"}}}"#)]
    #[case::code_is_the_number(200, r#"{"response_metadata":{"error":{"code":160001,"message":"why"}}}"#)]
    #[case::code_is_the_number_as_text(200, r#"{"response_metadata":{"error":{"code":"160001","message":"why"}}}"#)]
    #[case::name_only(200, r#"{"response_metadata":{"error":{"code":"ResourceInsufficient","message":"why"}}}"#)]
    #[case::error_in_error(200, r#"{"response_metadata":{"error":{"error":{"code_n":160001,"message":"why"}}}}"#)]
    #[case::capitalised(200, r#"{"ResponseMetadata":{"Error":{"Code":"ResourceInsufficient","Message":"why"}}}"#)]
    #[case::error_list(200, r#"{"response_metadata":{"error":[{"code_n":160001,"message":"why"}]}}"#)]
    #[case::error_is_json_text(200, r#"{"response_metadata":{"error":"{\"code_n\":160001,\"message\":\"why\"}"}}"#)]
    #[case::error_beside_result(409, r#"{"result":null,"error":{"code_n":160001,"message":"why"}}"#)]
    #[case::error_at_the_top(409, r#"{"code_n":160001,"code":"ResourceInsufficient","message":"why"}"#)]
    #[case::error_at_the_top_200(200, r#"{"code":160001,"msg":"why","result":null}"#)]
    fn error_is_found_in_every_shape(#[case] status: u16, #[case] body: &str) {
        let error = opened(status, &[], body).unwrap_err();
        let service = error.service().unwrap();
        assert_eq!(service.code, Code::ResourceInsufficient);
        assert_eq!(service.message, "why");
        assert_eq!(service.status, status);
    }

    #[rstest]
    #[case(r#"{"response_metadata":{"error":"ResourceInsufficient: why"}}"#, Code::ResourceInsufficient)]
    #[case(r#"{"response_metadata":{"error":160001}}"#, Code::ResourceInsufficient)]
    #[case(r#"{"response_metadata":{"error":"160001"}}"#, Code::ResourceInsufficient)]
    #[case(r#"{"response_metadata":{"error":"something broke"}}"#, Code::Other(0))]
    #[case(r#"{"response_metadata":{"error":{"code_n":999999,"code":"Novel"}}}"#, Code::Other(999_999))]
    fn error_of_one_word_is_an_error(#[case] body: &str, #[case] code: Code) {
        assert_eq!(opened(200, &[], body).unwrap_err().code(), Some(code));
    }

    #[rstest]
    #[case(r#"{"result":{"a":1},"response_metadata":{"error":null}}"#)]
    #[case(r#"{"result":{"a":1},"response_metadata":{}}"#)]
    #[case(r#"{"result":{"a":1}}"#)]
    #[case(r#"{"result":{"a":1},"response_metadata":{"error":{}}}"#)]
    #[case(r#"{"result":{"a":1},"response_metadata":{"error":""}}"#)]
    #[case(r#"{"result":{"a":1},"response_metadata":{"error":false}}"#)]
    #[case(r#"{"result":{"a":1},"response_metadata":{"error":{"code_n":0,"code":"","message":"ok"}}}"#)]
    #[case(r#"{"result":{"a":1},"code":0,"message":"success"}"#)]
    #[case(r#"{"result":{"a":1},"code":200}"#)]
    fn success_is_success(#[case] body: &str) {
        assert_eq!(opened(200, &[], body).unwrap().value(), json!({"a": 1}));
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        assert_eq!(opened(200, &[], "\u{feff}{\"result\":1}").unwrap().value(), json!(1));
    }

    #[test]
    fn missing_result_is_null() {
        assert_eq!(opened(200, &[], r#"{"response_metadata":{}}"#).unwrap().value(), Value::Null);
    }

    #[rstest]
    #[case::proxy_page(502, "text/html", "<html>planted</html>", "not JSON, 20 bytes, text/html")]
    #[case::page_with_200(200, "text/html", "<html>planted</html>", "not JSON, 20 bytes, text/html")]
    #[case::cut_short(200, "application/json", r#"{"result":{"planted"#, "not JSON, 19 bytes, application/json")]
    #[case::empty(200, "application/json", "", "not JSON, 0 bytes, application/json")]
    #[case::no_envelope(200, "application/json", r#"{"planted":1}"#, "JSON without result and response_metadata")]
    #[case::bare_text(200, "application/json", r#""planted""#, "JSON that is not an object")]
    #[case::no_error(418, "application/json", r#"{"result":null}"#, "JSON without an error object")]
    fn other_answers_are_named_and_not_shown(
        #[case] status: u16,
        #[case] kind: &str,
        #[case] body: &str,
        #[case] said: &str,
    ) {
        let error = opened(status, &[("content-type", kind), ("x-request-id", "r-7")], body).unwrap_err();
        let text = format!("{error}");
        assert!(text.contains(said) && text.contains("r-7"), "{text}");
        assert!(!format!("{text} {error:?}").contains("planted"), "{error:?}");
        assert_eq!(matches!(error, Error::Undecodable(_)), status == 200);
    }

    #[test]
    fn redirect_is_refused() {
        let error = opened(302, &[("location", "https://elsewhere/planted")], "").unwrap_err();
        assert!(matches!(error, Error::Redirected { status: 302, .. }), "{error}");
        assert!(!format!("{error:?}").contains("planted"));
    }

    #[test]
    fn ids_come_from_the_metadata_or_else_from_headers() {
        let body = r#"{"result":1,"response_metadata":{"request_id":"r","trace_id":""}}"#;
        let ids = opened(200, &[("x-request-id", "other"), ("x-trace-id", "t")], body).unwrap().ids;
        assert_eq!(ids, RequestIds { request_id: Some("r".to_owned()), trace_id: Some("t".to_owned()) });
    }

    #[test]
    fn a_gateway_that_says_why_is_quoted() {
        let error = opened(401, &[], r#"{"code":"Unauthorized","message":"key expired"}"#).unwrap_err();
        let service = error.service().unwrap();
        assert_eq!((service.code, service.name.as_deref()), (Code::Other(0), Some("Unauthorized")));
        assert_eq!(service.message, "key expired");
    }

    #[test]
    fn no_content_is_a_success_without_a_result() {
        assert_eq!(opened(204, &[], "").unwrap().value(), Value::Null);
    }
}
