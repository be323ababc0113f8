//! Random updates of a running server, on a real sshd, by runs that end, are killed, or lose their connection.

use std::{
    env,
    io::{Read, Write},
    net::TcpStream,
    process::Command,
    time::Duration,
};

use rand::{RngExt as _, SeedableRng, rngs::StdRng, seq::IndexedRandom};

use super::{
    X, pid,
    plain::{self, Host},
    runs, state_folder, until,
};
use crate::support::terraform::{Cli, Site, Started, each_cli};

/// Models of the sandbox, and whether a server fails with them without a request.
const MODELS: &[(&str, bool)] = &[
    ("tiny", true),
    ("slow-1s", true),
    ("nowhere", true),
    ("not-gguf", true),
    ("truncated", true),
    ("crash-on-load", true),
    ("oom-on-load", true),
    ("gpu-full", true),
    ("crash-on-chat", true),
    ("oom-on-chat", true),
    ("slow-60s", false),
    ("error-on-chat", false),
    ("hang-on-chat", false),
];

/// The disturbance of a run, at a random moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disturbance {
    Nothing,
    /// SIGKILL for Terraform and the provider.
    Both,
    /// SIGKILL for the provider.
    Provider,
    /// SIGKILL for the sessions of sshd: the provider logs in again.
    Sessions,
}

/// After each disturbed update a server serves. `LLAMA_UPDATES` is the number of updates, which all follow from
/// `LLAMA_SEED`.
#[test]
fn random_updates_leave_a_server_that_serves() {
    let number = |name: &str, default: u64| env::var(name).map_or(default, |text| text.parse().unwrap());
    each_cli(|cli| update(cli, number("LLAMA_SEED", 1), number("LLAMA_UPDATES", 3)));
}

fn update(cli: &Cli, seed: u64, updates: u64) {
    let Some(host) = Host::start() else { return };
    let site = Site::start();
    let workspace = plain::workspace(cli, &site);
    workspace.apply_ok(&plain::config(&host.server()));
    let mut random = StdRng::seed_from_u64(seed);
    for number in 1..=updates {
        let (model, fails_alone) = *MODELS.choose(&mut random).unwrap();
        let mut server = host.server().model(model).text("build", "prebuilt").text("ready_timeout", "5s");
        server = server.set("context_size", random.random_range(256..30_000));
        if random.random_ratio(1, 6) {
            server = server.set("extra_args", "[\"--no-such-flag\"]");
        }
        workspace.write(&plain::config(&server));
        let all = [Disturbance::Nothing, Disturbance::Sessions, Disturbance::Both, Disturbance::Provider];
        // If the run is killed, only the next run detects a successor that is healthy but does not compute.
        let disturbance = *all[..if fails_alone { 4 } else { 2 }].choose(&mut random).unwrap();
        let told = format!("seed {seed}, update {number}: {model}, {disturbance:?}");
        let moment = Duration::from_millis(random.random_range(0..4000));
        if disturbance == Disturbance::Nothing {
            workspace.try_apply(&[]);
        } else {
            let mut started = Started::apply(&workspace);
            if !started.ends_within(moment) {
                match disturbance {
                    Disturbance::Both => started.kill(),
                    Disturbance::Provider => started.kill_provider(),
                    Disturbance::Nothing | Disturbance::Sessions => host.sshd.kill_sessions(),
                }
            }
            started.ended(true);
            // As after a minute without a client.
            let attended = state_folder(&host.sshd.home().join("workspace"), host.port).join("attended");
            let _ = Command::new("touch").args(["-c", "-d", "10 minutes ago"]).arg(attended).status();
        }
        until(&told, || chats(host.port));
    }
    // The next run continues from any state.
    workspace.apply_ok(&plain::config(&host.server()));
    let server = pid(&workspace.state());
    assert_eq!((host.servers(), runs(server)), (vec![server], true), "{X}");
    workspace.destroy_ok();
    assert_eq!(host.servers(), []);
}

/// Whether a chat is answered.
fn chats(port: u16) -> bool {
    let body = r#"{"messages":[{"role":"user","content":"ping"}],"max_tokens":1}"#;
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        let head =
            "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json";
        stream.write_all(format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}
