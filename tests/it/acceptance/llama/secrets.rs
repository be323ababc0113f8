//! No secret in output, logs, plans, states or a process list.

use std::{collections::BTreeSet, fs};

use super::{Server, X, each_served, home, servers, site};
use crate::{
    acceptance::secrets::{leaks, leaks_below},
    support::terraform::{Workspace, config, each_cli},
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
            .on(|machine| machine.set("store_credentials", false))
            .set("api_key_wo", "var.key")
            .set("api_key_wo_version", 1);
        let with = |server: &Server| format!("{}{variable}", server.config());
        workspace.apply_ok(&with(&server));
        let machine = home(&site);
        for server in servers(&site) {
            for name in ["cmdline", "environ"] {
                let text = fs::read(format!("/proc/{server}/{name}")).unwrap();
                assert_eq!(leaks(name, &text, &site_secrets(&site)), Vec::<String>::new());
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
        let secrets = site_secrets(&site);
        let log = fs::read(workspace.beside("trace.log")).unwrap();
        let mut found = leaks("printed", workspace.transcript().as_bytes(), &secrets);
        found.extend(leaks("logged", &log, &secrets));
        // State and backups; the plan file is an archive, whose readable form was printed.
        found.extend(leaks_below(&workspace.directory(), &[], &secrets));
        found.extend(leaks_below(&machine.join("workspace"), &[], &secrets));
        assert_eq!(found, Vec::<String>::new());
        workspace.finish();
    });
}

#[test]
fn an_environment_is_hidden_and_not_written_to_logs() {
    each_served(|site, workspace| {
        workspace.run_program();
        workspace.set_env("TF_LOG_PROVIDER", "TRACE");
        workspace.set_env("TF_LOG_PATH", &workspace.beside("trace.log").display().to_string());
        let server = Server::new().set("environment", format!("{{ TOKEN = {VALUE:?} }}"));
        workspace.apply_ok(&server.config());
        let environ = |pid: u32| fs::read(format!("/proc/{pid}/environ")).unwrap();
        let secrets = BTreeSet::from([VALUE.to_owned()]);
        assert_eq!(leaks("", &environ(servers(site)[0]), &secrets).len(), 1, "the server has it");
        let log = fs::read(workspace.beside("trace.log")).unwrap();
        let mut found = leaks("printed", workspace.transcript().as_bytes(), &secrets);
        found.extend(leaks("logged", &log, &secrets));
        found.extend(leaks_below(&home(site).join("workspace"), &[], &secrets));
        assert_eq!(found, Vec::<String>::new());
        workspace.write(&config(""));
        workspace.finish();
    });
}

/// The secrets of the service, and those of this test.
fn site_secrets(site: &crate::support::terraform::Site) -> BTreeSet<String> {
    let mut secrets = site.secrets();
    secrets.extend([KEY.to_owned(), VALUE.to_owned()]);
    secrets
}
