//! The provider's standard error, of which Terraform reads and parses every line.

use std::fs;

use damodel::sandbox::{Code, FaultAction, When};

use crate::support::terraform::{Instance, Site, Workspace, config, each_cli};

/// The call that creates.
const CREATE: &str = "ApplyResourceChange";

/// A workspace that redirects the provider's standard error to the file `stderr`.
fn overheard<'a>(cli: &'a crate::support::terraform::Cli, site: &'a Site) -> Workspace<'a> {
    let workspace = Workspace::with_program(cli, site);
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
        site.arm("instance_list", When::Next(1), FaultAction::Status { status: 503, processed: false });
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
        // The first create is refused for want of stock, and waits.
        let action = FaultAction::Error { code_n: Code::SpecNotExistOrDisable, processed: false };
        site.arm("instance_create", When::Next(1), action);
        workspace.apply_ok(&config(Instance::new("x").text("wait_for_capacity", "5m")));
        workspace.finish();
        let heard = heard(&workspace);
        let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
        let lines: Vec<serde_json::Value> = heard.lines().map(read).collect();
        for line in &lines {
            let fields = line.as_object().unwrap();
            for name in ["@level", "@message", "@timestamp", "@module"] {
                assert!(fields[name].is_string(), "{name}: {line}");
            }
            assert!(fields.iter().all(|(name, value)| !name.starts_with('@') || value.is_string()), "{line}");
        }
        // A line has the fields of its call, and of the request or the wait within it.
        let waits = |line: &serde_json::Value| line["span"] == "rpc:wait" && line["kind"] == "stock";
        let wait = lines.iter().find(|line| waits(line)).unwrap_or_else(|| panic!("{heard}"));
        assert_eq!((&wait["tf_rpc"], &wait["tf_resource_type"]), (&CREATE.into(), &"damodel_instance".into()));
        assert!(wait["tf_req_id"].is_string(), "{wait}");
        let asks = |line: &serde_json::Value| line["span"] == "rpc:request" && line["method"] == "POST";
        let request = lines.iter().find(|line| asks(line)).unwrap_or_else(|| panic!("{heard}"));
        assert_eq!((&request["attempt"], &request["tf_rpc"]), (&1.into(), &CREATE.into()));
        assert!(request["endpoint"].is_string(), "{request}");
    });
}
