//! Failures of a server, and their messages.

use std::{fs, path::Path, process::Command};

use damodel::sandbox::{Code, FaultAction, When};

use super::{Server, X, builds, each_served, home, pid, processes, runs, servers, slay, until};
use crate::support::{
    program,
    terraform::{Severity, refusal, says},
};

/// A server that was started and does not serve is tainted, with its log in the error; on_failure decides what happens
/// to it.
#[test]
fn a_server_that_fails_is_tainted_and_the_next_apply_tries_again() {
    each_served(|site, workspace| {
        let prebuilt = || Server::new().text("build", "prebuilt");
        let never = "{ expect = \"never said\" }";
        let cases = [
            (
                prebuilt().set("probe", never).text("on_failure", "stop"),
                vec!["no correct answer to the probe", "You said: Say hello.", "\"stop\" has stopped the server"],
                0,
            ),
            (prebuilt().model("slow-60s").text("ready_timeout", "1s"), vec!["still loading after 1s"], 1),
            (
                prebuilt().model("hang-on-chat").text("ready_timeout", "1s").text("on_failure", "keep"),
                vec!["probe was not answered within 1s", "The process and its logs were kept"],
                1,
            ),
            (
                prebuilt().model("crash-on-load").text("on_failure", "keep"),
                vec!["the server exited before it was ready", "The logs were kept"],
                0,
            ),
        ];
        for (server, words, left) in cases {
            workspace.write(&server.config());
            let (done, said) = workspace.try_apply(&[]);
            refusal(&said, &words);
            assert!(!done);
            let state = workspace.state();
            assert!(state.resource(X).is_tainted(), "{words:?}");
            assert_eq!(state.resource(X).value("status"), "failed");
            assert_eq!(servers(site).len(), left, "{words:?}");
        }
        let plan = workspace.plan_and_apply_ok(&Server::new().config());
        assert_eq!(plan.change(X).reason(), "replace_because_tainted");
        assert_eq!(servers(site).len(), 1);
        workspace.finish();
    });
}

/// A server for embeddings answers no chat, and no compile would make it do so.
#[test]
fn a_server_is_asked_for_what_it_is_made_for() {
    each_served(|site, workspace| {
        let server = |option: &str, endpoint: &str| {
            let server = Server::new().model("embedding").set("extra_args", format_args!("[{option:?}]"));
            server.set("probe", format_args!("{{ endpoint = {endpoint:?} }}"))
        };
        let refused = |server: &Server, summary: &str| {
            workspace.write(&server.config());
            let (done, said) = workspace.try_apply(&[]);
            let error = refusal(&said, &[summary, "does not support logits", "Set probe.endpoint"]);
            assert_eq!((done, error.attribute.as_deref()), (false, Some("probe")), "{error:#?}");
            assert_eq!(builds(site), Vec::<String>::new());
        };
        refused(&server("--embeddings", "chat"), "the server does not support the probe's request");
        assert!(workspace.state().resource(X).is_tainted());
        for (option, endpoint) in [("--embeddings", "embeddings"), ("--reranking", "rerank")] {
            workspace.apply_ok(&server(option, endpoint).config());
            assert_eq!(workspace.state().resource(X).value("status"), "ready", "{endpoint}");
        }
        let (first, before) = (pid(&workspace.state()), workspace.state().resource(X).flat());
        refused(&server("--reranking", "chat"), "does not answer the probe as expected");
        assert_eq!((workspace.state().resource(X).flat(), runs(first)), (before, true));
        workspace.finish();
    });
}

/// What keeps a destroy from ending a server: a process that outlives SIGKILL, and a stale mount of the workspace. The
/// stand-ins are shells that send no signal to the server, and an `ls` that does not return.
#[test]
fn a_server_that_does_not_end_or_whose_workspace_is_silent_fails_or_is_abandoned() {
    each_served(|site, workspace| {
        let config = Server::new().config();
        workspace.apply_ok(&config);
        let bin = home(site).join(".machine/bin");
        let silent = [
            ("ls", "case $* in *workspace*) exec /bin/sleep 600 ;; esac\nexec /bin/ls \"$@\"".to_owned()),
            ("sleep", "exec /bin/sleep 0.01".to_owned()),
        ];
        for (name, obstacle) in [("ls", "workspace does not answer"), ("sh", "does not end")] {
            let server = pid(&workspace.state());
            let deaf = format!(
                "[ \"$*\" = -s ] || exec /bin/sh \"$@\"\n{{ cat <<'END'\nkill() {{ case \" $*\" in *' {server}') ;; *) \
                 command kill \"$@\" ;; esac; }}\nsleep() {{ [ \"${{end_step-}}\" ] || command sleep \"$@\"; }}\nEND\n\
                 cat; }} | exec /bin/sh -s"
            );
            let programs = if name == "ls" { silent.to_vec() } else { vec![("sh", deaf)] };
            for (name, text) in &programs {
                program(&bin.join(name), text);
            }
            let destroy = ["-destroy", "-refresh=false", &format!("-target={X}")];
            let (done, said) = workspace.try_apply(&destroy);
            refusal(&said, &[obstacle, "The resource stays in the state", "DAMODEL_ON_UNREACHABLE=abandon"]);
            assert!(!done && pid(&workspace.state()) == server);
            workspace.set_env("DAMODEL_ON_UNREACHABLE", "abandon");
            // The variable does not act while it is unknown whether the instance exists.
            site.arm(
                "instance_detail",
                When::Always,
                FaultAction::Error { code_n: Code::PermissionDenied, processed: false },
            );
            let (done, said) = workspace.try_apply(&destroy);
            refusal(&said, &["The resource stays in the state", "on_unreachable are ignored"]);
            assert!(!done && runs(server));
            site.sandbox().clear_faults();
            if name == "sh" {
                // Nor while the instance can be reached and its answer cannot be read.
                let garbled = "[ \"$*\" = -s ] || exec /bin/sh \"$@\"\ntext=$(cat)\n[ ${#text} -gt 4000 ] || \
                               exec /bin/sh -c \"$text\"\n\
                               printf 'damodel-answer-begins\\nodd\\ndamodel-answer-ends\\n'";
                program(&bin.join(name), garbled);
                let (done, said) = workspace.try_apply(&destroy);
                refusal(&said, &["The resource stays in the state", "on_unreachable are ignored"]);
                assert!(!done && runs(server));
                program(&bin.join(name), &programs[0].1);
            }
            let (done, said) = workspace.try_apply(&destroy);
            workspace.remove_env("DAMODEL_ON_UNREACHABLE");
            assert!(done && says(&said, Severity::Warning, "was not stopped"), "{said:#?}");
            assert!(workspace.state().addresses() == ["damodel_instance.gpu"] && runs(server));
            for (name, _) in &programs {
                fs::remove_file(bin.join(name)).unwrap();
            }
            if name == "ls" {
                // The command of the warning ends the work too, which starts the server again when it is killed.
                let state = workspace.state();
                let instance = state.resource("damodel_instance.gpu").value("id").as_str().unwrap();
                let command = format!("pkill -g $(pgrep -of \"[.]damodel/8000-{instance}/bootstrap.sh work\")");
                assert!(says(&said, Severity::Warning, &command), "{said:#?}");
                slay(server);
                until("it is started again", || !servers(site).is_empty());
                // Instances of other tests have the same name on this computer.
                let command = command.replacen("[.]", &format!("{}/workspace/[.]", home(site).display()), 1);
                assert!(Command::new("sh").args(["-c", &command]).status().unwrap().success());
                until("both have ended", || servers(site).is_empty() && processes(site, "work").is_empty());
                workspace.apply_ok(&config);
            }
        }
        workspace.finish();
    });
}

/// Puts a shell script into its place.
fn program(file: &Path, text: &str) {
    program::put(file, &format!("#!/bin/sh\n{text}\n"));
}
