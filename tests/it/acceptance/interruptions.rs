//! Applies that are stopped or killed while instances are created.

use std::time::{Duration, Instant};

use damodel::sandbox::{FaultAction, Mutation, When};

use crate::support::terraform::{Instance, Site, Started, config, each_workspace};

const X: &str = "damodel_instance.x";

/// Lets all stuck instances run.
fn unstick(site: &Site) {
    for uid in site.live() {
        site.mutate(Mutation::SetInstanceStatus { uid, status: "Running".to_owned() });
    }
}

#[test]
fn a_cancel_ends_the_wait_at_once_and_taints_nothing() {
    each_workspace(|site, workspace| {
        workspace.write(&config(Instance::new("x")));
        site.arm("instance_create", When::Next(1), FaultAction::StickCreation);
        let mut started = Started::apply(workspace);
        site.await_ledger("a look at the new machine", |ledger| {
            ledger.requests.iter().skip_while(|request| request.created.is_empty()).count() > 1
        });
        let begun = Instant::now();
        started.interrupt();
        let said = started.ended(true);
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
        assert!(said.contains("Stopped waiting"), "{said}");
        let state = workspace.state();
        assert!(!state.resource(X).is_tainted());
        assert_eq!(vec![state.resource(X).id()], site.live());

        unstick(site);
        assert_eq!(workspace.applied(&config(Instance::new("x"))), [], "the name was put right");
        assert_eq!(site.balance().created, 1);
        workspace.finish();
    });
}

#[test]
fn a_machine_that_a_terminated_apply_stored_is_no_other_ones() {
    each_workspace(|site, workspace| {
        let machines = |count: u32| config(Instance::new("x").set("count", count).text("name", "same"));
        workspace.write(&machines(1));
        site.arm("instance_create", When::Next(1), FaultAction::StickCreation);
        let started = Started::apply(workspace);
        site.await_ledger("a look at the new machine", |ledger| {
            ledger.requests.iter().skip_while(|request| request.created.is_empty()).count() > 1
        });
        started.terminate();
        let said = started.ended(true);
        let state = workspace.state();
        assert_eq!(state.addresses(), ["damodel_instance.x[0]"], "the core went on and stored the answer: {said}");
        unstick(site);
        // The same configuration for another address, which must not adopt the first one's instance.
        workspace.apply_ok(&machines(2));
        let state = workspace.state();
        assert_ne!(state.resource("damodel_instance.x[0]").id(), state.resource("damodel_instance.x[1]").id());
        assert_eq!(site.balance().created, 2);
        workspace.finish();
    });
}

#[test]
fn five_machines_of_a_killed_provider_are_taken_up() {
    each_workspace(|site, workspace| {
        let machines = Instance::new("x").set("count", 5).set("name", "\"x-${count.index}\"");
        workspace.write(&config(machines));
        site.arm("instance_create", When::Nth(2), FaultAction::Hang { limit_ms: 120_000, processed: true });
        site.arm("instance_create", When::Always, FaultAction::StickCreation);
        let started = Started::apply(workspace);
        site.await_ledger("five creates, and a look at what they made", |ledger| {
            let mut after = ledger.requests.iter().skip_while(|request| request.created.is_empty());
            ledger.requests_to("instance_create").count() == 5 && after.any(|request| request.method == "GET")
        });
        started.kill_provider();
        started.ended(true);
        site.sandbox().clear_faults();
        unstick(site);
        let (done, said) = workspace.try_apply(&[]);
        assert!(done, "{said:?}");
        workspace.settled();
        assert_eq!((site.balance().created, site.requests("instance_create")), (5, 5), "{said:?}");
        let taken_up = said.iter().filter(|said| !said.is_error() && said.text().contains("Adopted")).count();
        assert!(taken_up >= 1, "what was answered is taken up by its note: {said:?}");
        // The plan says it, and the apply that resumes them does not.
        let told = said.iter().filter(|said| said.text().contains("did not finish creating")).count();
        assert_eq!(told, if workspace.cli.has(9, u64::MAX) { 1 } else { 2 }, "{said:?}");
        workspace.finish();
    });
}
