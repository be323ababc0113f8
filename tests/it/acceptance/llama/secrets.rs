//! No secret in output, logs, plans, states or a process list.

use std::{collections::BTreeSet, fs};

use super::{Server, X, home, servers, site};
use crate::{
    acceptance::secrets::{leaks, leaks_below},
    support::terraform::{Workspace, each_cli},
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
        for server in servers(&site) {
            for (name, held) in [("cmdline", 0), ("environ", 1)] {
                let text = fs::read(format!("/proc/{server}/{name}")).unwrap();
                let found = [&secrets(), &environment].map(|secrets| leaks(name, &text, secrets).len());
                assert_eq!(found, [0, held], "{name}: the server has its environment");
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
