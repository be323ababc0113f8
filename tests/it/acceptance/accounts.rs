//! Runs with another token: of another account, or of the same account.

use std::fs;

use damodel::sandbox::{LedgerObject, Mutation, Options};
use rstest::rstest;

use crate::support::terraform::{
    Diagnostic, Instance, Severity, Site, Started, Workspace, config, config_with, disk, each_cli, each_program, image,
    refusal, says,
};

const X: &str = "damodel_instance.x";
const TOKEN: &str = "DAMODEL_API_TOKEN";

/// An instance, a disk, and an image.
fn three() -> String {
    let hasty = |resource: String| resource.replace("\n}", "\n  timeouts { delete = \"20s\" }\n}");
    config(format!("{}{}{}", Instance::new("builder"), hasty(disk("data")), hasty(image("model"))))
}

/// The number of instances created in the main account and in the other one.
fn created(site: &Site) -> [usize; 2] {
    ["main", "other"].map(|account| site.created_in(account, LedgerObject::Instance).len())
}

/// Whether a warning has all of these words.
fn warns(said: &[Diagnostic], words: &[&str]) -> bool {
    let warnings = said.iter().filter(|said| said.severity == Severity::Warning);
    warnings.map(Diagnostic::text).any(|text| words.iter().all(|word| text.contains(word)))
}

#[test]
fn another_accounts_create_leaves_the_note_of_a_killed_one_as_it_is() {
    each_program(|site, workspace| {
        workspace.write(&config(Instance::new("x")));
        Started::killed_when_accepted(workspace, 1);
        workspace.minutes_pass();
        let (uid, notes) = (site.live()[0].clone(), workspace.notes());

        workspace.set_env(TOKEN, &site.token_of("other"));
        let (done, said) = workspace.try_apply(&[]);
        assert!(done, "{said:#?}");
        assert_eq!(created(site), [1, 1], "{said:#?}");
        let of_other = site.created_in("other", LedgerObject::Instance);
        assert_eq!(vec![workspace.state().resource(X).id()], of_other, "{said:#?}");
        assert!(warns(&said, &[&uid, "another account"]), "{said:#?}");
        assert!(notes.iter().all(|note| workspace.notes().contains(note)), "{notes:#?}\n{:#?}", workspace.notes());

        // With the right token it is adopted.
        workspace.destroy_ok();
        workspace.set_env(TOKEN, site.token());
        workspace.apply_ok(&config(Instance::new("x")));
        assert_eq!(workspace.state().resource(X).id(), uid);
        assert_eq!(created(site), [1, 1]);
        workspace.finish();
    });
}

#[test]
fn a_plan_promises_to_resume_only_what_is_in_its_account() {
    each_program(|site, workspace| {
        workspace.write(&config(Instance::new("x")));
        Started::killed_when_accepted(workspace, 1);
        site.set_spec(103, None, Some(0));
        workspace.set_env(TOKEN, &site.token_of("other"));
        refusal(&workspace.try_plan(&[]), &["has no stock now"]);
        // What was bought already is no shortage: under its own token, and under a new one that shows it.
        for token in [site.token().to_owned(), site.rotated_token()] {
            workspace.set_env(TOKEN, &token);
            let said = workspace.try_plan(&[]);
            assert!(said.iter().all(|said| !said.is_error()), "{said:#?}");
        }
        workspace.apply_ok(&config(Instance::new("x")));
        assert_eq!(created(site), [1, 0]);
        workspace.finish();
    });
}

/// A table of the decision about records has each answer and each account; these are one life with an answer, and one
/// without.
#[test]
fn a_rotated_token_adopts_what_the_former_one_created() {
    each_program(|site, workspace| {
        workspace.write(&config(Instance::new("x")));
        Started::killed_when_accepted(workspace, 1);
        let uid = site.live()[0].clone();
        workspace.set_env(TOKEN, &site.rotated_token());
        site.mutate(Mutation::RevokeToken { account: "main".to_owned(), token: site.token().to_owned() });
        workspace.apply_ok(&config(Instance::new("x")));
        assert_eq!((workspace.state().resource(X).id(), created(site)), (uid, [1, 0]));
        assert_eq!(site.requests("instance_create"), 1);
        workspace.finish();
    });
}

#[test]
fn a_token_that_changes_with_each_run_adopts_what_was_created() {
    each_program(|site, workspace| {
        let provider = format!("region = \"cn-east-1\"\n{}", workspace.changing_tokens());
        let config = config_with(&provider, Instance::new("x"));
        workspace.write(&config);
        let hang = damodel::sandbox::FaultAction::Hang { limit_ms: 120_000, processed: true };
        site.arm("instance_create", damodel::sandbox::When::Next(1), hang);
        let started = Started::apply(workspace);
        site.await_ledger("the create", |ledger| ledger.requests_to("instance_create").next().is_some());
        started.kill();
        started.ended(true);
        site.sandbox().clear_faults();
        workspace.apply_ok(&config);
        assert_eq!((created(site), site.requests("instance_create")), ([1, 0], 1));
        workspace.finish();
    });
}

/// A provider of the other account.
const OTHER: &str = "variable \"other\" {\n  sensitive = true\n}\n\
     provider \"damodel\" {\n  alias = \"other\"\n  region = \"cn-east-1\"\n  api_token = var.other\n}\n";

#[test]
fn an_object_vouches_only_for_those_of_its_own_account() {
    each_program(|site, workspace| {
        workspace.set_env("TF_VAR_other", &site.token_of("other"));
        let other = |label: &str| Instance::new(label).set("provider", "damodel.other");
        workspace.apply_ok(&config(format!("{OTHER}{}{}", Instance::new("x"), other("y"))));
        workspace.made_long_ago();
        workspace.write(&config(format!("{OTHER}{}{}", other("x"), other("y"))));
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done && says(&said, Severity::Error, "another account"), "{said:#?}");
        assert_eq!((workspace.state().addresses().len(), created(site)), (2, [1, 1]));
        workspace.apply_ok(&config(format!("{OTHER}{}{}", Instance::new("x"), other("y"))));
        workspace.finish();
    });
}

#[test]
fn a_disk_of_another_service_with_the_same_number_is_left_alone() {
    each_cli(|cli| {
        let site = Site::start();
        let workspace = Workspace::with_program(cli, &site);
        let disk =
            |name: &str, size: &str| config(disk("x").replace("= \"x\"", &format!("= {name:?}")).replace("= 20", size));
        let here = disk("here", "= 20");
        workspace.apply_ok(&here);
        workspace.made_long_ago();
        let staging = Site::with(Options { seed: 7, ..Site::options() });
        let there = Workspace::with_program(cli, &staging);
        there.apply_ok(&disk("there", "= 20"));
        let [own, foreign] = [&workspace, &there].map(|it| it.state().resource("damodel_cloud_disk.x").flat());
        assert_eq!(own["id"], foreign["id"], "the sandboxes count alike");

        workspace.set_env("DAMODEL_BASE_URL", staging.base_url());
        workspace.set_env(TOKEN, staging.token());
        let before = staging.changes();
        workspace.write(&disk("renamed", "= 40"));
        for arguments in [&[][..], &["-refresh=false"], &["-destroy"], &["-destroy", "-refresh=false"]] {
            let (done, said) = workspace.try_apply(arguments);
            assert!(!done, "{arguments:?}");
            for uid in [&own["uid"], &foreign["uid"]] {
                let uid = uid.trim_matches('"');
                assert!(says(&said, Severity::Error, uid), "{arguments:?} {uid}: {said:#?}");
            }
        }
        assert_eq!(staging.changes(), before);
        assert_eq!(workspace.state().resource("damodel_cloud_disk.x").flat()["uid"], own["uid"]);

        workspace.set_env("DAMODEL_BASE_URL", site.base_url());
        workspace.set_env(TOKEN, site.token());
        workspace.apply_ok(&here);
        workspace.finish();
        there.finish();
    });
}

#[test]
fn alike_creates_of_two_accounts_are_adopted_each_by_its_own() {
    each_program(|site, workspace| {
        workspace.set_env("TF_VAR_other", &site.token_of("other"));
        let alike = |label: &str| Instance::new(label).text("name", "same");
        let config = config(format!("{OTHER}{}{}", alike("a"), alike("b").set("provider", "damodel.other")));
        workspace.write(&config);
        Started::killed_when_accepted(workspace, 2);
        workspace.apply_ok(&config);
        assert_eq!(created(site), [1, 1]);
        let state = workspace.state();
        for (address, account) in [("damodel_instance.a", "main"), ("damodel_instance.b", "other")] {
            assert_eq!(
                vec![state.resource(address).id()],
                site.created_in(account, LedgerObject::Instance),
                "{address}"
            );
        }
        workspace.finish();
    });
}

/// The uids of the instances, disks and images that exist, including the sandbox's seed.
fn live(site: &Site) -> [usize; 3] {
    [LedgerObject::Instance, LedgerObject::CloudDisk, LedgerObject::PrivateImage]
        .map(|object| site.balance_of(object).live)
}

#[test]
fn what_is_young_is_not_dropped_under_another_account() {
    each_program(|site, workspace| {
        workspace.apply_ok(&three());
        let (before, addresses) = (live(site), workspace.state());
        workspace.set_env(TOKEN, &site.token_of("other"));
        for arguments in [&["-destroy"][..], &["-destroy", "-refresh=false"]] {
            let (done, said) = workspace.try_apply(arguments);
            assert!(!done && says(&said, Severity::Error, "another account"), "{said:#?}");
            assert_eq!(workspace.state().addresses(), addresses.addresses(), "{said:#?}");
        }
        // Without references between them, each is read even if another one fails.
        workspace.write(&three().replace("damodel_instance.builder.id", &format!("{:?}", site.live()[0])));
        let said = workspace.try_plan(&[]);
        for address in ["damodel_instance.builder", "damodel_cloud_disk.data", "damodel_private_image.model"] {
            let of_it = |said: &&Diagnostic| said.is_error() && said.address.as_deref() == Some(address);
            let errors: Vec<_> = said.iter().filter(of_it).collect();
            assert!(errors.iter().any(|error| error.text().contains("another account")), "{address}: {said:#?}");
        }
        workspace.set_env(TOKEN, site.token());
        assert_eq!(live(site), before);
        workspace.settled();
        workspace.finish();
    });
}

#[test]
fn what_is_young_and_not_visible_stays_in_the_state_until_it_is_released() {
    each_program(|site, workspace| {
        workspace.apply_ok(&three());
        let before = live(site);
        let state = workspace.state();
        let hide = |reads| {
            let disk = state.resource("damodel_cloud_disk.data").value("uid").as_str().unwrap().to_owned();
            for uid in [disk, state.resource("damodel_private_image.model").id()] {
                // A released one cannot be hidden.
                let _ = site.sandbox().mutate(Mutation::Hide { uid, reads });
            }
        };
        hide(100_000);
        let (_, said) = workspace.try_apply(&["-destroy", "-refresh=false"]);
        let after = live(site);
        for (address, index) in [("damodel_cloud_disk.data", 1), ("damodel_private_image.model", 2)] {
            let is_held = workspace.state().find(address).is_some();
            assert!(is_held || after[index] < before[index], "{address} left the state and lives: {said:#?}");
        }
        hide(0);
        workspace.finish();
        assert_eq!(live(site), [0, before[1] - 1, before[2] - 1]);
    });
}

#[rstest]
fn a_saved_plan_applied_under_another_account_drops_nothing(#[values(true, false)] is_young: bool) {
    each_program(|site, workspace| {
        let both = |label: &str| config(format!("{}{}", Instance::new(label), disk(label)));
        workspace.apply_ok(&both("x"));
        if !is_young {
            workspace.made_long_ago();
        }
        workspace.write(&both("y"));
        workspace.save_plan(&[]);
        workspace.set_env(TOKEN, &site.token_of("other"));
        let run = workspace.run(&["apply", "-no-color", "-input=false", "plan"]);
        assert_eq!(run.code, Some(1), "{}", run.stdout);
        let state = workspace.state();
        for address in [X, "damodel_cloud_disk.x"] {
            assert!(state.find(address).is_some(), "{address}: {}{}", run.stdout, run.stderr);
        }
        assert!(site.created_in("main", LedgerObject::Instance).iter().all(|uid| site.live().contains(uid)));
    });
}

#[test]
fn a_token_program_that_fails_once_does_not_end_an_apply() {
    each_program(|site, workspace| {
        let second = site.rotated_token();
        let program = workspace.token_program(&format!(
            "if [ ! -e \"$HERE/expired\" ]; then echo '{}'; exit; fi\nmkdir \"$HERE/failed\" 2>/dev/null && exit 1\n\
             echo '{second}'",
            site.token()
        ));
        let config = config_with(&format!("region = \"cn-east-1\"\n{program}"), Instance::new("x"));
        workspace.write(&config);
        site.stick();
        let started = Started::apply(workspace);
        workspace.await_notes("accepted", 1);
        fs::write(workspace.beside("expired"), "").unwrap();
        site.mutate(Mutation::RevokeToken { account: "main".to_owned(), token: site.token().to_owned() });
        site.sandbox().clear_faults();
        site.unstick();
        let said = Diagnostic::of_lines(&started.ended(true));
        assert!(workspace.beside("failed").exists());
        assert!(said.iter().all(|said| !said.is_error()), "{said:#?}");
        assert!(!workspace.state().resource(X).is_tainted(), "{said:#?}");
        assert_eq!(workspace.state().resource(X).value("status"), "Running");
        workspace.settled();
        assert_eq!(created(site), [1, 0]);
        workspace.finish();
    });
}
