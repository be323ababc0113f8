//! Errors of the chat endpoint, whose format is not documented, in each of the sandbox's forms.

use damodel::sandbox::{Code, FaultAction, Form, Options, When};
use serde_json::json;

use crate::support::terraform::{Site, config_with, each_workspace, each_workspace_on, refusal, refusal_of};

use super::ONCE;

const X: &str = "data.damodel_chat_completion.x";

/// A question with these arguments instead of the usual ones.
fn question(arguments: &[(&str, &str)]) -> String {
    config_with(ONCE, labelled("x", arguments))
}

fn labelled(label: &str, arguments: &[(&str, &str)]) -> String {
    let usual = [
        ("model", "\"llama-3.1-8b-instruct\""),
        ("messages", "[{ role = \"user\", content = \"say it in five words\" }]"),
    ];
    let kept = usual.iter().filter(|(name, _)| arguments.iter().all(|(other, _)| other != name));
    let lines: String = kept.chain(arguments).map(|(name, value)| format!("  {name} = {value}\n")).collect();
    format!("data \"damodel_chat_completion\" {label:?} {{\n{lines}}}\n")
}

/// One of each kind; the client's own tests have all of them.
#[test]
fn each_is_told_in_every_form() {
    each_workspace(|site, workspace| {
        for form in ["chat_error=openai", "chat_error=text", "chat_error=envelope"] {
            site.sandbox().set_form(form.parse::<Form>().unwrap());
            workspace.set_env("DAMODEL_CHAT_API_KEY", site.chat_key());
            let cases = [
                ("model", "\"gpt-retired\""),
                ("temperature", "3"),
                ("messages", "[{ role = \"judge\", content = \"a\" }]"),
            ];
            workspace.write(&config_with(ONCE, cases.map(|case| labelled(case.0, &[case])).concat()));
            let said = workspace.try_plan(&[]);
            for (name, _) in cases {
                let words = ["does not accept the request", "model marketplace"];
                let error = refusal_of(&said, &format!("data.damodel_chat_completion.{name}"), &words);
                // Plain text names no argument: the error is on the likeliest one and lists all of them.
                let expected = if form == "chat_error=text" { "model" } else { name };
                assert_eq!(error.attribute.as_deref(), Some(expected), "{form}: {error:?}");
            }
            workspace.write(&config_with(ONCE, ["a", "b", "c"].map(|label| labelled(label, &[])).concat()));
            for (position, code) in (1..).zip([Code::InternalError, Code::BalanceNotEnough, Code::PermissionDenied]) {
                site.arm(
                    "chat_completions",
                    When::Nth(position),
                    FaultAction::Error { code_n: code, processed: false },
                );
            }
            let said = workspace.try_plan(&[]);
            let advised =
                |words: &str| said.iter().filter(|said| said.is_error() && said.text().contains(words)).count();
            assert_eq!((advised("Try again later"), advised("provider's chat_api_key")), (1, 2), "{form}: {said:#?}");
            site.sandbox().clear_faults();
            workspace.write(&question(&[]));
            workspace.set_env("DAMODEL_CHAT_API_KEY", "key-of-nobody");
            let said = workspace.try_plan(&[]);
            let error =
                refusal(&said, &["does not accept the API key", "provider's chat_api_key", "DAMODEL_CHAT_API_KEY"]);
            assert!(!error.text().contains("key-of-nobody") && !error.text().contains("api_token"), "{error:?}");
            if form == "chat_error=envelope" {
                let request = error.id("request_id").and_then(|id| site.request(&id));
                assert_eq!(request.unwrap().code_n, Some(100_006), "{error:?}");
                assert!(error.id("trace_id").is_some(), "{error:?}");
            }
        }
    });
}

#[test]
fn a_question_without_a_key_names_the_argument() {
    each_workspace(|site, workspace| {
        workspace.write(&question(&[]));
        refusal(&workspace.try_plan(&[]), &["DAMODEL_CHAT_API_KEY", "provider's chat_api_key"]);
        assert_eq!(site.requests("chat_completions"), 0);
    });
}

#[test]
fn an_answer_has_all_its_attributes() {
    each_workspace_on(&Options { form: "chat_stream=whole".parse().unwrap(), ..Site::options() }, |site, workspace| {
        workspace.set_env("DAMODEL_BASE_URL", &format!("{}/v1", site.base_url()));
        workspace.set_env("DAMODEL_CHAT_API_KEY", site.chat_key());
        workspace.write(&question(&[("max_tokens", "4"), ("temperature", "0.25")]));
        workspace.run_ok(&["apply", "-auto-approve", "-no-color", "-input=false"]);
        let state = workspace.state();
        let chat = state.resource(X);
        assert_eq!(chat.value("content"), "You said: say it ");
        assert_eq!((chat.value("finish_reason"), chat.value("temperature")), (&json!("length"), &json!(0.25)));
        assert_eq!(chat.value("usage"), &json!({ "prompt_tokens": 5, "completion_tokens": 4, "total_tokens": 9 }));
        let whole: serde_json::Value = serde_json::from_str(chat.value("response_json").as_str().unwrap()).unwrap();
        assert_eq!(whole["model"], "llama-3.1-8b-instruct", "{whole}");
        // Without a limit it ends by itself.
        workspace.write(&question(&[]));
        workspace.run_ok(&["apply", "-auto-approve", "-no-color", "-input=false"]);
        let state = workspace.state();
        assert_eq!(state.resource(X).value("finish_reason"), "stop");
        assert_eq!(state.resource(X).value("content"), "You said: say it in five words");
    });
}
