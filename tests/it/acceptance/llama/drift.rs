//! Drift of a server: what a refresh detects, and how the plan repairs it.

use std::{fs, time::Duration};

use damodel::{llama::Silence, sandbox::StateList};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::json;

use super::{Server, X, each_served, home, pid, processes, records, runs, servers, until};
use crate::support::terraform::{Severity, Workspace, says};

#[test]
fn a_server_without_its_supervisor_is_drift() {
    each_served(|site, workspace| {
        let config = Server::new().config();
        workspace.apply_ok(&config);
        let (first, state) = (pid(&workspace.state()), workspace.state());
        assert_eq!(state.resource(X).value("process.supervised"), &json!(true));
        for work in processes(site, "bootstrap.sh\0work") {
            let _ = kill(Pid::from_raw(i32::try_from(work).unwrap()), Signal::SIGKILL);
        }
        until("the work has ended", || processes(site, "bootstrap.sh\0work").is_empty());
        let said = workspace.save_plan(&[]);
        assert!(says(&said, Severity::Warning, "is not supervised"), "{said:#?}");
        let plan = workspace.saved_plan();
        workspace.apply_plan();
        workspace.settled();
        let change = plan.change(X);
        assert_eq!(
            (change.before("status"), change.before("process.supervised")),
            (&json!("unsupervised"), &json!(false))
        );
        assert_eq!((runs(first), servers(site).len()), (false, 1));
        assert_eq!(workspace.state().resource(X).value("process.supervised"), &json!(true));
        // With restart_policy = "never" nobody misses it.
        let never = Server::new().text("restart_policy", "never").config();
        workspace.apply_ok(&never);
        workspace.finish();
    });
}

/// Silence is drift only if the server hangs; a refresh that has no time to judge that only warns.
#[test]
fn a_server_that_hangs_is_started_again() {
    each_served(|site, workspace| {
        let (before_second, of_each) = (Duration::from_secs(1), Duration::from_secs(2));
        workspace.wait_for_servers(Silence { before_second, of_each });
        let server = Server::new().block("timeouts {\n    read = \"11s\"\n  }");
        workspace.apply_ok(&server.config());
        let first = pid(&workspace.state());
        kill(first, Signal::SIGSTOP).unwrap();
        assert!(says(&workspace.save_plan(&[]), Severity::Warning, "is slow"));
        assert_eq!(workspace.saved_plan().change(X).actions(), "no-op");
        kill(first, Signal::SIGCONT).unwrap();
        workspace.settled();
        assert!(runs(first));

        workspace.apply_ok(&Server::new().config());
        kill(first, Signal::SIGSTOP).unwrap();
        let said = workspace.save_plan(&[]);
        assert!(says(&said, Severity::Warning, &format!("process {first} runs")), "{said:#?}");
        let plan = workspace.saved_plan();
        let change = plan.change(X);
        assert_eq!((change.actions(), change.before("status")), ("update".to_owned(), &json!("unresponsive")));
        assert!(runs(first), "a plan ends nothing");
        workspace.apply_plan();
        let state = workspace.state();
        assert_eq!(state.resource(X).value("status"), "ready");
        assert_eq!((runs(first), servers(site).len(), runs(pid(&state))), (false, 1, true));
        workspace.finish();
    });
}

#[test]
fn another_model_in_the_same_file_is_drift() {
    each_served(|site, workspace| {
        workspace.apply_ok(&Server::new().config());
        let (first, seen) = (pid(&workspace.state()), workspace.state());
        let models = home(site).join("public-storage/model");
        fs::remove_file(models.join("tiny.gguf")).unwrap();
        fs::copy(models.join("slow-1s.gguf"), models.join("tiny.gguf")).unwrap();
        let plan = workspace.plan_and_apply_ok(&Server::new().config());
        assert_eq!((plan.change(X).actions(), plan.change(X).before("status")), ("update".into(), &json!("outdated")));
        assert!(!runs(first));
        let fingerprint =
            |state: &crate::support::terraform::State| state.resource(X).value("process.model_fingerprint").clone();
        assert_ne!(fingerprint(&seen), fingerprint(&workspace.state()));
        workspace.finish();
    });
}

#[test]
fn an_instance_out_of_reach_is_a_warning_and_no_news() {
    each_served(|site, workspace| {
        workspace.apply_ok(&Server::new().set("ssh", "{ timeout = \"1m\" }").config());
        // From here on every login fails, and the test does not wait for one.
        edit_state(workspace, |x| x["attributes"]["ssh"]["timeout"] = json!("1s"));
        let server = Server::new().set("ssh", "{ timeout = \"1s\" }");
        workspace.write(&server.config());
        let before = workspace.state().resource(X).flat();
        let uid = workspace.state().resource("damodel_instance.gpu").id();
        let down = |down: bool| site.set(StateList::Instances, &uid, &json!({ "host": { "is_sshd_down": down } }));
        down(true);
        let said = workspace.try_plan(&["-detailed-exitcode"]);
        assert!(
            says(&said, Severity::Warning, "SSH connection failed") && !said.iter().any(|said| said.is_error()),
            "{said:#?}"
        );
        assert!(says(&said, Severity::Warning, "The server was not checked; the state is unchanged."), "{said:#?}");
        // A refresh does not try that long.
        assert!(!says(&said, Severity::Warning, "longer ssh.timeout"), "{said:#?}");
        workspace.run_ok(&["apply", "-refresh-only", "-auto-approve", "-no-color", "-input=false"]);
        assert_eq!(workspace.state().resource(X).flat(), before);
        // A change cannot be made.
        workspace.write(&server.clone().set("context_size", 64).config());
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done && says(&said, Severity::Error, "was not changed"), "{said:#?}");
        assert_eq!(workspace.state().resource(X).flat(), before);
        let destroys = ["-destroy", "-refresh=false", &format!("-target={X}")];
        let (done, said) = workspace.try_apply(&destroys);
        assert!(!done && says(&said, Severity::Error, "The resource stays in the state"), "{said:#?}");
        assert!(says(&said, Severity::Error, "set DAMODEL_ON_UNREACHABLE=abandon"), "{said:#?}");

        // The operator may give up what nobody can log in to, in the configuration too, which no login has to confirm.
        workspace.set_env("DAMODEL_ON_UNREACHABLE", "forget");
        let (done, said) = workspace.try_apply(&destroys);
        assert!(!done && says(&said, Severity::Error, "\"fail\" or \"abandon\""), "{said:#?}");
        workspace.set_env("DAMODEL_ON_UNREACHABLE", "fail");
        workspace.write(&server.set("context_size", 64).text("on_unreachable", "abandon").config());
        let (done, _) = workspace.try_apply(&[]);
        let kept = workspace.state();
        assert_eq!((done, kept.resource(X).value("on_unreachable")), (false, &json!("abandon")));
        assert_eq!(kept.resource(X).value("context_size"), &json!(32768));
        let (done, said) = workspace.try_apply(&destroys);
        assert!(!done && says(&said, Severity::Error, "The resource stays in the state"), "{said:#?}");
        workspace.remove_env("DAMODEL_ON_UNREACHABLE");
        let (done, said) = workspace.try_apply(&destroys);
        assert!(done && says(&said, Severity::Warning, "was not stopped"), "{said:#?}");
        let command = format!("[.]damodel/8000-{uid}/bootstrap.sh work");
        assert!(says(&said, Severity::Warning, &command), "{said:#?}");
        assert!(runs(pid(&kept)) && records(site).exists(), "nothing there was touched");
        assert_eq!(workspace.state().addresses(), ["damodel_instance.gpu"]);
        down(false);
        workspace.finish();
    });
}

/// Pulumi's bridge keeps no private data. The token of ownership is in the state, and without it nothing is ended.
#[test]
fn a_destroy_needs_the_record_of_ownership_in_the_state() {
    each_served(|_, workspace| {
        let config = Server::new().config();
        workspace.apply_ok(&config);
        let first = pid(&workspace.state());
        edit_state(workspace, |x| drop(x.as_object_mut().unwrap().remove("private")));
        workspace.run_ok(&["destroy", "-auto-approve", "-no-color", "-input=false", &format!("-target={X}")]);
        assert!(!runs(first));

        workspace.apply_ok(&config);
        let second = pid(&workspace.state());
        edit_state(workspace, |x| x["attributes"]["process"]["owner"] = serde_json::Value::Null);
        let (done, said) = workspace.try_apply(&["-destroy", &format!("-target={X}")]);
        assert!(done && says(&said, Severity::Warning, "owner is null"), "{said:#?}");
        let command = format!(" {second}.");
        assert!(runs(second) && says(&said, Severity::Warning, &command), "{said:#?}");
        workspace.finish();
    });
}

/// Changes the entry of the server in the state file.
fn edit_state(workspace: &Workspace<'_>, change: impl FnOnce(&mut serde_json::Value)) {
    let path = workspace.directory().join("terraform.tfstate");
    let mut state: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let resources = state["resources"].as_array_mut().unwrap();
    let x = resources.iter_mut().find(|resource| resource["type"] == "damodel_llama_server").unwrap();
    change(&mut x["instances"][0]);
    fs::write(&path, state.to_string()).unwrap();
}
