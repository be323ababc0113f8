//! Logins: host keys, keys, write-only credentials, and hosts that are not instances of a service.

use std::{fs, process::Command};

use damodel::sandbox::{Mutation, Options};

use super::{Server, X, each_served, options, pid, runs, site, slay_for_good};
use crate::support::terraform::{Instance, Severity, Site, Workspace, config, each_cli, refusal, says};

#[test]
fn a_replacement_accepts_a_changed_host_key_and_takes_up_what_it_finds() {
    each_served(|site, workspace| {
        workspace.apply_ok(&Server::new().config());
        let (uid, first) = (workspace.state().resource("damodel_instance.gpu").id(), pid(&workspace.state()));
        site.mutate(Mutation::ChangeHostKey { uid: uid.clone() });
        let (done, said) = workspace.try_apply(&[&format!("-replace={X}")]);
        assert!(done && says(&said, Severity::Warning, "was not stopped"), "{said:#?}");
        // Done in this case, the command would end the server that was taken up.
        let condition = "If the instance stays, and this run starts no other server on its port, run: ssh -p ";
        assert!(says(&said, Severity::Warning, condition), "{said:#?}");
        let command = format!("[.]damodel/8000-{uid}/bootstrap.sh work");
        assert!(says(&said, Severity::Warning, &command), "{said:#?}");
        assert_eq!(pid(&workspace.state()), first, "the same server, taken up");
        workspace.settled();
        workspace.finish();
    });
}

#[test]
fn a_machine_that_takes_keys_needs_one() {
    each_cli(|cli| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("id");
        let mut keygen = Command::new("ssh-keygen");
        assert!(keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&file).status().unwrap().success());
        let line = fs::read_to_string(file.with_extension("pub")).unwrap();
        let site = Site::with(Options { keys: [("deploy".to_owned(), line)].into(), ..options() });
        let workspace = Workspace::new(cli, &site);
        let server = Server::new().on(|machine| {
            machine.text("login_method", "ssh_key").set("ssh_pubkey_id", 1).text("ssh_pubkey_name", "deploy")
        });
        workspace.write(&server.config());
        let (_, said) = workspace.try_apply(&[]);
        refusal(&said, &["No SSH credentials", "private_key_file", "was not changed"]);
        // The instance exists now: the plan reports the error before any other step.
        refusal(&workspace.try_plan(&[]), &["No SSH credentials"]);
        let path = file.display().to_string();
        workspace.apply_ok(&server.set("ssh", format!("{{ private_key_file = {path:?} }}")).config());
        workspace.finish();
    });
}

#[test]
fn write_only_credentials_alone_are_for_applies() {
    each_cli(|cli| {
        if !cli.has(11, 11) {
            return;
        }
        let site = site();
        let workspace = Workspace::new(cli, &site);
        workspace.apply_ok(&config(Instance::new("gpu").set("store_credentials", true)));
        let state = workspace.state();
        let gpu = state.resource("damodel_instance.gpu");
        let ssh = format!("{{ host = {}, port = {} }}", gpu.value("ssh_host"), gpu.value("ssh_port"));
        let password = gpu.value("ssh_password").as_str().unwrap().to_owned();
        let server = Server::new().without("instance_id").set("ssh", ssh).text("ssh_password_wo", &password);
        let server = server.text("restart_policy", "never");
        workspace.apply_ok(&server.config());
        slay_for_good(pid(&workspace.state()));
        // A refresh has no credentials: the state stays, without a message.
        workspace.settled();
        assert!(!workspace.try_plan(&[]).iter().any(|said| said.text().contains("llama")));
        workspace.apply_ok(&server.set("context_size", 64).config());
        let second = pid(&workspace.state());
        let (done, said) = workspace.try_apply(&["-destroy", &format!("-target={X}")]);
        assert!(done && says(&said, Severity::Warning, "/bootstrap.sh work"), "{said:#?}");
        assert!(runs(second) && workspace.state().find(X).is_none());
        workspace.finish();
    });
}
