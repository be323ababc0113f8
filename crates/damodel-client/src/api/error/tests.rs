//! The texts and the classification of errors.

use rstest::rstest;

use super::*;

fn service(endpoint: Endpoint, code: i64, status: u16) -> Error {
    Error::Service(Box::new(ServiceError {
        endpoint,
        code: Code::from_number(code),
        name: None,
        message: "why".to_owned(),
        status,
        ids: RequestIds::default(),
        retry_after: None,
        server_time: None,
    }))
}

fn status(endpoint: Endpoint, status: u16) -> Error {
    Error::UndocumentedStatus(Box::new(unread(endpoint, status)))
}

fn unread(endpoint: Endpoint, status: u16) -> UnreadAnswer {
    UnreadAnswer {
        endpoint,
        status,
        reason: "not JSON, 3 bytes, text/html".to_owned(),
        ids: RequestIds::default(),
        retry_after: None,
    }
}

fn never_sent(endpoint: Endpoint) -> Error {
    Error::NeverSent { endpoint, address: "https://api.example.com".to_owned(), cause: Cause::new("refused") }
}

fn no_answer(endpoint: Endpoint) -> Error {
    Error::NoAnswer { endpoint, cause: Cause::new("reset") }
}

fn undecodable(endpoint: Endpoint) -> Error {
    Error::Undecodable(Box::new(unread(endpoint, 200)))
}

/// The error; whether a read, a rename and a create may be sent again; whether a create's outcome is unknown.
#[rstest]
#[case::never_sent(never_sent, [true, true, true], false)]
#[case::no_answer(no_answer, [true, true, false], true)]
#[case::undecodable(undecodable, [true, true, false], true)]
#[case::s429(|e: Endpoint| status(e, 429), [true, true, true], false)]
#[case::s500(|e: Endpoint| status(e, 500), [true, true, false], true)]
#[case::s502(|e: Endpoint| status(e, 502), [true, true, false], true)]
#[case::s503(|e: Endpoint| status(e, 503), [true, true, false], true)]
#[case::s504(|e: Endpoint| status(e, 504), [true, true, false], true)]
#[case::s408(|e: Endpoint| status(e, 408), [true, true, false], true)]
#[case::s403(|e: Endpoint| status(e, 403), [false, false, false], false)]
#[case::s404(|e: Endpoint| status(e, 404), [false, false, false], false)]
#[case::redirect(|e: Endpoint| Error::Redirected { endpoint: e, status: 302 }, [false, false, false], false)]
#[case::internal(|e: Endpoint| service(e, 100014, 200), [true, true, false], true)]
#[case::internal_500(|e: Endpoint| service(e, 100014, 500), [true, true, false], true)]
#[case::token(|e: Endpoint| service(e, 100006, 401), [false, false, true], false)]
#[case::limited(|e: Endpoint| service(e, 100001, 429), [true, true, true], false)]
#[case::parameter(|e: Endpoint| service(e, 100002, 400), [false, false, false], false)]
#[case::parameter_500(|e: Endpoint| service(e, 100002, 500), [false, false, false], false)]
#[case::stock(|e: Endpoint| service(e, 160001, 200), [false, false, false], false)]
#[case::unknown(|e: Endpoint| service(e, 199999, 200), [false, false, false], false)]
#[case::unknown_503(|e: Endpoint| service(e, 199999, 503), [true, true, false], true)]
#[case::cancelled(|e: Endpoint| Error::Cancelled { endpoint: e }, [false, false, false], false)]
#[case::deadline(|e: Endpoint| Error::DeadlinePassed { endpoint: e }, [false, false, false], false)]
fn what_may_be_sent_again(#[case] error: fn(Endpoint) -> Error, #[case] again: [bool; 3], #[case] unknown: bool) {
    let [read, rename, create] = again;
    assert_eq!(error(Endpoint::InstanceList).is_retryable(), read);
    assert_eq!(error(Endpoint::InstanceRename).is_retryable(), rename);
    let made = error(Endpoint::InstanceCreate);
    assert_eq!(made.nothing_was_processed(), create);
    assert_eq!(made.outcome_is_unknown(), unknown);
    assert!(!made.is_retryable() || create);
}

#[test]
fn text_names_endpoint_code_and_ids() {
    let Error::Service(mut error) = service(Endpoint::InstanceCreate, 160001, 200) else { unreachable!() };
    error.ids = RequestIds { request_id: Some("r".to_owned()), trace_id: Some("t".to_owned()) };
    assert_eq!(
        Error::Service(error).to_string(),
        "POST /api/instance/create was refused: ResourceInsufficient (160001): why (request_id r, trace_id t)"
    );
}

#[test]
fn cause_tells_what_lies_below_once() {
    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] io::Error);
    let cause = Cause::new(Outer(io::Error::other("inner")));
    assert_eq!(cause.to_string(), "outer: inner");
}

#[test]
fn error_is_small() {
    assert!(size_of::<Error>() <= 64, "{}", size_of::<Error>());
}
