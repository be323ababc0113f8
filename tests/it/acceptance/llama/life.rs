//! From create to destroy, with the prebuilt server.

use serde_json::json;

use super::{Server, X, builds, each_served, home, pid, records, runs, servers, state_folder};
use crate::support::terraform::{Severity, refusal, says};

#[test]
fn a_server_lives_its_life() {
    each_served(|site, workspace| {
        workspace.run_program();
        let probe = "{ prompt = \"ping the pong\", max_tokens = 20, expect = \"pong\" }";
        let server = Server::new().set("probe", probe);
        workspace.apply_ok(&server.config());
        let state = workspace.state();
        let (x, uid) = (state.resource(X), state.resource("damodel_instance.gpu").id());
        assert_eq!(x.id(), format!("{uid}:8000"));
        for (attribute, value) in
            [("status", "ready"), ("build_used", "prebuilt"), ("endpoint", "http://127.0.0.1:8000/v1")]
        {
            assert_eq!(x.value(attribute), value, "{attribute}");
        }
        assert_eq!(x.value("host_key"), &json!(site.sandbox().machines()[0].host_key));
        assert!(
            x.value("process.command_line")
                .as_str()
                .unwrap()
                .contains("-c 32768 -np 1 -ngl 999 -fa on -ctk q8_0 -ctv q8_0")
        );
        assert!(x.value("process.tokens_per_second").as_f64().unwrap() > 0.0);
        let first = pid(&state);
        assert!(runs(first));

        // Options restart it, in place.
        workspace.write(&server.clone().set("context_size", 4096).config());
        assert_eq!(workspace.plan(&[]).change(X).unknown(), ["build_used", "package", "process"]);
        let server = server.set("context_size", 4096).set("extra_args", "[\"--threads\", \"2\"]");
        let plan = workspace.plan_and_apply_ok(&server.config());
        let change = plan.change(X);
        assert_eq!((change.actions(), change.after("status")), ("update".to_owned(), &json!("ready")));
        assert!(change.is_unknown("process") && !change.is_unknown("host_key") && !change.is_unknown("id"));
        let second = pid(&workspace.state());
        assert!(!runs(first) && runs(second));
        assert_eq!(servers(site).len(), 1);

        // Changes of login, timeouts and failure handling restart nothing.
        let server = server.text("on_failure", "stop").text("ready_timeout", "25s").set("ssh", "{ timeout = \"1m\" }");
        let plan = workspace.plan_and_apply_ok(&server.config());
        assert_eq!(plan.change(X).unknown(), Vec::<String>::new());
        workspace.apply_ok(&server.clone().block("  timeouts {\n    create = \"20m\"\n  }").config());
        // A probe sends a request, and restarts nothing either.
        let server = server.set("probe", "{ prompt = \"another pong\", max_tokens = 30 }");
        let plan = workspace.plan_and_apply_ok(&server.config());
        assert_eq!(plan.change(X).unknown(), ["process.tokens_per_second"]);
        assert_eq!(pid(&workspace.state()), second);

        // A trigger restarts it, and so does a new workspace, whose old records are removed.
        workspace.apply_ok(&server.clone().set("triggers", "{ day = \"one\" }").config());
        let third = pid(&workspace.state());
        assert!(third != second && !runs(second));
        let old = records(site);
        workspace.apply_ok(&server.text("workspace", "~/elsewhere").config());
        assert!(!runs(third) && !old.exists() && state_folder(&home(site).join("elsewhere"), 8000).exists());

        let last = pid(&workspace.state());
        let home = home(site);
        assert_eq!(builds(site), Vec::<String>::new());
        workspace.run_ok(&["destroy", "-auto-approve", "-no-color", "-input=false", &format!("-target={X}")]);
        assert!(!runs(last) && !state_folder(&home.join("elsewhere"), 8000).exists());
        workspace.finish();
    });
}

#[test]
fn two_servers_share_a_machine() {
    each_served(|site, workspace| {
        // The plans ask for no token: a second chat would end these.
        let server = || Server::new().model("crash-on-second-chat");
        let other = server().set("port", 8001).alone().replace("\"x\"", "\"y\"");
        workspace.apply_ok(&format!("{}{other}", server().config()));
        assert_eq!(servers(site).len(), 2);
        // Another port is another server.
        let moved = server().set("port", 8002).alone().replace("\"x\"", "\"y\"");
        let plan = workspace.plan_and_apply_ok(&format!("{}{moved}", server().config()));
        assert_eq!(plan.change("damodel_llama_server.y").replace_paths(), ["port"]);
        assert_eq!(plan.change(X).actions(), "no-op");
        workspace.finish();
    });
}

/// The second is refused before it ends the first, and neither a replacement nor another port is a second one.
#[test]
fn two_servers_of_a_configuration_share_no_port() {
    each_served(|site, workspace| {
        let y = |port: u16| {
            let server = Server::new().set("context_size", 1024).set("port", port);
            // The two plans of a replacement have different configurations then.
            server.block("lifecycle { ignore_changes = [context_size] }").alone().replace("\"x\"", "\"y\"")
        };
        let both = |port: u16| format!("{}{}", Server::new().set("port", 8000).config(), y(port));
        workspace.write(&both(8000));
        let words = ["Another damodel_llama_server of this configuration", "Set another port"];
        // The instance is known during the apply only.
        let (done, said) = workspace.try_apply(&[]);
        let error = refusal(&said, &words);
        assert_eq!((done, error.attribute.as_deref(), servers(site).len()), (false, Some("port"), 1), "{said:#?}");
        let (first, addresses) = (servers(site), workspace.state().addresses().len());
        let said = workspace.try_plan(&[]);
        assert_eq!(refusal(&said, &words).attribute.as_deref(), Some("port"));
        assert!(!workspace.try_apply(&[]).0);
        assert_eq!((servers(site), workspace.state().addresses().len()), (first, addresses));

        // Nor do two of one block.
        let count = |count| Server::new().set("port", 8000).set("count", count).config();
        workspace.write(&count(2));
        refusal(&workspace.try_plan(&[]), &words);

        workspace.apply_ok(&both(8001));
        assert_eq!(servers(site).len(), 2);
        workspace.write(&both(8001).replace("1024", "512"));
        for address in [X, "damodel_llama_server.y"] {
            let replaces = format!("-replace={address}");
            workspace.run_ok(&["apply", "-auto-approve", "-no-color", "-input=false", &replaces]);
            workspace.settled();
        }
        assert_eq!(servers(site).len(), 2);

        // A server of another state is not seen by a plan.
        workspace.run_ok(&["state", "rm", "damodel_llama_server.y"]);
        workspace.write(&both(8001).replace("1024", "2048"));
        let (done, said) = workspace.try_apply(&[]);
        assert!(done && says(&said, Severity::Warning, "replaced a running server"), "{said:#?}");
        workspace.finish();
    });
}

#[test]
fn a_server_goes_with_its_instance() {
    each_served(|site, workspace| {
        workspace.apply_ok(&Server::new().config());
        let uid = workspace.state().resource("damodel_instance.gpu").id();
        // In a Stopped instance nothing runs, and a destroy has nothing to do.
        site.mutate(damodel::sandbox::Mutation::SetInstanceStatus { uid: uid.clone(), status: "Stopped".to_owned() });
        let said = workspace.try_plan(&[]);
        let warning = said.iter().find(|said| said.summary == format!("Instance {uid} is Stopped")).unwrap();
        assert!(!warning.is_error() && warning.detail.contains("An apply starts it"), "{said:#?}");
        let (done, said) = workspace.try_apply(&[]);
        refusal(&said, &["is Stopped", "This resource was not changed. The apply did not stop the server."]);
        assert!(!done);
        assert_eq!(workspace.state().resource(X).value("status"), "stopped");
        workspace.run_ok(&["destroy", "-auto-approve", "-no-color", "-input=false", &format!("-target={X}")]);
        site.mutate(damodel::sandbox::Mutation::SetInstanceStatus { uid: uid.clone(), status: "Running".to_owned() });

        // If the instance was released outside Terraform, the server is removed from the state with it.
        workspace.apply_ok(&Server::new().config());
        site.mutate(damodel::sandbox::Mutation::ReleaseInstance { uid });
        let plan = workspace.plan(&[]);
        let actions: Vec<_> = plan.actions().into_iter().map(|(_, action)| action).collect();
        assert_eq!(actions, ["create", "create"]);
        let run = workspace.run_ok(&["destroy", "-auto-approve", "-no-color", "-input=false", "-refresh=false"]);
        assert!(run.stdout.contains("Destroy complete"), "{}", run.stdout);
    });
}
