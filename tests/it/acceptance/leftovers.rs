//! Leftovers of killed creates, if `.terraform` and its pending records are lost with the runner.

use std::path::Path;

use damodel::sandbox::{FaultAction, Form, LedgerObject, Mutation, Options, When};
use rstest::rstest;

use crate::support::terraform::{
    Diagnostic, Instance, Severity, Site, Started, Workspace, config_with, disk, each_cli, each_program,
    each_workspace, each_workspace_on, refusal, refusal_of,
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

/// Whether a text advises another name before anything else, and the import only for what no state has.
fn advises_another_name_first(text: &str, last: &[&str]) -> bool {
    let first = ["another configuration, workspace or stage", "another name here"];
    let mut rest = text;
    first.iter().chain(last).chain(&["If no state has it", "terraform import damodel_"]).all(|words| {
        let found = rest.split_once(words);
        rest = found.map_or("", |(_, after)| after);
        found.is_some()
    })
}

/// The names under which objects were created.
fn sent_names(site: &Site, object: LedgerObject) -> Vec<String> {
    let life = site.ledger().life.into_iter();
    let births = life.filter(|event| event.kind == damodel::sandbox::LifeKind::Created && event.object == object);
    births.filter(|event| event.name.starts_with("x-")).map(|event| event.name).collect()
}

#[test]
fn a_marker_tells_its_configuration() {
    each_program(|site, workspace| {
        let machine = |label: &str, name: &str| Instance::new(label).text("name", name);
        let machines =
            [machine("a", "x"), machine("b", "x"), machine("c", "x-other")].map(|it| it.to_string()).concat();
        let disks = disk("x").replacen('{', "{\n  count = 3", 1);
        workspace.apply_ok(&with("", format!("{machines}{disks}")));
        for (object, is_alike) in [(LedgerObject::Instance, false), (LedgerObject::CloudDisk, true)] {
            // The other name comes last.
            let mut names = sent_names(site, object);
            names.sort_by_key(String::len);
            let digits: Vec<&str> = names.iter().map(|name| name.rsplit_once('-').unwrap().1).collect();
            let is_hex = |text: &&str| text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(digits.len() == 3 && digits.iter().all(is_hex), "{names:?}");
            assert_eq!(digits[0][..4], digits[1][..4], "{names:?}");
            assert_eq!(digits[0][..4] == digits[2][..4], is_alike, "{names:?}");
            assert_ne!(digits[0][4..], digits[1][4..], "{names:?}");
        }
    });
}

#[test]
fn a_leftover_of_the_same_configuration_stops_a_create() {
    each_program(|site, workspace| {
        let config = with("", format!("{}{}", Instance::new("x"), disk("x")));
        left_behind(workspace, &config, 2);
        let created =
            || [LedgerObject::Instance, LedgerObject::CloudDisk].map(|object| site.balance_of(object).created);
        let before = created();
        let uid = |object| site.created_in("main", object).pop().unwrap();
        let disk = id_of(site, &uid(LedgerObject::CloudDisk));
        let left = [(X, uid(LedgerObject::Instance)), ("damodel_cloud_disk.x", disk)];
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done, "{said:#?}");
        for (address, id) in &left {
            let import = format!("terraform import {}", address.split('.').next().unwrap());
            let error = refusal_of(&said, address, &[&import, id]);
            assert!(advises_another_name_first(&error.text(), &["`stack`"]), "{error:#?}");
        }
        assert_eq!(created(), before, "{said:#?}");

        // As the errors say.
        for (address, id) in &left {
            workspace.run_ok(&["import", "-no-color", "-input=false", address, id]);
        }
        workspace.apply_ok(&config);
        for (address, id) in left {
            assert_eq!(workspace.state().resource(address).id(), id);
        }
        assert_eq!(created(), before);
        workspace.finish();
    });
}

/// The database id of a disk.
fn id_of(site: &Site, uid: &str) -> String {
    let state = site.sandbox().state();
    let disk = state["disks"].as_array().unwrap().iter().find(|disk| disk["uid"] == uid).unwrap();
    disk["id"].to_string()
}

/// The error of each create has the import command for its own address first.
#[test]
fn one_apply_names_all_leftovers() {
    each_program(|site, workspace| {
        let config = with("", Instance::new("x").set("count", 3).text("name", "same"));
        left_behind(workspace, &config, 3);
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done, "{said:#?}");
        for error in said.iter().filter(|said| said.is_error()) {
            let text = error.text();
            let id = text.split("terraform import damodel_instance.<name> ").nth(1).unwrap();
            let id = id.split_whitespace().next().unwrap().trim_end_matches('.');
            workspace.run_ok(&["import", "-no-color", "-input=false", error.address.as_deref().unwrap(), id]);
        }
        workspace.apply_ok(&config);
        assert_eq!(site.balance().created, 3);
        workspace.finish();
    });
}

/// Siblings with one name and other arguments: each resumes its own create, or stops with an error until it is resumed.
#[rstest]
#[case("x", &[])]
#[case("y", &["-parallelism=1"])]
fn siblings_of_one_name_resume_their_own_creates(#[case] killed: &str, #[case] arguments: &[&str]) {
    each_program(|site, workspace| {
        let sized = |label: &str, size: u32| {
            disk(label)
                .replace("size_gb = 20", &format!("size_gb = {size}"))
                .replace(&format!("name = {label:?}"), "name = \"same\"")
        };
        let (x, y) = (sized("x", 30), sized("y", 60));
        let before = site.balance_of(LedgerObject::CloudDisk).created;
        workspace.write(&config_with("region = \"cn-east-1\"", if killed == "x" { &x } else { &y }));
        Started::killed_when_accepted(workspace, 1);
        let both = with("", format!("{x}{y}"));
        workspace.write(&both);
        let (done, said) = workspace.try_apply(arguments);
        if !done {
            refusal(&said, &["apply once more", "another block may be resuming it"]);
            let (done, said) = workspace.try_apply(arguments);
            assert!(done, "{said:#?}");
        }
        assert_eq!(site.balance_of(LedgerObject::CloudDisk).created, before + 2, "{said:#?}");
        let state = workspace.state();
        for (address, size) in [("damodel_cloud_disk.x", 30), ("damodel_cloud_disk.y", 60)] {
            assert_eq!(state.resource(address).value("size_gb"), size, "{address}");
        }
        workspace.settled();
        workspace.finish();
    });
}

/// Who forgets the record of an instance that the service does not show yet removes its only trace.
#[test]
fn a_young_create_that_is_not_shown_is_not_to_be_forgotten() {
    each_program(|site, workspace| {
        workspace.write(&with("", Instance::new("x")));
        Started::killed_when_accepted(workspace, 1);
        let uid = site.live().remove(0);
        site.mutate(Mutation::RemoveInstance { uid: uid.clone() });
        workspace.write(&with("", Instance::new("x").set("gpu_num", 2)));
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done, "{said:#?}");
        let error = refusal(&said, &[&uid, "may not show it yet"]);
        assert!(!error.text().contains("--forget"), "{error:#?}");
        assert_eq!(site.balance().created, 1);
    });
}

/// Terraform is killed after the answer and before it stores it.
#[rstest]
fn an_answered_create_whose_state_was_lost_is_refused_with_its_id(#[values("fail", "warn")] on_leftover: &str) {
    each_program(|site, workspace| {
        let config = with(&format!("on_leftover = {on_leftover:?}"), Instance::new("x"));
        workspace.write(&config);
        let (done, said) = workspace.try_apply(&[]);
        assert!(done, "{said:#?}");
        assert_eq!(workspace.notes().iter().map(|note| note.phase()).collect::<Vec<_>>(), ["finished"]);
        let lost = workspace.state().resource(X).id();
        std::fs::remove_file(workspace.directory().join("terraform.tfstate")).unwrap();
        let (done, said) = workspace.try_apply(&[]);
        assert_eq!(done, on_leftover == "warn", "{said:#?}");
        if done {
            assert!(warns(&said, &[&lost, "terraform import damodel_instance."]), "{said:#?}");
            return;
        }
        let delete = format!("terraform-provider-damodel release {lost}\n");
        let error = refusal(&said, &[&lost, "whole plan", "errored.tfstate", &delete]);
        // The record may be the only trace of what is billed.
        assert!(error.text().contains("pending --forget"), "{error:#?}");
        assert!(advises_another_name_first(&error.text(), &["`stack`"]), "{error:#?}");
        workspace.run_ok(&["import", "-no-color", "-input=false", X, &lost]);
        workspace.apply_ok(&config);
        assert_eq!(site.balance().created, 1);
        workspace.finish();
    });
}

/// With unique names, an object of the configured name stops a create, wherever it comes from; a replacement that has
/// just released its predecessor is no obstacle.
#[test]
fn unique_names_stop_a_create_of_a_taken_name() {
    each_cli(|cli| {
        let site = Site::start();
        let (there, here) = (Workspace::with_program(cli, &site), Workspace::with_program(cli, &site));
        there.apply_ok(&with("", Instance::new("x")));
        let uid = there.state().resource(X).id();
        let config = with("unique_names = true", Instance::new("x"));
        here.write(&config);
        let (done, said) = here.try_apply(&[]);
        assert!(!done, "{said:#?}");
        let import = format!("terraform import damodel_instance.<name> {uid}");
        let error = refusal(&said, &[&uid, "unique_names", &import]);
        assert!(advises_another_name_first(&error.text(), &[]) && !error.text().contains("`stack`"), "{error:#?}");
        assert_eq!(site.balance().created, 1);
        let said = here.try_plan(&[]);
        refusal(&said, &[&uid, "unique_names", &import]);
        there.destroy_ok();
        assert!(here.try_apply(&[]).0);
        let (done, said) = here.try_apply(&["-replace=damodel_instance.x"]);
        assert!(done, "{said:#?}");
        here.settled();
        here.finish();
    });
}

#[rstest]
fn what_cannot_be_looked_for_is_not_created_beside(#[values("fail", "warn")] on_leftover: &str) {
    each_program(|site, workspace| {
        let argument = format!("on_leftover = {on_leftover:?}\nmax_retries = 1");
        workspace.write(&with(&argument, Instance::new("x").block("timeouts { create = \"8s\" }")));
        workspace.save_plan(&[]);
        site.arm("instance_list", When::Always, FaultAction::Status { status: 503, processed: false });
        let (done, said) = workspace.try_apply(&["plan"]);
        if on_leftover == "warn" {
            assert!(warns(&said, &["leftovers of instance", "503", "is created"]), "{said:#?}");
        } else {
            assert!(!done, "{said:#?}");
            refusal(&said, &["leftovers of instance", "503", "This instance was not created", "on_leftover"]);
        }
        assert_eq!(site.requests("instance_create"), usize::from(on_leftover == "warn"));
        site.sandbox().clear_faults();
        workspace.apply_ok(&with(&argument, Instance::new("x")));
        assert_eq!(site.balance().created, 1);
        workspace.finish();
    });
}

#[test]
fn leftovers_of_other_configurations_are_named_and_stop_nothing() {
    each_cli(|cli| {
        let site = Site::start();
        let (there, here) = (Workspace::with_program(cli, &site), Workspace::with_program(cli, &site));
        let config = with("", Instance::new("x").set("count", 2).text("name", "same"));
        left_behind(&there, &with("", Instance::new("x").text("name", "same")), 1);
        let uid = site.live()[0].clone();
        here.write(&config);
        let said = here.try_plan(&[]);
        let import = format!("terraform import damodel_instance.<name> {uid}");
        let named = || said.iter().filter(|said| said.text().contains(&import));
        assert!(named().count() == 1 && warns(&said, &[" old", "The apply buys another one"]), "{said:#?}");
        let (done, said) = here.try_apply(&[]);
        assert!(done, "{said:#?}");
        assert_eq!(site.balance().created, 3);
        here.settled();
    });
}

/// A name that this run frees first is not taken: that of a tainted instance, and of one that is renamed before.
#[test]
fn a_unique_name_that_a_run_frees_is_no_error_of_its_plan() {
    each_workspace(|site, workspace| {
        let unique = |body: String| with("unique_names = true", body);
        workspace.apply_ok(&unique(Instance::new("x").to_string()));
        workspace.run_ok(&["taint", "-no-color", X]);
        for refresh in ["-refresh=true", "-refresh=false"] {
            let said = workspace.try_plan(&[refresh]);
            assert!(said.iter().all(|said| !said.is_error()), "{refresh}: {said:#?}");
        }
        workspace.run_ok(&["untaint", "-no-color", X]);
        let after = Instance::new("y").text("name", "x").set("depends_on", "[damodel_instance.x]");
        workspace.write(&unique(format!("{}{after}", Instance::new("x").text("name", "was-x"))));
        let (done, said) = workspace.try_apply(&[]);
        assert!(done, "{said:#?}");
        assert_eq!(site.balance().created, 2);
        let second = Instance::new("z").text("name", "x").set("depends_on", "[damodel_instance.y]");
        workspace.write(&unique(format!("{}{after}{second}", Instance::new("x").text("name", "was-x"))));
        refusal_of(&workspace.try_plan(&[]), "damodel_instance.z", &["unique_names", "destroy -refresh=false"]);
        workspace.run_ok(&["destroy", "-auto-approve", "-no-color", "-input=false", "-refresh=false"]);
        workspace.finish();
    });
}

/// A second computer with the same state.
#[test]
fn a_state_elsewhere_is_one_configuration_in_every_directory() {
    each_cli(|cli| {
        let site = Site::start();
        let (there, here) = (Workspace::with_program(cli, &site), Workspace::with_program(cli, &site));
        let state = there.directory().join("shared.tfstate");
        let backend = format!("terraform {{\n  backend \"local\" {{\n    path = {state:?}\n  }}\n}}\n");
        let config = format!("{backend}{}", with("", Instance::new("x")));
        for workspace in [&there, &here] {
            // The backend comes first; the provider, which is not in a registry, comes from the development override.
            workspace.write(&config);
            workspace.run(&["init", "-no-color", "-input=false"]);
        }
        Started::killed_when_accepted(&there, 1);
        let uid = site.live()[0].clone();
        assert!(warns(&here.try_plan(&[]), &[&uid, "the apply stops before it buys another one"]));
        let (done, said) = here.try_apply(&[]);
        assert!(!done, "{said:#?}");
        refusal(&said, &[&uid, "terraform import damodel_instance."]);
        assert_eq!(site.balance().created, 1);
    });
}

/// A service that shows names in capital letters, and another one that finds a disk by its name alone.
#[test]
fn names_in_other_letters_are_no_change() {
    let options = Options { form: Form { capital_names: true, ..Form::default() }, ..Site::options() };
    each_workspace_on(&options, |site, workspace| {
        workspace.apply_ok(&with("", format!("{}{}", Instance::new("x"), disk("x"))));
        workspace.settled();
        assert_eq!(workspace.state().resource(X).value("name"), "x");
        let said = workspace.try_plan(&[]);
        let respelled = said.iter().filter(|said| said.text().contains("is shown in another spelling"));
        assert_eq!(respelled.count(), 1, "{said:#?}");
        assert_eq!(site.balance().created, 1);
        workspace.finish();
    });
}

#[test]
fn a_stack_is_one_configuration_in_every_directory() {
    each_cli(|cli| {
        let site = Site::start();
        let (there, here) = (Workspace::with_program(cli, &site), Workspace::with_program(cli, &site));
        assert_ne!(there.directory(), Path::new(&here.directory()));
        // One has the argument, and the other the variable.
        left_behind(&there, &with("stack = \"production\"\n", Instance::new("x")), 1);
        here.set_env("DAMODEL_STACK", "production");
        let uid = site.live()[0].clone();
        here.write(&with("", Instance::new("x")));
        let (done, said) = here.try_apply(&[]);
        assert!(!done, "{said:#?}");
        refusal(&said, &[&uid, "`stack`"]);
        here.run_ok(&["import", "-no-color", "-input=false", X, &uid]);
        here.apply_ok(&with("", Instance::new("x")));
        assert_eq!((here.state().resource(X).id(), site.balance().created), (uid, 1));
        here.finish();
    });
}

#[test]
fn what_on_leftover_may_say_is_checked() {
    each_program(|_, workspace| {
        workspace.write(&with("on_leftover = \"delete\"", Instance::new("x")));
        let said = workspace.try_plan(&[]);
        refusal(&said, &["on_leftover", "delete", "fail", "warn"]);
        workspace.write(&with("stack = \"\"", Instance::new("x")));
        refusal(&workspace.try_plan(&[]), &["stack"]);
    });
}
