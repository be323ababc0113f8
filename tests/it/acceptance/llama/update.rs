//! Updates that fail, and which apply may end which server: the running server continues.

use std::{net::TcpListener, process::Command};

use serde_json::json;

use super::{
    Server, X, builds, each_served, pid,
    plain::{self, Host},
    runs, servers, slay_for_good, until,
};
use crate::support::terraform::{Severity, Site, each_cli, refusal, says};

#[test]
fn a_probe_that_does_not_match_changes_nothing() {
    each_served(|site, workspace| {
        workspace.apply_ok(&Server::new().config());
        let (server, before) = (pid(&workspace.state()), workspace.state().resource(X).flat());
        workspace.write(&Server::new().set("probe", "{ prompt = \"ping\", expect = \"never said\" }").config());
        let (done, said) = workspace.try_apply(&[]);
        let error = refusal(&said, &["does not answer the probe as expected", "You said: ping", "still runs"]);
        assert_eq!((done, error.attribute.as_deref()), (false, Some("probe")));
        assert_eq!((workspace.state().resource(X).flat(), runs(server)), (before, true));
        assert!(builds(site).is_empty());
        let plan = workspace
            .plan_and_apply_ok(&Server::new().set("probe", "{ prompt = \"ping\", expect = \"ping\" }").config());
        assert_eq!((plan.change(X).actions(), pid(&workspace.state())), ("update".into(), server));
        workspace.finish();
    });
}

#[test]
fn an_update_that_fails_leads_back_to_the_former_server() {
    each_served(|site, workspace| {
        let former = Server::new().text("build", "prebuilt").set("environment", "{ FORMER = \"one\" }");
        workspace.apply_ok(&former.config());
        let (mut server, before) = (pid(&workspace.state()), workspace.state());
        let cases = [
            (former.clone().set("extra_args", "[\"--no-such-flag\"]"), "refuses its options", true),
            (former.clone().model("crash-on-load"), "it ended before it was ready", false),
        ];
        for (changed, words, is_same) in cases {
            workspace.write(&changed.config());
            let (done, said) = workspace.try_apply(&[]);
            assert!(!done, "{words}");
            refusal(&said, &[words]);
            assert_eq!(runs(server), is_same, "{words}: {said:#?}");
            let state = workspace.state();
            let x = state.resource(X);
            assert_eq!((x.is_tainted(), x.value("status")), (false, &json!("ready")), "{words}: {said:#?}");
            for argument in ["model", "extra_args", "environment", "ready_timeout"] {
                assert_eq!(x.value(argument), before.resource(X).value(argument), "{words}");
            }
            server = pid(&state);
            assert_eq!(servers(site), [u32::try_from(server.as_raw()).unwrap()], "{words}");
            workspace.write(&former.config());
            workspace.settled();
        }
        // The corrected change applies.
        workspace.apply_ok(&former.model("slow-1s").config());
        workspace.finish();
    });
}

#[test]
fn what_becomes_of_a_failed_update_is_the_operators_choice() {
    each_served(|site, workspace| {
        let server = Server::new().text("build", "prebuilt");
        for (word, left) in [("keep", 1), ("stop", 0)] {
            let server = server.clone().text("on_update_failure", word);
            workspace.apply_ok(&server.config());
            workspace.write(&server.clone().model("error-on-chat").config());
            let (done, said) = workspace.try_apply(&[]);
            refusal(&said, &["it generates no tokens"]);
            let state = workspace.state();
            assert_eq!((done, state.resource(X).value("status")), (false, &json!("failed")));
            assert_eq!(servers(site).len(), left, "{word}");
        }
        workspace.apply_ok(&server.config());
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
            let number = workspace.state().resource(address).value("pid").as_i64().unwrap();
            nix::unistd::Pid::from_raw(i32::try_from(number).unwrap())
        };
        assert!(runs(running(y)));
        // With create_before_destroy, the successor adopts the running server before the destroy.
        let lasting =
            renamed.replace("instance_id =", "lifecycle {\n    create_before_destroy = true\n  }\n  instance_id =");
        workspace.apply_ok(&lasting);
        let replace = format!("-replace={y}");
        let (done, said) = workspace.try_apply(&[&replace]);
        assert!(done && says(&said, Severity::Warning, "Another resource has taken it over"), "{said:#?}");
        workspace.settled();
        assert!(runs(running(y)));
        workspace.write(&renamed);
        assert!(workspace.try_apply(&[&replace]).0);
        workspace.settled();
        assert!(runs(running(y)) && !runs(first));
        assert_eq!(servers(site).len(), 1);
        workspace.destroy_ok();
        assert!(site.sandbox().machines().is_empty() || servers(site).is_empty());
    });
}

#[test]
fn a_server_that_everyone_reaches_without_a_key_is_warned_of() {
    each_served(|_, workspace| {
        let warned = |server: &Server| {
            workspace.write(&server.config());
            says(&workspace.try_plan(&[]), Severity::Warning, "The llama server has no API key")
        };
        assert!(warned(&Server::new()));
        assert!(!warned(&Server::new().text("host", "127.0.0.1")) && !warned(&Server::new().text("api_key", "k")));
    });
}

#[test]
fn what_runs_on_the_port_instead_is_seen_in_the_plan() {
    each_cli(|cli| {
        let Some(host) = Host::start() else { return };
        let site = Site::start();
        let workspace = plain::workspace(cli, &site);
        let config = plain::config(&host.server().text("restart_policy", "never"));
        workspace.apply_ok(&config);
        slay_for_good(pid(&workspace.state()));
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
        let mut by_hand = Command::new(home.join("public-storage/package/llama.cpp-new/bin/llama-server"))
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
        let plan = workspace.plan(&[]);
        let change = plan.change(X);
        assert_eq!((change.actions(), change.before("status")), ("update".to_owned(), &json!("displaced")));
        assert_eq!((change.before("context_size"), change.after("context_size")), (&json!(1024), &json!(32768)));
        let said = workspace.try_plan(&[]);
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
