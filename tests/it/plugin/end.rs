//! Events that end the plugin, and events that do not, through a real process.

use std::{
    path::PathBuf,
    process::Stdio,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;
use terraform_plugin::{
    plugin::proto::plugin::{
        ConnInfo, Empty, grpc_broker_client::GrpcBrokerClient, grpc_controller_client::GrpcControllerClient,
        grpc_stdio_client::GrpcStdioClient,
    },
    testing::{COOKIE, ClientIdentity, DEADLINE, PluginProcess, client_config, connect_plain},
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
    time::timeout,
};

use crate::{plugin::check, support::plugin::BINARY};

#[tokio::test]
async fn shutdown_ends_the_process_while_streams_are_open() {
    let plugin = PluginProcess::start(BINARY).await;
    let channel = plugin.connect().await;
    let stdio = GrpcStdioClient::new(channel.clone()).stream_stdio(()).await;
    let knocks = tokio_stream::pending::<ConnInfo>();
    let broker = GrpcBrokerClient::new(channel.clone()).start_stream(knocks).await;

    GrpcControllerClient::new(channel.clone()).shutdown(Empty {}).await.unwrap();
    let ended = plugin.ended().await;
    assert_eq!(ended.status.code(), Some(0));
    assert!(ended.leftovers.is_empty(), "{ended:?}");
    assert_eq!(ended.stderr, "");
    // The streams ended in order, not because of a broken connection.
    assert_eq!(stdio.unwrap().into_inner().message().await.unwrap(), None);
    assert_eq!(broker.unwrap().into_inner().message().await.unwrap(), None);
}

/// A task that the end waits for would delay every end, and other tests delay only some.
#[tokio::test]
async fn an_idle_plugin_ends_at_once() {
    let start = Instant::now();
    let mut fastest = DEADLINE;
    while fastest > Duration::from_millis(50) {
        assert!(start.elapsed() < DEADLINE, "it took at least {fastest:?}");
        let plugin = PluginProcess::start(BINARY).await;
        let mut controller = GrpcControllerClient::new(plugin.connect().await);
        let asked = Instant::now();
        controller.shutdown(Empty {}).await.unwrap();
        plugin.ended().await;
        fastest = fastest.min(asked.elapsed());
    }
}

#[tokio::test]
async fn the_interrupts_of_a_terminal_are_left_to_the_core() {
    let plugin = PluginProcess::start(BINARY).await;
    for signal in [Signal::SIGINT, Signal::SIGHUP, Signal::SIGINT] {
        plugin.signal(signal);
        check(plugin.connect().await).await;
    }
    plugin.shut_down().await;
}

#[tokio::test]
async fn a_termination_ends_the_process_and_removes_the_socket() {
    let plugin = PluginProcess::start(BINARY).await;
    let _connected = plugin.connect().await;
    assert_eq!(plugin.sockets().len(), 1);
    plugin.signal(Signal::SIGTERM);
    let ended = plugin.ended().await;
    assert_eq!(ended.status.code(), Some(0));
    assert!(ended.leftovers.is_empty(), "{ended:?}");
}

#[tokio::test]
async fn the_end_of_standard_input_means_nothing() {
    let mut command = PluginProcess::command(BINARY);
    command.stdin(Stdio::piped());
    let mut plugin = PluginProcess::launch(command, Some(ClientIdentity::generate())).await;
    drop(plugin.take_stdin().unwrap());
    check(plugin.connect().await).await;
    plugin.shut_down().await;
}

#[tokio::test]
async fn a_log_that_nobody_reads_harms_nothing() {
    let mut plugin = PluginProcess::start(BINARY).await;
    plugin.close_stderr().await;
    // This logs a warning, which cannot be written.
    let server = plugin.handshake.certificate.as_ref().unwrap();
    let nobody = client_config(server, None, &[&rustls::version::TLS12]);
    assert!(plugin.tls(nobody).await.is_err());
    check(plugin.connect().await).await;
    plugin.shut_down().await;
}

#[test]
fn a_core_that_is_gone_before_the_handshake_leaves_nothing_behind() {
    let temporary = tempfile::tempdir().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = std::process::Command::new(BINARY)
        .env(COOKIE.0, COOKIE.1)
        .env("TMPDIR", temporary.path())
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
        .wait_with_output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let reason = String::from_utf8(output.stderr).unwrap();
    assert!(reason.contains("write to standard output"), "{reason}");
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_closed_connection_ends_nothing() {
    let plugin = PluginProcess::start(BINARY).await;
    for _ in 0..3 {
        check(plugin.connect().await).await;
    }
    plugin.shut_down().await;
}

#[tokio::test]
async fn the_death_of_the_core_ends_the_process() {
    // The shell stands for Terraform here; because of the second command it cannot replace itself with the plugin.
    let mut core = PluginProcess::command("sh");
    core.args(["-c", "\"$0\"; :", BINARY]).stdin(Stdio::null());
    let plugin = PluginProcess::launch(core, Some(ClientIdentity::generate())).await;
    let _connected = plugin.connect().await;
    assert_eq!(plugin.sockets().len(), 1);

    plugin.signal(Signal::SIGKILL);
    // The plugin has the standard output open, so this waits for its end.
    let ended = plugin.ended().await;
    assert_eq!(ended.status.code(), None, "the shell was killed");
    assert!(ended.leftovers.is_empty(), "{ended:?}");
}

#[tokio::test]
async fn a_debug_server_tells_how_to_attach_and_ends_on_interrupt() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let temporary = tempfile::tempdir().unwrap();
        let mut child = Command::new(BINARY)
            .arg("-debug")
            .env_remove(COOKIE.0)
            .env("TMPDIR", temporary.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let servers: Value = loop {
            let line = timeout(DEADLINE, lines.next_line()).await.unwrap();
            let line = line.unwrap().expect("the assignment");
            let value = line.trim().strip_prefix("TF_REATTACH_PROVIDERS='");
            if let Some(value) = value.and_then(|rest| rest.strip_suffix('\'')) {
                break serde_json::from_str(value).unwrap();
            }
        };
        let id = child.id().unwrap();
        let servers = servers.as_object().unwrap();
        let keys: Vec<_> = servers.keys().collect();
        assert_eq!(
            keys,
            ["damodel/damodel", "registry.opentofu.org/damodel/damodel", "registry.terraform.io/damodel/damodel",]
        );
        for server in servers.values() {
            assert_eq!(server["Protocol"], "grpc");
            assert_eq!(server["ProtocolVersion"], 6);
            assert_eq!(server["Pid"], id);
            assert_eq!(server["Test"], true);
            assert_eq!(server["Addr"]["Network"], "unix");
        }
        let socket = servers["damodel/damodel"]["Addr"]["String"].as_str();
        let socket = PathBuf::from(socket.unwrap());
        let connected = connect_plain(&socket).await.unwrap();
        check(connected.clone()).await;

        kill(Pid::from_raw(id.try_into().unwrap()), signal).unwrap();
        let status = timeout(DEADLINE, child.wait()).await.unwrap().unwrap();
        assert_eq!(status.code(), Some(0));
        assert!(!socket.exists());
        assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
    }
}
