//! `ssh` with a real OpenSSH, into instances of the sandbox. The folder `.ssh` of the user is one of the test, which
//! takes root.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use damodel::{
    sandbox::{Options, StateList},
    ssh::HostKey,
};
use nix::unistd::{User, geteuid};
use serde_json::json;

use crate::{
    acceptance::llama::{self, Server},
    support::{
        plugin::BINARY,
        ports::free_port,
        program,
        record::skipped,
        sshd::{Keys, Sshd},
        terraform::{Instance, Site, Workspace, config, each_cli},
        wait::wait_until,
    },
};

/// A host key of no instance.
const OTHER: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKtKuIRU8jjUPnTbKmLZX3BVsrUXLkSc2RwTmZCvSFYZ";

/// The user's folder of ssh, for the processes that a test starts.
pub(crate) struct SshHome(pub(crate) PathBuf);

impl SshHome {
    pub(crate) fn new(workspace: &Workspace<'_>) -> Option<Self> {
        if !geteuid().is_root() {
            skipped("a folder of ssh for a test takes root");
            return None;
        }
        let folder = workspace.beside("ssh");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        fs::create_dir_all(Self::real()).unwrap();
        Some(Self(folder))
    }

    fn real() -> PathBuf {
        User::from_uid(geteuid()).unwrap().unwrap().dir.join(".ssh")
    }

    /// The user's own configuration of ssh.
    fn configure(&self, text: &str) {
        fs::write(self.0.join("config"), text).unwrap();
    }

    fn known_hosts(&self) -> String {
        fs::read_to_string(self.0.join("known_hosts_damodel")).unwrap_or_default()
    }

    /// A command with this folder.
    pub(crate) fn command(&self, workspace: &Workspace<'_>, program: &str, arguments: &[&str]) -> Command {
        let prepare = "mount --bind \"$0\" \"$1\" && shift && exec \"$@\"";
        let like = workspace.command(&[]);
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", prepare]).arg(&self.0).arg(Self::real()).arg(program).args(arguments);
        command.current_dir(workspace.directory()).stdin(Stdio::null());
        for (name, value) in like.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.env("DAMODEL_BASE_URL", workspace.site.base_url()).env("DAMODEL_API_TOKEN", workspace.site.token());
        command
    }

    fn ssh(&self, workspace: &Workspace<'_>, arguments: &[&str]) -> Command {
        let cli = workspace.cli.program.display().to_string();
        self.command(workspace, BINARY, &[&["ssh", "--cli", &cli][..], arguments].concat())
    }

    /// The output and the exit code.
    fn run(&self, workspace: &Workspace<'_>, arguments: &[&str]) -> (String, String, Option<i32>) {
        ended(self.ssh(workspace, arguments).output().unwrap())
    }
}

fn ended(output: Output) -> (String, String, Option<i32>) {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (text(output.stdout), text(output.stderr), output.status.code())
}

fn each(options: &Options, test: impl Fn(&Workspace<'_>, &SshHome)) {
    each_cli(|cli| {
        let site = Site::with(options.clone());
        let workspace = Workspace::new(cli, &site);
        let Some(home) = SshHome::new(&workspace) else { return };
        test(&workspace, &home);
    });
}

#[test]
fn a_password_is_answered_by_the_program_and_ssh_keeps_its_own_words() {
    each(&llama::options(), |workspace, home| {
        workspace.apply_ok(&config(format!("{}{}", Instance::new("gpu"), Instance::new("twin"))));
        let uid = workspace.state().resource("damodel_instance.gpu").id();
        // Hardenings of a user's own configuration.
        home.configure(
            "Host *\n  BatchMode yes\n  PasswordAuthentication no\n  PubkeyAuthentication yes\n  HashKnownHosts yes\n",
        );
        for target in ["damodel_instance.gpu", &uid] {
            let (out, said, code) = home.run(workspace, &[target, "--", "echo in; exit 7"]);
            assert_eq!((out.as_str(), code), ("in\n", Some(7)), "{said}");
        }
        let known = home.known_hosts();
        assert!(known.starts_with(&format!("{uid} ssh-")) && known.lines().count() == 1, "{known}");
        // Another instance at the same address has a key of its own.
        let (out, said, code) = home.run(workspace, &["damodel_instance.twin", "echo in"]);
        assert_eq!((out.as_str(), code, home.known_hosts().lines().count()), ("in\n", Some(0), 2), "{said}");
        // Options after the target are those of ssh and of the remote command.
        let (out, said, code) = home.run(workspace, &[&uid, "-tt", "stty size; tty; echo --version --help"]);
        assert!(code == Some(0) && out.contains("/dev/pts/") && out.contains("--version --help"), "{out}{said}");
        let (out, said, code) = home.run(workspace, &["--print", &uid, "-N", "-L", "1:127.0.0.1:2"]);
        assert!(code == Some(0) && out.starts_with("ssh -o HostKeyAlias=") && out.ends_with(" -N -L 1:127.0.0.1:2\n"));
        assert!(!out.contains("ASKPASS") && said.is_empty(), "{out}{said}");
        let (out, said, code) = home.run(workspace, &["--jupyter", &uid]);
        assert!(code == Some(0) && out.contains("token="), "{out}{said}");

        for (arguments, words) in [
            (&["damodel_instance.other", "id"][..], "damodel_instance.gpu"),
            (
                &["h", "id"],
                "error: no instance with the UID h in this account: give an address of the state, or the UID\n",
            ),
            (
                &["5001", "id"],
                "(5001 looks like the database_id of an instance: use its id, damodel_instance.<name>.id)",
            ),
            (&[], "error: no TARGET. Usage: terraform-provider-damodel ssh [OPTIONS] [SSH-OPTION]... TARGET"),
            (&["--print"], "no TARGET"),
            (&["--no-such-option", &uid], "--no-such-option"),
            (&["--token", "t", &uid], "--token"),
        ] {
            let (out, said, code) = home.run(workspace, arguments);
            assert_eq!((out.as_str(), code), ("", Some(255)), "{arguments:?}: {said}");
            assert!(said.contains(words), "{said}");
        }
        // A key that is not the known one.
        fs::write(home.0.join("known_hosts_damodel"), format!("{uid} {OTHER}\n")).unwrap();
        let (out, said, code) = home.run(workspace, &[&uid, "echo in"]);
        assert_eq!((out.as_str(), code), ("", Some(255)), "{said}");
        workspace.site.set(StateList::Instances, &uid, &json!({"status": "Stopped"}));
        let (_, said, code) = home.run(workspace, &[&uid, "id"]);
        assert!(code == Some(255) && said.contains("is Stopped"), "{said}");
    });
}

/// Whatever ssh passes on: the password is in no argument, no environment and no file.
#[test]
fn the_password_is_nowhere_but_in_the_answer() {
    each(&llama::options(), |workspace, home| {
        workspace.apply_ok(&config(Instance::new("gpu")));
        let folder = workspace.beside("tools");
        fs::create_dir(&folder).unwrap();
        let record = workspace.beside("seen");
        let script =
            format!("#!/bin/sh\n{{ printf '%s\\n' \"$@\"; env; }} >>{}\nexec /usr/bin/ssh \"$@\"\n", record.display());
        program::put(&folder.join("ssh"), &script);
        let mut command = home.ssh(workspace, &["damodel_instance.gpu", "cat /proc/self/environ"]);
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
        let (out, said, code) = ended(command.env("PATH", &path).output().unwrap());
        assert_eq!(code, Some(0), "{said}");
        let key = Keys::new(&folder).make("laptop", &["-t", "ed25519"]).with_extension("pub").display().to_string();
        let cli = workspace.cli.program.display().to_string();
        let words = ["ssh-config", "--cli", &cli, "damodel_instance.gpu", "--authorize", &key];
        let (block, told, code) = ended(home.command(workspace, BINARY, &words).env("PATH", &path).output().unwrap());
        assert_eq!(code, Some(0), "{told}");
        let seen = fs::read_to_string(record).unwrap();
        assert_eq!(seen.matches("SSH_ASKPASS_REQUIRE=force").count(), 2, "{seen}");
        let all = [seen, out, said, block, told, home.known_hosts()].concat();
        let token = workspace.site.token().to_owned();
        for secret in workspace.site.secrets() {
            // The token is the user's own variable.
            assert!(secret == token || !all.contains(&secret), "{secret}");
        }
    });
}

#[test]
fn an_account_key_logs_in_as_ssh_always_does() {
    let folder = tempfile::tempdir().unwrap();
    let key = Keys::new(folder.path()).make("laptop", &["-t", "ed25519"]);
    let line = fs::read_to_string(key.with_extension("pub")).unwrap();
    let options = Options { keys: [("laptop".to_owned(), line)].into(), ..llama::options() };
    each(&options, |workspace, home| {
        let instance = Instance::new("gpu")
            .text("login_method", "ssh_key")
            .set("ssh_pubkey_id", 7)
            .text("ssh_pubkey_name", "laptop");
        workspace.apply_ok(&config(instance));
        let own = key.display().to_string();
        let (out, said, code) = home.run(workspace, &["damodel_instance.gpu", "-i", &own, "echo in"]);
        assert_eq!((out.as_str(), code), ("in\n", Some(0)), "{said}");
        let (_, said, code) = home.run(workspace, &["damodel_instance.gpu", "-oBatchMode=yes", "echo in"]);
        assert!(code == Some(255) && said.contains("Permission denied"), "{said}");
    });
}

/// The pin of the state is enforced before a credential is sent, whichever address is named.
#[test]
fn a_server_in_the_state_pins_the_host_key_and_is_reached_through_a_tunnel() {
    each(&llama::options(), |workspace, home| {
        workspace.apply_ok(&Server::new().config());
        let state = workspace.state();
        let uid = state.resource("damodel_instance.gpu").id();
        let pinned = state.resource(llama::X).value("host_key").as_str().unwrap().to_owned();
        fs::write(home.0.join("known_hosts_damodel"), format!("ins-other {pinned}\n{uid} ssh-ed25519 AAAA\n")).unwrap();
        let (out, said, code) = home.run(workspace, &["damodel_instance.gpu", "echo in"]);
        assert_eq!((out.as_str(), code), ("in\n", Some(0)), "{said}");
        assert_eq!(home.known_hosts(), format!("ins-other {pinned}\n{uid} {pinned}\n"));
        let port = free_port();
        let forward = format!("{port}:127.0.0.1:8000");
        let mut tunnel = home.ssh(workspace, &[llama::X, "-N", "-L", &forward]).spawn().unwrap();
        wait_until("a chat is answered", || chat(port).contains("You said: through"));
        tunnel.kill().unwrap();
        tunnel.wait().unwrap();
        // Another key there, as of another machine.
        let file = workspace.directory().join("terraform.tfstate");
        let text = fs::read_to_string(&file).unwrap();
        for (pin, words) in [
            (OTHER, "Host key verification failed"),
            ("SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "No credential was sent"),
        ] {
            fs::write(&file, text.replace(&pinned, pin)).unwrap();
            let (out, said, code) = home.run(workspace, &["damodel_instance.gpu", "echo in"]);
            assert!((out.as_str(), code) == ("", Some(255)) && said.contains(words), "{said}");
        }
        // A line of an earlier machine, which a fingerprint did not match: the server is asked for its key.
        let fingerprint = pinned.parse::<HostKey>().unwrap().fingerprint();
        fs::write(&file, text.replace(&pinned, &fingerprint)).unwrap();
        fs::write(home.0.join("known_hosts_damodel"), format!("{uid} {OTHER}\n")).unwrap();
        let (out, said, code) = home.run(workspace, &["damodel_instance.gpu", "echo in"]);
        assert_eq!((out.as_str(), code), ("in\n", Some(0)), "{said}");
        assert_eq!(home.known_hosts(), format!("{uid} {pinned}\n"));
        fs::write(&file, text).unwrap();
        // An address of the state is that of the selected workspace.
        workspace.run_ok(&["workspace", "new", "other"]);
        let (_, said, code) = home.run(workspace, &["damodel_instance.gpu", "echo in"]);
        assert!(code == Some(255) && said.contains("is not in the state"), "{said}");
        workspace.run_ok(&["workspace", "select", "default"]);
    });
}

/// An ssh that ignores an option would send the password to any host.
#[test]
fn an_ssh_that_is_not_openssh_is_not_run() {
    each(&Site::options(), |workspace, home| {
        workspace.apply_ok(&config(Instance::new("gpu")));
        let (folder, record) = (workspace.beside("tools"), workspace.beside("seen"));
        fs::create_dir(&folder).unwrap();
        let script = format!("#!/bin/sh\necho \"$*\" >>{}\necho Dropbear v2022.83 >&2\n", record.display());
        program::put(&folder.join("ssh"), &script);
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
        let (out, said, code) =
            ended(home.ssh(workspace, &["damodel_instance.gpu", "id"]).env("PATH", path).output().unwrap());
        assert_eq!((out.as_str(), code), ("", Some(255)), "{said}");
        assert!(said.contains("ssh is Dropbear v2022.83; OpenSSH 8.4 or newer is needed"), "{said}");
        assert_eq!(fs::read_to_string(record).unwrap(), "-V\n");
    });
}

fn chat(port: u16) -> String {
    let body = r#"{"messages": [{"role": "user", "content": "through"}]}"#;
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        let length = body.len();
        write!(
            stream,
            "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\
             \r\n{body}"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().unwrap_or_default()
}

/// Options before TARGET, as other programs pass them, and those that would lead elsewhere.
#[test]
fn options_of_ssh_may_come_before_the_target() {
    each(&Site::options(), |workspace, home| {
        workspace.apply_ok(&config(Instance::new("gpu")));
        let uid = workspace.state().resource("damodel_instance.gpu").id();
        // As an editor calls it.
        let port = free_port().to_string();
        let words = ["-T", "-D", &port, "-o", "ConnectTimeout=15", "damodel_instance.gpu", "echo in"];
        let (out, said, code) = home.run(workspace, &words);
        assert_eq!((out.as_str(), code), ("in\n", Some(0)), "{said}");
        // The options of this program are stronger.
        fs::write(home.0.join("known_hosts_damodel"), format!("{uid} {OTHER}\n")).unwrap();
        let loose = [
            "-oStrictHostKeyChecking=no",
            "-oUserKnownHostsFile=/dev/null",
            "-oHostKeyAlias=x",
            "-o",
            "CheckHostIP=yes",
        ];
        let (out, said, code) = home.run(workspace, &[&loose[..], &[uid.as_str(), "echo in"]].concat());
        assert!((out.as_str(), code) == ("", Some(255)) && said.contains("Host key verification failed"), "{said}");
        let requests = workspace.site.ledger().requests.len();
        for refused in [
            &["-p", "22"][..],
            &["-lme"],
            &["-vp22"],
            &["-oHostName=x"],
            &["-o", "HOSTNAME x"],
            &["-o", " \"hostname\" = x"],
        ] {
            let (out, said, code) = home.run(workspace, &[refused, &[uid.as_str(), "echo in"]].concat());
            assert_eq!((out.as_str(), code), ("", Some(255)), "{refused:?}: {said}");
            assert!(said.contains("before TARGET: address, port and user come from the service"), "{said}");
        }
        let own = |arguments: &[&str]| ended(Command::new("ssh").args(arguments).output().unwrap());
        for arguments in [&["-V"][..], &["-Q", "cipher"]] {
            assert_eq!(home.run(workspace, arguments), own(arguments));
        }
        assert_eq!(workspace.site.ledger().requests.len(), requests, "the service was asked");
    });
}

/// Each program that uses ssh, with a file that comes back.
fn copies(workspace: &Workspace<'_>, home: &SshHome, host: &str, by: &[&str]) {
    let file = workspace.beside("file").display().to_string();
    fs::write(&file, host).unwrap();
    let batch = workspace.beside("batch").display().to_string();
    fs::write(&batch, format!("put {file} by-sftp\n")).unwrap();
    let [program, argument] = by else { panic!() };
    let shell = if *program == "ssh" { format!("ssh {argument}") } else { (*program).to_owned() };
    let with = if *program == "ssh" { ["-F", argument.split_once(' ').unwrap().1] } else { ["-S", program] };
    for (tool, arguments) in [
        // By the subsystem, and as before OpenSSH 9.
        ("scp", vec![with[0], with[1], &file, &format!("{host}:by-scp")]),
        ("scp", vec!["-O", with[0], with[1], &file, &format!("{host}:by-scp")]),
        ("sftp", vec![with[0], with[1], "-b", &batch, host]),
        ("rsync", vec!["-e", &shell, &file, &format!("{host}:by-rsync")]),
    ] {
        if Command::new(tool).arg("--version").output().is_err() {
            skipped(&format!("{tool} is not installed"));
            continue;
        }
        let (out, said, code) = ended(home.command(workspace, tool, &arguments).output().unwrap());
        assert_eq!(code, Some(0), "{tool}: {out}{said}");
        let machines = workspace.site.sandbox().machines();
        let copied = machines.iter().any(|machine| {
            let copy = Path::new(&machine.home).join(format!("by-{tool}"));
            fs::read_to_string(&copy).is_ok_and(|text| text == host) && fs::remove_file(copy).is_ok()
        });
        assert!(copied, "{tool} to {host}");
    }
    // That of `.ci/run`.
    let ansible = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tools/openai/bin/ansible");
    if !ansible.is_file() {
        skipped("ansible is not installed");
        return;
    }
    let inventory = format!("{host},");
    let with = if *program == "ssh" {
        format!("ansible_ssh_common_args='{argument}'")
    } else {
        format!("ansible_ssh_executable={program}")
    };
    let words = ["all", "-i", &inventory, "-m", "ping", "-e", &with];
    let mut ansible = home.command(workspace, &ansible.display().to_string(), &words);
    ansible.env("ANSIBLE_HOME", workspace.beside("ansible")).env("ANSIBLE_PIPELINING", "1");
    let (out, said, code) = ended(ansible.output().unwrap());
    assert!(code == Some(0) && out.contains("\"ping\": \"pong\""), "{out}{said}");
}

/// A program that is ssh for others.
fn as_ssh(workspace: &Workspace<'_>) -> String {
    let program = workspace.beside("as-ssh");
    let cli = workspace.cli.program.display();
    let text = format!("#!/bin/sh\nexec {BINARY} ssh --cli {cli} --chdir {} \"$@\"\n", workspace.directory().display());
    program::put(&program, &text);
    program.display().to_string()
}

#[test]
fn programs_that_use_ssh_get_in_by_password_and_by_the_printed_block() {
    let folder = tempfile::tempdir().unwrap();
    let key = Keys::new(folder.path()).make("own key", &["-t", "ed25519"]);
    let public = key.with_extension("pub").display().to_string();
    each(&llama::options(), |workspace, home| {
        let instances = Instance::new("gpu").set("for_each", "toset([\"a\"])").set("name", "\"gpu\"");
        workspace.apply_ok(&config(&instances));
        let address = "damodel_instance.gpu[\"a\"]";
        let uid = || workspace.state().resource(address).id();
        copies(workspace, home, &uid(), &[&as_ssh(workspace), ""]);

        let cli = workspace.cli.program.display().to_string();
        let run = |arguments: &[&str]| {
            let words = [&["ssh-config", "--cli", &cli][..], arguments].concat();
            ended(home.command(workspace, BINARY, &words).output().unwrap())
        };
        let (plain, said, code) = run(&[address]);
        assert!(code == Some(0) && said.is_empty(), "{said}");
        let first = format!("Host {} damodel_instance.gpu-a\n", uid());
        assert!(
            plain.starts_with(&first) && plain.contains("  # Programs ask for this instance's password."),
            "{plain}"
        );
        assert!(!plain.contains("IdentityFile"), "{plain}");
        assert_eq!(run(&["--all"]).0, plain);

        let block = workspace.beside("block").display().to_string();
        let connect = |name: &str| {
            let ssh = home.command(workspace, "ssh", &["-F", &block, "-oBatchMode=yes", name, "echo in"]).output();
            ended(ssh.unwrap())
        };
        let line = fs::read_to_string(&public).unwrap();
        let authorized = || {
            let machines = workspace.site.sandbox().machines();
            let machine = machines.iter().find(|machine| machine.uid == uid()).unwrap();
            let lines = fs::read_to_string(machine.home.join(".ssh/authorized_keys")).unwrap();
            lines.matches(line.split(' ').nth(1).unwrap()).count()
        };
        for round in 1..=2 {
            for _ in 0..2 {
                let (out, said, code) = run(&[address, "--authorize", &public]);
                assert_eq!(code, Some(0), "{said}");
                fs::write(&block, &out).unwrap();
                assert!(
                    out.contains(&format!("  IdentityFile \"{}\"\n  IdentitiesOnly yes\n", key.display())),
                    "{out}"
                );
            }
            assert_eq!(authorized(), 1);
            for name in [uid().as_str(), "damodel_instance.gpu-a"] {
                let (out, said, code) = connect(name);
                assert_eq!((out.as_str(), code), ("in\n", Some(0)), "{said}");
            }
            copies(workspace, home, "damodel_instance.gpu-a", &["ssh", &format!("-F {block}")]);
            if round == 1 {
                // Another instance, which has another address.
                let before = uid();
                workspace.run_ok(&[
                    "apply",
                    "-auto-approve",
                    "-no-color",
                    "-input=false",
                    &format!("-replace={address}"),
                ]);
                assert_ne!(before, uid());
            }
        }
        let all = [fs::read_to_string(&block).unwrap(), home.known_hosts()].concat();
        for secret in workspace.site.secrets() {
            assert!(!all.contains(&secret), "{secret}");
        }
        // Nothing is printed if one of them fails.
        let own = key.display().to_string();
        for (arguments, code, words) in [
            (&[address, "ins-none"][..], 1, "no instance with the UID ins-none"),
            (&[address, "damodel_instance.none"], 1, "damodel_instance.none is not in the state"),
            (&["ins-none", "--authorize", &own], 1, "is a private key: --authorize takes the public one"),
            (&[], 2, "required"),
            (&["--all", address], 2, "cannot be used with"),
        ] {
            let (out, said, ended) = run(arguments);
            assert_eq!((out.as_str(), ended), ("", Some(code)), "{arguments:?}: {said}");
            assert!(said.contains(words), "{said}");
        }
        for machine in workspace.site.sandbox().machines() {
            let file = Path::new(&machine.home).join(".ssh/authorized_keys");
            let _ = fs::remove_file(&file);
            fs::create_dir_all(&file).unwrap();
        }
        let (out, said, code) = run(&[address, "--authorize", &public]);
        assert_eq!((out.as_str(), code), ("", Some(1)), "{said}");
        assert!(said.contains("authorized_keys is not a file"), "{said}");
        workspace.site.set(StateList::Instances, uid(), &json!({"status": "Stopped"}));
        let (out, said, code) = run(&[&uid()]);
        assert!(out.is_empty() && code == Some(1) && said.contains("is Stopped"), "{said}");
    });
}

/// A run that has read the file stays before its last step until the other one has come as far, or waits for the lock.
const LATE: &str = r#"#!/bin/sh
echo >>"$HOME/late"
until [ "$(wc -l <"$HOME/late")" -gt 1 ] || grep -q -e '-> FLOCK' /proc/locks; do :; done
PATH=/usr/bin:/bin exec sync "$@"
"#;

#[test]
fn two_runs_at_once_add_both_keys() {
    let folder = tempfile::tempdir().unwrap();
    let keys = ["one", "other"].map(|name| {
        let key = Keys::new(folder.path()).make(name, &["-t", "ed25519"]);
        key.with_extension("pub").display().to_string()
    });
    each(&Site::options(), |workspace, home| {
        workspace.apply_ok(&config(Instance::new("gpu")));
        let uid = workspace.state().resource("damodel_instance.gpu").id();
        let run = |key: &str| home.command(workspace, BINARY, &["ssh-config", &uid, "--authorize", key]);
        // The first login makes the home.
        assert_eq!(ended(run(&keys[0]).output().unwrap()).2, Some(0));
        let instance = workspace.site.sandbox().machines()[0].home.clone();
        let (file, late) = (instance.join(".ssh/authorized_keys"), instance.join(".machine/bin/sync"));
        let before = "ssh-rsa AAAA other\n";
        fs::write(&file, before).unwrap();
        program::put(&late, LATE);
        let running =
            keys.each_ref().map(|key| run(key).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        for run in running {
            let (_, said, code) = ended(run.wait_with_output().unwrap());
            assert_eq!(code, Some(0), "{said}");
        }
        let after = fs::read_to_string(&file).unwrap();
        let added = after.strip_prefix(before).unwrap();
        for key in &keys {
            assert_eq!(added.matches(&fs::read_to_string(key).unwrap()).count(), 1, "{added}");
        }
    });
}

/// A jump host that lets the user in without a question, and rsync.
#[test]
fn a_jump_host_and_rsync_work_as_with_ssh() {
    each(&Site::options(), |workspace, home| {
        workspace.apply_ok(&config(Instance::new("gpu")));
        let Some(jump) = Sshd::started() else { return };
        let key = jump.target().credentials.private_key_file.unwrap();
        home.configure(&format!(
            "Host 127.0.0.1\n  ProxyJump jump\nHost jump\n  HostName 127.0.0.1\n  Port {}\n  User {}\n  \
             IdentityFile {}\n  \
             StrictHostKeyChecking accept-new\n  BatchMode yes\n",
            jump.port(),
            jump.target().user,
            key.display()
        ));
        let (out, said, code) = home.run(workspace, &["damodel_instance.gpu", "echo in"]);
        assert_eq!((out.as_str(), code), ("in\n", Some(0)), "{said}");
        assert!(jump.attempts() > 0);
        if Command::new("rsync").arg("--version").output().is_err() {
            skipped("rsync is not installed");
            return;
        }
        fs::write(workspace.beside("file"), "content").unwrap();
        let shell = format!("{BINARY} ssh --cli {}", workspace.cli.program.display());
        let file = workspace.beside("file").display().to_string();
        let mut rsync = home.command(workspace, "rsync", &["-e", &shell, &file, "damodel_instance.gpu:copied"]);
        let (_, said, code) = ended(rsync.output().unwrap());
        assert_eq!(code, Some(0), "{said}");
        let machine = workspace.site.sandbox().machines().remove(0);
        assert_eq!(fs::read_to_string(Path::new(&machine.home).join("copied")).unwrap(), "content");
    });
}
