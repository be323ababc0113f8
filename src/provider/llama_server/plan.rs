//! Plans: the effect of an update in the instance.

use secrecy::ExposeSecret;

use super::{
    failure::as_warning,
    log_in::without_own_key,
    memory,
    model::{LlamaServer, Records as _, new_owner},
    model_source, schema,
};
use crate::{
    api::{self, InstanceStatus, InstanceUid},
    framework::{Attr, CreatePlan, Diagnostic, Diagnostics, Path, Private, UpdatePlan, Value, Walk, to_value},
    llama::{self, absolute},
    provider::{
        PlanContext, ProviderClient,
        client::planning_limits,
        errors::{Failure, missing_instance},
        login::{Access, NoLogin, no_credentials},
        words::{capitalized, title},
    },
};

const UNCHANGED: &str = "This resource was not changed.";
const WILL_FAIL: &str = "The apply of this server will fail until it runs.";

/// The private entry of a replacement on the same instance: the host key in the state.
const KNOWN_HOST: &str = "known_host";

/// The private entry by which the plans of a replacement are those of one resource.
const OWNER: &str = "owner";

/// The effect of an update in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum UpdateEffect {
    /// None: only the provider's behaviour changes.
    Note,
    /// Log in with the new settings.
    LogIn,
    /// Ask the probe, and record the restart policy.
    Probe,
    /// Start the server with the new settings.
    Restart,
}

impl UpdateEffect {
    /// The effect of this change. An argument that was unknown in the plan may turn out to be the same in the apply.
    pub(super) fn of(prior: &LlamaServer, planned: &LlamaServer) -> Self {
        let is_ready = prior.status.as_str() == Some(llama::READY) && !planned.process.is_unknown();
        if !is_ready || prior.additional_paths() != planned.additional_paths() || changes_the_server(prior, planned) {
            Self::Restart
        } else if prior.probe != planned.probe || prior.restart_policy != planned.restart_policy {
            Self::Probe
        } else if prior.ssh != planned.ssh || prior.host_key.is_null() {
            Self::LogIn
        } else {
            Self::Note
        }
    }
}

/// Whether an argument of the server itself has changed.
fn changes_the_server(prior: &LlamaServer, planned: &LlamaServer) -> bool {
    let values = to_value(prior).and_then(|prior| Ok((prior, to_value(planned)?)));
    values.is_ok_and(|(prior, planned)| {
        schema::restarting().any(|argument| {
            let (before, after) = (prior.attribute(&argument.name), planned.attribute(&argument.name));
            before != after && !(is_nothing(before) && is_nothing(after))
        })
    })
}

/// Whether a value sets nothing: null, or a collection or an object without anything in it.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::List(elements) => elements.is_empty(),
        Value::Map(elements) => elements.is_empty(),
        Value::Object(attributes) => attributes.values().all(is_nothing),
        _ => false,
    }
}

/// Refines the plan of a create: whether it can hope to log in, and whether the model fits.
pub(super) async fn create(plan: &mut CreatePlan<LlamaServer>, context: &PlanContext<'_>) {
    let CreatePlan { config, planned, private, diagnostics, walk, .. } = plan;
    if let Some(second) = second_on_port(planned, private, context) {
        return diagnostics.push(second);
    }
    // The plan that is applied has said it.
    if *walk != Walk::Apply {
        warn_without_key(config, planned, diagnostics);
    }
    if !planned.may_have_base_url() {
        planned.base_url = Attr::Null;
    }
    if let Some(client) = context.client.filter(|client| client.preflight) {
        check_access(config, client, &planning_limits(context), diagnostics).await;
    }
    let known_host = private.entry(KNOWN_HOST);
    private.remove(KNOWN_HOST);
    let mut checked = memory::check(config, planned, known_host, private, context).await;
    // The create of an apply logs in too: it pins the key in its state, or warns. What is said of the model's memory
    // stood in the plan, or is shown when the server has started.
    if let Some(client) = context.client.filter(|_| *walk == Walk::Apply && !checked.has_errors()) {
        let ssh = Path::to("ssh");
        let is_of_login = |said: &Diagnostic| said.path.as_ref().is_some_and(|it| it.steps().starts_with(ssh.steps()));
        checked = without_own_key(checked, client).into_iter().filter(is_of_login).collect();
    }
    diagnostics.extend(checked);
}

/// Refines the plan of an update.
pub(super) async fn update(plan: &mut UpdatePlan<LlamaServer>, context: &PlanContext<'_>) {
    keep_spellings(plan);
    let UpdatePlan { config, prior, planned, private, diagnostics, replace } = plan;
    let now = format!("{} was not stopped.", capitalized(&prior.title()));
    if let Some(missing) = missing_instance(&config.instance_id, replace, &now, context).await {
        return diagnostics.push(missing);
    }
    if let Some(changed) = model_source::changed(prior, planned) {
        return diagnostics.push(changed);
    }
    private.insert(OWNER, prior.owner().unwrap_or_else(new_owner));
    // The plan of the create has the other checks.
    if let Some(path) = replace.first() {
        let host_key = prior.host_key.as_str().filter(|_| planned.instance_id == prior.instance_id);
        private.insert(KNOWN_HOST, host_key);
        return diagnostics.push(replaced(prior, path));
    }
    if let Some(second) = second_on_port(planned, private, context) {
        return diagnostics.push(second);
    }
    if UpdateEffect::of(prior, planned) == UpdateEffect::Restart {
        warn_without_key(config, planned, diagnostics);
        let known_host = prior.host_key.known().cloned();
        diagnostics.extend(memory::check(config, planned, known_host, private, context).await);
    }
    change(plan);
}

/// The error about another server of this run with the same instance and port: each would stop the other.
fn second_on_port(planned: &LlamaServer, private: &Private, context: &PlanContext<'_>) -> Option<Diagnostic> {
    let (client, instance_id, port) = (context.client?, planned.instance_id.as_str()?, *planned.port.known()?);
    let is_alone = client.is_alone_at(instance_id, port, private.entry(OWNER));
    let detail = format!(
        "Another damodel_llama_server of this configuration has the same instance ({instance_id}) and port ({port}), \
         and each apply would stop the server of the other. This resource was not changed. Set another port."
    );
    let error = || Diagnostic::error("Two llama servers have the same port", detail).at(Path::to("port"));
    (!is_alone).then(error)
}

/// Keeps what is only spelled in another way: `~/…` and the path of the home are one, `[::1]` and `::1`, `localhost`
/// and 127.0.0.1, and a key with and without a newline at its end.
fn keep_spellings(plan: &mut UpdatePlan<LlamaServer>) {
    let UpdatePlan { prior, planned, replace, private, .. } = plan;
    // Without the home, two paths may still differ in a slash only.
    let home = private.home().unwrap_or_else(|| "~".to_owned());
    let keep = |planned: &mut Attr<String>, prior: &Attr<String>| {
        if let (Some(after), Some(before)) = (planned.as_str(), prior.as_str())
            && absolute(after, &home) == absolute(before, &home)
        {
            *planned = prior.clone();
        }
    };
    keep(&mut planned.model, &prior.model);
    keep(&mut planned.package, &prior.package);
    keep(&mut planned.workspace, &prior.workspace);
    if let (Attr::Known(planned), Attr::Known(prior)) = (&mut planned.source, &prior.source) {
        keep(&mut planned.path, &prior.path);
    }
    let is_loopback = |host: &Attr<String>| matches!(host.as_str(), Some("127.0.0.1" | "localhost"));
    if is_loopback(&planned.host) && is_loopback(&prior.host) {
        planned.host = prior.host.clone();
    }
    if planned.workspace == prior.workspace {
        replace.retain(|path| *path != Path::to("workspace"));
    }
    if let (Attr::Known(after), Attr::Known(before)) = (&planned.api_key, &prior.api_key)
        && after.trimmed().expose_secret() == before.trimmed().expose_secret()
    {
        planned.api_key = prior.api_key.clone();
    }
    if let (Attr::Known(planned), Attr::Known(prior)) = (&mut planned.ssh, &prior.ssh)
        && planned.host().is_some_and(|host| Some(host) == prior.host())
    {
        planned.host = prior.host.clone();
        replace.retain(|path| *path != Path::to("ssh").attribute("host"));
    }
}

/// A server without a key that other computers reach serves all of them.
fn warn_without_key(config: &LlamaServer, planned: &LlamaServer, diagnostics: &mut Diagnostics) {
    let has_key = !config.api_key.is_null() || !config.api_key_wo.is_null();
    if !has_key && let Some(host @ ("0.0.0.0" | "::")) = planned.host.as_str() {
        diagnostics.push(
            Diagnostic::warning(
                "The llama server has no API key",
                format!(
                    "The server listens on all addresses of the instance ({host}), and anyone who reaches the port may \
                     chat. Set api_key, or host = \"127.0.0.1\" to allow access through SSH only."
                ),
            )
            .at(Path::to("host")),
        );
    }
}

/// A replacement has no previous server to return to.
fn replaced(prior: &LlamaServer, path: &Path) -> Diagnostic {
    let detail = format!(
        "The change of {path} replaces {}. Without create_before_destroy it is stopped before the instance, port, \
         options and model of the new server are checked, and nothing starts it again if the new one fails. Change \
         other arguments in an apply of their own before.",
        prior.title()
    );
    Diagnostic::warning("The replacement stops the llama server first", detail).at(path.clone())
}

fn change(plan: &mut UpdatePlan<LlamaServer>) {
    let UpdatePlan { config, prior, planned, .. } = plan;
    let effect = UpdateEffect::of(prior, planned);
    if prior.status.as_str() == Some(llama::UNSUPERVISED) {
        plan.diagnostics.warning(
            format!("{} is not supervised", capitalized(&prior.title())),
            "The server runs, but nothing would restart it if it exits. The apply restarts it under a supervisor. If \
             that fails, the previous server cannot be started again.",
        );
    }
    if prior.status.as_str() == Some(llama::UNRESPONSIVE) {
        let pid = prior.process().pid.known().map(|pid| format!(" {pid}")).unwrap_or_default();
        plan.diagnostics.warning(
            format!("{} does not respond", capitalized(&prior.title())),
            format!(
                "Its process{pid} runs, but health checks fail. The apply stops it if it still does not respond, and \
                 starts it again."
            ),
        );
    }
    if prior.status.as_str() == Some(llama::BLOCKED) {
        plan.diagnostics.push(
            Diagnostic::error(
                "The port is in use",
                format!(
                    "The server is not running, and another program listens on port {}. Stop that \
                     program, or choose another port.",
                    prior.listens()
                ),
            )
            .at(Path::to("port")),
        );
    }
    if effect == UpdateEffect::Restart {
        planned.status = llama::READY.into();
        planned.process = Attr::Unknown;
        let (build_used, found) = match planned.build.as_str() {
            Some("prebuilt") if prior.package.is_null() => (planned.build.clone(), Attr::Unknown),
            Some("prebuilt") => (planned.build.clone(), prior.package.clone()),
            Some("source") => (planned.build.clone(), Attr::Null),
            _ => (Attr::Unknown, Attr::Unknown),
        };
        planned.build_used = build_used;
        if config.package.is_null() {
            planned.package = found;
        }
        let keeps_name = planned.model == prior.model
            && planned.extra_args == prior.extra_args
            && planned.environment == prior.environment;
        if !keeps_name || prior.model_name.is_null() {
            planned.model_name = Attr::Unknown;
        }
        if !planned.may_have_base_url() {
            planned.base_url = Attr::Null;
        } else if planned.host != prior.host {
            planned.base_url = Attr::Unknown;
        }
    } else if effect == UpdateEffect::Probe {
        let mut process = prior.process();
        process.tokens_per_second = Attr::Unknown;
        if process.owner.is_null() {
            process.owner = Attr::Unknown;
        }
        planned.process = Attr::Known(process);
    }
    // After the removal of a pin the known key stays.
    if prior.host_key.is_null() || (pin(planned).is_some() && pin(prior) != pin(planned)) {
        planned.host_key = Attr::Unknown;
    }
}

fn pin(server: &LlamaServer) -> Option<&Attr<String>> {
    server.ssh.known().map(|ssh| &ssh.host_key).filter(|key| !key.is_null())
}

/// Checks that the instance of a new server exists, and that there are credentials for it.
async fn check_access(
    config: &LlamaServer,
    client: &ProviderClient,
    limits: &api::Context,
    diagnostics: &mut Diagnostics,
) {
    let Some(id) = config.instance_id.as_str() else { return };
    let uid = InstanceUid::new(id);
    let instance = match client.api.instances().detail(&uid, limits).await {
        Ok(detail) => detail.instance,
        Err(error) => {
            let tried = format!("check {}", title("instance", None, Some(id)));
            let is_missing = error.code() == Some(api::Code::InstanceNotExistOrNoPrivilege);
            let now = if is_missing { WILL_FAIL } else { "The plan continues without this check." };
            let failure = Failure { error: &error, tried, now: now.to_owned() }.on_instance(id);
            // A destroy plans too, and an error would end it.
            if is_missing {
                diagnostics.push(as_warning(failure.whole()).at(Path::to("instance_id")));
            } else {
                diagnostics.extend(failure.of_a_check(client));
            }
            return;
        }
    };
    let access = Access::of(&instance);
    if access.status == Some(InstanceStatus::Failed) {
        diagnostics.push(access.not_running(UNCHANGED));
    } else if matches!(access.status, Some(InstanceStatus::Stopped | InstanceStatus::Released)) {
        diagnostics.push(as_warning(access.not_running(WILL_FAIL)));
    } else if access.status == Some(InstanceStatus::Running)
        && !config.ssh.is_unknown()
        && let Err(NoLogin::NoCredentials) = config.login(config, None).target(Some(&access), client)
        && !has_unknown_credentials(config)
    {
        diagnostics.push(no_credentials(Some(&access), UNCHANGED));
    }
}

/// Whether credentials become known only in the apply.
fn has_unknown_credentials(config: &LlamaServer) -> bool {
    let is_open = config.ssh.known().is_some_and(|ssh| {
        ssh.private_key.is_unknown()
            || ssh.private_key_file.is_unknown()
            || ssh.password.is_unknown()
            || ssh.agent.is_unknown()
            || ssh.bastion.is_unknown()
            || ssh.bastion.known().is_some_and(|bastion| {
                bastion.private_key.is_unknown() || bastion.private_key_file.is_unknown() || bastion.agent.is_unknown()
            })
    });
    is_open || config.ssh_private_key_wo.is_unknown() || config.ssh_password_wo.is_unknown()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{
        super::model::{AdditionalFile, Probe, Process},
        *,
    };
    use crate::{framework::Secret, provider::login::Ssh};

    /// A server that serves, as a state has it.
    fn ready() -> LlamaServer {
        LlamaServer {
            id: "ins-1:8000".into(),
            instance_id: "ins-1".into(),
            port: Attr::Known(8000),
            model: "/m.gguf".into(),
            context_size: Attr::Known(32768),
            status: llama::READY.into(),
            process: Attr::Known(Process { pid: Attr::Known(7), ..Process::default() }),
            model_name: "m".into(),
            build: "auto".into(),
            package: "/p/llama-server".into(),
            host_key: "ssh-ed25519 AAAA".into(),
            ..LlamaServer::default()
        }
    }

    fn planned(prior: LlamaServer, planned: LlamaServer) -> LlamaServer {
        let mut plan = UpdatePlan {
            config: LlamaServer::default(),
            prior,
            planned,
            replace: Vec::new(),
            private: Private::default(),
            diagnostics: Diagnostics::new(),
        };
        change(&mut plan);
        plan.planned
    }

    /// The values of the plan, and whether it replaces the server.
    fn kept(prior: &LlamaServer, planned: LlamaServer) -> (Value, bool) {
        let mut plan = UpdatePlan {
            config: LlamaServer::default(),
            prior: prior.clone(),
            planned,
            replace: vec![Path::to("workspace"), Path::to("ssh").attribute("host")],
            private: Private::default(),
            diagnostics: Diagnostics::new(),
        };
        keep_spellings(&mut plan);
        (to_value(&plan.planned).unwrap(), !plan.replace.is_empty())
    }

    /// A slash at the end of `workspace` replaced a server.
    #[test]
    fn what_is_only_spelled_in_another_way_is_kept() {
        let host = |host: &str| Attr::Known(Ssh { host: host.into(), ..Ssh::default() });
        let secret = |key: &str| Attr::Known(Secret::new(key));
        let prior = LlamaServer {
            model: "~/m.gguf".into(),
            workspace: "~/workspace".into(),
            host: "127.0.0.1".into(),
            api_key: secret("key"),
            ssh: host("fd00::1"),
            ..ready()
        };
        let spelled = LlamaServer {
            model: "~//./m.gguf".into(),
            package: "//p/llama-server".into(),
            workspace: "~/workspace/".into(),
            host: "localhost".into(),
            api_key: secret("key\n"),
            ssh: host("[fd00::1]\n"),
            ..prior.clone()
        };
        assert_eq!(kept(&prior, spelled), (to_value(&prior).unwrap(), false));
        for other in [
            LlamaServer { workspace: "~/other/../workspace".into(), ..prior.clone() },
            LlamaServer { ssh: host("fd00::2"), ..prior.clone() },
        ] {
            assert_eq!(kept(&prior, other.clone()), (to_value(&other).unwrap(), true));
        }
    }

    #[test]
    fn an_empty_collection_is_no_change() {
        let empty = LlamaServer {
            extra_args: Attr::Known(Vec::new()),
            environment: Attr::Known(BTreeMap::new()),
            triggers: Attr::Known(BTreeMap::new()),
            source: Attr::Known(super::super::model::BuildSource::default()),
            ..ready()
        };
        assert_eq!(UpdateEffect::of(&ready(), &empty), UpdateEffect::Note);
        assert_eq!(UpdateEffect::of(&empty, &ready()), UpdateEffect::Note);
        let set = LlamaServer { extra_args: Attr::Known(vec!["-v".into()]), ..ready() };
        assert_eq!(UpdateEffect::of(&empty, &set), UpdateEffect::Restart);
    }

    #[test]
    fn options_restart_and_behaviour_does_not() {
        let restarts: [fn(&mut LlamaServer); 5] = [
            |server| server.context_size = Attr::Known(4096),
            |server| server.model = Attr::Unknown,
            |server| server.triggers = Attr::Known(BTreeMap::from([("a".to_owned(), "b".into())])),
            |server| server.api_key = Attr::Known(Secret::new("k")),
            |server| server.api_key_wo_version = Attr::Known(2),
        ];
        for change in restarts {
            let mut after = ready();
            change(&mut after);
            assert_eq!(UpdateEffect::of(&ready(), &after), UpdateEffect::Restart);
            let after = planned(ready(), after);
            assert!(after.process.is_unknown() && after.package.is_unknown() && after.build_used.is_unknown());
            assert_eq!((after.status, after.host_key), (llama::READY.into(), ready().host_key));
        }
        let notes: [fn(&mut LlamaServer); 3] = [
            |server| server.on_failure = "stop".into(),
            |server| server.ready_timeout = "1m".into(),
            |server| server.ssh_password_wo = Attr::Known(Secret::new("p")),
        ];
        for change in notes {
            let mut after = ready();
            change(&mut after);
            assert_eq!(UpdateEffect::of(&ready(), &after), UpdateEffect::Note);
            assert_eq!(planned(ready(), after).process, ready().process);
        }
    }

    /// What a changed option leaves open.
    #[test]
    fn a_changed_option_shows_the_process_and_what_it_may_change() {
        let package = || ready().package;
        for (before, build, found, build_used, expected) in [
            ("auto", "auto", package(), Attr::Unknown, Attr::Unknown),
            ("prebuilt", "prebuilt", package(), "prebuilt".into(), package()),
            ("auto", "prebuilt", package(), "prebuilt".into(), package()),
            ("source", "prebuilt", Attr::Null, "prebuilt".into(), Attr::Unknown),
            ("source", "source", Attr::Null, "source".into(), Attr::Null),
            ("prebuilt", "source", package(), "source".into(), Attr::Null),
        ] {
            let prior = LlamaServer { build: before.into(), package: found, ..ready() };
            let changed = LlamaServer { build: build.into(), context_size: Attr::Known(4096), ..prior.clone() };
            let after = planned(prior.clone(), changed);
            assert_eq!((after.build_used, after.package), (build_used, expected), "{before} {build}");
            assert!(after.process.is_unknown() && after.model_name == prior.model_name, "{before} {build}");
        }
    }

    #[test]
    fn a_file_beside_the_model_counts_by_its_path() {
        let with = |files: &[(&str, &str)]| {
            let file = |(path, url): &(&str, &str)| {
                let (path, url) = ((*path).into(), (*url).into());
                Attr::Known(AdditionalFile { path, url, sha256: Attr::Null })
            };
            LlamaServer { additional_files: Attr::Known(files.iter().map(file).collect()), ..ready() }
        };
        let before = with(&[("~/a", "https://x/a"), ("/b", "https://x/b")]);
        for (after, expected) in [
            (with(&[("/b", "https://x/c"), ("~//a", "https://x/a")]), UpdateEffect::Note),
            (with(&[("~/a", "https://x/a")]), UpdateEffect::Restart),
            (ready(), UpdateEffect::Restart),
        ] {
            assert_eq!(UpdateEffect::of(&before, &after), expected, "{after:?}");
        }
        assert_eq!(UpdateEffect::of(&ready(), &with(&[])), UpdateEffect::Note);
    }

    #[test]
    fn a_restart_leaves_open_only_the_addresses_that_may_change() {
        let url = || Attr::from("http://203.0.113.7:8000/v1");
        for (before, host, after, expected) in [
            (url(), "0.0.0.0", "0.0.0.0", url()),
            (url(), "0.0.0.0", "::", Attr::Unknown),
            (url(), "0.0.0.0", "127.0.0.1", Attr::Null),
            (Attr::Null, "localhost", "0.0.0.0", Attr::Unknown),
            (Attr::Null, "0.0.0.0", "0.0.0.0", Attr::Null),
            (Attr::Null, "localhost", "127.0.0.1", Attr::Null),
        ] {
            let prior = LlamaServer { base_url: before, host: host.into(), ..ready() };
            let after =
                planned(prior.clone(), LlamaServer { host: after.into(), model: "/n.gguf".into(), ..prior.clone() });
            assert_eq!((after.base_url, after.model_name), (expected, Attr::Unknown), "{prior:?}");
            let after = planned(prior.clone(), LlamaServer { probe: Attr::Known(Probe::default()), ..prior.clone() });
            assert_eq!((after.base_url, after.model_name), (prior.base_url, prior.model_name));
        }
    }

    #[test]
    fn a_login_is_tried_and_a_probe_is_asked_without_a_restart() {
        let ssh = Attr::Known(Ssh { private_key_file: "/k".into(), ..Ssh::default() });
        let after = LlamaServer { ssh, ..ready() };
        assert_eq!(UpdateEffect::of(&ready(), &after), UpdateEffect::LogIn);
        let after = planned(ready(), after);
        assert_eq!((after.process, after.host_key), (ready().process, ready().host_key));

        let after = LlamaServer { probe: Attr::Known(Probe::default()), ..ready() };
        assert_eq!(UpdateEffect::of(&ready(), &after), UpdateEffect::Probe);
        let after = planned(ready(), after);
        let process = after.process();
        assert!(process.tokens_per_second.is_unknown() && process.owner.is_unknown());
        assert_eq!(process.pid, ready().process().pid);
    }

    #[test]
    fn whatever_does_not_serve_is_planned_to_serve() {
        for status in
            [llama::STOPPED, llama::STARTING, llama::FAILED, llama::UNRESPONSIVE, llama::OUTDATED, llama::UNSUPERVISED]
        {
            let prior = LlamaServer { status: status.into(), ..ready() };
            let after = planned(prior.clone(), prior);
            assert_eq!(after.status, llama::READY.into(), "{status}");
            assert!(after.process.is_unknown(), "{status}");
        }
    }

    #[test]
    fn a_server_that_everyone_reaches_without_a_key_is_warned_of() {
        let key = || Attr::Known(Secret::new("k"));
        for (host, api_key, api_key_wo, warnings) in [
            ("0.0.0.0", Attr::Null, Attr::Null, 1),
            ("::", Attr::Null, Attr::Null, 1),
            ("127.0.0.1", Attr::Null, Attr::Null, 0),
            ("0.0.0.0", key(), Attr::Null, 0),
            ("0.0.0.0", Attr::Null, key(), 0),
        ] {
            let config = LlamaServer { host: host.into(), api_key, api_key_wo, ..ready() };
            let mut diagnostics = Diagnostics::new();
            warn_without_key(&config, &config, &mut diagnostics);
            assert_eq!(diagnostics.iter().count(), warnings, "{host}");
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
}
