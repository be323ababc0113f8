//! The provider's standard error, of which Terraform reads and parses every line.

use std::fs;

use damodel::sandbox::FaultAction;

use crate::support::terraform::{Instance, Site, Workspace, config, each_cli};

/// A workspace that redirects the provider's standard error to the file `stderr`.
fn overheard<'a>(cli: &'a crate::support::terraform::Cli, site: &'a Site) -> Workspace<'a> {
    let workspace = Workspace::new(cli, site);
    workspace.set_env("OVERHEARD", &workspace.beside("stderr").display().to_string());
    workspace.wrap_provider("exec \"$PROVIDER\" 2>>\"$OVERHEARD\"");
    workspace
}

fn heard(workspace: &Workspace<'_>) -> String {
    fs::read_to_string(workspace.beside("stderr")).unwrap()
}

#[test]
fn nothing_is_said_unless_it_is_asked_for() {
    each_cli(|cli| {
        let site = Site::start();
        let workspace = overheard(cli, &site);
        workspace.apply_ok(&config(Instance::new("x")));
        site.arm(
            "instance_list",
            damodel::sandbox::When::Next(1),
            FaultAction::Status { status: 503, processed: false },
        );
        workspace.apply_ok(&config(Instance::new("x").text("name", "renamed")));
        workspace.finish();
        assert_eq!(heard(&workspace), "");
    });
}

#[test]
fn every_line_that_is_asked_for_is_one_that_the_core_can_read() {
    each_cli(|cli| {
        let site = Site::start();
        let workspace = overheard(cli, &site);
        workspace.set_env("TF_LOG_PROVIDER", "TRACE");
        workspace.set_env("TF_LOG_PATH", &workspace.beside("log").display().to_string());
        workspace.apply_ok(&config(Instance::new("x")));
        workspace.finish();
        let heard = heard(&workspace);
        assert!(heard.contains("accepted") && heard.contains("\"rpc\"") | heard.contains("tf_rpc"), "{heard}");
        for line in heard.lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
            let fields = line.as_object().unwrap();
            for name in ["@level", "@message", "@timestamp", "@module"] {
                assert!(fields[name].is_string(), "{name}: {line}");
            }
            assert!(fields.iter().all(|(name, value)| !name.starts_with('@') || value.is_string()), "{line}");
        }
    });
}
