//! Leftovers of killed creates, if `.terraform` and its pending records are lost with the runner.

use std::path::Path;

use damodel::sandbox::{FaultAction, LedgerObject, When};
use rstest::rstest;

use crate::support::terraform::{
    Diagnostic, Instance, Severity, Site, Started, Workspace, config_with, disk, each_cli, each_workspace, refusal,
};

const X: &str = "damodel_instance.x";

/// A configuration whose provider has these further arguments.
fn with(arguments: &str, body: impl std::fmt::Display) -> String {
    config_with(&format!("region = \"cn-east-1\"\n{arguments}"), body)
}

/// Leaves the objects of killed creates of this configuration, without pending records.
fn left_behind(workspace: &Workspace<'_>, config: &str, count: usize) {
    workspace.write(config);
    Started::killed_when_accepted(workspace, count);
    workspace.lose_data_directory();
}

fn warns(said: &[Diagnostic], words: &[&str]) -> bool {
    let warnings = said.iter().filter(|said| said.severity == Severity::Warning);
    warnings.map(Diagnostic::text).any(|text| words.iter().all(|word| text.contains(word)))
}

/// The names under which objects were created.
fn sent_names(site: &Site, object: LedgerObject) -> Vec<String> {
    let life = site.ledger().life.into_iter();
    let births = life.filter(|event| event.kind == damodel::sandbox::LifeKind::Created && event.object == object);
    births.filter(|event| event.name.starts_with("x-")).map(|event| event.name).collect()
}

#[test]
fn a_marker_tells_its_configuration() {
    each_workspace(|site, workspace| {
        let two = |name: &str| with("", format!("{}{}", Instance::new("x").text("name", name), disk("x")));
        for name in ["x", "x", "x-other"] {
            workspace.apply_ok(&two(name));
            workspace.destroy_ok();
        }
        for (object, is_alike) in [(LedgerObject::Instance, [true, false]), (LedgerObject::CloudDisk, [true, true])] {
            let names = sent_names(site, object);
            let digits: Vec<&str> = names.iter().map(|name| name.rsplit_once('-').unwrap().1).collect();
            let is_hex = |text: &&str| text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(digits.len() == 3 && digits.iter().all(is_hex), "{names:?}");
            assert_eq!([digits[0][..4] == digits[1][..4], digits[0][..4] == digits[2][..4]], is_alike, "{names:?}");
            assert_ne!(digits[0][4..], digits[1][4..], "{names:?}");
        }
    });
}

#[rstest]
#[case("")]
#[case("on_leftover = \"fail\"")]
fn a_leftover_of_the_same_configuration_stops_a_create(#[case] argument: &str, #[values(false, true)] is_disk: bool) {
    each_workspace(|site, workspace| {
        let (object, address, body) = if is_disk {
            (LedgerObject::CloudDisk, "damodel_cloud_disk.x", disk("x"))
        } else {
            (LedgerObject::Instance, X, Instance::new("x").to_string())
        };
        let config = with(argument, body);
        left_behind(workspace, &config, 1);
        let created = site.balance_of(object).created;
        let uid = site.created_in("main", object).pop().unwrap();
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done, "{said:#?}");
        let id = if is_disk { id_of(site, &uid) } else { uid };
        let error =
            refusal(&said, &["on_leftover", &format!("terraform import {}", address.split('.').next().unwrap())]);
        assert!(error.text().contains(&id), "{id}: {error:#?}");
        assert_eq!(site.balance_of(object).created, created, "{said:#?}");

        // As the error says.
        workspace.run_ok(&["import", "-no-color", "-input=false", address, &id]);
        let (done, said) = workspace.try_apply(&[]);
        assert!(done, "{said:#?}");
        workspace.settled();
        assert_eq!((workspace.state().resource(address).id(), site.balance_of(object).created), (id, created));
        workspace.finish();
    });
}

/// The database id of a disk.
fn id_of(site: &Site, uid: &str) -> String {
    let state = site.sandbox().state();
    let disk = state["disks"].as_array().unwrap().iter().find(|disk| disk["uid"] == uid).unwrap();
    disk["id"].to_string()
}

#[test]
fn leftovers_of_the_same_configuration_are_adopted_where_that_is_wanted() {
    each_workspace(|site, workspace| {
        let disks = site.balance_of(LedgerObject::CloudDisk).created;
        let body = format!("{}{}", Instance::new("x").set("count", 3).text("name", "same"), disk("x"));
        let config = with("on_leftover = \"adopt\"", body);
        left_behind(workspace, &config, 4);
        let (done, said) = workspace.try_apply(&[]);
        assert!(done, "{said:#?}");
        workspace.settled();
        assert_eq!(
            (site.balance().created, site.balance_of(LedgerObject::CloudDisk).created),
            (3, disks + 1),
            "{said:#?}"
        );
        for uid in site.live() {
            assert!(warns(&said, &[&uid]), "{uid}: {said:#?}");
        }
        workspace.finish();
    });
}

#[test]
fn leftovers_are_warned_of_where_that_is_wanted() {
    each_workspace(|site, workspace| {
        let config = with("on_leftover = \"warn\"", Instance::new("x"));
        left_behind(workspace, &config, 1);
        let uid = site.live()[0].clone();
        let (done, said) = workspace.try_apply(&[]);
        assert!(done && warns(&said, &[&uid, "terraform import damodel_instance."]), "{said:#?}");
        assert_eq!(site.balance().created, 2);
        workspace.settled();
    });
}

#[rstest]
fn what_cannot_be_looked_for_is_not_created_beside(#[values("fail", "adopt", "warn")] on_leftover: &str) {
    each_workspace(|site, workspace| {
        let argument = format!("on_leftover = {on_leftover:?}\nmax_retries = 1");
        workspace.write(&with(&argument, Instance::new("x").block("timeouts { create = \"8s\" }")));
        workspace.plan(&[]);
        site.arm("instance_list", When::Always, FaultAction::Status { status: 503, processed: false });
        let (done, said) = workspace.try_apply(&["plan"]);
        if on_leftover == "warn" {
            assert!(warns(&said, &["leftovers of instance", "503", "is created"]), "{said:#?}");
        } else {
            assert!(!done, "{said:#?}");
            refusal(&said, &["leftovers of instance", "503", "Nothing was created", "on_leftover"]);
        }
        assert_eq!(site.requests("instance_create"), usize::from(on_leftover == "warn"));
        site.sandbox().clear_faults();
        workspace.apply_ok(&with(&argument, Instance::new("x")));
        assert_eq!(site.balance().created, 1);
        workspace.finish();
    });
}

#[rstest]
#[case("on_leftover = \"fail\"")]
#[case("on_leftover = \"adopt\"")]
fn leftovers_of_other_configurations_are_a_warning(#[case] argument: &str) {
    each_cli(|cli| {
        let site = Site::start();
        let (there, here) = (Workspace::new(cli, &site), Workspace::new(cli, &site));
        let config = with(argument, Instance::new("x"));
        left_behind(&there, &config, 1);
        let uid = site.live()[0].clone();
        here.write(&config);
        let (done, said) = here.try_apply(&[]);
        assert!(done && warns(&said, &[&uid, "terraform import damodel_instance."]), "{said:#?}");
        assert_eq!(site.balance().created, 2);
        here.settled();
    });
}

#[rstest]
fn a_stack_is_one_configuration_in_every_directory(#[values(true, false)] by_environment: bool) {
    each_cli(|cli| {
        let site = Site::start();
        let (there, here) = (Workspace::new(cli, &site), Workspace::new(cli, &site));
        assert_ne!(there.directory(), Path::new(&here.directory()));
        let stack = if by_environment { "" } else { "stack = \"production\"\n" };
        if by_environment {
            there.set_env("DAMODEL_STACK", "production");
            here.set_env("DAMODEL_STACK", "production");
        }
        left_behind(&there, &with(stack, Instance::new("x")), 1);
        let uid = site.live()[0].clone();
        here.write(&with(stack, Instance::new("x")));
        let (done, said) = here.try_apply(&[]);
        assert!(!done, "{said:#?}");
        refusal(&said, &[&uid, "on_leftover"]);
        here.apply_ok(&with(&format!("{stack}on_leftover = \"adopt\""), Instance::new("x")));
        assert_eq!((here.state().resource(X).id(), site.balance().created), (uid, 1));
        here.finish();
    });
}

#[test]
fn what_on_leftover_may_say_is_checked() {
    each_workspace(|_, workspace| {
        workspace.write(&with("on_leftover = \"delete\"", Instance::new("x")));
        let said = workspace.try_plan(&[]);
        refusal(&said, &["on_leftover", "delete", "fail", "adopt", "warn"]);
        workspace.write(&with("stack = \"\"", Instance::new("x")));
        refusal(&workspace.try_plan(&[]), &["stack"]);
    });
}
