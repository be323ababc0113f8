//! The examples of endpoints, used by a real OpenAI client, Caddy and Prometheus.

use std::{
    env, fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use serde_json::json;

use super::{
    examples,
    stage::{Stage, each_stage},
};
use crate::{
    commands::ssh::SshHome,
    support::{plugin::BINARY, ports::free_port, record::skipped, terraform::Run, wait::wait_for},
};

/// A chat in pieces, with the settings of the environment; and one with a wrong key.
const CLIENT: &str = r#"
import os, openai
client, model = openai.OpenAI(timeout=20), os.environ["MODEL"]
assert model in [known.id for known in client.models.list()]
question = dict(model=model, messages=[{"role": "user", "content": "the word pong"}], max_tokens=40)
pieces = [piece for piece in client.chat.completions.create(stream=True, **question) if piece.choices]
answer = "".join(piece.choices[0].delta.content or "" for piece in pieces)
assert answer == "You said: the word pong" and len(pieces) > 2, pieces
try:
    openai.OpenAI(api_key="guessed").chat.completions.create(**question)
except openai.AuthenticationError:
    open(os.environ["ANSWER"], "w").write(answer)
"#;

/// The Python that has the package `openai`: that of `.ci/run`, or the one on PATH. `None` without one.
fn python() -> Option<PathBuf> {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tools/openai/bin/python3");
    let candidates = [installed, PathBuf::from("python3")];
    let has_it = |python: &PathBuf| {
        let asked = Command::new(python).args(["-c", "import openai"]).stderr(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    };
    let found = candidates.into_iter().find(has_it);
    if found.is_none() {
        skipped("there is no Python with the package openai. Run .ci/run, or pip install openai.");
    }
    found
}

/// Whether a program is on PATH.
fn has(program: &str, package: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !found {
        skipped(&format!("there is no {program}. Install {package}."));
    }
    found
}

fn write_client(stage: &Stage<'_>) -> (PathBuf, PathBuf) {
    let (client, answer) = (stage.path("client.py"), stage.path("answer"));
    fs::write(&client, CLIENT).unwrap();
    (client, answer)
}

#[test]
fn an_openai_client_uses_the_private_endpoint() {
    let Some(python) = python() else { return };
    each_stage(&examples().join("stacks/private-endpoint"), |stage| {
        if !stage.workspace.cli.has(11, 11) {
            return;
        }
        let (client, answer) = write_client(stage);
        stage.workspace.set_env("ANSWER", &answer.display().to_string());
        stage.workspace.set_env("TF_VAR_command", &format!("{} {}", python.display(), client.display()));
        stage.run(&["apply", "-no-color", "-auto-approve"]);
        assert_eq!(fs::read_to_string(&answer).unwrap(), "You said: the word pong");
        stage.workspace.settled();
        // The application runs again, and the server is not touched.
        fs::remove_file(&answer).unwrap();
        stage.run(&["apply", "-no-color", "-auto-approve", "-replace=terraform_data.application"]);
        assert_eq!(fs::read_to_string(&answer).unwrap(), "You said: the word pong");
        let state = fs::read_to_string(stage.path("terraform.tfstate")).unwrap();
        assert!(!state.contains("for-a-test-only"));
        stage.run(&["destroy", "-no-color", "-auto-approve"]);
    });
}

/// A process that is ended with its group when dropped.
struct Service(Child);

impl Service {
    fn start(command: &mut Command) -> Self {
        Self(command.process_group(0).stdin(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = killpg(Pid::from_raw(i32::try_from(self.0.id()).unwrap()), Signal::SIGKILL);
        let _ = self.0.wait();
    }
}

#[test]
fn an_openai_client_uses_the_servers_behind_the_gateway() {
    let Some(python) = python() else { return };
    if !has("caddy", "caddy") || !has("promtool", "prometheus") {
        return;
    }
    each_stage(&examples().join("stacks/gateway"), |stage| {
        let (client, answer) = write_client(stage);
        let [first, second, gateway] = [free_port(), free_port(), free_port()];
        stage.workspace.set_env("TF_VAR_members", &json!({ "a": first, "b": second }).to_string());
        stage.workspace.set_env("TF_VAR_address", &format!("https://localhost:{gateway}"));
        let version = Command::new("caddy").arg("version").output().unwrap().stdout;
        if String::from_utf8(version).unwrap().trim_start_matches('v').starts_with("2.6.2") {
            stage.workspace.set_env("TF_VAR_request_buffers", "buffer_requests");
        }
        stage.run(&["apply", "-no-color", "-auto-approve"]);
        stage.workspace.settled();
        let state = stage.workspace.state();
        assert_eq!(state.output("models"), &json!({ "a": "chat", "b": "chat" }));

        // The files, as the example says.
        for (output, file) in
            [("known_hosts", "known_hosts"), ("caddyfile", "Caddyfile"), ("prometheus", "prometheus.yml")]
        {
            let text = stage.run(&["output", "-raw", output]);
            assert!(!text.contains("for-a-test-only"), "{text}");
            fs::write(stage.path(file), text).unwrap();
        }
        let here = |program: &str, arguments: &[&str]| {
            let mut command = Command::new(program);
            command.args(arguments).current_dir(stage.workspace.directory());
            let folder = stage.path("caddy").display().to_string();
            command.envs(["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"].map(|name| (name, folder.clone())));
            command
        };
        let checked = |mut command: Command| {
            let run = Run::of(command.output().unwrap());
            assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
            run.stdout
        };
        fs::write(stage.path("llama.key"), "for-a-test-only").unwrap();
        checked(here("promtool", &["check", "config", "prometheus.yml"]));
        checked(here("caddy", &["fmt", "--overwrite", "Caddyfile"]));
        assert_eq!(
            fs::read_to_string(stage.path("Caddyfile")).unwrap().trim(),
            stage.run(&["output", "-raw", "caddyfile"]).trim()
        );
        checked(here("caddy", &["validate", "--config", "Caddyfile"]));

        let Some(home) = SshHome::new(stage.workspace) else { return };
        fs::copy(stage.path("known_hosts"), home.0.join("known_hosts_damodel")).unwrap();
        let mut forwards = ["a", "b"].map(|name| {
            let unit = state.output("units")[name].as_str().unwrap().to_owned();
            let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
            assert!(line.ends_with(state.output("forwards")[name].as_str().unwrap().split_once(' ').unwrap().1));
            let words: Vec<_> = line.split(' ').collect();
            assert_eq!(words[0], "/usr/local/bin/terraform-provider-damodel");
            Some(Service::start(&mut home.command(stage.workspace, BINARY, &words[1..])))
        });
        let metrics = |port: u16, key: &str| {
            let address = format!("http://127.0.0.1:{port}/metrics");
            let header = format!("Authorization: Bearer {key}");
            let asked = here("curl", &["--silent", "--fail", "--header", &header, &address]).output().unwrap();
            asked.status.success().then(|| String::from_utf8(asked.stdout).unwrap())
        };
        for port in [first, second] {
            let text = wait_for("the server through ssh", || metrics(port, "for-a-test-only"));
            assert!(text.contains("llamacpp:requests_processing") && metrics(port, "guessed").is_none(), "{text}");
        }

        let log = fs::File::create(stage.path("caddy.log")).unwrap();
        let _caddy = Service::start(here("caddy", &["run", "--config", "Caddyfile"]).stderr(log));
        let root = stage.path("caddy/caddy/pki/authorities/local/root.crt");
        wait_for("the certificate of the authority", || root.is_file().then_some(()));
        let address = format!("https://localhost:{gateway}/v1");
        let health = format!("https://localhost:{gateway}/health");
        let root = root.display().to_string();
        wait_for("the gateway", || {
            let asked = here("curl", &["--silent", "--fail", "--cacert", &root, &health]).output().unwrap();
            asked.status.success().then_some(())
        });
        let ask = || {
            let mut command = here(python.to_str().unwrap(), &[client.to_str().unwrap()]);
            command.env("OPENAI_BASE_URL", &address).env("OPENAI_API_KEY", "for-a-test-only").env("MODEL", "chat");
            checked({
                command.env("SSL_CERT_FILE", &root).env("ANSWER", &answer);
                command
            });
            assert_eq!(fs::read_to_string(&answer).unwrap(), "You said: the word pong");
            fs::remove_file(&answer).unwrap();
        };
        ask();
        // One server is enough.
        forwards[0] = None;
        ask();
        drop(forwards);
        stage.run(&["destroy", "-no-color", "-auto-approve"]);
    });
}
