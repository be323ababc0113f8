//! What is read from the service's envelope.

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
fn missing_result_is_null() {
    assert_eq!(opened(200, &[], r#"{"response_metadata":{}}"#).unwrap().value(), Value::Null);
}

#[rstest]
#[case::proxy_page(502, "text/html", "<html>planted</html>", "not JSON, 20 bytes, text/html")]
#[case::page_with_200(200, "text/html", "<html>planted</html>", "not JSON, 20 bytes, text/html")]
#[case::cut_short(200, "application/json", r#"{"result":{"planted"#, "not JSON, 19 bytes, application/json")]
#[case::empty(200, "application/json", "", "not JSON, 0 bytes, application/json")]
#[case::no_envelope(200, "application/json", r#"{"planted":1}"#, "JSON without result and response_metadata")]
#[case::bare_text(200, "application/json", r#""planted""#, "JSON, but no object")]
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
