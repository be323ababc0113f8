//! Updates that fail, and which apply may end which server: the running server continues.

use std::{fs, net::TcpListener, process::Command};

use serde_json::json;

use super::{
    Server, X, each_served, home, pid,
    plain::{self, each_host},
    runs, servers, slay, slay_for_good, until,
};
use crate::support::terraform::{Severity, refusal, says};

#[test]
fn what_becomes_of_a_failed_update_is_the_operators_choice() {
    each_served(|site, workspace| {
        let server = Server::new().text("build", "prebuilt").set("environment", "{ PREVIOUS = \"one\" }");
        workspace.apply_ok(&server.config());
        let before = workspace.state();
        // Refused at once: the running server continues.
        workspace.write(&server.clone().model("nowhere").config());
        refusal(&workspace.try_apply(&[]).1, &["model not found", "The apply did not stop the server"]);
        workspace.write(&server.clone().set("extra_args", "[\"--mmproj\", \"/no/such\"]").config());
        let said = workspace.try_apply(&[]).1;
        let error = refusal(&said, &["--mmproj names /no/such", "The apply did not stop the server"]);
        assert_eq!(error.attribute.as_deref(), Some("extra_args"));
        assert!(runs(pid(&before)) && workspace.state().resource(X).flat() == before.resource(X).flat());

        // By default the previous server is started again, and the state has its arguments.
        workspace.write(&server.clone().model("crash-on-load").set("environment", "{ PREVIOUS = \"two\" }").config());
        let said = workspace.try_apply(&[]).1;
        let text = refusal(&said, &["the server exited before it was ready"]).text();
        // The restored server has a log of its own, and the other one is quoted and named once.
        assert!(text.contains("8000-") && text.contains("/server.log.1:\n"), "{text}");
        for words in ["/server.log", "GGML_ASSERT", "found 1 CUDA devices"] {
            assert!(text.matches(words).count() <= 1, "{words}: {text}");
        }
        let state = workspace.state();
        let x = state.resource(X);
        assert_eq!((x.is_tainted(), x.value("status"), runs(pid(&before))), (false, &json!("ready"), false));
        for argument in ["model", "environment"] {
            assert_eq!(x.value(argument), before.resource(X).value(argument));
        }
        assert_eq!(servers(site), [u32::try_from(pid(&state).as_raw()).unwrap()]);
        workspace.write(&server.config());
        workspace.settled();

        for (word, left) in [("keep", 1), ("stop", 0)] {
            let server = server.clone().text("on_failure", word);
            workspace.apply_ok(&server.config());
            workspace.write(&server.clone().model("error-on-chat").config());
            refusal(&workspace.try_apply(&[]).1, &["no correct answer to the probe"]);
            let state = workspace.state();
            let x = state.resource(X);
            assert_eq!((x.is_tainted(), x.value("status"), servers(site).len()), (false, &json!("failed"), left));
        }
        assert_eq!(workspace.applied(&server.config()), [(X.to_owned(), "update".to_owned())]);
        workspace.finish();
    });
}

/// The plan of a prebuilt server names its package, and the apply finds where it is by now.
#[test]
fn a_prebuilt_server_whose_package_has_moved_is_found_by_the_next_restart() {
    each_served(|site, workspace| {
        let server = Server::new().text("build", "prebuilt");
        workspace.apply_ok(&server.config());
        let packages = home(site).join("public-storage/package");
        fs::rename(packages.join("llama.cpp"), packages.join("llama.cpp-2")).unwrap();
        workspace.settled();

        let plan = workspace.plan_and_apply_ok(&server.clone().set("context_size", 4096).config());
        let change = plan.change(X);
        assert_eq!((change.unknown(), change.after("build_used")), (vec!["process".to_owned()], &json!("prebuilt")));
        workspace.run_ok(&["apply", "-refresh-only", "-auto-approve", "-no-color", "-input=false"]);
        let state = workspace.state();
        let package = state.resource(X).value("package").as_str().unwrap();
        assert!(package.ends_with("package/llama.cpp-2/bin/llama-server"), "{package}");
        // A path of the configuration is not one that was found.
        let folder = server.text("package", "~/public-storage/package/llama.cpp-2");
        workspace.apply_ok(&folder.config());
        assert_eq!(workspace.state().resource(X).value("package"), "~/public-storage/package/llama.cpp-2");
        let plan = workspace.plan_and_apply_ok(&folder.text("build", "source").config());
        assert_eq!(plan.change(X).unknown(), ["process"]);
        workspace.finish();
    });
}

/// The plan of a probe names the process, which its apply may find replaced.
#[test]
fn a_probe_is_asked_of_a_server_that_was_restarted_since_the_plan() {
    each_served(|site, workspace| {
        workspace.apply_ok(&Server::new().config());
        let first = pid(&workspace.state());
        workspace.write(&Server::new().set("probe", "{ max_tokens = 3 }").config());
        assert_eq!(workspace.plan(&[]).change(X).unknown(), ["process.tokens_per_second"]);
        slay(first);
        until("another one runs", || !servers(site).is_empty());
        workspace.apply_plan();
        workspace.settled();
        assert_eq!(workspace.state().resource(X).value("process.restarts"), 0);
        workspace.run_ok(&["apply", "-refresh-only", "-auto-approve", "-no-color", "-input=false"]);
        let state = workspace.state();
        assert!(pid(&state) != first && state.resource(X).value("process.restarts") == 1);
        workspace.finish();
    });
}

#[test]
fn a_server_is_ended_by_its_owner_alone() {
    each_served(|site, workspace| {
        workspace.apply_ok(&Server::new().config());
        let first = pid(&workspace.state());
        // A new name without `moved`: one object is destroyed and another created, in any order.
        let renamed =
            Server::new().config().replace("\"damodel_llama_server\" \"x\"", "\"damodel_llama_server\" \"y\"");
        let y = "damodel_llama_server.y";
        workspace.apply_ok(&renamed);
        let running = |address: &str| {
            let number = workspace.state().resource(address).value("process.pid").as_i64().unwrap();
            nix::unistd::Pid::from_raw(i32::try_from(number).unwrap())
        };
        assert!(runs(running(y)));
        // With create_before_destroy, the successor adopts the running server before the destroy.
        let lasting =
            renamed.replace("instance_id =", "lifecycle {\n    create_before_destroy = true\n  }\n  instance_id =");
        workspace.apply_ok(&lasting);
        let replace = format!("-replace={y}");
        let (done, said) = workspace.try_apply(&[&replace]);
        assert!(done && says(&said, Severity::Warning, "Another resource manages the server now"), "{said:#?}");
        workspace.settled();
        assert_eq!((runs(running(y)), runs(first), servers(site).len()), (true, false, 1));
        workspace.finish();
    });
}

#[test]
fn what_runs_on_the_port_instead_is_seen_in_the_plan() {
    each_host(|host, workspace| {
        let config = plain::config(&host.server().text("restart_policy", "never"));
        workspace.apply_ok(&config);
        slay_for_good(pid(&workspace.state()));
        assert!(says(&workspace.save_plan(&[]), Severity::Warning, "137"), "why it ended");
        let plan = workspace.saved_plan();
        assert_eq!((plan.change(X).actions(), plan.change(X).before("status")), ("update".into(), &json!("stopped")));
        // Another program, which an apply may not end.
        let mut other = None;
        until("the port is free", || {
            other = TcpListener::bind(("0.0.0.0", host.port)).ok();
            other.is_some()
        });
        let said = workspace.try_plan(&[]);
        refusal(&said, &["The port is in use", "another program listens"]);
        assert!(says(&said, Severity::Warning, &format!("process {}", std::process::id())), "{said:#?}");
        drop(other);
        // A server that was started by hand: its process and options are reported, and the apply takes the port back.
        let home = host.sshd.home();
        let mut by_hand = Command::new(home.join("public-storage/package/llama.cpp/bin/llama-server"))
            .args([
                "--host",
                "127.0.0.1",
                "--port",
                &host.port.to_string(),
                "-c",
                "1024",
                "--api-key",
                "planted-key",
                "-m",
            ])
            .arg(home.join("public-storage/model/tiny.gguf"))
            .env("HOME", &home)
            .spawn()
            .unwrap();
        until("it listens", || TcpListener::bind(("127.0.0.1", host.port)).is_err());
        let said = workspace.save_plan(&[]);
        let plan = workspace.saved_plan();
        let change = plan.change(X);
        assert_eq!((change.actions(), change.before("status")), ("update".to_owned(), &json!("displaced")));
        assert_eq!((change.before("context_size"), change.after("context_size")), (&json!(1024), &json!(32768)));
        let pid_by_hand = format!("process {}", by_hand.id());
        assert!(
            says(&said, Severity::Warning, &pid_by_hand) && !says(&said, Severity::Warning, "planted-key"),
            "{said:#?}"
        );
        workspace.apply_plan();
        by_hand.wait().unwrap();
        workspace.settled();
        assert_eq!(host.servers(), [pid(&workspace.state())]);
        workspace.destroy_ok();
        assert_eq!(host.servers(), []);
    });
}
