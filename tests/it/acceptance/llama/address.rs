//! The addresses of a server, and the name of its model.

use damodel::sandbox::StateList;
use serde_json::{Value, json};

use super::{Server, X, each_served, home, pid};
use crate::support::terraform::{Site, Workspace};

/// `base_url` and `model_name` in the state.
fn addresses(workspace: &Workspace<'_>) -> (Value, Value) {
    let state = workspace.state();
    let x = state.resource(X);
    (x.value("base_url").clone(), x.value("model_name").clone())
}

/// The name that llama.cpp gives a model without an alias: its path.
fn tiny(site: &Site) -> Value {
    home(site).join("public-storage/model/tiny.gguf").display().to_string().into()
}

#[test]
fn an_application_finds_address_and_model_in_the_state() {
    each_served(|site, workspace| {
        let server = Server::new().on(|machine| machine.text("external_ip", "203.0.113.7"));
        let server = server.text("api_key", "planted-key-of-a-server");
        workspace.write(&server.clone().text("host", "localhost").config());
        assert!(!workspace.plan(&[]).change(X).is_unknown("base_url"));
        workspace.write(&server.config());
        let change = workspace.plan(&[]);
        assert!(change.change(X).is_unknown("base_url") && change.change(X).is_unknown("model_name"));
        workspace.apply_ok(&server.config());
        let url = json!("http://203.0.113.7:8000/v1");
        assert_eq!(addresses(workspace), (url.clone(), tiny(site)));

        // A refresh takes another address, and asks for no name.
        let uid = workspace.state().resource("damodel_instance.gpu").id();
        let first = pid(&workspace.state());
        let move_to = |address: &str| site.set(StateList::Instances, &uid, &json!({ "external_ip": address }));
        move_to("2001:db8::7");
        workspace.run_ok(&["apply", "-refresh-only", "-auto-approve", "-no-color", "-input=false"]);
        assert_eq!(addresses(workspace), (json!("http://[2001:db8::7]:8000/v1"), tiny(site)));
        move_to("203.0.113.7");
        workspace.run_ok(&["apply", "-refresh-only", "-auto-approve", "-no-color", "-input=false"]);
        assert_eq!((addresses(workspace).0, pid(&workspace.state())), (url.clone(), first));

        // A probe keeps both; a restart with other arguments leaves the name open.
        let server = server.set("probe", "{ max_tokens = 3 }");
        let plan = workspace.plan_and_apply_ok(&server.config());
        assert_eq!(plan.change(X).unknown(), ["process.tokens_per_second"]);
        let server = server.set("extra_args", "[\"--alias\", \"chat\"]");
        let plan = workspace.plan_and_apply_ok(&server.config());
        assert!(!plan.change(X).is_unknown("base_url") && plan.change(X).is_unknown("model_name"));
        assert_eq!(addresses(workspace), (url.clone(), json!("chat")));

        // A host that only the instance reaches has no address, and the plan shows it.
        let local = server.clone().text("host", "127.0.0.1");
        let plan = workspace.plan_and_apply_ok(&local.config());
        assert_eq!(plan.change(X).after("base_url"), &Value::Null);
        assert!(!plan.change(X).is_unknown("base_url"));
        assert_eq!(addresses(workspace).0, Value::Null);
        let plan = workspace.plan_and_apply_ok(&server.config());
        assert!(plan.change(X).is_unknown("base_url"));
        assert_eq!(addresses(workspace), (url, json!("chat")));
        workspace.finish();
    });
}
