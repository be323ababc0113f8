//! Failures of a server, and their messages.

use std::{
    fs::{self, File},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
};

use super::{Server, X, home, pid, records_lock, runs, servers, site};
use crate::support::terraform::{Site, Workspace, each_cli, refusal};

/// A create that is refused at once leaves nothing in the state or in the instance.
#[test]
fn what_is_refused_at_once_leaves_nothing() {
    each_cli(|cli| {
        let site = site();
        let workspace = Workspace::new(cli, &site);
        let cases = [
            (Server::new().model("nowhere"), "model", vec!["model not found", "tiny.gguf", "Nothing was started"]),
            (Server::new().model("directory"), "model", vec!["model not found"]),
            (Server::new().text("package", "~/nowhere"), "package", vec!["no prebuilt server found", "llama.cpp-new"]),
        ];
        for (server, attribute, words) in cases {
            workspace.write(&server.config());
            let (done, said) = workspace.try_apply(&[]);
            let error = refusal(&said, &words);
            assert_eq!((done, error.attribute.as_deref()), (false, Some(attribute)), "{error:#?}");
            assert_eq!(workspace.state().addresses(), ["damodel_instance.gpu"]);
            assert_eq!(servers(&site), Vec::<u32>::new());
        }
        workspace.finish();
    });
}

/// A server that was started and does not serve is tainted, with its log in the error; on_failure decides what happens
/// to it.
#[test]
fn a_server_that_fails_is_tainted_and_the_next_apply_tries_again() {
    each_cli(|cli| {
        let site = site();
        let workspace = Workspace::new(cli, &site);
        let prebuilt = || Server::new().text("build", "prebuilt");
        let never = "{ expect = \"never said\" }";
        let cases = [
            (prebuilt().model("crash-on-load"), vec!["it ended before it was ready", "GGML_ASSERT"], 0),
            (
                prebuilt().model("truncated"),
                vec!["the model's file is incomplete or damaged", "corrupted or incomplete", "Download the file again"],
                0,
            ),
            (prebuilt().model("crash-on-chat"), vec!["The end of the log"], 0),
            (prebuilt().model("error-on-chat"), vec!["it generates no tokens", "500"], 1),
            (prebuilt().set("probe", never), vec!["it generates no tokens", "never said", "You said: Say hello."], 1),
            (
                prebuilt().set("probe", never).text("on_failure", "stop"),
                vec!["it generates no tokens", "on_failure = \"stop\" has stopped it"],
                0,
            ),
            (prebuilt().model("slow-60s").text("ready_timeout", "1s"), vec!["still loading the model after 1s"], 1),
            (prebuilt().model("hang-on-chat").text("ready_timeout", "1s"), vec!["probe was not answered within 1s"], 1),
        ];
        for (server, words, left) in cases {
            workspace.write(&server.config());
            let (done, said) = workspace.try_apply(&[]);
            refusal(&said, &words);
            assert!(!done);
            let state = workspace.state();
            assert!(state.resource(X).is_tainted(), "{words:?}");
            assert_eq!(state.resource(X).value("status"), "failed");
            assert_eq!(servers(&site).len(), left, "{words:?}");
        }
        let plan = workspace.plan_and_apply_ok(&Server::new().config());
        assert_eq!(plan.change(X).reason(), "replace_because_tainted");
        assert_eq!(servers(&site).len(), 1);
        workspace.finish();
    });
}

#[test]
fn a_restart_that_fails_keeps_the_server_in_the_state() {
    each_cli(|cli| {
        let site = site();
        let workspace = Workspace::new(cli, &site);
        let server = Server::new().text("build", "prebuilt").text("on_update_failure", "keep");
        workspace.apply_ok(&server.config());
        // Refused at once: the running server continues.
        workspace.write(&server.clone().model("nowhere").config());
        let (_, said) = workspace.try_apply(&[]);
        refusal(&said, &["model not found", "What runs in the instance continues"]);
        assert_eq!((servers(&site).len(), workspace.state().resource(X).value("status")), (1, &"ready".into()));
        workspace.write(&server.config());
        workspace.settled();

        workspace.write(&server.clone().model("crash-on-load").config());
        let (_, said) = workspace.try_apply(&[]);
        refusal(&said, &["it ended before it was ready"]);
        let state = workspace.state();
        assert_eq!((state.resource(X).is_tainted(), state.resource(X).value("status")), (false, &"failed".into()));
        let plan = workspace.plan_and_apply_ok(&server.config());
        assert_eq!(plan.change(X).actions(), "update");
        workspace.finish();
    });
}

/// Holds the lock of the server's records. Changes to them time out, at once here, because `sleep` does not wait.
struct Busy {
    _held: File,
    sleep: PathBuf,
}

impl Busy {
    fn make(site: &Site) -> Self {
        let sleep = home(site).join(".machine/bin/sleep");
        fs::write(&sleep, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&sleep, fs::Permissions::from_mode(0o755)).unwrap();
        let held = File::open(records_lock(site)).unwrap();
        held.lock().unwrap();
        Self { _held: held, sleep }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        fs::remove_file(&self.sleep).unwrap();
    }
}

#[test]
fn a_server_that_cannot_be_stopped_stays_in_the_state() {
    each_cli(|cli| {
        let site = site();
        let workspace = Workspace::new(cli, &site);
        workspace.apply_ok(&Server::new().config());
        let server = pid(&workspace.state());
        let busy = Busy::make(&site);
        let (done, said) = workspace.try_apply(&["-destroy", &format!("-target={X}")]);
        refusal(&said, &["was not stopped: another run is working on it", "It stays in the state"]);
        assert!(!done && runs(server));
        assert_eq!(pid(&workspace.state()), server);
        drop(busy);
        workspace.finish();
        assert!(!runs(server));
    });
}

#[test]
fn a_server_is_not_stopped_for_what_is_refused() {
    each_cli(|cli| {
        let site = site();
        let workspace = Workspace::new(cli, &site);
        workspace.apply_ok(&Server::new().config());
        let server = pid(&workspace.state());
        let busy = Busy::make(&site);
        let changed = Server::new().set("context_size", 64).config();
        workspace.write(&changed);
        let (_, said) = workspace.try_apply(&[]);
        refusal(&said, &["another run is working on it"]);
        assert!(runs(server));
        drop(busy);
        workspace.apply_ok(&changed);
        assert!(!runs(server));
        workspace.finish();
    });
}
