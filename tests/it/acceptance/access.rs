//! `damodel_instance_access`, and write-only arguments: secrets that a run uses and does not store.

use std::{fs, sync::Arc};

use damodel::{framework::Secret, sandbox::Mutation};
use serde_json::json;

use super::secrets::{leaks, leaks_below};
use crate::{
    framework::echo::{Echo, Signals},
    support::terraform::{Instance, Workspace, config, each_workspace_since, refusal},
};

const ECHO: &str = "damodel/echo";
const X: &str = "damodel_instance.x";

/// The echo provider beside damodel.
fn with_echo(body: &str) -> String {
    format!(
        "terraform {{\n  required_providers {{\n    damodel = {{ source = \"damodel/damodel\" }}\n    echo = {{ \
         source = {ECHO:?} }}\n  }}\n}}\nprovider \"damodel\" {{\n  region = \"cn-east-1\"\n}}\n{body}"
    )
}

fn echo(workspace: &Workspace<'_>) -> Arc<Signals> {
    let signals = Arc::<Signals>::default();
    workspace.attach(Echo(Arc::clone(&signals)), ECHO);
    signals
}

#[test]
fn a_password_reaches_what_needs_it_and_is_stored_nowhere() {
    each_workspace_since(11, 11, |site, workspace| {
        workspace.set_env("TF_LOG", "TRACE");
        workspace.set_env("TF_LOG_PATH", &workspace.beside("trace.log").display().to_string());
        let signals = echo(workspace);
        let machine = Instance::new("x");
        let body = |size: u8| {
            with_echo(&format!(
                "{machine}\nephemeral \"damodel_instance_access\" \"x\" {{\n  id = {X}.id\n}}\n\
                 locals {{\n  way = ephemeral.damodel_instance_access.x\n}}\n\
                 provider \"echo\" {{\n  region = \
                 \"${{local.way.ssh_user}}@${{local.way.ssh_host}}:${{local.way.ssh_port}}\"\n}}\n\
                 resource \"echo_thing\" \"x\" {{\n  name = \"x\"\n  size = {size}\n  password = join(\" \", \
                 [local.way.ssh_password, local.way.jupyter_token, local.way.jupyter_url])\n}}\n"
            ))
        };
        workspace.apply_ok(&body(1));
        workspace.plan_and_apply_ok(&body(2));
        workspace.run_ok(&["show", "-no-color", "plan"]);

        let state = workspace.state();
        let detail = site.sandbox().state_with_secrets();
        let secret = |name: &str| find(&detail, name).unwrap();
        let told = signals.passwords.lock().unwrap().clone();
        let url = state.resource(X).value("jupyter_url").as_str().unwrap();
        let expected = Secret::new(format!("{} {} {url}", secret("ssh_password"), secret("jupyter_token")));
        assert_eq!(told, [expected.clone(), expected], "at the create, and at the update");
        assert_eq!(state.resource("echo_thing.x").value("password"), &json!(null));
        assert!(state.find("ephemeral.damodel_instance_access.x").is_none());

        let shown = workspace.command(&["show", "-json", "plan"]).output().unwrap().stdout;
        let log = fs::read(workspace.beside("trace.log")).unwrap();
        let secrets = site.secrets();
        assert!(secrets.contains(secret("ssh_password")) && secrets.contains(secret("jupyter_token")));
        let mut found = leaks("printed", workspace.transcript().as_bytes(), &secrets);
        found.extend(leaks("planned", &shown, &secrets));
        found.extend(leaks("logged", &log, &secrets));
        found.extend(leaks_below(&workspace.directory(), &[], &secrets));
        assert_eq!(found, Vec::<String>::new());
        workspace.finish();
    });
}

/// The first text under a name, anywhere in a document.
fn find<'a>(value: &'a serde_json::Value, name: &str) -> Option<&'a str> {
    match value {
        serde_json::Value::Object(fields) => fields
            .get(name)
            .and_then(serde_json::Value::as_str)
            .filter(|text| !text.is_empty())
            .or_else(|| fields.values().find_map(|value| find(value, name))),
        serde_json::Value::Array(elements) => elements.iter().find_map(|value| find(value, name)),
        _ => None,
    }
}

#[test]
fn what_was_opened_is_closed_with_what_was_held_for_it() {
    each_workspace_since(11, 11, |_, workspace| {
        let signals = echo(workspace);
        workspace.write(&with_echo(
            "ephemeral \"echo_loan\" \"x\" {\n  name = \"a\"\n}\n\
             resource \"echo_thing\" \"x\" {\n  name = \"x\"\n  password = ephemeral.echo_loan.x.secret\n}\n",
        ));
        workspace.run_ok(&["apply", "-auto-approve", "-no-color"]);
        assert_eq!(*signals.passwords.lock().unwrap(), [Secret::new("planted-a")]);
        assert_eq!(signals.loans.count(), 0, "nothing is held any more");
        workspace.finish();
    });
}

#[test]
fn there_is_no_way_into_what_does_not_run() {
    each_workspace_since(10, 11, |site, workspace| {
        let access = |id: &str| format!("ephemeral \"damodel_instance_access\" \"x\" {{\n  id = {id:?}\n}}\n");
        workspace.write(&config(access("")));
        refusal(&workspace.try_plan(&[]), &["an instance's UID"]);
        workspace.write(&config(access("ins-nobody")));
        let said = workspace.try_plan(&[]);
        let error = refusal(&said, &["read the SSH address of instance ins-nobody", "request_id"]);
        assert_eq!(error.attribute.as_deref(), Some("id"));

        workspace.apply_ok(&config(Instance::new("x")));
        let uid = workspace.state().resource(X).id();
        let status =
            |status: &str| site.mutate(Mutation::SetInstanceStatus { uid: uid.clone(), status: status.to_owned() });
        status("Stopped");
        workspace.write(&config(format!("{}{}", Instance::new("x"), access(&uid))));
        let said = workspace.try_plan(&[]);
        let error = refusal(&said, &[&format!("Instance {uid} is Stopped"), "Running"]);
        assert_eq!(error.attribute.as_deref(), Some("id"));
        // The access stops a destroy as well, which must not depend on it.
        refusal(
            &workspace.try_plan(&["-destroy"]),
            &["If this error stops a destroy: terraform destroy -refresh=false."],
        );
        assert!(workspace.try_plan(&["-destroy", "-refresh=false"]).iter().all(|said| !said.is_error()));
        // An undocumented status forbids nothing.
        status("Dreaming");
        assert!(workspace.try_plan(&[]).iter().all(|said| !said.is_error()));
        workspace.write(&config(Instance::new("x")));
        workspace.finish();
    });
}

#[test]
fn a_write_only_value_is_no_difference() {
    each_workspace_since(11, 11, |_, workspace| {
        let signals = echo(workspace);
        let body = |size: u8| {
            with_echo(&format!(
                "variable \"password\" {{\n  type = string\n  ephemeral = true\n}}\n\
                 resource \"echo_thing\" \"x\" {{\n  name = \"x\"\n  size = {size}\n  password = var.password\n}}\n"
            ))
        };
        workspace.set_env("TF_VAR_password", "planted-one");
        workspace.apply_ok(&body(1));
        workspace.set_env("TF_VAR_password", "planted-two");
        workspace.settled();
        workspace.apply_ok(&body(2));
        assert_eq!(*signals.passwords.lock().unwrap(), ["planted-one", "planted-two"].map(Secret::new));
        workspace.run_ok(&["apply", "-auto-approve", "-replace=echo_thing.x"]);
        assert_eq!(signals.passwords.lock().unwrap().len(), 3);
        workspace.run_ok(&["state", "rm", "echo_thing.x"]);
        workspace.run_ok(&["import", "echo_thing.x", "id-x"]);
        assert_eq!(workspace.state().resource("echo_thing.x").value("password"), &json!(null));
        assert_eq!(leaks_below(&workspace.directory(), &[], &["planted-".to_owned()].into()), Vec::<String>::new());
        workspace.finish();
    });
}
