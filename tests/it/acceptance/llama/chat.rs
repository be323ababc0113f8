//! Chats with a server, and tunnels to it.

use std::fs;

use super::{Server, X, each_served, pid, site, slay};
use crate::support::terraform::{Severity, Workspace, config, each_cli, refusal, says};

/// The data source with further arguments.
fn chat(arguments: &str) -> String {
    format!(
        "data \"damodel_chat_completion\" \"c\" {{\n  target = \"llama_server\"\n  model = \"any\"\n  max_tokens = \
         40\n  messages = [{{ role = \"user\", content = \"the word pong\" }}]\n{arguments}\n}}\noutput \"said\" {{\n \
          value = data.damodel_chat_completion.c.content\n}}\n"
    )
}

const PINNED: &str = "  llama_server_id = damodel_llama_server.x.id\n  host_key = damodel_llama_server.x.host_key";

#[test]
fn a_chat_goes_through_ssh() {
    each_served(|_, workspace| {
        let server = Server::new().text("api_key", "planted-key-1\n").text("restart_policy", "never");
        let with_key = format!("{PINNED}\n  api_key = \" planted-key-1\\r\\n\"");
        let both = |arguments: &str| format!("{}{}", server.config(), chat(arguments));
        workspace.apply_ok(&both(&with_key));
        assert_eq!(workspace.state().output("said"), "You said: the word pong");
        let state = workspace.state();
        let usage = state.resource("data.damodel_chat_completion.c").value("usage").clone();
        assert!(usage["total_tokens"].as_i64().unwrap() > 0, "{usage}");

        // Without a pin it answers too, and explains how to pin.
        workspace.write(&both(&with_key.replace("  host_key", "  # host_key")));
        let said = workspace.try_plan(&[]);
        assert!(says(&said, Severity::Warning, "is not pinned"), "{said:#?}");
        assert!(says(&said, Severity::Warning, "host_key = damodel_llama_server.<name>.host_key"), "{said:#?}");

        workspace.write(&both(PINNED));
        let said = workspace.try_plan(&[]);
        assert_eq!(refusal(&said, &["the server requires an API key"]).attribute, None, "{said:#?}");

        slay(pid(&workspace.state()));
        workspace.write(&format!("{}{}", server.config(), chat(&with_key)));
        let said = workspace.try_plan(&["-refresh=false"]);
        refusal(&said, &["the server is not running"]);
        workspace.finish();
    });
}

#[test]
fn a_chat_logs_in_where_the_server_does_and_with_the_same_password() {
    each_served(|_, workspace| {
        let ssh = "{ host = damodel_instance.gpu.ssh_host, port = damodel_instance.gpu.ssh_port }";
        let server = Server::new().set("ssh", ssh);
        workspace.apply_ok(&format!("{}{}", server.config(), chat(&format!("{PINNED}\n  ssh = {ssh}"))));
        assert_eq!(workspace.state().output("said"), "You said: the word pong");
        workspace.finish();
    });
}

#[test]
fn the_arguments_of_a_target_belong_to_it() {
    each_served(|_, workspace| {
        workspace.write(&config(chat("")));
        refusal(&workspace.try_plan(&[]), &["Missing required argument"]);
        let hosted = chat("  api_key = \"k\"").replace("target = \"llama_server\"", "target = \"hosted\"");
        workspace.write(&config(hosted));
        refusal(&workspace.try_plan(&[]), &["needs target = \"llama_server\"", "the provider's chat_api_key"]);
        workspace.write(&config(chat("  llama_server_id = \"ins-1:8000\"\n  api_key = \"planted\\nline\"")));
        assert_eq!(refusal(&workspace.try_plan(&[]), &["printable"]).attribute.as_deref(), Some("api_key"));
        workspace.write(&config(chat("  llama_server_id = \"ins-1\"")));
        refusal(&workspace.try_plan(&[]), &["the id of a damodel_llama_server"]);
        workspace.write(&config(chat("  llama_server_id = \"ins-nowhere:8000\"")));
        refusal(&workspace.try_plan(&[]), &["the instance does not exist in this account"]);
    });
}

/// A tunnel with these arguments, and a provisioner that sends a request through it, with a tool that every shell has.
/// The answer is beside the workspace.
pub(super) fn asks_through(workspace: &Workspace<'_>, tunnel: &str) -> String {
    let answer = workspace.beside("answer").display().to_string();
    format!(
        "ephemeral \"damodel_llama_tunnel\" \"t\" {{\n{tunnel}\n}}\nresource \"terraform_data\" \"asks\" {{\n  \
         provisioner \"local-exec\" {{\n    interpreter = [\"/bin/bash\", \"-c\"]\n    environment = {{ URL = \
         trimsuffix(ephemeral.damodel_llama_tunnel.t.base_url, \"/v1\") }}\n    command = \"exec \
         3<>/dev/tcp/127.0.0.1/$${{URL##*:}}; printf 'GET /health HTTP/1.0\\\\r\\\\n\\\\r\\\\n' >&3; \
         cat <&3 > {answer}\"\n  }}\n}}\n"
    )
}

#[test]
fn a_tunnel_leads_to_the_server_while_the_run_lasts() {
    each_cli(|cli| {
        if !cli.has(10, 11) {
            return;
        }
        let site = site();
        let workspace = Workspace::new(cli, &site);
        let tunnel = format!("  instance_id = {X}.instance_id\n  port = {X}.port\n  host_key = {X}.host_key");
        workspace.write(&format!("{}{}", Server::new().config(), asks_through(&workspace, &tunnel)));
        let (done, said) = workspace.try_apply(&[]);
        assert!(done, "{said:#?}");
        let said = fs::read_to_string(workspace.beside("answer")).unwrap();
        assert!(said.contains("200") && said.contains("ok"), "{said}");
        assert_eq!(workspace.state().resource(X).value("status"), "ready");
        workspace.finish();
    });
}
