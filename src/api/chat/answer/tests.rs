//! What is read from chat answers.

use rstest::rstest;

use super::*;

fn assembled(pieces: &[&str]) -> ChatAssembly {
    let mut assembly = ChatAssembly::default();
    for piece in pieces {
        assert_eq!(assembly.push(piece), Pushed::Taken, "{piece}");
    }
    assembly
}

#[test]
fn pieces_become_the_answer_that_would_have_come_whole() {
    let assembly = assembled(&[
        r#"{"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":null}"#,
        r#"{"id":"c1","choices":[{"index":0,"delta":{"content":"Hel","reasoning_content":"hm"},"finish_reason":null}]}"#,
        r#"{"id":"c1","choices":[{"index":1,"delta":{"content":"other"}}]}"#,
        r#"{"id":"c1","choices":[{"delta":{"role":"assistant","content":"lo","reasoning_content":null}}]}"#,
        r#"{"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
        r#"{"id":"c1","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":"2","total_tokens":5.0}}"#,
    ]);
    let answer = assembly.into_answer().unwrap();
    assert_eq!(answer.content, "Hello");
    assert_eq!(answer.finish_reason.as_deref(), Some("stop"));
    let usage = ChatUsage { prompt_tokens: Some(3), completion_tokens: Some(2), total_tokens: Some(5) };
    assert_eq!(answer.usage, Some(usage));
    let message = json!({"role": "assistant", "content": "Hello", "reasoning_content": "hm"});
    assert_eq!(answer.response["object"], "chat.completion");
    assert_eq!(answer.response["model"], "m");
    assert_eq!(answer.response["choices"][0]["message"], message);
    assert!(!format!("{answer:?}").contains("Hello"));
}

#[rstest]
#[case::message(r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"length"}]}"#)]
#[case::enveloped(r#"{"result":{"choices":[{"message":{"content":"hi"},"finish_reason":"length"}]},"response_metadata":{"error":null}}"#)]
#[case::no_error(r#"{"error":null,"choices":[{"delta":{"content":"hi"},"finish_reason":"length"}]}"#)]
fn a_whole_answer_is_read_and_kept(#[case] text: &str) {
    let answer = ChatAnswer::from_json(text.as_bytes()).unwrap();
    assert_eq!((answer.content.as_str(), answer.finish_reason.as_deref()), ("hi", Some("length")));
    assert_eq!(answer.usage, None);
    let came: Value = serde_json::from_str(text).unwrap();
    assert_eq!(answer.response, came.get("result").cloned().unwrap_or(came));
}

#[rstest]
#[case::text("overloaded")]
#[case::error(r#"{"error":{"message":"no"}}"#)]
#[case::error_with_choices(r#"{"error":{"message":"no"},"choices":[{"delta":{"content":""}}]}"#)]
#[case::envelope(r#"{"result":null,"response_metadata":{"error":{"code_n":100006}}}"#)]
#[case::something(r#"{"ping":1}"#)]
#[case::list("[]")]
fn what_is_no_answer_is_foreign(#[case] text: &str) {
    assert_eq!(ChatAssembly::default().push(text), Pushed::Foreign);
    assert_eq!(ChatAnswer::from_json(text.as_bytes()), None);
}

#[rstest]
#[case::nothing(&[], false, false)]
#[case::role(&[r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#], false, false)]
#[case::text(&[r#"{"choices":[{"delta":{"content":"x"}}]}"#], true, false)]
#[case::thoughts(&[r#"{"choices":[{"delta":{"reasoning_content":"x"}}]}"#], true, false)]
#[case::end(&[r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#], false, true)]
#[case::empty_reason(&[r#"{"choices":[{"delta":{},"finish_reason":""}]}"#], false, false)]
fn content_and_end_are_told_apart(#[case] pieces: &[&str], #[case] content: bool, #[case] finished: bool) {
    let assembly = assembled(pieces);
    assert_eq!((assembly.has_content(), assembly.is_finished()), (content, finished));
}

#[test]
fn done_without_a_choice_is_no_answer() {
    let mut assembly = assembled(&[r#"{"choices":[],"usage":{}}"#]);
    assert_eq!(assembly.push(" [DONE] "), Pushed::Done);
    assert_eq!(assembly.into_answer(), None);
}
