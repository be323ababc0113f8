//! No secret in output, logs, plans or pending records.

use std::{collections::BTreeSet, fs, path::Path};

use damodel::sandbox::{Code, FaultAction, Options, StateList, When};
use rstest::rstest;
use secrecy::SecretString;
use serde_json::json;

use crate::support::terraform::{Instance, Site, Workspace, config, config_with, each_cli, each_workspace_on};

const X: &str = "damodel_instance.x";
const TOKEN: &str = "planted-api-token-4f1d9c";
const KEY: &str = "planted-chat-key-77aa02";

fn site() -> Site {
    let planted =
        Options { token: Some(SecretString::from(TOKEN)), chat_key: Some(SecretString::from(KEY)), ..Site::options() };
    Site::with(planted)
}

/// The places where a text contains a secret, as `where: which`.
pub(super) fn leaks(place: &str, text: &[u8], secrets: &BTreeSet<String>) -> Vec<String> {
    let holds = |secret: &&String| text.windows(secret.len()).any(|window| window == secret.as_bytes());
    secrets.iter().filter(holds).map(|secret| format!("{place}: {secret}")).collect()
}

/// The same for every file below a directory, without those whose path ends in one of these.
pub(super) fn leaks_below(directory: &Path, spared: &[&str], secrets: &BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            found.extend(leaks_below(&entry, spared, secrets));
        } else if entry.is_file() && spared.iter().all(|end| !entry.to_string_lossy().ends_with(end)) {
            // A plan file is an archive.
            let text = fs::read(&entry).unwrap();
            found.extend(leaks(&entry.display().to_string(), &text, secrets));
        }
    }
    found
}

/// A life cycle with every kind of output: plans, changes, an import, errors, and a destroy.
fn live(workspace: &Workspace<'_>, store: bool) {
    let machine = || Instance::new("x").set("store_credentials", store);
    let with_outputs = |machine: Instance| {
        let catalogue = "data \"damodel_specs\" \"all\" {}\ndata \"damodel_public_images\" \"all\" {}";
        let outputs = "output \"all\" {\n  sensitive = true\n  value = damodel_instance.x\n}\n\
                       output \"url\" {\n  value = [damodel_instance.x.jupyter_url, damodel_instance.x.reported.services]\n}";
        config(format!("{machine}{catalogue}\n{outputs}"))
    };
    workspace.plan_and_apply_ok(&with_outputs(machine()));
    workspace.run_ok(&["show", "-no-color"]);
    workspace.run_ok(&["show", "-no-color", "plan"]);
    workspace.run_ok(&["state", "show", "-no-color", X]);
    workspace.apply_ok(&with_outputs(machine().text("name", "renamed")));
    workspace.write(&with_outputs(machine().set("gpu_num", 2)));
    workspace.plan(&[]);
    workspace.try_plan(&["-destroy"]);

    let uid = workspace.state().resource(X).id();
    workspace.site.set(StateList::Instances, uid, &json!({ "alias": "by-hand" }));
    workspace.write(&with_outputs(machine().text("name", "renamed")));
    workspace.run(&["plan", "-no-color"]);
    workspace.run(&["refresh", "-no-color"]);
    for action in [
        FaultAction::Error { code_n: Code::InternalError, processed: true },
        FaultAction::Html { status: 200, processed: true },
        FaultAction::Truncated,
        FaultAction::DropAfter,
    ] {
        workspace.site.arm("*", When::Always, action);
        workspace.write(
            &with_outputs(machine().text("name", "renamed-again")).replace("region = ", "max_retries = 0\nregion = "),
        );
        workspace.try_plan(&[]);
        workspace.try_apply(&["-refresh=false"]);
        workspace.site.sandbox().clear_faults();
    }
    // An import does not see the configuration, and stores no credentials.
    let fresh = Workspace::new(workspace.cli, workspace.site);
    fresh.write(&with_outputs(machine()));
    fresh.run_ok(&["import", "-no-color", "-input=false", X, &workspace.state().resource(X).id()]);
    let imported = fs::read(fresh.directory().join("terraform.tfstate")).unwrap();
    assert_eq!(leaks("imported", &imported, &workspace.site.secrets()), Vec::<String>::new());
    // The next apply stores them if `store_credentials` is set.
    fresh.run_ok(&["apply", "-auto-approve", "-no-color", "-input=false"]);
    let kept = |name: &str| !fresh.state().resource(X).value(name).is_null();
    assert_eq!((kept("ssh_password"), kept("jupyter_token")), (store, store));
    let applied = fs::read(fresh.directory().join("terraform.tfstate")).unwrap();
    assert_eq!(leaks("applied", &applied, &workspace.site.secrets()).is_empty(), !store);
    workspace.destroy_ok();
}

#[test]
fn nothing_that_is_printed_logged_or_noted_holds_a_secret() {
    each_cli(|cli| {
        let site = site();
        let workspace = Workspace::with_program(cli, &site);
        workspace.set_env("TF_LOG", "TRACE");
        workspace.set_env("TF_LOG_PROVIDER", "TRACE");
        workspace.set_env("TF_LOG_PATH", &workspace.beside("trace.log").display().to_string());
        workspace.set_env("DAMODEL_CHAT_API_KEY", KEY);
        live(&workspace, false);
        let secrets = site.secrets();
        assert!(secrets.contains(TOKEN) && secrets.contains(KEY) && secrets.len() > 6, "{secrets:?}");
        let log = fs::read_to_string(workspace.beside("trace.log")).unwrap();
        assert!(
            log.contains("instance_create") || log.contains("/api/instance/create"),
            "the provider logs what it asks"
        );
        // The content of the plan file, unpacked by the program that wrote it.
        let planned = workspace.command(&["show", "-json", "plan"]).output().unwrap().stdout;
        let mut found = leaks("printed", workspace.transcript().as_bytes(), &secrets);
        found.extend(leaks("planned", &planned, &secrets));
        found.extend(leaks("logged", log.as_bytes(), &secrets));
        // State, its backups, the pending directory, and the members of the plan file that are not packed.
        found.extend(leaks_below(&workspace.directory(), &[], &secrets));
        assert_eq!(found, Vec::<String>::new());
    });
}

#[test]
fn credentials_that_are_kept_are_in_the_state_alone() {
    each_cli(|cli| {
        let site = site();
        let workspace = Workspace::with_program(cli, &site);
        workspace.set_env("TF_LOG_PROVIDER", "TRACE");
        workspace.set_env("TF_LOG_PATH", &workspace.beside("trace.log").display().to_string());
        live(&workspace, true);
        let secrets = site.secrets();
        let log = fs::read(workspace.beside("trace.log")).unwrap();
        let mut found = leaks("printed", workspace.transcript().as_bytes(), &secrets);
        found.extend(leaks("logged", &log, &secrets));
        found.extend(leaks_below(
            &workspace.directory(),
            &["terraform.tfstate", "terraform.tfstate.backup", "/plan"],
            &secrets,
        ));
        assert_eq!(found, Vec::<String>::new());
    });
}

#[rstest]
#[case("error_shape=full")]
#[case("error_shape=text")]
fn an_answer_that_repeats_the_token_is_cut(#[case] form: &str) {
    each_workspace_on(&Options { form: form.parse().unwrap(), ..Site::options() }, |site, workspace| {
        workspace.run_program();
        // The service repeats a value of the request, here the token in place of a name.
        let token = site.token().to_owned();
        workspace.set_env("TF_LOG_PROVIDER", "TRACE");
        workspace.set_env("TF_LOG_PATH", &workspace.beside("trace.log").display().to_string());
        workspace.write(&config_with("max_retries = 0\npreflight = false", Instance::new("x").text("region", &token)));
        let (done, said) = workspace.try_apply(&[]);
        let error = said.iter().find(|said| said.is_error()).unwrap();
        assert!(!done && error.text().contains("is no region"), "{said:?}");
        assert!(!error.text().contains(&token), "{error:?}");
        let log = fs::read(workspace.beside("trace.log")).unwrap();
        assert_eq!(leaks("logged", &log, &site.secrets()), Vec::<String>::new());
    });
}
