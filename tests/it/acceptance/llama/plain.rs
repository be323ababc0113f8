//! Servers over real OpenSSH servers, without any service.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use damodel::sandbox::stand_in::{self, Machine};
use nix::{
    sys::signal::{Signal, kill},
    unistd::{Pid, User, geteuid},
};

use super::{Server, X, chat::asks_through, pid, record, runs, state_folder, until};
use crate::support::{
    plugin::BINARY,
    ports::free_port,
    program,
    sshd::{Agent, Cable, Sshd},
    terraform::{Cli, Diagnostic, Severity, Site, Started, Workspace, config_with, each_cli, refusal, says},
};

/// A host with an sshd, whose server has a port of the real network.
pub(super) struct Host {
    pub(super) sshd: Sshd,
    pub(super) port: u16,
}

impl Host {
    /// With one GPU and a CUDA toolkit; `None` without an sshd.
    pub(super) fn start() -> Option<Self> {
        Self::with(&[])
    }

    /// The same, whose sessions begin with these lines of shell.
    pub(super) fn with(lines: &[&str]) -> Option<Self> {
        let mut sshd = Sshd::prepare()?;
        let home = sshd.home();
        stand_in::install(&home, &Machine::with("NVIDIA-GeForce-RTX-4090", "12.2"), Some(BINARY.as_ref())).unwrap();
        sshd.session_line(&format!("PATH='{}':$PATH; export PATH", stand_in::bin(&home).display()));
        lines.iter().for_each(|line| sshd.session_line(line));
        sshd.start();
        Some(Self { sshd, port: free_port() })
    }

    /// The key file that its sshd accepts.
    fn key(&self) -> PathBuf {
        self.sshd.target().credentials.private_key_file.unwrap()
    }

    /// The argument `ssh`, with further attributes.
    pub(super) fn ssh(&self, more: &str) -> String {
        ssh(self.sshd.port(), more)
    }

    /// The same with the key file.
    pub(super) fn ssh_with_key(&self, more: &str) -> String {
        self.ssh(&format!("private_key_file = {:?}, {more}", self.key().display().to_string()))
    }

    pub(super) fn server(&self) -> Server {
        Server::new().without("instance_id").set("port", self.port).set("ssh", self.ssh_with_key(""))
    }

    /// The processes with its home.
    fn processes(&self) -> Vec<Pid> {
        let home = format!("HOME={}", self.sshd.home().display());
        let entries = fs::read_dir("/proc").unwrap().map_while(Result::ok);
        let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let is_here = |id: &i32| {
            let variables = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
            variables.split(|byte| *byte == 0).any(|variable| variable == home.as_bytes())
        };
        ids.filter(is_here).map(Pid::from_raw).filter(|id| runs(*id)).collect()
    }

    /// Its running servers.
    pub(super) fn servers(&self) -> Vec<Pid> {
        let is_server = |id: &Pid| {
            let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains("llama-server\0-m")
        };
        self.processes().into_iter().filter(is_server).collect()
    }

    fn phase(&self) -> String {
        let state = state_folder(&self.sshd.home().join("workspace"), self.port);
        fs::read_to_string(record(&state, "status")).unwrap_or_default()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // A failed test leaves its server behind.
        for process in self.processes() {
            let _ = kill(process, Signal::SIGKILL);
        }
    }
}

fn ssh(port: u16, more: &str) -> String {
    let user = User::from_uid(geteuid()).unwrap().unwrap().name;
    format!("{{ host = \"127.0.0.1\", port = {port}, user = {user:?}, timeout = \"20s\", {more} }}")
}

/// A workspace without settings of a service.
pub(super) fn workspace<'a>(cli: &'a Cli, site: &'a Site) -> Workspace<'a> {
    let workspace = Workspace::new(cli, site);
    workspace.remove_env("DAMODEL_BASE_URL");
    workspace.remove_env("DAMODEL_API_TOKEN");
    workspace
}

/// Runs a test with every command line, such a host and a workspace. Without an sshd it is skipped.
pub(super) fn each_host(test: impl Fn(&mut Host, &Workspace<'_>)) {
    each_cli(|cli| {
        let Some(mut host) = Host::start() else { return };
        let site = Site::start();
        test(&mut host, &workspace(cli, &site));
    });
}

pub(super) fn config(server: &Server) -> String {
    config_with("", server.alone())
}

#[test]
fn a_key_file_is_enough_from_create_to_destroy() {
    each_host(|host, workspace| {
        let server = host.server().set("probe", "{ prompt = \"ping the pong\", expect = \"pong\" }");
        workspace.apply_ok(&config(&server));
        let state = workspace.state();
        let x = state.resource(X);
        assert_eq!((x.id(), x.value("status")), (format!("127.0.0.1:{}", host.port), &"ready".into()));
        assert_eq!((x.value("build_used"), x.value("instance_id").is_null()), (&"prebuilt".into(), true));
        let words: Vec<String> = host.sshd.host_key("ed25519").split_whitespace().take(2).map(str::to_owned).collect();
        assert_eq!(x.value("host_key"), words.join(" ").as_str());
        assert_eq!(host.servers(), [pid(&state)]);

        // A chat over the same login, and a restart in place.
        let chat = format!(
            "data \"damodel_chat_completion\" \"c\" {{\n  target = \"llama_server\"\n  llama_server_id = {X}.id\n  \
             host_key = {X}.host_key\n  ssh = {}\n  model = \"any\"\n  messages = [{{ role = \"user\", content = \
             \"over sshd\" }}]\n}}\noutput \"said\" {{\n  value = data.damodel_chat_completion.c.content\n}}\n",
            host.ssh_with_key("")
        );
        workspace.apply_ok(&format!("{}{chat}", config(&server.set("context_size", 2048))));
        assert_eq!(workspace.state().output("said"), "You said: over sshd");
        assert!(!runs(pid(&state)));

        workspace.destroy_ok();
        assert_eq!(host.servers(), []);
        assert_eq!(workspace.site.ledger().requests.len(), 0, "the service was not asked");
    });
}

#[test]
fn an_agent_logs_in() {
    each_host(|host, workspace| {
        let agent = Agent::start();
        agent.add(&host.key());
        workspace.set_env("SSH_AUTH_SOCK", &agent.socket().display().to_string());
        workspace.apply_ok(&config(&host.server().set("ssh", host.ssh("agent = true"))));
        assert_eq!(host.servers(), [pid(&workspace.state())]);
        workspace.destroy_ok();
        assert_eq!(host.servers(), []);
    });
}

/// As the C shell, whose start files write, and which knows no quotes over several lines: the memory was not checked,
/// and the model not read.
#[test]
fn a_login_shell_that_is_none_of_posix_is_enough() {
    const SHELL: [&str; 3] = [
        "printf '\\033]0;gpu\\007welcome'",
        "case $SSH_ORIGINAL_COMMAND in *\\'*|*'$'*) echo 'Unmatched quote.' >&2; exit 1 ;; esac",
        "/bin/sh -c \"$SSH_ORIGINAL_COMMAND\"; code=$?; printf bye; exit $code",
    ];
    each_cli(|cli| {
        let Some(host) = Host::with(&SHELL) else { return };
        let site = Site::start();
        let workspace = workspace(cli, &site);
        // Brackets and white space belong to how an address is written.
        let ssh = host.ssh_with_key("").replace("\"127.0.0.1\"", "\"[127.0.0.1]\\n\"");
        let server = host.server().set("ssh", &ssh);
        workspace.write(&config(&server.clone().model("large")));
        refusal(&workspace.try_plan(&[]), &["large.gguf does not fit in GPU memory"]);
        // A warning among the rows, and its exit code.
        let home = host.sshd.home();
        let (tool, real) = (stand_in::bin(&home).join("nvidia-smi"), home.join("nvidia-smi"));
        fs::rename(&tool, &real).unwrap();
        let warns =
            "#!/bin/sh\necho 'WARNING: infoROM is corrupted at gpu 0000:00:00.0'\n~/nvidia-smi \"$@\"\nexit 14\n";
        program::put(&tool, warns);
        refusal(&workspace.try_plan(&[]), &["large.gguf does not fit in GPU memory"]);
        fs::rename(real, tool).unwrap();
        fs::copy(home.join("public-storage/model/tiny.gguf"), home.join("it's tiny.gguf")).unwrap();
        let read = format!(
            "data \"damodel_model\" \"m\" {{\n  path = \"~/it's tiny.gguf\"\n  ssh = {ssh}\n}}\noutput \"layers\" \
             {{\n  value = data.damodel_model.m.layers\n}}\n"
        );
        workspace.apply_ok(&format!("{}{read}", config(&server)));
        assert_eq!(workspace.state().resource(X).id(), format!("127.0.0.1:{}", host.port));
        assert!(workspace.state().output("layers").as_u64().is_some_and(|layers| layers > 0));
        workspace.destroy_ok();
        assert_eq!(host.servers(), []);
    });
}

#[test]
fn a_replaced_host_key_refuses_the_apply() {
    each_host(|host, workspace| {
        workspace.apply_ok(&config(&host.server()));
        let (first, pinned) = (pid(&workspace.state()), host.sshd.pin("ed25519").fingerprint());
        host.sshd.stop();
        host.sshd.replace_host_keys();
        host.sshd.start();
        let (shown, attempts) = (host.sshd.pin("ed25519").fingerprint(), host.sshd.attempts());
        let said = workspace.try_plan(&[]);
        assert!(says(&said, Severity::Warning, "the host key has changed"), "{said:#?}");
        let changed = host.server().set("context_size", 64);
        workspace.write(&config(&changed));
        let (done, said) = workspace.try_apply(&[]);
        refusal(&said, &["the host key has changed", &pinned, &shown, "no credential was sent", "was not changed"]);
        assert!(!done && runs(first));
        assert_eq!(host.sshd.attempts(), attempts, "nobody tried to log in");
        // Accepted by its pin.
        let accepted = format!("host_key = {shown:?}");
        workspace.apply_ok(&config(&changed.set("ssh", host.ssh_with_key(&accepted))));
        workspace.destroy_ok();
        assert_eq!(host.servers(), []);
    });
}

#[test]
fn a_bastion_has_a_key_of_its_own() {
    each_host(|host, workspace| {
        let mut bastion = Sshd::started().unwrap();
        let (port, key) = (bastion.port(), bastion.target().credentials.private_key_file.unwrap());
        let through = |pin: &str| {
            let bastion = ssh(port, &format!("private_key_file = {:?}, {pin}", key.display().to_string()));
            config(&host.server().set("ssh", host.ssh_with_key(&format!("bastion = {bastion}"))))
        };
        // The host's pin is not the bastion's.
        workspace.write(&through(&format!("host_key = {:?}", host.sshd.pin("ed25519").to_string())));
        let (done, said) = workspace.try_apply(&[]);
        let blamed = ["the bastion's host key has changed", "set ssh.bastion.host_key to it", "was not started"];
        refusal(&said, &blamed);
        assert_eq!((done, bastion.attempts(), host.sshd.attempts()), (false, 0, 0));

        // The key that it showed is pinned from now on.
        workspace.apply_ok(&through(""));
        assert_eq!(host.servers(), [pid(&workspace.state())]);
        assert!(bastion.attempts() > 0);
        bastion.stop();
        bastion.replace_host_keys();
        bastion.start();
        let said = workspace.try_plan(&[]);
        assert!(says(&said, Severity::Warning, "the bastion's host key has changed"), "{said:#?}");
        workspace.apply_ok(&through(&format!("host_key = {:?}", bastion.pin("ed25519").to_string())));
        workspace.destroy_ok();
        assert_eq!(host.servers(), []);
    });
}

/// Without a pin and a stored key, the host keys of the host and of the bastion are accepted, with a warning.
#[test]
fn a_login_that_may_only_forward_is_enough_for_a_chat_and_a_tunnel() {
    each_host(|host, workspace| {
        let mut guard = Sshd::prepare().unwrap();
        guard.line("ForceCommand /bin/false");
        guard.start();
        let server = config(&host.server());
        workspace.apply_ok(&server);
        let key = guard.target().credentials.private_key_file.unwrap().display().to_string();
        let forward = |more: &str| ssh(guard.port(), &format!("private_key_file = {key:?}, {more}"));
        let chat = |ssh: &str| {
            format!(
                "data \"damodel_chat_completion\" \"c\" {{\n  target = \"llama_server\"\n  llama_server_id = \
                 {X}.id\n  ssh = {ssh}\n  model = \"any\"\n messages = [{{ role = \"user\", content = \"forwarded\" \
                 }}]\n}}\noutput \"said\" {{\n  value = data.damodel_chat_completion.c.content\n}}\n"
            )
        };
        for (ssh, unpinned) in [
            (forward(""), vec!["instance"]),
            (forward(&format!("host_key = {:?}", guard.pin("ed25519").to_string())), vec![]),
            (host.ssh_with_key(&format!("bastion = {}", forward(""))), vec!["instance", "bastion"]),
        ] {
            workspace.write(&format!("{server}{}", chat(&ssh)));
            let (done, said) = workspace.try_apply(&[]);
            assert!(done, "{said:#?}");
            assert_eq!(workspace.state().output("said"), "You said: forwarded");
            for whose in ["instance", "bastion"] {
                let words = format!("host key of the {whose} is not pinned");
                assert_eq!(says(&said, Severity::Warning, &words), unpinned.contains(&whose), "{ssh}: {said:#?}");
            }
        }
        if workspace.cli.has(10, 11) {
            let tunnel = format!("  ssh = {}\n  port = {}", forward(""), host.port);
            workspace.write(&format!("{server}{}", asks_through(workspace, &tunnel)));
            let (done, said) = workspace.try_apply(&[]);
            assert!(done && says(&said, Severity::Warning, "host key of the instance is not pinned"), "{said:#?}");
            let answered = fs::read_to_string(workspace.beside("answer")).unwrap();
            assert!(answered.contains("200"), "{answered}");
        }
        workspace.destroy_ok();
        assert_eq!(host.servers(), []);
    });
}

/// A bastion without a pin: an update is the first to log in through it, then two chats in one run.
#[test]
fn a_bastion_without_a_pin_is_named_once_in_each_command() {
    each_host(|host, workspace| {
        let bastion = Sshd::started().unwrap();
        let key = bastion.target().credentials.private_key_file.unwrap().display().to_string();
        let through =
            host.ssh_with_key(&format!("bastion = {}", ssh(bastion.port(), &format!("private_key_file = {key:?}"))));
        let first = host.server();
        workspace.apply_ok(&config(&first));
        let unpinned = |said: &[Diagnostic], whose: &str| {
            let words = format!("host key of the {whose} is not pinned");
            said.iter().filter(|said| said.summary.contains(&words)).count()
        };
        let first = first.set("ssh", &through);
        workspace.write(&config(&first));
        let (done, said) = workspace.try_apply(&[]);
        assert!(done, "{said:#?}");
        assert_eq!((unpinned(&said, "instance"), unpinned(&said, "bastion")), (0, 1), "{said:#?}");

        let chat = |label: &str| {
            format!(
                "data \"damodel_chat_completion\" {label:?} {{\n  target = \"llama_server\"\n  llama_server_id = \
                 {X}.id\n  ssh = {through}\n  model = \"any\"\n messages = [{{ role = \"user\", content = \"a\" \
                 }}]\n}}\n"
            )
        };
        workspace.write(&format!("{}{}{}", config(&first), chat("a"), chat("b")));
        let said = workspace.try_plan(&[]);
        assert_eq!((unpinned(&said, "instance"), unpinned(&said, "bastion")), (1, 1), "{said:#?}");
        workspace.write(&config(&first));
        workspace.destroy_ok();
    });
}

/// Its own `ssh.timeout` applies, not the bastion's default.
#[test]
fn an_apply_ends_soon_after_its_machine_is_gone_behind_a_bastion() {
    each_host(|host, workspace| {
        let bastion = Sshd::started().unwrap();
        let key = bastion.target().credentials.private_key_file.unwrap().display().to_string();
        let user = User::from_uid(geteuid()).unwrap().unwrap().name;
        let through = format!(
            "bastion = {{ host = \"127.0.0.1\", port = {}, user = {user:?}, private_key_file = {key:?} }}",
            bastion.port()
        );
        let server = host.server().model("slow-600s").text("ready_timeout", "30m");
        let ssh = host.ssh_with_key(&through).replace("\"20s\"", "\"5s\"");
        workspace.write(&config(&server.set("ssh", ssh)));
        let started = Started::apply(workspace);
        until("the model is loaded", || host.phase().contains("load") && !host.servers().is_empty());
        let begun = Instant::now();
        host.sshd.stop();
        let said = started.ended(true);
        assert!(begun.elapsed() < Duration::from_secs(90), "{:?} {said}", begun.elapsed());
        assert!(said.contains("The work continues in the instance"), "{said}");
        assert!(workspace.state().addresses().is_empty());
    });
}

/// The host continues, and the connection to it is cut while it loads the model.
#[test]
fn an_apply_outlives_a_cut_connection() {
    each_host(|host, workspace| {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let cable = runtime.block_on(Cable::to(host.sshd.port()));
        let key = format!("private_key_file = {:?}", host.key().display().to_string());
        let server = host.server().model("slow-3s").set("ssh", ssh(cable.port(), &key));
        workspace.write(&config(&server));
        let started = Started::apply(workspace);
        until("the model is loaded", || host.phase().contains("load") && !host.servers().is_empty());
        let loading = host.servers();
        let connections = cable.connections();
        cable.cut();
        until("somebody logs in again", || cable.connections() > connections);
        cable.mend();
        let said = started.ended(true);
        let state = workspace.state();
        assert_eq!(state.resource(X).value("status"), "ready", "{said}");
        assert_eq!((host.servers(), vec![pid(&state)]), (loading.clone(), loading), "the same process");
        workspace.settled();
        workspace.destroy_ok();
        assert_eq!(host.servers(), []);
    });
}

/// The import cannot connect, and the next apply adopts the running server.
#[test]
fn a_server_over_plain_ssh_is_imported_by_host_and_port() {
    each_host(|host, here| {
        let there = workspace(here.cli, here.site);
        let config = config(&host.server());
        here.apply_ok(&config);
        let mut forms = vec![format!("id = \":{}@127.0.0.1\"", host.port)];
        if here.cli.has(12, 12) {
            forms.push(format!("identity = {{ host = \"127.0.0.1\", port = {} }}", host.port));
        }
        for form in forms {
            there.write(&format!("{config}import {{\n  to = {X}\n  {form}\n}}\n"));
            let plan = there.plan(&[]);
            assert!(plan.change(X).is_import() && plan.change(X).actions() == "update", "{form}");
            there.apply_plan();
            there.settled();
            assert_eq!(pid(&there.state()), pid(&here.state()), "the same process");
            there.run_ok(&["state", "rm", X]);
        }
        here.settled();
        here.destroy_ok();
        assert_eq!(host.servers(), []);
    });
}
