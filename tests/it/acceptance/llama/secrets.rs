//! No secret in output, logs, plans, states or a process list.

use std::{collections::BTreeSet, fs};

use super::{Server, X, home, pid, processes, servers, site};
use crate::{
    acceptance::secrets::{leaks, leaks_below},
    support::terraform::{Severity, Workspace, each_cli, refusal, says},
};

const KEY: &str = "planted-server-key-93b1";
const VALUE: &str = "planted-environment-5c77";

#[test]
fn secrets_reach_the_server_and_nothing_else() {
    each_cli(|cli| {
        if !cli.has(11, 11) {
            return;
        }
        let site = site();
        let workspace = Workspace::with_program(cli, &site);
        workspace.set_env("TF_LOG", "TRACE");
        workspace.set_env("TF_LOG_PATH", &workspace.beside("trace.log").display().to_string());
        workspace.set_env("TF_VAR_key", KEY);
        let variable = "variable \"key\" {\n  type = string\n  ephemeral = true\n}\n";
        let server = Server::new()
            .set("api_key_wo", "var.key")
            .set("api_key_wo_version", 1)
            .set("environment", format!("{{ TOKEN = {VALUE:?} }}"));
        let with = |server: &Server| format!("{}{variable}", server.config());
        workspace.apply_ok(&with(&server));
        let machine = home(&site);
        let environment = BTreeSet::from([VALUE.to_owned()]);
        let secrets = || site.secrets().into_iter().chain([KEY.to_owned()]).collect();
        let servers = servers(&site);
        assert!(!servers.is_empty());
        for process in processes(&site, "") {
            let is_server = servers.contains(&process);
            for (name, held) in [("cmdline", 0), ("environ", usize::from(is_server))] {
                // Others may have ended.
                let Ok(text) = fs::read(format!("/proc/{process}/{name}")) else { continue };
                let found = [&secrets(), &environment].map(|secrets| leaks(name, &text, secrets).len());
                assert_eq!(found, [0, held], "{name} of {process}: the server alone has its environment");
            }
        }
        // Another key restarts it, and no error shows one.
        workspace.apply_ok(&with(&server.clone().set("api_key_wo_version", 2)));
        workspace.write(&with(
            &server.clone().model("crash-on-load").text("build", "prebuilt").set("api_key_wo_version", 3),
        ));
        assert!(!workspace.try_apply(&[]).0);
        workspace.apply_ok(&with(&server));
        let uid = workspace.state().resource("damodel_instance.gpu").id();
        workspace.run_ok(&["show", "-no-color"]);
        assert_eq!(workspace.state().resource(X).id(), format!("{uid}:8000"));
        let log = fs::read(workspace.beside("trace.log")).unwrap();
        // State and backups, which have the environment; the plan file is an archive, whose readable form was printed.
        let mut found = leaks_below(&workspace.directory(), &[], &secrets());
        for secrets in [secrets(), environment] {
            found.extend(leaks("printed", workspace.transcript().as_bytes(), &secrets));
            found.extend(leaks("logged", &log, &secrets));
            found.extend(leaks_below(&machine.join("workspace"), &[], &secrets));
        }
        assert_eq!(found, Vec::<String>::new());
        workspace.finish();
    });
}

/// A key that is another at each run, as one from an `ephemeral` random password: it counts with its version alone.
#[test]
fn another_write_only_key_without_another_version_restarts_nothing() {
    each_cli(|cli| {
        if !cli.has(11, 11) {
            return;
        }
        let site = site();
        let workspace = Workspace::new(cli, &site);
        let variable = "variable \"key\" {\n  type = string\n  ephemeral = true\n}\n";
        let with = |server: &Server, key: &str| {
            workspace.set_env("TF_VAR_key", key);
            workspace.write(&format!("{}{variable}", server.config()));
        };
        let server = Server::new().set("api_key_wo", "var.key").set("api_key_wo_version", 1);
        with(&server, "planted-key-1");
        assert!(workspace.try_apply(&[]).0);
        let first = pid(&workspace.state());
        for (key, server) in [
            ("planted-key-2", server.clone().text("restart_policy", "never")),
            ("planted-key-3", server.clone().set("probe", "{ max_tokens = 2 }")),
        ] {
            with(&server, key);
            let (done, said) = workspace.try_apply(&[]);
            assert!(done && says(&said, Severity::Warning, "change api_key_wo_version"), "{said:#?}");
            assert_eq!(pid(&workspace.state()), first);
        }
        // The previous server has its own key, whatever the configuration has.
        for (version, key, words) in [
            (1, "planted-key-4", "Its API key is unknown"),
            (2, "planted-key-5", "Its API key is unknown"),
            (2, "planted-key-1", "answers its probe"),
        ] {
            let failing = server.clone().model("crash-on-load").text("build", "prebuilt");
            with(&failing.set("api_key_wo_version", version), key);
            refusal(&workspace.try_apply(&[]).1, &["the server exited before it was ready", words]);
            assert_eq!(workspace.state().resource(X).value("status"), "ready", "{key}");
        }
        // And none if it had none.
        with(&Server::new(), "planted-key-6");
        assert!(workspace.try_apply(&[]).0);
        with(&server.model("crash-on-load").text("build", "prebuilt"), "planted-key-6");
        refusal(&workspace.try_apply(&[]).1, &["answers its probe"]);
        workspace.destroy_ok();
    });
}
