//! Logins to the instances of the sandbox with the system's `ssh`.

use std::{
    fs,
    io::{Read, Write},
    os::unix::process::ExitStatusExt,
    process::{Command, Stdio},
    time::Duration,
};

use damodel::sandbox::{LifeClock, Options, StateList};
use rstest::rstest;
use serde_json::json;

use crate::sandbox::yard::{Guest, Yard, is_live, key_pair};
use crate::support::wait::{wait_for, wait_until};

/// A specification without GPU.
const CPU: i64 = 203;

#[test]
fn the_password_lets_root_in_and_nothing_else_does() {
    let Some(yard) = Yard::open(Options::default()) else { return };
    let guest = yard.create(CPU, &json!({}));
    assert_eq!(guest.run("id -u >&2; echo in"), "in\n");
    for refused in [
        guest.with_password("guessed"),
        guest.with_password(""),
        // The other instance has a password of its own.
        guest.with_password(&yard.create(CPU, &json!({})).password),
    ] {
        let output = refused.output("echo in");
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(255), &b""[..]));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("Permission denied (publickey,password)"), "{said}");
    }
    let other = guest.ssh(&["-l", "ubuntu"], &["echo in"]).output().unwrap();
    assert_eq!(other.status.code(), Some(255));
    let interactive = ["-o", "PreferredAuthentications=none,keyboard-interactive"];
    assert_eq!(guest.ssh(&interactive, &["echo in"]).output().unwrap().status.code(), Some(255));
}

/// Of the size that the client asks for, whose processes end with its connection.
#[test]
fn a_session_may_have_a_terminal() {
    let Some(yard) = Yard::open(Options::default()) else { return };
    let guest = yard.create(CPU, &json!({}));
    let output = guest.ssh(&["-tt"], &["tty; echo $TERM >&2; stty -echo; read line; echo \"read $line\"; exit 3"]);
    let mut child = { output }.env("TERM", "vt100").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"typed\n").unwrap();
    let ended = child.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert_eq!(ended.status.code(), Some(3), "{printed}");
    assert!(printed.contains("/dev/pts/") && printed.contains("vt100") && printed.contains("read typed"), "{printed}");
    // Without a command: a shell that prompts.
    let mut shell = guest.ssh(&["-tt"], &[]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    shell.stdin.as_mut().unwrap().write_all(b"sh -c 'echo \"pid $((0 + $$)) ends\"; sleep 1000; true'\n").unwrap();
    let mut printed = String::new();
    let mut output = shell.stdout.take().unwrap();
    let sleeper = loop {
        let mut bytes = [0; 256];
        let count = output.read(&mut bytes).unwrap();
        assert!(count > 0, "{printed}");
        printed.push_str(&String::from_utf8_lossy(&bytes[..count]));
        // The terminal prints what is typed, too.
        let found = printed.rsplit_once("pid ").and_then(|(_, rest)| rest.split_once(" ends"));
        let is_number = |pid: &&str| pid.bytes().all(|byte| byte.is_ascii_digit());
        let found = found.map(|(pid, _)| pid).filter(is_number).map(str::to_owned);
        if let Some(found) = found {
            break found;
        }
    };
    assert!(is_live(&sleeper));
    shell.kill().unwrap();
    shell.wait().unwrap();
    wait_until("the processes of the terminal have ended", || !is_live(&sleeper));
}

#[test]
fn the_key_of_the_account_lets_root_in() {
    let folder = tempfile::tempdir().unwrap();
    let (laptop, line) = key_pair(folder.path(), "laptop");
    let (stranger, strangers_line) = key_pair(folder.path(), "stranger");
    let Some(yard) = Yard::open(Options { keys: [("laptop".to_owned(), line)].into(), ..Options::default() }) else {
        return;
    };
    let login = json!({ "login_method": 1, "ssh_pubkey_id": 7, "ssh_pubkey_name": "laptop" });
    let guest = yard.create(CPU, &login);
    assert_eq!(guest.with_key(&laptop).run("echo in"), "in\n");
    assert_eq!(guest.with_key(&stranger).output("echo in").status.code(), Some(255));
    // A client may have several keys.
    let both = guest.with_key(&laptop);
    let identity = format!("IdentityFile={}", stranger.display());
    assert_eq!(both.ssh(&["-o", &identity], &["echo in"]).output().unwrap().stdout, b"in\n");
    // Its records show no password, and it accepts none.
    let by_password = guest.output("echo in");
    assert!(String::from_utf8_lossy(&by_password.stderr).contains("Permission denied (publickey)."));
    // A logged in user can authorize other keys.
    guest.with_key(&laptop).run(&format!("echo '{strangers_line}' >>~/.ssh/authorized_keys"));
    assert_eq!(guest.with_key(&stranger).run("echo in"), "in\n");

    let unknown = json!({ "login_method": 1, "ssh_pubkey_id": 8, "ssh_pubkey_name": "lost" });
    let guest = yard.create(CPU, &unknown);
    assert_eq!(guest.with_key(&laptop).output("echo in").status.code(), Some(255));
}

#[test]
fn a_line_that_is_no_key_is_refused() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let options =
        Options { keys: [("laptop".to_owned(), "ssh-ed25519 nonsense".to_owned())].into(), ..Options::default() };
    let refused = runtime.block_on(damodel::sandbox::Sandbox::start(options)).unwrap_err();
    assert!(refused.to_string().contains("\"laptop\""), "{refused}");
}

#[test]
fn a_command_is_run_as_sshd_runs_one() {
    let Some(yard) = Yard::open(Options::default()) else { return };
    let guest = yard.create(CPU, &json!({}));
    let output = guest.output("echo out; echo err >&2; exit 7");
    assert_eq!(output.status.code(), Some(7));
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"out\n"[..], &b"err\n"[..]));

    let home = yard.machine(&guest).home;
    let environment = guest.run("pwd; echo $HOME; echo ~; echo $USER; echo $PATH; cat /proc/$$/comm");
    let lines: Vec<&str> = environment.lines().collect();
    let home = home.to_str().unwrap();
    assert_eq!(lines[..4], [home, home, home, "root"]);
    assert!(lines[4].starts_with(&format!("{home}/.machine/bin:")) && lines[4].ends_with("/usr/bin:/sbin:/bin"));
    assert_eq!(lines[5], "sh");

    // More than any window or pipe can buffer, in both directions.
    let mut child = guest.hold("cat");
    let sent: Vec<u8> = (0..4_000_000_u32).map(|number| number.to_le_bytes()[0]).collect();
    let mut input = child.stdin.take().unwrap();
    let copy = sent.clone();
    let writer = std::thread::spawn(move || input.write_all(&copy).unwrap());
    let mut received = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut received).unwrap();
    writer.join().unwrap();
    assert!(child.wait().unwrap().success() && received == sent);

    // A shell that reads commands from its input.
    let mut child = guest.ssh(&["-T"], &[]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"echo from a script\nexit 3\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(3), &b"from a script\n"[..]));

    // The end by a signal is no exit status, for which ssh has 255.
    assert_eq!(guest.output("kill -KILL $$").status.code(), Some(255));

    // Of the subsystems, file transfer is supported.
    for (subsystem, is_supported) in [("sftp", true), ("netconf", false)] {
        assert_eq!(guest.ssh(&["-s"], &[subsystem]).output().unwrap().status.success(), is_supported, "{subsystem}");
    }
}

#[test]
fn what_holds_the_output_holds_the_session() {
    let Some(yard) = Yard::open(Options::default()) else { return };
    let guest = yard.create(CPU, &json!({}));
    // With redirected output, it continues after the session.
    guest.run("sleep 600 >/dev/null 2>&1 </dev/null & echo $! >alone");
    assert!(is_live(&guest.run("cat alone")));
    // With open output, the client waits until it ends.
    let mut waiting = guest.hold("sleep 600 & echo $!");
    let id = wait_for("the id of the process", || {
        let mut id = String::new();
        let mut byte = [0];
        while waiting.stdout.as_mut().unwrap().read(&mut byte).unwrap() == 1 && byte != *b"\n" {
            id.push(char::from(byte[0]));
        }
        (!id.is_empty()).then_some(id)
    });
    assert!(waiting.try_wait().unwrap().is_none());
    guest.run(&format!("kill {id}"));
    assert!(waiting.wait().unwrap().success());
}

#[test]
fn a_command_outlives_a_client_that_is_killed() {
    let Some(yard) = Yard::open(Options::default()) else { return };
    let guest = yard.create(CPU, &json!({}));
    let mut client = guest.hold("echo $$ >id; exec sleep 600");
    let id = wait_for("the command", || {
        let id = fs::read_to_string(yard.machine(&guest).home.join("id")).unwrap_or_default();
        id.ends_with('\n').then_some(id)
    });
    client.kill().unwrap();
    assert_eq!(client.wait().unwrap().signal(), Some(9));
    assert!(is_live(&id) && guest.run("echo still here") == "still here\n" && is_live(&id));
}

#[test]
fn processes_end_with_their_instance_and_no_others_do() {
    let Some(mut yard) = Yard::open(Options { release: Duration::ZERO, ..Options::default() }) else { return };
    let mut foreign = Command::new("sleep").arg("600").spawn().unwrap();
    let [released, rebooted, stopped, left] = [0; 4].map(|_| yard.create(CPU, &json!({})));
    let detached = [&released, &rebooted, &stopped, &left].map(|guest| guest.detach("sleep 600"));
    // A process without the mark is found through its parent.
    let hidden = rebooted.run(
        "setsid nohup sh -c 'env -i sleep 600 & echo $! >hidden; wait' </dev/null >log 2>&1 & \
                               until [ -s hidden ]; do sleep 0.01; done; cat hidden",
    );
    assert!(detached.iter().all(|id| is_live(id)) && is_live(&hidden));

    yard.api("POST", "/api/instance/release", Some(&json!({ "instance_uid": released.uid })));
    assert_eq!(yard.detail(&released.uid)["status"], "Released");
    assert!(!is_live(&detached[0]) && is_live(&detached[1]));
    assert_eq!(released.output("true").status.code(), Some(255));

    yard.mutate(json!({ "reboot_instance": { "uid": rebooted.uid } }));
    assert!(!is_live(&detached[1]) && !is_live(&hidden) && is_live(&detached[2]));
    wait_for("sshd after a reboot", || rebooted.output("true").status.success().then_some(()));
    assert!(rebooted.run("cat log; cat hidden").contains(hidden.trim()), "the disk is as it was");

    yard.mutate(json!({ "set_instance_status": { "uid": stopped.uid, "status": "Stopped" } }));
    assert!(!is_live(&detached[2]) && is_live(&detached[3]));
    assert_eq!(stopped.output("true").status.code(), Some(255));
    yard.mutate(json!({ "set_instance_status": { "uid": stopped.uid, "status": "Running" } }));
    wait_for("sshd after a start", || stopped.output("test -e log").status.success().then_some(()));

    let home = yard.machine(&left).home;
    assert_eq!(yard.machine(&left).processes.len(), 1);
    yard.stop();
    assert!(!is_live(&detached[3]) && !home.exists() && !home.ancestors().nth(2).unwrap().exists());
    assert!(foreign.try_wait().unwrap().is_none(), "what the sandbox did not start");
    foreign.kill().unwrap();
    foreign.wait().unwrap();
}

#[test]
fn the_ports_of_two_instances_do_not_collide() {
    let Some(yard) = Yard::open(Options::default()) else { return };
    let [one, other] = [0; 2].map(|_| yard.create(CPU, &json!({})));
    let start = |model: &str| {
        format!(
            "~/public-storage/package/llama.cpp/bin/llama-server -m ~/public-storage/model/{model}.gguf --port 8000"
        )
    };
    assert_eq!((one.health(8000), other.health(8000)), (0, 0));
    let ids = [one.detach(&start("tiny")), other.detach(&start("no-template"))];
    let models = [&one, &other].map(|guest| {
        wait_for("a server", || (guest.health(8000) == 200).then_some(()));
        guest.http(8000, "GET", "/v1/models", None).unwrap().json()["data"][0]["id"].take()
    });
    assert!(models[0].as_str().unwrap().ends_with("/tiny.gguf"), "{models:?}");
    assert!(models[1].as_str().unwrap().ends_with("/no-template.gguf"), "{models:?}");
    assert_eq!(one.health(8001), 0);
    for (guest, id) in [(&one, &ids[0]), (&other, &ids[1])] {
        let listening = guest.run("ss -ltnpH 'sport = :8000'");
        assert!(listening.starts_with("LISTEN ") && listening.contains(" 0.0.0.0:8000 "), "{listening}");
        assert!(listening.contains(&format!("users:((\"llama-server\",pid={id},fd=")), "{listening}");
        assert_eq!(guest.run("ss -ltnpH 'sport = :8001'"), "");
    }
    // A killed server leaves no listener behind, and the port can be reused.
    one.run(&format!("kill -9 {}", ids[0]));
    wait_for("the end of the server", || (one.health(8000) == 0).then_some(()));
    assert_eq!(one.run("ss -ltnpH 'sport = :8000'"), "");
    one.detach(&start("tiny"));
    wait_for("another server", || (one.health(8000) == 200).then_some(()));
}

/// Whether a login fails with this text.
fn is_refused(guest: &Guest, why: &str) -> bool {
    String::from_utf8_lossy(&guest.output("true").stderr).contains(why)
}

#[test]
fn an_sshd_is_late_by_its_delay() {
    let options = Options {
        life_clock: LifeClock::Standing(1_770_000_000),
        sshd_start: Duration::from_secs(30),
        ..Options::default()
    };
    let Some(yard) = Yard::open(options) else { return };
    let guest = yard.create(CPU, &json!({}));
    assert!(is_refused(&guest, "Connection refused"));
    yard.sandbox().advance(Duration::from_secs(30));
    wait_until("sshd", || guest.output("true").status.success());
    yard.set(StateList::Instances, &guest.uid, &json!({ "host": { "sshd_delay_ms": 5000 } }));
    yard.mutate(json!({ "reboot_instance": { "uid": guest.uid } }));
    wait_for("a refusal", || (!guest.output("true").status.success()).then_some(()));
    yard.sandbox().advance(Duration::from_secs(5));
    wait_until("sshd after the reboot", || guest.output("true").status.success());
}

#[test]
fn a_load_test_does_not_take_every_port() {
    let Some(yard) = Yard::open(Options { generate_instances: 300, ..Options::default() }) else { return };
    let machines = yard.sandbox().machines();
    assert_eq!(machines.len(), 256);
    assert!(machines.iter().all(|machine| !machine.home.exists()), "nobody has logged in");
    yard.guest(&machines[0].uid).run("test -d public-storage");
    assert_eq!(yard.sandbox().machines().iter().filter(|machine| machine.home.exists()).count(), 1);
}

#[rstest]
#[case::rtx4090(103, "NVIDIA GeForce RTX 4090, 8.9, ", "12.6")]
#[case::p40(106, "Tesla P40, 6.1, ", "11.8")]
fn a_gpu_machine_has_its_tools(#[case] spec_id: i64, #[case] gpu: &str, #[case] toolkit: &str) {
    let Some(yard) = Yard::open(Options::default()) else { return };
    yard.set(StateList::Specs, &spec_id.to_string(), &json!({ "stock": 8 }));
    let guest = yard.create(spec_id, &json!({}));
    let told =
        guest.run("nvidia-smi --query-gpu=name,compute_cap,driver_version --format=csv,noheader; nvcc --version");
    assert!(told.starts_with(gpu) && told.contains(&format!("release {toolkit},")), "{told}");
    yard.set(StateList::Instances, &guest.uid, &json!({ "host": { "toolkit": "" } }));
    assert_eq!(guest.output("command -v nvcc").status.code(), Some(127));
    yard.set(StateList::Instances, &guest.uid, &json!({ "host": { "toolkit": "13.0", "has_driver": false } }));
    let output = guest.output("nvcc --list-gpu-arch | head -1; nvidia-smi -L");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(9));
    assert!(told.starts_with("compute_75\nNVIDIA-SMI has failed because"), "{told}");
}
