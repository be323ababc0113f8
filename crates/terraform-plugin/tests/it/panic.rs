//! The standard error of a panic, in a process of its own.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use terraform_plugin::{framework::Value, plugin};

use crate::protocol::fixture::{Fixture, only, planned, thing};

/// Runs the test named `child` in another process, and returns its standard error.
fn stderr_of(child: &str) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args([child, "--exact", "--ignored", "--nocapture"])
        .env_remove("TF_LOG")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8(output.stderr).unwrap()
}

#[test]
#[ignore = "a process that another test starts"]
#[should_panic(expected = "on purpose")]
fn on_the_main_thread() {
    plugin::install_panic_hook();
    panic!("on purpose: {}", 42);
}

#[tokio::test]
#[ignore = "a process that another test starts"]
async fn in_a_call() {
    plugin::install_panic_hook();
    plugin::log::install(&plugin::log::LogSettings::read("acme", |_| None));
    // On the main thread a panic ends the process, so the call is on another one, as in the server.
    let call = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut fixture = Fixture::new().await;
            fixture.core.apply(&thing("panic"), &Value::Null, &planned("panic"), b"").await
        })
    });
    let said = call.join().unwrap().diagnostics;
    let _ = writeln!(std::io::stderr(), "{}", only(&said).detail);
}

#[test]
fn a_panic_of_the_process_is_told_in_words_that_the_core_knows() {
    let stderr = stderr_of("panic::on_the_main_thread");
    let mut lines = stderr.lines().skip_while(|line| line.is_empty());
    assert_eq!(lines.next(), Some("panic: on purpose: 42"), "{stderr}");
    assert!(stderr.contains(concat!("at ", file!(), ":")), "{stderr}");
    assert!(stderr.contains("on_the_main_thread"), "{stderr}");
    assert!(!stderr.contains("panicked at"), "{stderr}");
}

#[test]
fn a_panic_of_a_call_is_logged_beside_its_report_id() {
    let stderr = stderr_of("panic::in_a_call");
    let lines: Vec<_> = stderr.lines().collect();
    let [line, detail] = lines.as_slice() else {
        panic!("the log and the diagnostic: {stderr}");
    };
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(line["@level"], "error");
    assert_eq!(line["panic.message"], "planted");
    assert!(line["panic.location"].as_str().unwrap().contains("echo/mod.rs"));
    assert!(line["panic.backtrace"].as_str().unwrap().contains("echo"));
    assert_eq!(line["tf_rpc"], "ApplyResourceChange");
    assert_eq!(line["tf_resource_type"], "echo_thing");
    let id = line["tf_req_id"].as_str().unwrap();
    assert!(detail.contains(&format!("with the id {id};")), "{detail}");
}
