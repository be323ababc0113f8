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
        record::skipped,
        sshd::{Keys, Sshd},
        terraform::{Instance, Site, Workspace, config, each_cli},
        wait::wait_until,
    },
};

/// A host key of no instance.
const OTHER: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKtKuIRU8jjUPnTbKmLZX3BVsrUXLkSc2RwTmZCvSFYZ";

/// The user's folder of ssh, for the processes that a test starts.
struct SshHome(PathBuf);

impl SshHome {
    fn new(workspace: &Workspace<'_>) -> Option<Self> {
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
    fn command(&self, workspace: &Workspace<'_>, program: &str, arguments: &[&str]) -> Command {
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
            (&[], "error: no TARGET. Usage: terraform-provider-damodel ssh [OPTIONS] TARGET [ARGUMENT]...\n"),
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
        fs::write(folder.join("ssh"), script).unwrap();
        fs::set_permissions(folder.join("ssh"), fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = home.ssh(workspace, &["damodel_instance.gpu", "cat /proc/self/environ"]);
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
        let (out, said, code) = ended(command.env("PATH", path).output().unwrap());
        assert_eq!(code, Some(0), "{said}");
        let seen = fs::read_to_string(record).unwrap();
        assert!(seen.contains("SSH_ASKPASS_REQUIRE=force"), "{seen}");
        let all = [seen, out, said, home.known_hosts()].concat();
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
        fs::write(folder.join("ssh"), script).unwrap();
        fs::set_permissions(folder.join("ssh"), fs::Permissions::from_mode(0o755)).unwrap();
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
