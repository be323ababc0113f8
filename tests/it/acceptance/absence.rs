//! What a refresh does not find, and refreshes that fail.

use damodel::sandbox::{Code, FaultAction, Mutation, When};

use crate::support::terraform::{Diagnostic, Instance, Severity, config, disk, each_workspace, image, says};

const X: &str = "damodel_instance.x";
const DISK: &str = "damodel_cloud_disk.x";

/// The configuration of one instance, without retries.
fn hasty() -> String {
    crate::support::terraform::config_with("region = \"cn-east-1\"\nmax_retries = 0", Instance::new("x"))
}

#[test]
fn what_was_released_by_hand_leaves_the_state_in_every_form() {
    each_workspace(|site, workspace| {
        let both = config(format!("{}{}", Instance::new("x"), disk("x")));
        workspace.apply_ok(&both);
        for form in ["released_disks=listed", "released=without_detail", "released=forgotten,released_disks=forgotten"]
        {
            site.sandbox().set_form(form.parse().unwrap());
            let ids = || [X, DISK].map(|address| workspace.state().resource(address).id());
            let before = ids();
            workspace.made_long_ago();
            site.mutate(Mutation::ReleaseInstance { uid: before[0].clone() });
            site.mutate(Mutation::ReleaseDisk { id: before[1].parse().unwrap() });
            let said = workspace.save_plan(&[]);
            let removed = said.iter().filter(|said| said.text().contains("removed from the state"));
            assert_eq!(removed.count(), 2, "{form}: {said:?}");
            assert!(says(&said, Severity::Warning, "Running"), "{form}: {said:?}");
            workspace.apply_plan();
            workspace.settled();
            assert!(ids().iter().zip(&before).all(|(after, before)| after != before), "{form}");
        }
        assert_eq!(site.balance().created, 4);
        workspace.finish();
    });
}

/// Terraform plans the destroy of an orphan also if its refresh has removed it.
#[test]
fn what_was_released_by_hand_is_not_destroyed() {
    each_workspace(|site, workspace| {
        for protected in [false, true] {
            workspace.apply_ok(&config(Instance::new("x").set("deletion_protection", protected)));
            site.mutate(Mutation::ReleaseInstance { uid: workspace.state().resource(X).id() });
            workspace.write(&config(""));
            let (done, said) = workspace.try_apply(&[]);
            assert!(done && says(&said, Severity::Warning, "removed from the state"), "{protected}: {said:#?}");
            assert_eq!(said.len(), 1, "{protected}: {said:#?}");
            assert!(workspace.state().addresses().is_empty());
        }
    });
}

#[test]
fn a_machine_without_a_trace_is_missed_only_after_a_while() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config(Instance::new("x")));
        site.mutate(Mutation::RemoveInstance { uid: site.live()[0].clone() });
        let said = workspace.try_plan(&[]);
        assert!(says(&said, Severity::Warning, "not visible yet"), "{said:?}");
        workspace.settled();

        workspace.made_long_ago();
        let said = workspace.try_plan(&[]);
        assert!(says(&said, Severity::Warning, "removed from the state"), "{said:?}");
        assert_eq!(workspace.applied(&config(Instance::new("x"))), [(X.to_owned(), "create".to_owned())]);
        workspace.finish();
    });
}

#[test]
fn a_destroy_of_a_machine_without_a_trace_ends() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config(Instance::new("x")));
        workspace.made_long_ago();
        site.mutate(Mutation::RemoveInstance { uid: site.live()[0].clone() });
        workspace.run_ok(&["destroy", "-auto-approve", "-no-color", "-refresh=false"]);
        assert!(workspace.state().addresses().is_empty());
    });
}

#[test]
fn another_accounts_token_takes_nothing_out_of_the_state() {
    each_workspace(|site, workspace| {
        let builder = Instance::new("builder");
        workspace.apply_ok(&config(format!("{}{}{builder}{}", Instance::new("x"), disk("x"), image("x"))));
        workspace.made_long_ago();
        let kept = workspace.state();
        // Without a reference to the builder, the image is read even if that fails.
        let uid = format!("{:?}", kept.resource("damodel_instance.builder").id());
        let image = image("x").replace("damodel_instance.builder.id", &uid);
        workspace.write(&config(format!("{}{}{builder}{image}", Instance::new("x"), disk("x"))));
        for (account, addresses, words) in [
            ("other", &[X, DISK, "damodel_private_image.x"][..], "another account"),
            ("restricted", &[DISK], "sub-account"),
        ] {
            workspace.set_env("DAMODEL_API_TOKEN", &site.token_of(account));
            for arguments in [&[][..], &["-refresh-only"], &["-destroy"], &["-destroy", "-refresh=false"]] {
                let (done, said) = workspace.try_apply(arguments);
                assert!(!done, "{account}, {arguments:?}");
                for address in if arguments.contains(&"-refresh=false") { &[][..] } else { addresses } {
                    let is_its = |said: &&Diagnostic| said.is_error() && said.address.as_deref() == Some(*address);
                    let mut errors = said.iter().filter(is_its);
                    assert!(errors.any(|error| error.text().contains(words)), "{account}, {arguments:?}: {said:#?}");
                }
                assert_eq!(workspace.state().addresses(), kept.addresses(), "{account}, {arguments:?}");
            }
        }
        workspace.set_env("DAMODEL_API_TOKEN", site.token());
        workspace.settled();
        workspace.finish();
    });
}

#[test]
fn without_private_data_the_account_of_what_is_absent_is_not_known() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config(Instance::new("x")));
        workspace.lose_private_data();
        site.mutate(Mutation::RemoveInstance { uid: site.live()[0].clone() });
        for arguments in [&[][..], &["-destroy", "-refresh=false"]] {
            let (done, said) = workspace.try_apply(arguments);
            assert!(!done && says(&said, Severity::Error, "last seen is unknown"), "{said:?}");
            assert!(!said.iter().any(|said| said.text().contains("differs")), "{said:?}");
        }
    });
}

#[test]
fn a_refresh_that_fails_keeps_the_state() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&hasty());
        workspace.made_long_ago();
        for action in [
            FaultAction::Status { status: 500, processed: false },
            FaultAction::Html { status: 200, processed: false },
            FaultAction::Error { code_n: Code::InternalError, processed: false },
            FaultAction::Error { code_n: Code::InvalidToken, processed: false },
            FaultAction::Truncated,
            FaultAction::DropAfter,
        ] {
            site.arm("*", When::Always, action.clone());
            let (done, said) = workspace.try_apply(&["-refresh-only"]);
            assert!(!done && says(&said, Severity::Error, "The state is unchanged"), "{action:?}: {said:?}");
            site.sandbox().clear_faults();
            assert_eq!(workspace.state().addresses(), [X], "{action:?}");
        }
        workspace.settled();
        workspace.finish();
    });
}

#[test]
fn a_refresh_that_is_not_answered_in_time_keeps_the_state() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config(Instance::new("x").block("timeouts { read = \"1s\" }")));
        site.arm("*", When::Always, FaultAction::Hang { limit_ms: 60_000, processed: true });
        let said = workspace.try_plan(&[]);
        assert!(says(&said, Severity::Error, "The state is unchanged"), "{said:?}");
        let longer = "set timeouts { read = \"…\" } and run terraform apply -refresh=false";
        assert!(says(&said, Severity::Error, "The read has used up its 1s."), "{said:?}");
        assert!(says(&said, Severity::Error, longer), "{said:?}");
        workspace.write(&config(Instance::new("x").block("timeouts { read = \"20s\" }")));
        workspace.run_ok(&["apply", "-auto-approve", "-no-color", "-refresh=false"]);
        assert_eq!(workspace.state().resource(X).value("timeouts.read"), "20s");
        site.sandbox().clear_faults();
        workspace.settled();
        workspace.finish();
    });
}
