//! The sandbox on the command line.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use clap::Parser;
use damodel::commands::sandbox::{Arguments, run_until};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::{
    sandbox::client::ask,
    sandbox::yard::{has, is_live, key_pair},
    support::wait::wait_for,
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_terraform-provider-damodel");

#[tokio::test]
async fn it_says_how_to_reach_it_and_serves_until_it_is_told_to_end() {
    let folder = tempfile::tempdir().unwrap();
    let ready_file = folder.path().join("ready.json");
    let arguments = Arguments::parse_from([
        "sandbox",
        "--listen=127.0.0.1:0",
        "--form=error_status=matched,extra_fields",
        "--creation-seconds=0.25",
        "--disk-seconds=0.5",
        "--image-seconds=4",
        "--save-window-seconds=10",
        "--daily-saves=3",
        "--sshd-seconds=0.5",
        "--ssh-key=laptop=ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMceZxqs3jrKcG/Q+6+31a9355B2MSLI0jLFwySOqOxw laptop",
        "--token=token-of-this-test",
        "--ready-file",
        ready_file.to_str().unwrap(),
    ]);
    let (end, ended) = oneshot::channel();
    let path = ready_file.clone();
    let visitor = async move {
        // Runs when the command is about to wait: all of its output was written before.
        let ready: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let (base_url, token) = (ready["base_url"].as_str().unwrap(), ready["token"].as_str().unwrap());
        let reply = ask(base_url, token, "GET", "/api/spec/list?region=cn-east-1", None).await.unwrap();
        assert_eq!((reply.status, reply.json()["sandbox_extra"].is_object()), (200, true));
        end.send(()).unwrap();
        ready
    };
    let mut out = Vec::new();
    let waiting = async move { ended.await.map_err(std::io::Error::other) };
    let ready_file_seen = async {
        while !ready_file.exists() {
            tokio::task::yield_now().await;
        }
        visitor.await
    };
    let (ran, ready) = tokio::join!(run_until(arguments, PROGRAM.into(), &mut out, waiting), ready_file_seen);
    ran.unwrap();

    let said = String::from_utf8(out).unwrap();
    let base_url = ready["base_url"].as_str().unwrap();
    assert_eq!(said.lines().last(), Some(format!("sandbox listening on {base_url}").as_str()));
    assert!(said.contains(&format!("export DAMODEL_BASE_URL='{base_url}'")), "{said}");
    assert!(said.contains("export DAMODEL_API_TOKEN='token-of-this-test'"), "{said}");
    assert!(said.contains("provider \"damodel\" {"), "{said}");
    assert!(said.contains(ready["chat_key"].as_str().unwrap()), "{said}");
    assert_eq!(ready["registry_host"], "registry.damodel.test");
}

#[tokio::test]
async fn an_address_that_others_reach_is_refused() {
    let arguments = Arguments::parse_from(["sandbox", "--listen=0.0.0.0:0"]);
    let refused = run_until(arguments, PROGRAM.into(), &mut Vec::new(), std::future::pending()).await;
    assert!(refused.unwrap_err().to_string().starts_with("cannot start the sandbox"));
}

#[tokio::test]
async fn a_taken_port_names_the_option_that_selects_another() {
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let arguments = Arguments::parse_from(["sandbox".to_owned(), format!("--listen={}", holder.local_addr().unwrap())]);
    let refused = run_until(arguments, PROGRAM.into(), &mut Vec::new(), std::future::pending()).await;
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("--listen selects another address and port"), "{text}");
}

#[test]
fn wrong_usage_is_refused() {
    for arguments in [
        ["sandbox", "--form=integers=roman"],
        ["sandbox", "--creation-seconds=-1"],
        ["sandbox", "--listen=here"],
        ["sandbox", "--daily-saves=-1"],
        ["sandbox", "--disk-seconds=soon"],
        ["sandbox", "--ssh-key=laptop"],
        ["sandbox", "--sshd-seconds=late"],
    ] {
        assert!(Arguments::try_parse_from(arguments).is_err(), "{arguments:?}");
    }
}

#[test]
fn a_sandbox_that_is_killed_leaves_no_process_and_no_file() {
    if !has("ssh") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (key, line) = key_pair(folder.path(), "laptop");
    let ready_file = folder.path().join("ready.json");
    let mut sandbox = Command::new(PROGRAM)
        .args(["sandbox", "--listen=127.0.0.1:0", "--creation-seconds=0", "--ready-file"])
        .arg(&ready_file)
        .arg(format!("--ssh-key=laptop={line}"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let ready: Value = wait_for("the ready file", || serde_json::from_slice(&std::fs::read(&ready_file).ok()?).ok());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let api = |method: &str, path: &str, body: Option<&Value>| {
        let (base_url, token) = (ready["base_url"].as_str().unwrap(), ready["token"].as_str().unwrap());
        runtime.block_on(ask(base_url, token, method, path, body)).unwrap().json()
    };
    let body = json!({
        "region": "cn-east-1", "payment_type": "Hourly", "spec_id": 103, "gpu_num": 1, "data_disk_expand_size": 0,
        "image_id": 901, "image_type": "public", "login_method": 1, "ssh_pubkey_id": 7, "ssh_pubkey_name": "laptop",
    });
    let created = api("POST", "/api/instance/create", Some(&body));
    let uid = created["result"]["instance_uid"].as_str().unwrap_or_else(|| panic!("{created}"));
    let detail = api("GET", &format!("/api/instance/detail?instance_uid={uid}"), None);
    let started = Command::new("ssh")
        .args(["-F", "/dev/null", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-i"])
        .arg(key)
        .args(["-p", &detail["result"]["ssh_port"].to_string(), "root@127.0.0.1"])
        .arg("setsid sleep 600 >/dev/null 2>&1 & echo $!")
        .output()
        .unwrap();
    let pid = String::from_utf8(started.stdout).unwrap();
    assert!(is_live(&pid), "{pid:?}: {}", String::from_utf8_lossy(&started.stderr));
    let machines = api("GET", "/sandbox/machines", None);
    let home = PathBuf::from(machines["machines"][0]["home"].as_str().unwrap_or_else(|| panic!("{machines}")));
    assert!(home.exists());

    sandbox.kill().unwrap();
    sandbox.wait().unwrap();
    wait_for("the end of what ran there", || (!is_live(&pid) && !home.exists()).then_some(()));
}
