//! The help of every command, and wrong usage.

use std::process::Command;

use crate::support::{plugin::BINARY, terraform::Run};

fn help(arguments: &[&str]) -> String {
    let run = Run::of(Command::new(BINARY).args(arguments).output().unwrap());
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    run.stdout
}

#[test]
fn every_command_tells_its_exit_codes_and_has_a_line_in_the_list() {
    let list = help(&["--help"]);
    let lines = list.split("Commands:\n").nth(1).unwrap().lines().take_while(|line| line.starts_with("  "));
    let commands: Vec<(&str, &str)> = lines.filter_map(|line| line.trim().split_once(' ')).collect();
    assert!(commands.len() >= 10 && !list.contains("docs"), "{list}");
    for (command, about) in commands.into_iter().filter(|(command, _)| *command != "help") {
        assert!((20..=110).contains(&about.trim().len()), "{command}: {about}");
        let text = help(&[command, "--help"]);
        assert!(text.starts_with(about.trim()), "{command}: {text}");
        assert!(text.contains("Exit codes: "), "{command}: {text}");
    }
}

#[test]
fn wrong_usage_has_a_code_of_its_own() {
    for arguments in [&["review"][..], &["watch", "--no-wai"], &["pending", "--forgt"], &["no-such-command"]] {
        let run = Run::of(Command::new(BINARY).args(arguments).output().unwrap());
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(run.stderr.starts_with("error: "), "{}", run.stderr);
    }
}
