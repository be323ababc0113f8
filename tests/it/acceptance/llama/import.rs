//! Imports of servers.

use super::{Server, X, home, make_machine, pid, site};
use crate::support::terraform::{Workspace, config, each_cli};

#[test]
fn an_import_finds_the_options_and_restarts_nothing() {
    each_cli(|cli| {
        let site = site();
        let workspace = Workspace::new(cli, &site);
        let server = Server::new()
            .set("context_size", 2048)
            .text("cache_type_k", "f16")
            .set("metrics", false)
            .set("extra_args", "[\"--threads\", \"2\"]")
            .without("ready_timeout");
        workspace.apply_ok(&server.config());
        let first = pid(&workspace.state());
        let uid = workspace.state().resource("damodel_instance.gpu").id();
        for id in [uid.clone(), format!("{uid}:8000")] {
            let alone = config(server.clone().text("instance_id", &uid).alone());
            let fresh = Workspace::new(cli, &site);
            fresh.write(&alone);
            let imported = fresh.run_ok(&["import", "-no-color", "-input=false", X, &id]);
            assert!(format!("{imported:?}").contains("host key of the instance is not pinned"), "{imported:?}");
            let (state, known) = (fresh.state(), workspace.state());
            let mut known = known.resource(X).flat();
            // The answers of the last apply are not recorded.
            known.remove("process.tokens_per_second");
            known.remove("model_name");
            assert_eq!(state.resource(X).flat(), known, "{id}");
            fresh.settled();
        }
        workspace.settled();
        assert_eq!(pid(&workspace.state()), first);
        workspace.finish();
    });
}

#[test]
fn what_an_import_cannot_know_restarts_nothing_either() {
    each_cli(|cli| {
        let site = site();
        let workspace = Workspace::new(cli, &site);
        let server = Server::new()
            .text("api_key", "planted-key-of-a-server")
            .set("triggers", "{ a = \"b\" }")
            .set("environment", "{ SOMETHING = \"of value\" }")
            .set("probe", "{ max_tokens = 3 }");
        workspace.apply_ok(&server.config());
        let first = pid(&workspace.state());
        let uid = workspace.state().resource("damodel_instance.gpu").id();
        let fresh = Workspace::new(cli, &site);
        fresh.write(&config(server.text("instance_id", &uid).alone()));
        fresh.run_ok(&["import", "-no-color", "-input=false", X, &uid]);
        assert_eq!(fresh.state().resource(X).value("status"), "ready");
        let plan = fresh.plan(&[]);
        assert_eq!(plan.change(X).actions(), "update");
        fresh.apply_plan();
        fresh.settled();
        assert_eq!(pid(&fresh.state()), first, "the same server runs");
        workspace.finish();
    });
}

/// `~/…` and the path of the home are one path: in an import, in a plan, and for the server.
#[test]
fn two_spellings_of_a_path_are_one() {
    each_cli(|cli| {
        let site = site();
        let workspace = Workspace::new(cli, &site);
        make_machine(&workspace);
        let uid = workspace.state().resource("damodel_instance.gpu").id();
        let root = home(&site).display().to_string();
        let paths = |home: &str| {
            Server::new()
                .text("model", &format!("{home}/public-storage/model/tiny.gguf"))
                .text("package", &format!("{home}/public-storage/package/llama.cpp/bin/llama-server"))
                .text("workspace", &format!("{home}/workspace"))
        };
        let with_source = |home: &str| paths(home).set("source", format_args!("{{ path = \"{home}/source\" }}"));
        workspace.apply_ok(&with_source(&root).config());
        for spelled in [with_source("~"), with_source(&format!("{root}/./")).text("workspace", "~/workspace/")] {
            workspace.write(&spelled.config());
            workspace.settled();
        }
        // Nothing that an empty list or map changes: no value of the server is open.
        workspace.write(&with_source("~").set("extra_args", "[]").set("environment", "{}").config());
        assert_eq!(workspace.plan(&[]).change(X).unknown(), Vec::<String>::new());
        workspace.apply_ok(&paths(&root).config());
        let first = pid(&workspace.state());
        let fresh = Workspace::new(cli, &site);
        let alone = |server: Server| config(server.without("ready_timeout").text("instance_id", &uid).alone());
        fresh.write(&alone(paths(&root)));
        fresh.run_ok(&["import", "-no-color", "-input=false", X, &uid]);
        fresh.settled();
        // What asks the server without a restart restarts none that was begun with the other spelling.
        fresh.apply_ok(&alone(paths("~").text("restart_policy", "never")));
        assert_eq!(pid(&fresh.state()), first, "the same server runs");
        workspace.finish();
    });
}

#[test]
fn what_is_not_there_cannot_be_imported() {
    each_cli(|cli| {
        let site = site();
        let workspace = Workspace::new(cli, &site);
        workspace.apply_ok(&Server::new().config());
        let uid = workspace.state().resource("damodel_instance.gpu").id();
        let fresh = Workspace::new(cli, &site);
        fresh.write(&config(Server::new().text("instance_id", &uid).alone()));
        for (id, words) in [
            (format!("{uid}:8001"), ":8001: it does not exist"),
            ("ins-nowhere".to_owned(), "the service does not have instance ins-nowhere"),
            ("5001:8000".to_owned(), "5001 looks like the database_id of an instance: use its id"),
            ("10.0.0.1:8000".to_owned(), "The import id is the instance's UID"),
            (format!("{uid}:99999"), "The import id is the instance's UID"),
        ] {
            let run = fresh.run(&["import", "-no-color", "-input=false", X, &id]);
            let said = run.stderr.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
            assert!(run.code == Some(1) && said.contains(words), "{id}: {said}");
        }
        workspace.finish();
    });
}
