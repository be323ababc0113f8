//! The addresses of a server, and the name of its model.

use std::fs;

use damodel::sandbox::StateList;
use serde_json::{Value, json};

use super::{
    Server, X,
    chat::asks_through,
    each_served, home, pid,
    plain::{config as plain_config, each_host},
    site,
};
use crate::support::terraform::{Site, Workspace, each_cli};

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

fn public(server: Server) -> Server {
    server.on(|machine| machine.text("external_ip", "203.0.113.7"))
}

#[test]
fn an_application_finds_address_and_model_in_the_state() {
    each_served(|site, workspace| {
        let server = public(Server::new()).text("api_key", "planted-key-of-a-server");
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

        // A probe keeps both, a restart leaves both open.
        let server = server.set("probe", "{ max_tokens = 3 }");
        let plan = workspace.plan_and_apply_ok(&server.config());
        assert_eq!(plan.change(X).unknown(), ["tokens_per_second"]);
        let server = server.set("extra_args", "[\"--alias\", \"chat\"]");
        let plan = workspace.plan_and_apply_ok(&server.config());
        assert!(plan.change(X).is_unknown("base_url") && plan.change(X).is_unknown("model_name"));
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

#[test]
fn a_server_that_no_address_leads_to_has_none() {
    each_served(|site, workspace| {
        let local = public(Server::new()).text("host", "localhost");
        workspace.write(&local.config());
        let plan = workspace.plan(&[]);
        assert!(!plan.change(X).is_unknown("base_url") && plan.change(X).is_unknown("model_name"));
        workspace.apply_ok(&local.config());
        assert_eq!(addresses(workspace), (Value::Null, tiny(site)));
        workspace.finish();

        let without_ip = Server::new();
        workspace.apply_ok(&without_ip.config());
        assert_eq!(addresses(workspace), (Value::Null, tiny(site)));
        // A restart promises no address to an instance that has none.
        let plan = workspace.plan_and_apply_ok(&without_ip.set("context_size", 4096).config());
        assert!(!plan.change(X).is_unknown("base_url") && plan.change(X).is_unknown("model_name"));
        workspace.finish();
    });
}

/// A real sshd, without the service.
#[test]
fn a_server_over_plain_ssh_has_a_name_and_no_address() {
    each_host(|host, workspace| {
        let config = plain_config(&host.server().text("host", "0.0.0.0"));
        workspace.write(&config);
        let plan = workspace.plan(&[]);
        assert!(!plan.change(X).is_unknown("base_url") && plan.change(X).is_unknown("model_name"));
        workspace.apply_ok(&config);
        let (url, name) = addresses(workspace);
        assert!(url.is_null() && name.as_str().unwrap().ends_with("tiny.gguf"), "{url} {name}");
        workspace.destroy_ok();
    });
}

#[test]
fn a_tunnel_has_the_base_address_of_a_client() {
    each_cli(|cli| {
        if !cli.has(10, 11) {
            return;
        }
        let site = site();
        let workspace = Workspace::new(cli, &site);
        let tunnel = format!("  instance_id = {X}.instance_id\n  port = {X}.port\n  host_key = {X}.host_key");
        let asks = asks_through(&workspace, &tunnel).replace(
            "ephemeral.damodel_llama_tunnel.t.local_url",
            "trimsuffix(ephemeral.damodel_llama_tunnel.t.base_url, \"/v1\")",
        );
        assert!(asks.contains("base_url"), "{asks}");
        workspace.write(&format!("{}{asks}", Server::new().config()));
        let (done, said) = workspace.try_apply(&[]);
        assert!(done, "{said:#?}");
        let said = fs::read_to_string(workspace.beside("answer")).unwrap();
        assert!(said.contains("200") && said.contains("ok"), "{said}");
        workspace.finish();
    });
}
