//! The action that restarts a server: through the protocol over a real sshd, and in a Terraform that supports actions.

use std::fs;

use damodel::{
    framework::{Type, Value},
    protocol::tfplugin6::{Diagnostic, invoke_action, invoke_action::event::Type as Event},
    provider::{Damodel, Environment},
    sandbox::stand_in,
};
use terraform_plugin::testing::{Core, object};
use tokio_stream::StreamExt as _;

use super::{
    Server, X, pid,
    plain::{Host, config, each_host},
    runs, slay,
};
use crate::support::{
    program,
    terraform::{Workspace, each_cli},
};

const ACTION: &str = "damodel_llama_server_restart";

fn attribute(ty: &Type, name: &str) -> Type {
    let Type::Object(attributes) = ty else { panic!("no object: {ty:?}") };
    attributes[name].clone()
}

/// The progress and the diagnostics of the action.
async fn invoke(host: &Host, more: impl IntoIterator<Item = (&'static str, Value)>) -> (Vec<String>, Vec<Diagnostic>) {
    // Progress is written below the working directory.
    let folder = tempfile::tempdir().unwrap();
    let none: [(&str, &str); 0] = [];
    let mut core = Core::new(Damodel::new(Environment::made_of(none, folder.path().to_owned())), ACTION);
    assert!(core.configure(&object(&core.provider_ty, [])).await.is_empty());
    let target = host.sshd.target();
    let key = target.credentials.private_key_file.unwrap().display().to_string();
    let ssh = object(
        &attribute(&core.ty, "ssh"),
        [
            ("host", "127.0.0.1".into()),
            ("port", i64::from(host.sshd.port()).into()),
            ("user", target.user.as_str().into()),
            ("private_key_file", key.as_str().into()),
        ],
    );
    let pin = host.sshd.host_key("ed25519");
    let said = [("ssh", ssh), ("host_key", pin.trim().into()), ("port", i64::from(host.port).into())];
    let config = object(&core.ty, said.into_iter().chain(more));
    let request = invoke_action::Request {
        action_type: ACTION.to_owned(),
        config: Some(core.dynamic(&config)),
        ..invoke_action::Request::default()
    };
    let stream = core.client.invoke_action(request).await.unwrap().into_inner();
    let mut events: Vec<_> = stream.map(|event| event.unwrap().r#type.unwrap()).collect().await;
    let Some(Event::Completed(completed)) = events.pop() else { panic!("not completed") };
    let lines = events.into_iter().map(|event| match event {
        Event::Progress(progress) => progress.message,
        Event::Completed(_) => panic!("completed twice"),
    });
    (lines.collect(), completed.diagnostics)
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap().block_on(future)
}

#[test]
fn a_server_is_restarted_as_it_is() {
    each_host(|host, workspace| {
        let server = host.server().model("slow-1s").text("api_key", "planted-key-1").text("restart_policy", "never");
        workspace.apply_ok(&config(&server));
        let first = pid(&workspace.state());
        let (told, said) = block_on(invoke(host, [("api_key", "planted-key-1\n".into())]));
        assert_eq!(said, [], "{told:?}");
        let second = host.servers()[0];
        for line in [format!("ending process {first}"), "loading the model".to_owned()] {
            assert!(told.contains(&line), "{line}: {told:?}");
        }
        assert!(told.last().unwrap().starts_with(&format!("ready: process {second}")), "{told:?}");
        assert!(!runs(first) && !told.concat().contains("planted"));
        // The plan after it changes nothing.
        workspace.settled();

        // Without the key the refusal of a chat is enough.
        let (told, said) = block_on(invoke(host, []));
        assert_eq!(said, [], "{told:?}");
        assert!(told.concat().contains("this action has none: the only check"), "{told:?}");

        let wrong = "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        let running = host.servers();
        let (_, said) = block_on(invoke(host, [("host_key", wrong.into())]));
        assert!(said[0].summary.contains("the host key has changed"), "{said:?}");
        assert!(said[0].detail.contains("Nothing was restarted") && host.servers() == running, "{said:?}");

        // As with a full /dev/shm and /tmp.
        let head = stand_in::bin(&host.sshd.home()).join("head");
        program::put(&head, "#!/bin/sh\ncase $* in *262144*) exit 1 ;; esac\nexec /usr/bin/head \"$@\"\n");
        let (told, said) = block_on(invoke(host, []));
        assert!(said[0].detail.contains("No room in /dev/shm or /tmp"), "{said:?}");
        assert!(!told.concat().contains("ending") && host.servers() == running, "{told:?}");
        fs::remove_file(head).unwrap();

        slay(running[0]);
        let (told, said) = block_on(invoke(host, []));
        assert!(said[0].summary.contains("no server to restart"), "{told:?} {said:?}");
        workspace.destroy_ok();
    });
}

#[test]
fn an_operator_restarts_it_by_hand() {
    each_cli(|cli| {
        if !cli.has(14, 99) {
            return;
        }
        let site = super::site();
        let workspace = Workspace::new(cli, &site);
        let action = format!(
            "action \"{ACTION}\" \"x\" {{\n  config {{\n    instance_id = {X}.instance_id\n    host_key = \
             {X}.host_key\n  }}\n}}\n"
        );
        workspace.apply_ok(&format!("{}{action}", Server::new().config()));
        let first = pid(&workspace.state());
        let run = workspace.run_ok(&["apply", "-json", "-auto-approve", &format!("-invoke=action.{ACTION}.x")]);
        assert!(run.stdout.contains("loading the model") && run.stdout.contains("ready: process"), "{}", run.stdout);
        assert!(!runs(first) && super::servers(&site).len() == 1);
        workspace.settled();
        workspace.finish();
    });
}
