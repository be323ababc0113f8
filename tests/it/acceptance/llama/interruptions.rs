//! Runs that end early: the work in the instance continues, and the next run resumes it.

use std::fs::File;

use damodel::sandbox::Mutation;
use nix::unistd::Pid;

use super::{
    Held, Server, X, builds, each_served, make_machine, pid, processes, records_lock, runs, servers, slay, until,
    until_phase,
};
use crate::support::terraform::{Severity, Site, Started, Workspace, says};

/// A compile that is held, in an existing instance.
fn held_compile(workspace: &Workspace<'_>, site: &Site) -> (Server, Held) {
    make_machine(workspace);
    (Server::new().text("build", "source"), Held::compile(site))
}

#[test]
fn a_killed_apply_is_resumed() {
    each_served(|site, workspace| {
        let (server, held) = held_compile(workspace, site);
        workspace.write(&server.config());
        let started = Started::apply(workspace);
        until_phase(site, "compile");
        started.kill();
        started.ended(true);
        assert_eq!(workspace.state().addresses(), ["damodel_instance.gpu"]);
        assert!(!processes(site, "bootstrap.sh\0work").is_empty(), "the work goes on by itself");
        held.release();
        let (done, said) = workspace.try_apply(&[]);
        assert!(done, "{said:#?}");
        workspace.settled();
        assert_eq!((builds(site).len(), servers(site).len()), (1, 1));
        workspace.finish();
    });
}

#[test]
fn ctrl_c_leaves_the_work_alone_and_nothing_in_the_state() {
    each_served(|site, workspace| {
        let (server, held) = held_compile(workspace, site);
        workspace.write(&server.config());
        let mut started = Started::apply(workspace);
        until_phase(site, "compile");
        started.interrupt();
        let said = started.ended(true);
        assert!(said.contains("the next apply resumes it"), "{said}");
        assert_eq!(workspace.state().addresses(), ["damodel_instance.gpu"]);
        held.release();
        workspace.apply_ok(&server.config());
        assert_eq!((builds(site).len(), servers(site).len()), (1, 1));
        workspace.finish();
    });
}

#[test]
fn a_create_that_runs_out_of_time_is_resumed() {
    each_served(|site, workspace| {
        make_machine(workspace);
        let held = Held::load(site, "tiny");
        let server = Server::new();
        workspace.write(&server.clone().block("  timeouts {\n    create = \"8s\"\n  }").config());
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done && says(&said, Severity::Error, "timed out"), "{said:#?}");
        assert!(says(&said, Severity::Error, "timeouts"), "{said:#?}");
        assert_eq!(workspace.state().addresses(), ["damodel_instance.gpu"]);
        until("the server is started", || servers(site).len() == 1);
        let running = servers(site);
        held.release();
        workspace.apply_ok(&server.config());
        assert_eq!(servers(site), running, "the same process");
        workspace.finish();
    });
}

#[test]
fn an_update_that_runs_out_of_time_says_so_in_the_state() {
    each_served(|site, workspace| {
        workspace.apply_ok(&Server::new().config());
        let server = Server::new().model("no-template");
        let held = Held::load(site, "no-template");
        workspace.write(&server.clone().block("  timeouts {\n    update = \"8s\"\n  }").config());
        assert!(!workspace.try_apply(&[]).0);
        let state = workspace.state();
        assert_eq!((state.resource(X).value("status"), state.resource(X).is_tainted()), (&"starting".into(), false));
        until("the server is started", || servers(site).len() == 1);
        let running = servers(site);
        held.release();
        workspace.apply_ok(&server.config());
        assert_eq!(servers(site), running, "the same process");
        workspace.finish();
    });
}

/// The lock of the server's records delays the apply's request, like a connection that is lost for a long time.
#[test]
fn an_update_that_nobody_heard_is_still_to_be_made() {
    each_served(|site, workspace| {
        let limited = Server::new().block("  timeouts {\n    update = \"5s\"\n  }");
        workspace.apply_ok(&limited.config());
        let first = pid(&workspace.state());
        let held = File::open(records_lock(site)).unwrap();
        held.lock().unwrap();
        workspace.write(&limited.set("triggers", "{ day = \"one\" }").config());
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done && says(&said, Severity::Error, "timed out"), "{said:#?}");
        // The delayed request could still be processed: this one is ended.
        for waiting in processes(site, "sh\0-s") {
            slay(Pid::from_raw(i32::try_from(waiting).unwrap()));
        }
        drop(held);
        assert!(runs(first));
        let plan = workspace.plan_and_apply_ok(&Server::new().set("triggers", "{ day = \"one\" }").config());
        let change = plan.change(X);
        assert_eq!((change.actions(), change.before("status")), ("update".to_owned(), &"ready".into()));
        assert!(change.before("triggers").is_null() && !runs(first), "{:?}", change.before("triggers"));
        workspace.finish();
    });
}

/// The apply does not wait until the end of the operation.
#[test]
fn an_apply_ends_soon_after_its_instance_was_released() {
    each_served(|site, workspace| {
        make_machine(workspace);
        let _held = Held::load(site, "tiny");
        let uid = workspace.state().resource("damodel_instance.gpu").id();
        let server = Server::new().text("ready_timeout", "30m").set("ssh", "{ timeout = \"5s\" }");
        workspace.write(&server.config());
        let started = Started::apply(workspace);
        until_phase(site, "'load'");
        site.mutate(Mutation::ReleaseInstance { uid });
        // Which waits a minute at most.
        let said = started.ended(true);
        assert!(said.contains("Error:") && said.contains("The server is not in the state"), "{said}");
        workspace.run_ok(&["destroy", "-auto-approve", "-no-color", "-input=false"]);
    });
}
