//! An instance as the program sees it: a home, a PATH, a shell.

use std::{
    cell::Cell,
    fs,
    io::{Read, Write},
    net::TcpStream,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use damodel_llama::{
    Binary, Build, CompileSource, FailureKind, Fingerprint, Job, JobFailure, JobReport, LoginLifetime, Phase, Prebuilt,
    Process, Recipe, ServerPlace, SourceOrigin, Start, Tree, Verb, no_room, program, room_question,
};
use nix::sys::signal::Signal;
use secrecy::ExposeSecret;
use tempfile::{TempDir, tempdir_in};

use super::{
    process::{self, is_running, kill, session},
    stand_in::{PACKAGE, working},
};
use crate::support::{ports::free_port, program, record::skipped, wait::found_within};

/// How long anything may take on a busy computer.
const DEADLINE: Duration = Duration::from_secs(120);

/// An instance. When it is dropped, all servers and works in it are ended.
#[derive(Debug)]
pub(crate) struct Home {
    folder: TempDir,
    /// The PATH: the stand-ins, then this.
    tools: String,
    /// Whether systemd seems to run.
    has_systemd: Cell<bool>,
    /// The process whose namespaces the shells enter: those of one instance of several.
    pub(crate) inside: Cell<Option<u32>>,
    /// Of the first server.
    pub(crate) port: u16,
}

/// Waits until a value is found.
pub(crate) fn until<T>(what: &str, ask: impl FnMut() -> Option<T>) -> T {
    found_within(DEADLINE, ask).unwrap_or_else(|| panic!("{what}"))
}

/// The same for a condition without a value.
pub(crate) fn until_so(what: &str, mut is_so: impl FnMut() -> bool) {
    until(what, || is_so().then_some(()));
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
        let run = home.run_folder_of(place);
        let seen = (fs::read(Path::new(&run).join("status")).unwrap_or_default(), is_healthy);
        let is_due = self.seen != seen || self.last.is_none_or(|last| last.elapsed().as_millis() >= 500);
        if is_due {
            *self = Self { seen, last: Some(Instant::now()) };
        }
        is_due
    }
}

impl Home {
    /// With a prebuilt server in the package folder, a model, and dash for its `sh`.
    pub(crate) fn new() -> Self {
        Self::with_shell("dash").unwrap()
    }

    /// The same, where `sh` is this shell; `None` if busybox, which few need, is not installed.
    pub(crate) fn with_shell(shell: &str) -> Option<Self> {
        let folders = ["/bin", "/usr/bin"];
        let Some(real) = folders.iter().map(|folder| Path::new(folder).join(shell)).find(|path| path.exists()) else {
            skipped(&format!("{shell} is not installed"));
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
        home.model(working());
        symlink(real, home.path("bin/sh")).unwrap();
        Some(home)
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    /// The same as text.
    pub(crate) fn text(&self, below: &str) -> String {
        self.path(below).display().to_string()
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.state_of(&self.place())
    }

    fn state_of(&self, place: &ServerPlace) -> PathBuf {
        let workspace = self.path(place.workspace.trim_start_matches("~/"));
        workspace.join(".damodel").join(format!("{}-{}", place.port, place.instance))
    }

    /// Puts a program in its place, whole: a shell takes an empty file for a program that succeeds.
    pub(crate) fn script(&self, below: &str, text: &str) {
        let path = self.path(below);
        let folder = path.parent().unwrap();
        fs::create_dir_all(folder).unwrap();
        let written = tempdir_in(folder).unwrap();
        program::put(&written.path().join("program"), text);
        fs::rename(written.path().join("program"), path).unwrap();
    }

    /// Takes programs off the PATH.
    pub(crate) fn without(mut self, programs: &[&str]) -> Self {
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
    pub(crate) fn with_systemd(&self) -> bool {
        let tried = Command::new("unshare").args(["--mount", "mount", "-t", "tmpfs", "tmpfs", "/run"]).status();
        let is_root = tried.is_ok_and(|status| status.success());
        if !is_root {
            skipped("only root makes a /run with systemd in it");
        }
        self.has_systemd.set(is_root);
        is_root
    }

    pub(crate) fn place(&self) -> ServerPlace {
        self.place_of("ins-1")
    }

    /// The same for another name of the instance.
    pub(crate) fn place_of(&self, instance: &str) -> ServerPlace {
        ServerPlace { workspace: "~/workspace".to_owned(), port: self.port, instance: instance.to_owned() }
    }

    /// A job as the resource's defaults make it, with the prebuilt server.
    pub(crate) fn job(&self) -> Job {
        Job {
            place: self.place(),
            model: "~/public-storage/model/tiny.gguf".to_owned(),
            downloads: Vec::new(),
            build: Build::Prebuilt,
            package: None,
            source: CompileSource { origin: SourceOrigin::Default, cuda_architectures: Vec::new() },
            gpu_name: None,
            host: "127.0.0.1".to_owned(),
            options: [
                ("context_size", "32768"),
                ("parallel", "1"),
                ("gpu_layers", "999"),
                ("flash_attention", "on"),
                ("cache_type_k", "q8_0"),
                ("cache_type_v", "q8_0"),
            ]
            .map(|(option, value)| (option, value.to_owned()))
            .into(),
            jinja: true,
            metrics: true,
            extra_args: Vec::new(),
            environment: [].into(),
            api_key: None,
            triggers: [].into(),
            probe_endpoint: String::new(),
            restarts: false,
        }
    }

    /// The same job with other options.
    pub(crate) fn changed(&self) -> Job {
        with_option("context_size", "4096", self.job())
    }

    /// A job that is compiled.
    pub(crate) fn compiled(&self) -> Job {
        Job { build: Build::Source, ..self.job() }
    }

    /// A job that the server refuses.
    pub(crate) fn with_bad_option(&self) -> Job {
        Job { extra_args: vec!["--no-such-option".to_owned()], ..self.job() }
    }

    /// How the source of the home is compiled, for the GPU of the home.
    pub(crate) fn recipe(&self) -> Recipe {
        let cmake = ["CMAKE_BUILD_TYPE=Release", "GGML_CUDA=ON", "CMAKE_CUDA_ARCHITECTURES=89"];
        let nvcc = self.text("bin/nvcc");
        Recipe {
            source: Tree { folder: "~/source".to_owned(), name: "tree-1".to_owned(), provided: None },
            architectures: "89".to_owned(),
            jobs: 2,
            key: "build".to_owned(),
            cmake: cmake
                .iter()
                .map(|setting| format!("-D{setting}"))
                .chain([format!("-DCMAKE_CUDA_COMPILER={nvcc}"), "-G".to_owned(), "Ninja".to_owned()])
                .collect(),
            nvcc,
            hardware: String::new(),
            note: None,
        }
    }

    /// Starts the shell and feeds it.
    pub(crate) fn spawn(&self, place: &ServerPlace, verb: &Verb<'_>) -> Child {
        self.feed(program(place, verb).expose_secret())
    }

    /// Starts the shell and feeds it this text.
    pub(crate) fn feed(&self, text: &str) -> Child {
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
            // Folders of its own, where systemd's are. Who lingers is a file in the home, and so is what the kernel
            // counts of memory.
            let prepare = "mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system && mount -t tmpfs tmpfs /var/lib \
                           && mkdir -p /var/lib/systemd && { [ ! -f ~/memory.events ] || { mount -t tmpfs tmpfs \
                           /sys/fs/cgroup && ln -s ~/memory.events /sys/fs/cgroup; }; } && { [ ! -d ~/linger ] || cp \
                           -r ~/linger /var/lib/systemd/; } && exec \"$0\" -s";
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
            .env("DAMODEL_API_KEY", "of the login")
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
    pub(crate) fn run(&self, verb: &Verb<'_>) -> JobReport {
        self.run_at(&self.place(), verb)
    }

    pub(crate) fn run_at(&self, place: &ServerPlace, verb: &Verb<'_>) -> JobReport {
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
        until("", || {
            looks += 1;
            let seen = answer(self.spawn(place, &Verb::Look));
            (!seen.is_transient || looks == 20).then_some(seen)
        })
    }

    pub(crate) fn look(&self) -> JobReport {
        self.run(&Verb::Look)
    }

    /// Begins a job in place of the run of now: nothing refuses it.
    pub(crate) fn ensure(&self, job: &Job) -> JobReport {
        let report = self.run_at(&job.place, &Verb::Ensure(&start(self, job)));
        assert!(!report.is_refused, "{report:#?}");
        report
    }

    /// Takes over a job that is under way or serves.
    pub(crate) fn own(&self, job: &Job) -> JobReport {
        self.run_at(&job.place, &Verb::Own { seen: &self.run_folder_of(&job.place), owner: "owner", job })
    }

    /// Begins a job, and sees it serve.
    pub(crate) fn serve(&self, job: &Job) -> JobReport {
        self.ensure(job);
        self.until_ready(job)
    }

    /// Begins a job, and sees it fail.
    pub(crate) fn fails(&self, job: &Job) -> JobReport {
        self.ensure(job);
        self.look_until_at(&job.place, Phase::Failed)
    }

    /// Ends the first server, of the resource that began it.
    pub(crate) fn stop(&self) {
        let report = self.run(&Verb::Stop { owner: "owner" });
        assert_eq!((report.phase, report.failure), (Phase::Absent, None));
    }

    pub(crate) fn destroy(&self) {
        let report = self.run(&Verb::Destroy { owner: "owner" });
        assert_eq!((report.phase, report.failure), (Phase::Absent, None));
    }

    /// Looks until the work has come so far, or failed.
    pub(crate) fn look_until(&self, phase: Phase) -> JobReport {
        self.look_until_at(&self.place(), phase)
    }

    pub(crate) fn look_until_at(&self, place: &ServerPlace, phase: Phase) -> JobReport {
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

    /// The process of a server that loads.
    pub(crate) fn loading(&self, job: &Job) -> Process {
        self.look_until_at(&job.place, Phase::Load).process.unwrap()
    }

    /// As the resource does: until the server of the job is healthy, infers, and was said to be ready.
    pub(crate) fn until_ready(&self, job: &Job) -> JobReport {
        let mut looks = Looks::default();
        let identity = until("it is not healthy", || {
            // One that dies while it loads may be followed by another: health first, so that the look shows who has it.
            let is_healthy = is_healthy(job.place.port);
            if !looks.is_due(self, &job.place, is_healthy) {
                return None;
            }
            let report = self.run_at(&job.place, &Verb::Look);
            assert!(report.phase <= Phase::Ready, "{report:#?}\n{}", self.work_log());
            let is_loaded = is_healthy && report.phase >= Phase::Load;
            report.process.filter(|_| is_loaded).map(|process| process.identity)
        });
        assert_eq!(chat(job.place.port, &header(job)), 200);
        let report = self.run_at(&job.place, &Verb::Ready { process: &identity });
        assert_eq!((report.phase, &report.failure), (Phase::Ready, &None), "{report:#?}");
        report
    }

    /// As after a minute without a client.
    pub(crate) fn leave(&self) {
        let attended = self.state().join("attended");
        // Where it is not, nothing was begun.
        let _ = Command::new("touch").args(["-c", "-d", "10 minutes ago"]).arg(attended).status();
    }

    /// What the detached work says, for a test that failed.
    pub(crate) fn work_log(&self) -> String {
        fs::read_to_string(self.state().join("work.log")).unwrap_or_default()
    }

    /// The folder of the run of now; empty where nothing was begun.
    pub(crate) fn run_folder(&self) -> String {
        self.run_folder_of(&self.place())
    }

    pub(crate) fn run_folder_of(&self, place: &ServerPlace) -> String {
        fs::read_to_string(self.state_of(place).join("run")).unwrap_or_default().trim_end().to_owned()
    }

    /// A record of the run of now.
    pub(crate) fn record(&self, record: &str) -> PathBuf {
        PathBuf::from(self.run_folder()).join(record)
    }

    /// A value of a record.
    pub(crate) fn recorded(&self, record: &str, name: &str) -> String {
        let text = fs::read_to_string(self.record(record)).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}='"))).unwrap();
        line.trim_end_matches('\'').to_owned()
    }

    /// Rewrites a value of a record, as time would have.
    pub(crate) fn rewrite(&self, record: &str, name: &str, value: &str) {
        let path = self.record(record);
        let old = format!("{name}='{}'", self.recorded(record, name));
        let text = fs::read_to_string(&path).unwrap().replace(&old, &format!("{name}='{value}'"));
        fs::write(path, text).unwrap();
    }

    /// The number of the detached work's shell.
    pub(crate) fn worker(&self) -> u32 {
        self.recorded("worker", "worker_identity").split('.').next().unwrap().parse().unwrap()
    }

    /// The servers that run in this home, as their numbers.
    pub(crate) fn servers(&self) -> Vec<u32> {
        let is_server = |words: &[String]| words.first().is_some_and(|word| word.ends_with("/llama-server"));
        self.processes().into_iter().filter(|(_, words)| is_server(words)).map(|(pid, _)| pid).collect()
    }

    /// The detached works that run in this home, as their numbers: each leads a session.
    pub(crate) fn works(&self) -> Vec<u32> {
        self.shells_of_works().into_iter().filter(|pid| session(*pid) == Some(*pid)).collect()
    }

    fn shells_of_works(&self) -> Vec<u32> {
        let works = self.processes().into_iter().filter(|(_, words)| words.last().is_some_and(|word| word == "work"));
        works.map(|(pid, _)| pid).collect()
    }

    /// Lets all pauses be short.
    pub(crate) fn hurry(&self) {
        self.script("bin/sleep", "#!/bin/sh\nexec /bin/sleep 0.01\n");
    }

    /// All processes of this home, as their numbers and arguments.
    pub(crate) fn processes(&self) -> Vec<(u32, Vec<String>)> {
        process::of_home(self.folder.path())
    }

    /// Has the program halt before the rename of this number: each record is written by one.
    pub(crate) fn halt_at(&self, rename: usize) {
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
    pub(crate) fn halts_before(&self, run: &mut Child, job: &Job) -> bool {
        let fingerprint = Fingerprint::of(job).to_string();
        let record = |name: &str| fs::read_to_string(self.record(name)).unwrap_or_default();
        until("it neither halts nor ends", || {
            if self.path("halted").exists() {
                return Some(true);
            }
            let (is_own, status) = (record("job").contains(&fingerprint), record("status"));
            let is_over =
                ["load", "ready", "failed"].iter().any(|phase| status.contains(&format!("status_phase='{phase}'")));
            (is_own && is_over && run.try_wait().unwrap().is_some()).then_some(false)
        })
    }

    /// Lets what has halted go on, without the rename.
    pub(crate) fn release(&self) {
        fs::remove_file(self.path("halt")).unwrap();
    }

    /// Kills the detached work, whether it has written itself down or not.
    pub(crate) fn kill_works(&self) {
        until_so("it lives", || {
            self.shells_of_works().into_iter().for_each(|pid| kill(pid, Signal::SIGKILL));
            self.shells_of_works().into_iter().all(|pid| !is_running(pid))
        });
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        for (pid, _) in self.processes() {
            kill(pid, Signal::SIGKILL);
        }
    }
}

/// How a job is begun in place of the run of now by a resource whose token is "owner".
pub(crate) fn start<'a>(home: &Home, job: &'a Job) -> Start<'a> {
    let path = job.package.clone().unwrap_or_else(|| format!("~/{PACKAGE}/llama-server"));
    let binary = match job.build {
        Build::Source => Binary::Source(Box::new(home.recipe())),
        _ => Binary::Prebuilt(Prebuilt { path, provided: None, hardware: String::new() }),
    };
    Start {
        job,
        binary: Box::leak(Box::new(binary)),
        login: Box::leak(Box::new(LoginLifetime::default())),
        note: None,
        because: None,
        owner: "owner",
        rolls_back: true,
        ends_rival: None,
        seen: home.run_folder_of(&job.place).leak(),
    }
}

/// What a sender records of a server that does not answer the probe.
pub(crate) fn no_inference() -> JobFailure {
    JobFailure { kind: FailureKind::NoInference, text: "no answer".to_owned() }
}

/// Reads what a shell answers.
pub(crate) fn answer(child: Child) -> JobReport {
    let output = child.wait_with_output().unwrap();
    JobReport::parse(&output.stdout, &[]).unwrap_or_else(|error| {
        panic!("{error}\n{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    })
}

pub(crate) fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-rT").arg(from).arg(to).status();
    assert!(copied.unwrap().success());
}

/// The header with the key of a job, for a request.
pub(crate) fn header(job: &Job) -> String {
    let key = job.api_key.as_ref().map(|key| format!("Authorization: Bearer {}\r\n", key.expose_secret()));
    key.unwrap_or_default()
}

/// The job with another value of a plain option.
pub(crate) fn with_option(option: &'static str, value: &str, mut job: Job) -> Job {
    job.options.insert(option, value.to_owned());
    job
}

/// Whether a server is healthy.
pub(crate) fn is_healthy(port: u16) -> bool {
    http(port, "GET /health", "").0 == 200
}

/// Asks for a token, as the probe does: the status, or 0 without an answer.
pub(crate) fn chat(port: u16, header: &str) -> u16 {
    let body = r#"{"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 1}"#;
    let length = body.len();
    let header = format!("{header}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}");
    http(port, "POST /v1/chat/completions", &header).0
}

/// Asks a server over TCP: the status, or 0 without an answer, and the body.
pub(crate) fn http(port: u16, request: &str, header: &str) -> (u16, String) {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.write_all(format!("{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{header}\r\n").as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let answer = ask().unwrap_or_default();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    (status, answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
}
