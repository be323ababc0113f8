//! Pending records of creates, and their effect on later plans and applies.

use std::{fs, time::Instant};

use damodel::sandbox::{FaultAction, LedgerObject, LifeEvent, LifeKind, When};
use rstest::rstest;

use crate::support::terraform::{
    Diagnostic, Instance, Severity, Site, Started, config, disk, each_program, image, says,
};

const X: &str = "damodel_instance.x";

/// Sets the number of free GPUs of the specification 103.
fn stock(site: &Site, stock: i64) {
    site.set_spec(103, None, Some(stock));
}

/// The warnings that name this.
fn warnings<'a>(said: &'a [Diagnostic], name: &str) -> Vec<&'a Diagnostic> {
    let warnings = said.iter().filter(|said| said.severity == Severity::Warning);
    warnings.filter(|said| said.text().contains(name)).collect()
}

#[test]
fn the_last_stock_that_a_killed_create_took_is_no_obstacle_to_adopting_it() {
    each_program(|site, workspace| {
        stock(site, 1);
        workspace.write(&config(Instance::new("x")));
        Started::killed_when_accepted(workspace, 1);
        workspace.apply_ok(&config(Instance::new("x")));
        assert_eq!((site.balance().created, site.requests("instance_create")), (1, 1));
        workspace.finish();
    });
}

#[test]
fn another_instance_of_the_configuration_is_still_held_against_the_stock() {
    each_program(|site, workspace| {
        stock(site, 1);
        workspace.write(&config(Instance::new("x")));
        Started::killed_when_accepted(workspace, 1);
        workspace.write(&config(format!("{}{}", Instance::new("x"), Instance::new("y").text("name", "other"))));
        let said = workspace.try_plan(&[]);
        let errors: Vec<_> = said.iter().filter(|said| said.is_error()).collect();
        assert_eq!(errors.len(), 1, "{said:#?}");
        assert_eq!(errors[0].address.as_deref(), Some("damodel_instance.y"), "{said:#?}");
        workspace.apply_ok(&config(Instance::new("x")));
        workspace.finish();
    });
}

#[test]
fn the_name_that_a_killed_save_took_is_no_obstacle_to_adopting_it() {
    each_program(|site, workspace| {
        let images = site.balance_of(LedgerObject::PrivateImage).created;
        workspace.apply_ok(&config(Instance::new("builder")));
        let whole = config(format!("{}{}", Instance::new("builder"), image("model")));
        workspace.write(&whole);
        Started::killed_when_accepted(workspace, 1);
        workspace.apply_ok(&whole);
        assert_eq!((site.balance_of(LedgerObject::PrivateImage).created, site.requests("image_save")), (images + 1, 1));
        workspace.finish();
    });
}

#[rstest]
fn nothing_is_said_of_what_was_just_released(#[values(true, false)] is_failed: bool) {
    each_program(|site, workspace| {
        let whole = config(format!("{}{}{}", Instance::new("builder"), disk("data"), image("model")));
        let mut replaced = Vec::new();
        if is_failed {
            for endpoint in ["instance_create", "cloud_disk_create"] {
                site.arm(endpoint, When::Next(1), FaultAction::FailCreation);
            }
            workspace.write(&whole);
            assert!(!workspace.try_apply(&[]).0);
        } else {
            workspace.apply_ok(&whole);
            replaced.extend(workspace.state().addresses().iter().map(|address| format!("-replace={address}")));
        }
        let former: Vec<String> = [LedgerObject::Instance, LedgerObject::CloudDisk, LedgerObject::PrivateImage]
            .into_iter()
            .flat_map(|object| site.created_in("main", object))
            .collect();
        let (done, said) = workspace.try_apply(&replaced.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(done, "{said:#?}");
        let later = [workspace.try_plan(&[]), workspace.try_apply(&[]).1].concat();
        for uid in &former {
            // A failed instance is reported as such while it is in the state.
            let is_left_over = |said: &&Diagnostic| said.text().contains("terraform import");
            assert!(!warnings(&said, uid).iter().any(is_left_over), "{uid}: {said:#?}");
            assert!(warnings(&later, uid).is_empty(), "{uid}: {later:#?}");
        }
        let released = workspace.notes();
        assert!(released.iter().all(|note| former.iter().all(|uid| !note.content.to_string().contains(uid))));
        workspace.finish();
    });
}

#[test]
fn a_note_that_cannot_be_written_is_told_and_the_marker_stays() {
    each_program(|site, workspace| {
        let whole = config(Instance::new("x"));
        workspace.write(&whole);
        site.arm("instance_create", When::Next(1), FaultAction::Slow { ms: 2000 });
        let started = Started::apply(workspace);
        site.await_ledger("the create", |ledger| ledger.requests_to("instance_create").next().is_some());
        // A file replaces the directory, so that no record can be written.
        fs::remove_dir_all(workspace.pending()).unwrap();
        fs::write(workspace.pending(), "").unwrap();
        let said = Diagnostic::of_lines(&started.ended(true));
        let state = workspace.state();
        let id = state.resource(X).id();
        let of_it = |event: &LifeEvent| event.name.starts_with("x-") && event.kind == LifeKind::Created;
        let marker = site.ledger().life.into_iter().find(of_it).unwrap().name;
        assert!(!state.resource(X).is_tainted(), "{said:#?}");
        assert!(warnings(&said, &id).iter().any(|said| said.text().contains(&marker)), "{marker}, {id}: {said:#?}");
        assert!(said.iter().all(|said| !said.is_error()), "{said:#?}");

        fs::remove_file(workspace.pending()).unwrap();
        let plan = workspace.plan_and_apply_ok(&whole);
        assert_eq!(plan.actions(), [(X.to_owned(), "update".to_owned())]);
        assert_eq!(plan.change(X).before("name"), marker.as_str());
        assert_eq!(workspace.state().resource(X).id(), id);
        workspace.finish();
    });
}

#[test]
fn a_create_of_minutes_ago_that_made_nothing_is_sent_again() {
    each_program(|site, workspace| {
        workspace.write(&config(Instance::new("x")));
        site.arm("instance_create", When::Next(1), FaultAction::Hang { limit_ms: 120_000, processed: false });
        let started = Started::apply(workspace);
        site.await_ledger("the create", |ledger| ledger.requests_to("instance_create").next().is_some());
        started.kill();
        started.ended(true);
        workspace.minutes_pass();
        let begun = Instant::now();
        workspace.apply_ok(&config(Instance::new("x")));
        assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
        assert_eq!((site.balance().created, site.requests("instance_create")), (1, 2));
        assert!(workspace.notes().iter().all(|note| note.phase() == "finished"), "{:#?}", workspace.notes());
        workspace.finish();
    });
}

#[test]
fn a_note_that_cannot_be_read_stops_a_create() {
    each_program(|site, workspace| {
        workspace.apply_ok(&config(disk("data")));
        let file = workspace.pending().join("instance-broken.json");
        fs::create_dir_all(workspace.pending()).unwrap();
        fs::write(&file, "{\"version\": 99}").unwrap();
        let whole = config(format!("{}{}", disk("data"), Instance::new("x")));
        workspace.write(&whole);
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done && says(&said, Severity::Error, "instance-broken.json"), "{said:#?}");
        assert_eq!(site.requests("instance_create"), 0);
        fs::remove_file(file).unwrap();
        workspace.apply_ok(&whole);
        workspace.finish();
    });
}

#[test]
fn what_nothing_adopted_is_told_once_by_each_run() {
    each_program(|site, workspace| {
        workspace.write(&config(format!("{}{}", Instance::new("x"), disk("data"))));
        Started::killed_when_accepted(workspace, 2);
        let uid = site.live()[0].clone();
        // The instance is removed from the configuration.
        workspace.write(&config(disk("data")));
        let import = format!("terraform import damodel_instance.<name> {uid}");
        for number in 1..=3 {
            let said = if number == 2 { workspace.try_apply(&[]).1 } else { workspace.try_plan(&[]) };
            let told = warnings(&said, &uid);
            assert_eq!(told.len(), 1, "run {number}: {said:#?}");
            let release = format!("terraform-provider-damodel release {uid}");
            let resumes = "If its address is in the configuration and not in the state yet, the next apply resumes";
            for words in [&import, &release, "in this account", resumes] {
                assert!(told[0].text().contains(words), "{words}: {told:#?}");
            }
        }
        workspace.apply_ok(&config(format!("{}{}", Instance::new("x"), disk("data"))));
        assert_eq!(workspace.state().resource(X).id(), uid);
        assert!(warnings(&workspace.try_plan(&[]), &uid).is_empty());
        workspace.finish();
    });
}

#[test]
fn advice_does_not_ask_for_what_is_set() {
    each_program(|site, workspace| {
        let none = FaultAction::Error { code_n: damodel::sandbox::Code::ResourceInsufficient, processed: false };
        site.arm("instance_create", When::Always, none);
        workspace.write(&config(Instance::new("x").text("wait_for_capacity", "1s")));
        let (done, said) = workspace.try_apply(&[]);
        let errors: Vec<_> = said.iter().filter(|said| said.is_error()).collect();
        assert!(!done && errors.len() == 1 && errors[0].text().contains("160001"), "{said:#?}");
        let text = errors[0].text().to_lowercase();
        assert!(!text.contains("set wait_for_capacity"), "{text}");
    });
}
