//! A provider that was built for another system, run by an emulator or Wine: the handshake, interrupts, a life with the
//! real command line, and the end of an orphan. `DAMODEL_FOREIGN_PROVIDER` is its command line.

use std::{env, io::Write as _, process::Stdio};

use damodel::sandbox::Balance;
use nix::sys::signal::Signal;
use terraform_plugin::{
    plugin::proto::{
        health::health_check_response::ServingStatus,
        plugin::{Empty, grpc_controller_client::GrpcControllerClient},
    },
    testing::{ClientIdentity, PluginProcess},
};

use crate::{
    plugin::check,
    support::terraform::{Instance, config, disk, each_workspace},
};

/// The words of the command line. Without them the test says so past the test harness.
fn foreign() -> Option<Vec<String>> {
    let line = env::var("DAMODEL_FOREIGN_PROVIDER").unwrap_or_default();
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    if words.is_empty() {
        let example = "wine64 /path/to/terraform-provider-damodel.exe";
        let _ = writeln!(std::io::stderr(), "skipped: DAMODEL_FOREIGN_PROVIDER is not set, as to \"{example}\"");
        return None;
    }
    Some(words)
}

async fn launch(words: &[impl AsRef<std::ffi::OsStr>]) -> PluginProcess {
    let mut command = PluginProcess::command("env");
    command.args(words).stdin(Stdio::null());
    PluginProcess::launch(command, Some(ClientIdentity::generate())).await
}

#[tokio::test]
async fn a_foreign_provider_serves_through_interrupts_and_shuts_down() {
    let Some(words) = foreign() else { return };
    let plugin = launch(&words).await;
    assert_eq!(plugin.handshake.fields[1], "6");
    assert_eq!(check(plugin.connect().await).await, ServingStatus::Serving);
    for _ in 0..2 {
        // Wine makes an event of the console of it.
        plugin.signal(Signal::SIGINT);
        assert_eq!(check(plugin.connect().await).await, ServingStatus::Serving);
    }
    GrpcControllerClient::new(plugin.connect().await).shutdown(Empty {}).await.unwrap();
    let ended = plugin.ended().await;
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert_eq!(ended.stdout, "");
    // Wine leaves files of its own there.
    let is_socket = |path: &&std::path::PathBuf| path.to_string_lossy().contains("/plugin");
    assert_eq!(ended.leftovers.iter().find(is_socket), None);
}

#[tokio::test]
async fn a_foreign_provider_ends_with_the_process_that_started_it() {
    let Some(mut words) = foreign() else { return };
    // The parent is a process of the same system.
    let is_windows = words.last().unwrap().ends_with(".exe");
    let (at, shell) = if is_windows { (words.len() - 1, "cmd /c") } else { (0, "sh -c \"$@\";: sh") };
    words.splice(at..at, shell.split(' ').map(str::to_owned));
    let plugin = launch(&words).await;
    assert_eq!(check(plugin.connect().await).await, ServingStatus::Serving);
    plugin.signal(Signal::SIGKILL);
    // The provider holds the standard output, so this waits for its end.
    assert_eq!(plugin.ended().await.status.code(), None);
}

#[test]
fn a_foreign_provider_lives_under_the_real_command_line() {
    let Some(words) = foreign() else { return };
    let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    each_workspace(|site, workspace| {
        workspace.wrap_provider(&format!("exec {} \"$@\"", words.join(" ")));
        workspace.apply_ok(&config(format!("{}{}", Instance::new("x"), disk("data"))));
        assert_eq!(site.live().len(), 1);
        workspace.finish();
        assert_eq!(site.balance(), Balance { created: 1, released: 1, removed: 0, live: 0 });
    });
}
