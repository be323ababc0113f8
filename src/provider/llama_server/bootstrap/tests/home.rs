//! An instance as the program sees it: a home, a PATH, a shell.

use std::{
    cell::Cell,
    fs,
    io::Write,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use secrecy::ExposeSecret;
use tempfile::{NamedTempFile, TempDir};

use crate::provider::llama_server::bootstrap::{
    CompileSource, Fingerprint, Job, JobReport, Phase, ServerPlace, SourceOrigin, Verb, no_room, program, room_question,
};

pub(super) use super::{
    apply::{no_inference, start},
    observe::{chat, http, is_running, kill, processes},
    stand_in::{Gpu, PACKAGE, RTX, V100},
};
use super::{model, ports::free_port};

/// The name of the instance.
const INSTANCE: &str = "ins-1";

/// How long anything may take on a busy machine.
pub(super) const DEADLINE: Duration = Duration::from_secs(120);

/// An instance. When it is dropped, all servers and works in it are ended.
#[derive(Debug)]
pub(super) struct Home {
    folder: TempDir,
    /// The PATH: the stand-ins, then this.
    tools: String,
    /// Whether systemd seems to run.
    has_systemd: Cell<bool>,
    /// The process whose namespaces the shells enter: those of one instance of several.
    pub(super) inside: Cell<Option<u32>>,
    /// Of the first server.
    pub(super) port: u16,
}

/// Waits until something is so.
pub(super) fn until<T>(what: &str, ask: impl FnMut() -> Option<T>) -> T {
    until_in(DEADLINE, what, ask)
}

/// The same for what may take longer.
pub(super) fn until_in<T>(longest: Duration, what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + longest;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Paces the looks of a wait: each is some fifty processes, and without a new status a second one rarely shows more.
#[derive(Debug, Default)]
struct Looks {
    /// The status at the last look, and whether the server was healthy.
    seen: (Vec<u8>, bool),
    last: Option<Instant>,
}

impl Looks {
    /// Whether something has changed since the last look, or half a second has passed: a server may have died.
    fn is_due(&mut self, home: &Home, place: &ServerPlace, is_healthy: bool) -> bool {
        let run = fs::read_to_string(home.state_of(place).join("run")).unwrap_or_default();
        let seen = (fs::read(Path::new(run.trim_end()).join("status")).unwrap_or_default(), is_healthy);
        let is_due = self.seen != seen || self.last.is_none_or(|last| last.elapsed().as_millis() >= 500);
        if is_due {
            *self = Self { seen, last: Some(Instant::now()) };
        }
        is_due
    }
}

impl Home {
    /// With a prebuilt server in the package folder, a model, and dash for its `sh`.
    pub(super) fn new() -> Self {
        Self::with_shell("dash").unwrap()
    }

    /// The same, where `sh` is this shell; none where busybox, which few need, is not installed.
    #[expect(clippy::print_stderr, reason = "a test that tests nothing says so")]
    pub(super) fn with_shell(shell: &str) -> Option<Self> {
        let Some(real) = which(shell) else {
            eprintln!("SKIPPED: {shell} is not installed");
            assert!(shell == "busybox" && option_env!("CI").is_none(), "{shell} is not tested");
            return None;
        };
        let home = Self {
            folder: tempfile::tempdir().unwrap(),
            tools: "/usr/local/bin:/usr/bin:/bin".to_owned(),
            has_systemd: Cell::new(false),
            inside: Cell::new(None),
            port: free_port(),
        };
        for folder in ["public-storage/model", "bin"] {
            fs::create_dir_all(home.path(folder)).unwrap();
        }
        home.install();
        home.model(model::working());
        symlink(real, home.path("bin/sh")).unwrap();
        Some(home)
    }

    pub(super) fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    pub(super) fn state(&self) -> PathBuf {
        self.state_of(&self.place())
    }

    fn state_of(&self, place: &ServerPlace) -> PathBuf {
        self.path("workspace/.damodel").join(format!("{}-{}", place.port, place.instance))
    }

    /// Puts a program in its place, whole: a shell takes an empty file for a program that succeeds.
    pub(super) fn script(&self, below: &str, text: &str) {
        let path = self.path(below);
        let folder = path.parent().unwrap();
        fs::create_dir_all(folder).unwrap();
        let mut written = NamedTempFile::new_in(folder).unwrap();
        written.write_all(text.as_bytes()).unwrap();
        fs::set_permissions(written.path(), fs::Permissions::from_mode(0o755)).unwrap();
        written.into_temp_path().persist(path).unwrap();
    }

    /// Takes programs off the PATH.
    pub(super) fn without(mut self, programs: &[&str]) -> Self {
        let folder = self.path("tools");
        fs::create_dir(&folder).unwrap();
        for entry in ["/usr/bin", "/bin"].iter().flat_map(|from| fs::read_dir(from).unwrap()).map(Result::unwrap) {
            if !programs.iter().any(|program| entry.file_name() == **program) {
                // Where /bin is /usr/bin the second is there already.
                let _ = symlink(entry.path(), folder.join(entry.file_name()));
            }
        }
        self.tools = folder.to_str().unwrap().to_owned();
        self
    }

    /// Lets systemd seem to run; `false` where only root could.
    #[expect(clippy::print_stderr, reason = "a test that tests nothing says so")]
    pub(super) fn with_systemd(&self) -> bool {
        let tried = Command::new("unshare").args(["--mount", "mount", "-t", "tmpfs", "tmpfs", "/run"]).status();
        if tried.is_ok_and(|status| status.success()) {
            self.has_systemd.set(true);
            return true;
        }
        eprintln!("SKIPPED: a /run with systemd in it takes root");
        assert!(option_env!("CI").is_none(), "the scope is not tested");
        false
    }

    pub(super) fn place(&self) -> ServerPlace {
        self.place_of(INSTANCE)
    }

    /// The same for another name of the instance.
    pub(super) fn place_of(&self, instance: &str) -> ServerPlace {
        ServerPlace { workspace: "~/workspace".to_owned(), port: self.port, instance: instance.to_owned() }
    }

    /// A job as the resource's defaults make it.
    pub(super) fn job(&self) -> Job {
        let origin = SourceOrigin::Path("~/source".to_owned());
        let source = CompileSource { origin, cuda_architectures: Vec::new() };
        Job { place: self.place(), source, ..Job::sample() }
    }

    /// Starts the shell and feeds it.
    pub(super) fn spawn(&self, place: &ServerPlace, verb: &Verb<'_>) -> Child {
        self.feed(program(place, verb).expose_secret())
    }

    /// Starts the shell and feeds it this text.
    pub(super) fn feed(&self, text: &str) -> Child {
        let bin = self.path("bin");
        let shell = bin.join("sh");
        let mut command = match self.inside.get() {
            Some(_) => Command::new("nsenter"),
            None if self.has_systemd.get() => Command::new("unshare"),
            None => Command::new(&shell),
        };
        if let Some(process) = self.inside.get() {
            command.args(["--target", &process.to_string(), "--pid", "--mount", "--net"]).arg(&shell).arg("-s");
        } else if self.has_systemd.get() {
            // Folders of its own, where systemd's are; what is there otherwise is nobody's concern. Who lingers is a
            // file in the home, and so are what the CPU is and what the kernel counts of memory.
            let prepare = "mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system && mount -t tmpfs tmpfs /var/lib \
                           && mkdir -p /var/lib/systemd && { [ ! -f ~/cpuinfo ] || mount --bind ~/cpuinfo \
                           /proc/cpuinfo; } && { [ ! -f ~/memory.events ] || { mount -t tmpfs tmpfs /sys/fs/cgroup \
                           && ln -s ~/memory.events /sys/fs/cgroup; }; } && { [ ! -d ~/linger ] || cp -r ~/linger \
                           /var/lib/systemd/; } && exec \"$0\" -s";
            command.args(["--mount", "sh", "-c", prepare]).arg(&shell);
        } else {
            command.arg("-s");
        }
        let mut child = command
            .env_clear()
            .env("HOME", self.folder.path())
            .env("PATH", format!("{}:{}", bin.display(), self.tools))
            .env("LLAMA_ARG_CTX_SIZE", "7")
            .env("LLAMA_API_KEY", "of the login")
            .env("AIP_MODE", "PREDICTION")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A shell that was killed reads no more.
        let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
        child
    }

    /// Runs a verb of the first server.
    pub(super) fn run(&self, verb: &Verb<'_>) -> JobReport {
        self.run_at(&self.place(), verb)
    }

    pub(super) fn run_at(&self, place: &ServerPlace, verb: &Verb<'_>) -> JobReport {
        let mut report = answer(self.spawn(place, verb));
        if report.may_lack_room() {
            let asked = Verb::Check { questions: &[room_question(place)], job: None };
            report.failure = no_room(place, &answer(self.spawn(place, &asked)).facts).or(report.failure);
        }
        if report.is_refused || !report.is_transient {
            return report;
        }
        // As an apply does for two seconds.
        let mut looks = 0;
        let settled = until("", || {
            looks += 1;
            let seen = answer(self.spawn(place, &Verb::Look));
            (!seen.is_transient || looks == 20).then_some(seen)
        });
        JobReport { facts: report.facts, ..settled }
    }

    pub(super) fn look(&self) -> JobReport {
        self.run(&Verb::Look)
    }

    /// Looks until the work has come so far, or failed.
    pub(super) fn look_until(&self, phase: Phase) -> JobReport {
        self.look_until_at(&self.place(), phase)
    }

    pub(super) fn look_until_at(&self, place: &ServerPlace, phase: Phase) -> JobReport {
        let mut looks = Looks::default();
        let report = until("the phase does not come", || {
            if !looks.is_due(self, place, false) {
                return None;
            }
            let report = self.run_at(place, &Verb::Look);
            (report.phase >= phase).then_some(report)
        });
        assert_eq!(report.phase, phase, "{report:#?}\n{}", self.work_log());
        report
    }

    /// As the resource does: until the server is healthy, infers, and was said to be ready.
    pub(super) fn until_ready(&self, place: &ServerPlace) -> JobReport {
        self.until_ready_with(place, "")
    }

    /// The same for a server that asks for a key.
    pub(super) fn until_ready_with(&self, place: &ServerPlace, header: &str) -> JobReport {
        let mut looks = Looks::default();
        let identity = until("it is not healthy", || {
            // One that dies while it loads may be followed by another: health first, so that the look shows who has it.
            let is_healthy = http(place.port, "GET /health", "").0 == 200;
            if !looks.is_due(self, place, is_healthy) {
                return None;
            }
            let report = self.run_at(place, &Verb::Look);
            assert!(report.phase <= Phase::Ready, "{report:#?}\n{}", self.work_log());
            let is_loaded = is_healthy && report.phase >= Phase::Load;
            report.process.filter(|_| is_loaded).map(|process| process.identity)
        });
        assert_eq!(chat(place.port, header), 200);
        let report = self.run_at(place, &Verb::Ready { process: &identity });
        assert_eq!((report.phase, &report.failure), (Phase::Ready, &None), "{report:#?}");
        report
    }

    /// As after a minute in which nobody looked.
    pub(super) fn leave(&self) {
        let attended = self.state().join("attended");
        // Where it is not, nobody was there at all.
        let _ = Command::new("touch").args(["-c", "-d", "10 minutes ago"]).arg(attended).status();
    }

    /// What the detached work says, for a test that failed.
    pub(super) fn work_log(&self) -> String {
        fs::read_to_string(self.state().join("work.log")).unwrap_or_default()
    }

    /// The folder of the run of now; empty where nothing was begun.
    pub(super) fn run_folder(&self) -> String {
        fs::read_to_string(self.state().join("run")).unwrap_or_default().trim_end().to_owned()
    }

    /// A record of the run of now.
    pub(super) fn record(&self, record: &str) -> PathBuf {
        PathBuf::from(self.run_folder()).join(record)
    }

    /// A value of a record.
    pub(super) fn recorded(&self, record: &str, name: &str) -> String {
        let text = fs::read_to_string(self.record(record)).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}='"))).unwrap();
        line.trim_end_matches('\'').to_owned()
    }

    /// The binary that serves, or served last.
    pub(super) fn binary(&self) -> String {
        self.recorded("server", "server_binary")
    }

    /// The number of the detached work's shell.
    pub(super) fn worker(&self) -> u32 {
        self.recorded("worker", "worker_identity").split('.').next().unwrap().parse().unwrap()
    }

    /// The servers that run in this home, as their numbers.
    pub(super) fn servers(&self) -> Vec<u32> {
        processes()
            .into_iter()
            .filter(|(_, words)| words.first().is_some_and(|word| word.ends_with("/llama-server")))
            .filter(|(pid, _)| self.owns(*pid))
            .map(|(pid, _)| pid)
            .collect()
    }

    /// The detached works that run in this home, as their numbers: each leads a session.
    pub(super) fn works(&self) -> Vec<u32> {
        let works = self.processes().into_iter().filter(|(_, words)| words.last().is_some_and(|word| word == "work"));
        works.map(|(pid, _)| pid).filter(|pid| session(*pid) == Some(*pid)).collect()
    }

    /// Lets all pauses be short.
    pub(super) fn hurry(&self) {
        self.script("bin/sleep", "#!/bin/sh\nexec /bin/sleep 0.01\n");
    }

    /// Whether a process has this home.
    fn owns(&self, pid: u32) -> bool {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let own = format!("HOME={}", self.folder.path().display());
        environment.split(|byte| *byte == 0).any(|line| line == own.as_bytes())
    }

    /// All processes of this home, as their numbers and arguments.
    pub(super) fn processes(&self) -> Vec<(u32, Vec<String>)> {
        processes().into_iter().filter(|(pid, _)| self.owns(*pid)).collect()
    }
}

/// The session of a process.
pub(super) fn session(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(3)?.parse().ok()
}

impl Drop for Home {
    fn drop(&mut self) {
        for (pid, _) in self.processes() {
            kill(pid, "KILL");
        }
    }
}

/// Reads what a shell answers.
pub(super) fn answer(child: Child) -> JobReport {
    let output = child.wait_with_output().unwrap();
    JobReport::parse(&output.stdout, &[]).unwrap_or_else(|error| {
        panic!("{error}\n{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    })
}

fn which(program: &str) -> Option<PathBuf> {
    ["/bin", "/usr/bin"].iter().map(|folder| Path::new(folder).join(program)).find(|path| path.exists())
}

pub(super) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

impl Home {
    /// Has the program halt before the rename of this number: each record is written by one.
    pub(super) fn halt_at(&self, rename: usize) {
        self.script(
            "bin/mv",
            "#!/bin/sh\nexec 3>>~/renames\nflock 3\necho >>~/renames\n\
             if [ \"$(wc -l <~/renames)\" = \"$(cat ~/halt 2>&-)\" ]; then exec 3>&-; : >~/halted; \
             while [ -e ~/halt ]; do sleep 0.02; done; exit 1; fi\nexec 3>&-\nexec /bin/mv \"$@\"\n",
        );
        for file in ["renames", "halted"] {
            let _ = fs::remove_file(self.path(file));
        }
        fs::write(self.path("halt"), rename.to_string()).unwrap();
    }

    /// Waits until the program has halted, or this job has come to a server or to nothing: whether it has halted.
    pub(super) fn halts_before(&self, run: &mut Child, job: &Fingerprint) -> bool {
        let record = |name: &str| fs::read_to_string(self.record(name)).unwrap_or_default();
        until("it neither halts nor ends", || {
            if self.path("halted").exists() {
                return Some(true);
            }
            let (is_own, status) = (record("job").contains(&job.to_string()), record("status"));
            let is_over =
                ["load", "ready", "failed"].iter().any(|phase| status.contains(&format!("status_phase='{phase}'")));
            (is_own && is_over && run.try_wait().unwrap().is_some()).then_some(false)
        })
    }

    /// Lets what has halted go on, without the rename.
    pub(super) fn release(&self) {
        fs::remove_file(self.path("halt")).unwrap();
    }

    /// Kills the detached work, whether it has written itself down or not.
    pub(super) fn kill_works(&self) {
        let works = || -> Vec<u32> {
            let is_work = |words: &[String]| words.last().is_some_and(|word| word == "work");
            self.processes().into_iter().filter(|(_, words)| is_work(words)).map(|(pid, _)| pid).collect()
        };
        until("it lives", || {
            works().into_iter().for_each(|pid| kill(pid, "KILL"));
            works().into_iter().all(|pid| !is_running(pid)).then_some(())
        });
    }
}
