//! Instances that a refresh does not find, and refreshes that fail.

use damodel::sandbox::{Code, FaultAction, Mutation, When};
use rstest::rstest;

use crate::support::terraform::{Instance, Severity, Site, Workspace, config, each_cli, each_workspace, says};

const X: &str = "damodel_instance.x";
const Y: &str = "damodel_instance.y";

/// The configuration of one instance, without retries.
fn hasty() -> String {
    crate::support::terraform::config_with("region = \"cn-east-1\"\nmax_retries = 0", Instance::new("x"))
}

#[rstest]
#[case("")]
#[case("released=without_detail")]
#[case("released=forgotten")]
fn a_machine_that_was_released_by_hand_leaves_the_state(#[case] form: &str) {
    each_cli(|cli| {
        let form = if form.is_empty() { damodel::sandbox::Form::default() } else { form.parse().unwrap() };
        let site = Site::with(damodel::sandbox::Options { form, ..Site::options() });
        let workspace = Workspace::new(cli, &site);
        workspace.apply_ok(&config(Instance::new("x")));
        let uid = workspace.state().resource(X).id();
        workspace.made_long_ago();
        site.mutate(Mutation::ReleaseInstance { uid: uid.clone() });
        let said = workspace.try_plan(&[]);
        assert!(
            says(&said, Severity::Warning, "removed from the state") && says(&said, Severity::Warning, "Running"),
            "{said:?}"
        );
        let plan = workspace.plan_and_apply_ok(&config(Instance::new("x")));
        assert_eq!(plan.change(X).actions(), "create");
        assert_ne!(workspace.state().resource(X).id(), uid);
        workspace.finish();
    });
}

#[test]
fn a_machine_without_a_trace_is_missed_only_after_a_while() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config(Instance::new("x")));
        site.mutate(Mutation::RemoveInstance { uid: site.live()[0].clone() });
        let said = workspace.try_plan(&[]);
        assert!(says(&said, Severity::Warning, "not visible yet"), "{said:?}");
        assert_eq!(workspace.plan(&[]).actions(), []);

        workspace.made_long_ago();
        let said = workspace.try_plan(&[]);
        assert!(says(&said, Severity::Warning, "removed from the state"), "{said:?}");
        let plan = workspace.plan_and_apply_ok(&config(Instance::new("x")));
        assert_eq!(plan.change(X).actions(), "create");
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
        let two = config(format!("{}{}", Instance::new("x"), Instance::new("y")));
        workspace.apply_ok(&two);
        workspace.made_long_ago();
        workspace.set_env("DAMODEL_API_TOKEN", &site.token_of("other"));
        let said = workspace.try_plan(&[]);
        assert!(says(&said, Severity::Error, "another account"), "{said:?}");
        for arguments in [
            &["refresh", "-no-color"][..],
            &["apply", "-auto-approve", "-no-color"],
            &["destroy", "-auto-approve", "-no-color"],
        ] {
            assert_eq!(workspace.run(arguments).code, Some(1), "{arguments:?}");
        }
        let (done, _) = workspace.try_apply(&["-destroy", "-refresh=false"]);
        assert!(!done);
        assert_eq!(workspace.state().addresses(), [X, Y]);
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

#[rstest]
#[case(FaultAction::Status { status: 500, processed: false })]
#[case(FaultAction::Html { status: 200, processed: false })]
#[case(FaultAction::Error { code_n: Code::InternalError, processed: false })]
#[case(FaultAction::Error { code_n: Code::InvalidToken, processed: false })]
#[case(FaultAction::Truncated)]
#[case(FaultAction::DropAfter)]
fn a_refresh_that_fails_keeps_the_state(#[case] action: FaultAction) {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&hasty());
        workspace.made_long_ago();
        site.arm("*", When::Always, action.clone());
        let said = workspace.try_plan(&[]);
        assert!(says(&said, Severity::Error, "The state is unchanged"), "{said:?}");
        assert_eq!(workspace.run(&["refresh", "-no-color"]).code, Some(1));
        site.sandbox().clear_faults();
        assert_eq!(workspace.state().addresses(), [X]);
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
        assert!(
            says(&said, Severity::Error, "The read has used up its 1s. To wait longer set timeouts { read"),
            "{said:?}"
        );
        site.sandbox().clear_faults();
        workspace.settled();
        workspace.finish();
    });
}
