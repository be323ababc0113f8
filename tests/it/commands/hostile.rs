//! What commands print about a service whose texts are escape sequences, and the memory that its answers take.

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use damodel::{
    api::Stage,
    creation::{Journal, progress::beside},
};
use serde_json::{Value, json};
use wiremock::{
    Mock, MockServer, ResponseTemplate,
    matchers::{any, path},
};

use crate::support::{plugin::BINARY, terraform::Run};

pub(super) const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;x\u{7}\nerror: planted\r\u{202e}";

/// What decides about a record, and is no text of the service's users.
const KEPT: [&str; 4] = ["instance_uid", "uid", "status", "payment_type"];

/// Appends to all texts of an answer.
fn spoil(answer: &mut Value, appended: &str) {
    match answer {
        Value::Array(values) => values.iter_mut().for_each(|value| spoil(value, appended)),
        Value::Object(fields) => {
            let fields = fields.iter_mut().filter(|(name, _)| !KEPT.contains(&name.as_str()));
            fields.for_each(|(_, value)| spoil(value, appended));
        }
        Value::String(text) => text.push_str(appended),
        _ => {}
    }
}

/// A service with these recorded answers.
pub(super) async fn recorded(change: impl Fn(&mut Value)) -> MockServer {
    let service = MockServer::start().await;
    for (at, name) in [
        ("/api/instance/detail", "instance_detail"),
        ("/api/instance/list", "instance_list"),
        ("/api/storage/cloud_disk/list", "cloud_disk_list"),
        ("/api/image/privates", "private_images"),
        ("/api/spec/list", "spec_list"),
        ("/api/storage/cloud_disk/spec", "cloud_disk_specs"),
    ] {
        let file = format!("{}/tests/fixtures/api/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let mut answer = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        change(&mut answer);
        Mock::given(path(at)).respond_with(ResponseTemplate::new(200).set_body_json(answer)).mount(&service).await;
    }
    service
}

pub(super) fn command(folder: &Path, service: &MockServer, program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    command.env("DAMODEL_BASE_URL", service.uri()).env("DAMODEL_API_TOKEN", "0123456789");
    command
}

/// What a command prints, which is checked.
fn printed(folder: &Path, service: &MockServer, arguments: &[&str]) -> String {
    let Run { stdout, stderr, .. } = Run::of(command(folder, service, BINARY, arguments).output().unwrap());
    let text = stdout + &stderr;
    harmless(arguments, &text);
    text
}

/// Checks that a text changes no terminal.
pub(super) fn harmless(arguments: &[&str], text: &str) {
    let harm = text.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
    assert!(harm.is_none() && !text.contains("\nerror: planted"), "{arguments:?}: {text:?}");
}

/// `ssh --jupyter` wrote the escape sequences, and a line break made two lines of one.
#[tokio::test(flavor = "multi_thread")]
async fn no_command_writes_what_would_change_the_terminal() {
    let service = recorded(|answer| spoil(answer, HOSTILE)).await;
    let folder = tempfile::tempdir().unwrap();
    let attributes = json!({ "id": "ins-7a1", "max_age": "1h" });
    let instances = json!([{ "schema_version": 0, "attributes": attributes }]);
    let provider = "provider[\"registry.terraform.io/damodel/damodel\"]";
    let resource = json!({
        "mode": "managed", "type": "damodel_instance", "name": "x", "provider": provider, "instances": instances
    });
    let state = json!({ "version": 4, "serial": 1, "lineage": "l", "resources": [resource] });
    std::fs::write(folder.path().join("terraform.tfstate"), state.to_string()).unwrap();
    for arguments in [
        &["audit"][..],
        &["audit", "terraform.tfstate"],
        &["expire", "terraform.tfstate"],
        &["release", "ins-7a1", "--state", "terraform.tfstate"],
        &["ssh", "--jupyter", "ins-7a1"],
        &["ssh", "--print", "ins-7a1"],
    ] {
        let printed = printed(folder.path(), &service, arguments);
        // It shows no text of the service.
        assert!(arguments[0] == "expire" || printed.contains('\u{fffd}'), "{arguments:?}: {printed}");
    }

    let odd = recorded(|answer| {
        spoil(answer, "");
        if let Some(result) = answer["result"].as_object_mut() {
            result.insert("status".to_owned(), HOSTILE.into());
        }
    });
    let printed_odd = printed(folder.path(), &odd.await, &["ssh", "ins-7a1"]);
    assert!(printed_odd.contains("error: instance ins-7a1 is \u{fffd}[2J"), "{printed_odd}");

    let refuses = MockServer::start().await;
    let error = json!({ "code_n": 100_002, "message": HOSTILE });
    let refusal = ResponseTemplate::new(200).set_body_json(json!({ "response_metadata": { "error": error } }));
    Mock::given(any()).respond_with(refusal).mount(&refuses).await;
    for arguments in [&["audit"][..], &["ssh", "ins-7a1"]] {
        let printed = printed(folder.path(), &refuses, arguments);
        assert!(printed.contains("error: planted"), "{printed}");
    }
}

/// The words of a plan and of a wait come from elsewhere too.
#[tokio::test(flavor = "multi_thread")]
async fn words_of_plans_and_waits_do_not_change_the_terminal() {
    let service = MockServer::start().await;
    let folder = tempfile::tempdir().unwrap();
    let plan = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/review/everything.json");
    let mut plan: Value = serde_json::from_str(&std::fs::read_to_string(plan).unwrap()).unwrap();
    for change in plan["resource_changes"].as_array_mut().unwrap() {
        spoil(&mut change["address"], HOSTILE);
        ["before", "after"].iter().for_each(|side| spoil(&mut change["change"][side], HOSTILE));
    }
    std::fs::write(folder.path().join("plan.json"), plan.to_string()).unwrap();
    for format in ["markdown", "html", "text"] {
        let printed = printed(folder.path(), &service, &["review", "plan.json", "--format", format]);
        assert!(printed.contains("planted"), "{printed}");
    }

    let mut task = beside(&Journal::new(folder.path().join("pending"))).task("instance", format!("ins-7a1{HOSTILE}"));
    task.sees(Stage { detail: Some(HOSTILE.to_owned()), ..Stage::new(HOSTILE) }, Some(HOSTILE));
    let mut watch = command(folder.path(), &service, BINARY, &["watch", "--pending-dir", "pending"]);
    let mut watch = watch.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap());
    let mut said = String::new();
    while !said.contains("planted") {
        assert!(lines.read_line(&mut said).unwrap() > 0, "{said}");
    }
    watch.kill().unwrap();
    watch.wait().unwrap();
    harmless(&["watch"], &said);
}

/// 58 MiB of numbers in a member that nobody reads took 2 GB.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_read_of_an_answer_takes_no_memory() {
    const SIZE: usize = 40 << 20;

    let service = recorded(|_| ()).await;
    let numbers = "1234567,".repeat(SIZE / 8);
    let result = json!({ "total": 0, "data": [] });
    let answer = format!("{{\"noise\":[{numbers}1],\"result\":{result},\"response_metadata\":{{}}}}");
    let large = ResponseTemplate::new(200).set_body_raw(answer, "application/json");
    Mock::given(path("/api/instance/list")).respond_with(large).with_priority(1).mount(&service).await;
    let folder = tempfile::tempdir().unwrap();
    // With the stacks of its threads.
    let limit = format!("--data={}", 4 * SIZE + (64 << 20));
    let output = command(folder.path(), &service, "prlimit", &[&limit, BINARY, "audit"]).output().unwrap();
    let run = Run::of(output);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
}
