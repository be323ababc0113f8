//! Plans of changed arguments.

use std::collections::BTreeMap;

use super::{super::model::Probe, *};
use crate::{framework::Secret, provider::ssh::Ssh};

/// A server that serves, as a state has it.
fn ready() -> LlamaServer {
    LlamaServer {
        id: "ins-1:8000".into(),
        instance_id: "ins-1".into(),
        port: Attr::Known(8000),
        model: "/m.gguf".into(),
        context_size: Attr::Known(32768),
        status: status::READY.into(),
        pid: Attr::Known(7),
        package: "/p/llama-server".into(),
        host_key: "ssh-ed25519 AAAA".into(),
        ..LlamaServer::default()
    }
}

fn planned(prior: LlamaServer, planned: LlamaServer) -> LlamaServer {
    let mut plan = Plan {
        kind: PlanKind::Update,
        config: Some(LlamaServer::default()),
        prior: Some(prior),
        planned: Some(planned),
        replace: Vec::new(),
        private: crate::framework::Private::default(),
        earlier: None,
        diagnostics: Diagnostics::new(),
    };
    update(&mut plan);
    plan.planned.unwrap()
}

#[test]
fn options_restart_and_behaviour_does_not() {
    let restarts: [fn(&mut LlamaServer); 6] = [
        |server| server.context_size = Attr::Known(4096),
        |server| server.model = Attr::Unknown,
        |server| server.triggers = Attr::Known(BTreeMap::from([("a".to_owned(), "b".into())])),
        |server| server.api_key = Attr::Known(Secret::new("k")),
        |server| server.api_key_wo_version = Attr::Known(2),
        |server| server.workspace = "/w".into(),
    ];
    for change in restarts {
        let mut after = ready();
        change(&mut after);
        assert_eq!(Effect::of(&ready(), &after), Effect::Restart);
        let after = planned(ready(), after);
        assert!(after.pid.is_unknown() && after.command_line.is_unknown() && after.package.is_unknown());
        assert_eq!((after.status, after.host_key), (status::READY.into(), ready().host_key));
    }
    let notes: [fn(&mut LlamaServer); 3] = [
        |server| server.on_failure = "stop".into(),
        |server| server.ready_timeout = "1m".into(),
        |server| server.ssh_password_wo = Attr::Known(Secret::new("p")),
    ];
    for change in notes {
        let mut after = ready();
        change(&mut after);
        assert_eq!(Effect::of(&ready(), &after), Effect::Note);
        assert_eq!(planned(ready(), after).pid, ready().pid);
    }
}

#[test]
fn a_login_is_tried_and_a_probe_is_asked_without_a_restart() {
    let ssh = Attr::Known(Ssh { private_key_file: "/k".into(), ..Ssh::default() });
    let after = LlamaServer { ssh, ..ready() };
    assert_eq!(Effect::of(&ready(), &after), Effect::LogIn);
    let after = planned(ready(), after);
    assert_eq!((after.pid, after.host_key), (ready().pid, ready().host_key));

    let after = LlamaServer { probe: Attr::Known(Probe::default()), ..ready() };
    assert_eq!(Effect::of(&ready(), &after), Effect::Probe);
    let after = planned(ready(), after);
    assert!(after.tokens_per_second.is_unknown() && after.pid == ready().pid);
}

#[test]
fn whatever_does_not_serve_is_planned_to_serve() {
    for status in [status::STOPPED, status::STARTING, status::FAILED, status::UNRESPONSIVE, status::OUTDATED] {
        let prior = LlamaServer { status: status.into(), ..ready() };
        let after = planned(prior.clone(), prior);
        assert_eq!(after.status, status::READY.into(), "{status}");
        assert!(after.pid.is_unknown(), "{status}");
    }
}

#[test]
fn a_new_pin_makes_the_key_unknown_and_one_that_is_taken_away_does_not() {
    let pinned =
        |key: &str| LlamaServer { ssh: Attr::Known(Ssh { host_key: key.into(), ..Ssh::default() }), ..ready() };
    assert!(planned(ready(), pinned("SHA256:a")).host_key.is_unknown());
    assert!(planned(pinned("SHA256:a"), pinned("SHA256:b")).host_key.is_unknown());
    assert_eq!(planned(pinned("SHA256:a"), ready()).host_key, ready().host_key);
    assert_eq!(planned(pinned("SHA256:a"), pinned("SHA256:a")).host_key, ready().host_key);
}
