//! What a panic says on standard error, in a process of its own.

use std::process::{Command, Stdio};

use damodel::plugin;
use serde_json::Value;

/// Runs the test named `child` in another process, and gives what it wrote on standard error.
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

#[test]
#[ignore = "a process that another test starts"]
fn in_a_task() {
    plugin::install_panic_hook();
    plugin::log::install(&plugin::log::Settings::read("damodel", |_| None));
    let task = std::thread::spawn(|| {
        let _span = tracing::error_span!("rpc", tf_req_id = "id-1").entered();
        panic!("on purpose: {}", 42);
    });
    assert!(task.join().is_err());
}

#[test]
fn a_panic_of_the_process_is_told_in_words_that_the_core_knows() {
    let stderr = stderr_of("plugin_panic::on_the_main_thread");
    let mut lines = stderr.lines().skip_while(|line| line.is_empty());
    assert_eq!(lines.next(), Some("panic: on purpose: 42"), "{stderr}");
    assert!(stderr.contains("at tests/it/plugin_panic.rs:"), "{stderr}");
    assert!(stderr.contains("on_the_main_thread"), "{stderr}");
    assert!(!stderr.contains("panicked at"), "{stderr}");
}

#[test]
fn a_panic_of_a_task_is_a_log_line_with_the_facts() {
    let stderr = stderr_of("plugin_panic::in_a_task");
    assert!(!stderr.contains("panicked at"), "{stderr}");
    let lines: Vec<_> = stderr.lines().collect();
    let [line] = lines.as_slice() else {
        panic!("one line: {stderr}");
    };
    let line: Value = serde_json::from_str(line).unwrap();
    assert_eq!(line["@level"], "error");
    assert_eq!(line["panic.message"], "on purpose: 42");
    assert!(line["panic.location"].as_str().unwrap().contains("plugin_panic.rs"));
    assert!(line["panic.backtrace"].as_str().unwrap().contains("in_a_task"));
    assert_eq!(line["tf_req_id"], "id-1");
}
