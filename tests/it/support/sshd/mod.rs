//! A real OpenSSH server of the current user, on a free port of the loopback, with a home of its own.
//!
//! ```ignore
//! let Some(mut sshd) = Sshd::prepare() else { return };
//! sshd.line("AllowTcpForwarding no");
//! sshd.start();
//! let session = connect(&sshd.target(), …).await.unwrap();
//! ```

mod agent;
mod cable;
mod keys;

use std::{
    env, fs,
    io::{self, BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
};

use damodel_ssh::{Credentials, GivenAway, Pin, Target};
use nix::{
    sys::signal::{Signal, kill},
    unistd::{Pid, User, geteuid},
};
use secrecy::SecretString;
use tempfile::TempDir;

pub(crate) use self::{agent::Agent, cable::Cable, keys::Keys};
use super::{ports::free_port, program, record::skipped, wait::wait_until};

/// An sshd whose sessions have [`Sshd::home`] as their home, not the user's. Ends when dropped, with its sessions.
#[derive(Debug)]
pub(crate) struct Sshd {
    program: PathBuf,
    directory: TempDir,
    port: u16,
    host_keys: Vec<&'static str>,
    lines: Vec<String>,
    session: String,
    running: Option<Child>,
    log: Arc<Mutex<String>>,
}

impl Sshd {
    /// An sshd with an Ed25519 host key that accepts [`Sshd::target`], not started yet. `None` if sshd is missing, with
    /// a message past the test harness; fails if CI is set.
    pub(crate) fn prepare() -> Option<Self> {
        let Some(program) = program() else {
            skipped("there is no sshd. Install openssh-server.");
            return None;
        };
        if geteuid().is_root() {
            // The folder for sshd's privilege separation; packages make it at boot.
            fs::create_dir_all("/run/sshd").unwrap();
        }
        let directory = TempDir::with_prefix("sshd-").unwrap();
        fs::create_dir(directory.path().join("home")).unwrap();
        let sshd = Self {
            program,
            directory,
            port: free_port(),
            host_keys: vec!["ed25519"],
            lines: Vec::new(),
            session: String::new(),
            running: None,
            log: Arc::default(),
        };
        let key = sshd.keys().make("user", &["-t", "ed25519"]);
        sshd.authorize(&fs::read_to_string(key.with_extension("pub")).unwrap());
        Some(sshd)
    }

    /// The same, started.
    pub(crate) fn started() -> Option<Self> {
        let mut sshd = Self::prepare()?;
        sshd.start();
        Some(sshd)
    }

    /// Adds a line to its configuration, before [`Sshd::start`].
    pub(crate) fn line(&mut self, line: &str) {
        self.lines.push(line.to_owned());
    }

    /// Begins every session with a line of shell, as in `PATH=…`; before [`Sshd::start`].
    pub(crate) fn session_line(&mut self, line: &str) {
        self.session.push_str(line);
        self.session.push('\n');
    }

    /// Sets its host keys: `ed25519`, `rsa`, `ecdsa`; before [`Sshd::start`].
    pub(crate) fn host_keys(&mut self, kinds: &[&'static str]) {
        self.host_keys = kinds.to_vec();
    }

    /// Starts it, and waits until it listens.
    pub(crate) fn start(&mut self) {
        assert!(self.running.is_none(), "it runs already");
        self.configure();
        let mut command = Command::new(&self.program);
        command.arg("-D").arg("-e").arg("-f").arg(self.directory.path().join("config"));
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        self.running = Some(child);
        let (log, before) = (self.log.clone(), self.listens());
        thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let mut log = log.lock().unwrap();
                log.push_str(&line);
                log.push('\n');
            }
        });
        self.until("sshd listens", |sshd| sshd.listens() > before);
    }

    /// Ends it, and all its sessions.
    pub(crate) fn stop(&mut self) {
        self.kill_sessions();
        if let Some(mut child) = self.running.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Ends every connection and every command; it continues to listen.
    pub(crate) fn kill_sessions(&self) {
        let Some(child) = &self.running else { return };
        for process in descendants(child.id()) {
            // It may have ended by itself.
            let _ = kill(Pid::from_raw(process), Signal::SIGKILL);
        }
    }

    /// Makes new host keys, like a new host at the same address. Takes effect at the next start.
    pub(crate) fn replace_host_keys(&self) {
        for kind in &self.host_keys {
            let file = self.host_key_file(kind);
            fs::remove_file(&file).unwrap();
            fs::remove_file(file.with_extension("pub")).unwrap();
        }
    }

    /// Authorizes another key: a line of authorized_keys.
    pub(crate) fn authorize(&self, line: &str) {
        let file = self.directory.path().join("authorized_keys");
        let before = fs::read_to_string(&file).unwrap_or_default();
        fs::write(file, format!("{before}{}\n", line.trim())).unwrap();
    }

    /// Removes all authorized keys.
    pub(crate) fn authorize_nobody(&self) {
        fs::write(self.directory.path().join("authorized_keys"), "").unwrap();
    }

    /// The public host key of a type, as a line.
    pub(crate) fn host_key(&self, kind: &str) -> String {
        fs::read_to_string(self.host_key_file(kind).with_extension("pub")).unwrap()
    }

    /// The pin of its host key of a type.
    pub(crate) fn pin(&self, kind: &str) -> Pin {
        self.host_key(kind).parse().unwrap()
    }

    /// Its address and credentials, without a pin.
    pub(crate) fn target(&self) -> Target {
        let private_key_file = Some(self.directory.path().join("user"));
        self.target_with(Credentials { private_key_file, ..Credentials::default() })
    }

    /// Its address, with a private key of this text.
    pub(crate) fn target_with_key(&self, key: &str) -> Target {
        let private_key = Some(SecretString::from(key));
        self.target_with(Credentials { private_key, ..Credentials::default() })
    }

    /// Its address, with these credentials.
    pub(crate) fn target_with(&self, credentials: Credentials) -> Target {
        let user = User::from_uid(geteuid()).unwrap().unwrap().name;
        let host = "127.0.0.1".to_owned();
        Target { host, port: self.port, user, credentials, pin: None, bastion: None, given_away: GivenAway::default() }
    }

    /// Its port, once it is started.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The home and working directory of its sessions.
    pub(crate) fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    /// Makes keys beside its own.
    pub(crate) fn keys(&self) -> Keys<'_> {
        Keys::new(self.directory.path())
    }

    /// Its log since the first start.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// The number of attempts to log in, by any method and any client.
    pub(crate) fn attempts(&self) -> usize {
        self.log().matches("userauth-request for user").count()
    }

    /// Waits for a condition, and blocks the thread.
    pub(crate) fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        wait_until(what, || is_so(self));
    }

    fn listens(&self) -> usize {
        self.log().matches("Server listening on").count()
    }

    fn host_key_file(&self, kind: &str) -> PathBuf {
        self.directory.path().join(format!("host_{kind}"))
    }

    /// Writes its files.
    fn configure(&self) {
        let directory = self.directory.path().display();
        // Without the environment of the user's login shell.
        let session = format!(
            "#!/bin/sh\nexport HOME='{directory}/home'\ncd \"$HOME\" || exit 1\n{}\
             if [ -n \"$SSH_ORIGINAL_COMMAND\" ]; then exec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"; fi\nexec /bin/sh\n",
            self.session
        );
        program::put(&self.directory.path().join("session"), &session);
        let mut lines = vec![
            format!("ListenAddress 127.0.0.1:{}", self.port),
            format!("AuthorizedKeysFile {directory}/authorized_keys"),
            format!("ForceCommand {directory}/session"),
            "AuthenticationMethods any".to_owned(),
            "KbdInteractiveAuthentication no".to_owned(),
            "LogLevel VERBOSE".to_owned(),
            // Every attempt to log in, even a query; a lower level would write into the sessions.
            "LogVerbose auth2.c:input_userauth_request():*".to_owned(),
            "MaxStartups 100".to_owned(),
            "PasswordAuthentication no".to_owned(),
            "PermitRootLogin yes".to_owned(),
            "PidFile none".to_owned(),
            // Keeps Debian's bash from reading the user's real .bashrc, which may take seconds; not among the lines
            // that a test should replace.
            "SetEnv SHLVL=2".to_owned(),
            // Everybody can write to the temporary directory.
            "StrictModes no".to_owned(),
            "UsePAM no".to_owned(),
        ];
        for kind in &self.host_keys {
            if !self.host_key_file(kind).exists() {
                self.keys().make(&format!("host_{kind}"), &["-t", kind]);
            }
            lines.push(format!("HostKey {directory}/host_{kind}"));
        }
        // The first line of a setting takes effect.
        let lines = [self.lines.clone(), lines].concat();
        fs::write(self.directory.path().join("config"), lines.join("\n") + "\n").unwrap();
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.stop();
        if thread::panicking() {
            let log = self.log();
            let from = log.lines().count().saturating_sub(40);
            let last: Vec<&str> = log.lines().skip(from).collect();
            let _ = writeln!(io::stderr(), "--- sshd said:\n{}", last.join("\n"));
        }
    }
}

/// sshd must be started by its absolute path.
fn program() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
    env::split_paths(&path).chain(usual).map(|directory| directory.join("sshd")).find(|file| file.is_file())
}

/// The descendants of a process that are still attached to it.
fn descendants(process: u32) -> Vec<i32> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    let children: Vec<u32> = children.split_whitespace().map(|child| child.parse().unwrap()).collect();
    let further = children.iter().flat_map(|child| descendants(*child));
    further.chain(children.iter().map(|child| i32::try_from(*child).unwrap())).collect()
}
