//! Actions, with the versions of Terraform that support them.

use serde_json::Value;

use crate::support::terraform::{config, each_workspace_since};

fn ask(arguments: &str) -> String {
    format!("action \"damodel_chat_completion\" \"hello\" {{\n  config {{\n{arguments}\n  }}\n}}\n")
}

const QUESTION: &str =
    "    model = \"deepseek-r1\"\n    messages = [{ role = \"user\", content = \"hello over there\" }]";

/// The progress lines of an action in `apply -json`.
fn told(stdout: &str) -> Vec<String> {
    let lines = stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines
        .filter(|line| line["type"] == "action_progress")
        .map(|line| line["hook"]["message"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn a_model_answers_after_an_apply() {
    each_workspace_since(14, 99, |site, workspace| {
        workspace.set_env("DAMODEL_API_KEY", site.chat_key());
        let trigger = "resource \"terraform_data\" \"x\" {\n  lifecycle {\n    action_trigger {\n      events = \
                       [after_create]\n      actions = [action.damodel_chat_completion.hello]\n    }\n  }\n}\n";
        workspace.write(&config(format!("{}{trigger}", ask(QUESTION))));
        let run = workspace.run_ok(&["apply", "-json", "-auto-approve"]);
        let lines = told(&run.stdout);
        assert!(lines.iter().any(|line| line.contains("You said: hello over there")), "{}", run.stdout);
        assert!(lines.last().unwrap().contains("(ended: stop"), "{lines:?}");
        assert_eq!(site.requests("chat_completions"), 1);
        workspace.settled();
        // Invoked by hand, without any change.
        let run =
            workspace.run_ok(&["apply", "-json", "-auto-approve", "-invoke=action.damodel_chat_completion.hello"]);
        assert!(!told(&run.stdout).is_empty(), "{}", run.stdout);
        assert_eq!(site.requests("chat_completions"), 2);
        workspace.finish();
    });
}

#[test]
fn a_model_that_does_not_answer_is_an_error_at_its_argument() {
    each_workspace_since(14, 99, |site, workspace| {
        workspace.set_env("DAMODEL_API_KEY", site.chat_key());
        workspace.write(&config(ask(&QUESTION.replace("deepseek-r1", "no-such-model"))));
        let (done, said) = workspace.try_apply(&["-invoke=action.damodel_chat_completion.hello"]);
        assert!(!done && said.iter().any(|said| said.is_error() && said.text().contains("no-such-model")), "{said:#?}");
        workspace.write(&config(ask(&QUESTION.replace("\"deepseek-r1\"", "\"\""))));
        let said = workspace.run(&["validate", "-json"]);
        assert!(said.stdout.contains("model must be a non-empty string"), "{}", said.stdout);
    });
}
