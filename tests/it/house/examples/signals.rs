//! Signals to the scripts that create: Terraform ends in order and before the script, and nothing stays billed.

use std::{
    env,
    fs::{self, File},
    io::Write,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use damodel::sandbox::Options;
use nix::{
    sys::{
        signal::{Signal, kill, killpg},
        stat::Mode,
    },
    unistd::{Pid, mkfifo},
};
use rstest::rstest;
use tempfile::TempDir;

use super::{examples, files};
use crate::support::{
    program,
    record::skipped,
    terraform::{Installation, Site, Workspace, each_cli},
    wait::{wait_for, wait_until},
};

/// Stands in for `terraform`, the login and the sandbox, and logs its steps. The held step runs until the test lets it
/// go: a TERM makes it fail, but only in the end, and its group has a second process, as Terraform's has the provider.
const PROGRAM: &str = r#"#!/bin/sh
case "${0##*/} $*" in
"terraform-provider-damodel ssh "*) step=job ;;
*" apply "*) step=apply ;;
*" destroy "*) step=destroy ;;
*" test") step=test ;;
*" sandbox "*)
  tail -f /dev/null --pid="$PPID" &
  trap 'kill "$!"; echo "sandbox ends" >>"$LOG"; exit' TERM
  echo "sandbox listening"
  wait "$!"
  exit
  ;;
*) exit 0 ;;
esac
code=0
[ "$step" != "${FAILS-}" ] || code=3
if [ "$step" = "$HELD" ]; then
  trap 'echo "$step TERM" >>"$LOG"; code=1' TERM
  head -n 1 "$GATE" >/dev/null &
  echo "$step begins" >>"$LOG"
  until wait "$!"; do
    kill -0 "$!" 2>/dev/null || { echo "$step lost its provider" >>"$LOG"; exit 1; }
  done
else
  echo "$step begins" >>"$LOG"
fi
echo "$step ends" >>"$LOG"
exit "$code"
"#;

/// Which processes a signal is sent to.
#[derive(Clone, Copy, Debug)]
enum Target {
    Group,
    Script,
}

/// A folder with the stand-ins, and the pipe that the held one waits for.
struct Bench {
    root: TempDir,
    gate: File,
}

impl Bench {
    fn set(programs: &[&str]) -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("bin")).unwrap();
        for name in programs {
            program::put(&root.path().join("bin").join(name), PROGRAM);
        }
        fs::write(root.path().join("job"), "").unwrap();
        let gate = root.path().join("gate");
        mkfifo(&gate, Mode::S_IRWXU).unwrap();
        let gate = File::options().read(true).write(true).open(gate).unwrap();
        Self { root, gate }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn log(&self) -> Vec<String> {
        fs::read_to_string(self.path("log")).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    fn until_logged(&self, line: &str) {
        wait_until(line, || self.log().iter().any(|logged| logged == line));
    }

    fn let_go(&mut self) {
        self.gate.write_all(b"\n").unwrap();
    }

    /// Adds the stand-ins to a command of a script.
    fn prepare(&self, script: &mut Command, held: &str) {
        let inherited = env::var_os("PATH").unwrap();
        let paths = [self.path("bin")].into_iter().chain(env::split_paths(&inherited));
        script
            .env("PATH", env::join_paths(paths).unwrap())
            .env("HELD", held)
            .env("LOG", self.path("log"))
            .env("GATE", self.path("gate"));
    }

    /// Starts a script of the examples, in this shell.
    fn start(&self, shell: &str, script: &str, arguments: &[&str], held: &str, fails: &str) -> Started {
        let mut command = shell_of(shell);
        command.arg(examples().join(script)).args(arguments).current_dir(self.root.path());
        command.env("TERRAFORM", "terraform").stdout(Stdio::null()).stderr(Stdio::null());
        self.prepare(&mut command, held);
        command.env("FAILS", fails);
        Started::start(command)
    }
}

fn shell_of(name: &str) -> Command {
    let mut command = Command::new(name);
    command.args((name == "busybox").then_some("sh"));
    command
}

/// A running script, in a process group of its own.
struct Started(Child);

impl Started {
    fn start(mut command: Command) -> Self {
        Self(command.process_group(0).stdin(Stdio::null()).spawn().unwrap())
    }

    fn send(&self, signal: Signal, target: Target) {
        let id = Pid::from_raw(i32::try_from(self.0.id()).unwrap());
        match target {
            Target::Group => killpg(id, signal).unwrap(),
            Target::Script => kill(id, signal).unwrap(),
        }
    }

    fn code(mut self) -> Option<i32> {
        wait_for("the script ends", || self.0.try_wait().unwrap()).code()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
    }
}

/// Whether this computer has a shell.
fn is_installed(shell: &str) -> bool {
    let is_installed = shell_of(shell).args(["-c", ":"]).output().is_ok();
    if !is_installed {
        skipped(&format!("{shell} is not on PATH"));
    }
    is_installed
}

const SIGNALS: [(Signal, i32); 3] = [(Signal::SIGHUP, 129), (Signal::SIGINT, 130), (Signal::SIGTERM, 143)];

#[rstest]
fn a_signal_to_the_nightly_batch_ends_in_a_destroy(
    #[values("dash", "bash", "busybox")] shell: &str,
    #[values(Target::Script, Target::Group)] target: Target,
    #[values("apply", "job", "destroy")] held: &str,
) {
    if !is_installed(shell) {
        return;
    }
    for (signal, code) in SIGNALS {
        let mut bench = Bench::set(&["terraform", "terraform-provider-damodel"]);
        let script = bench.start(shell, "stacks/nightly-batch/run.sh", &["job", "results"], held, "none");
        bench.until_logged(&format!("{held} begins"));
        script.send(signal, target);
        if held != "destroy" {
            bench.until_logged(&format!("{held} TERM"));
        }
        bench.let_go();
        assert_eq!(script.code(), Some(code), "{signal} {:?}", bench.log());
        let expected: &[&str] = match held {
            "apply" => &["apply begins", "apply TERM", "apply ends"],
            "job" => &["apply begins", "apply ends", "job begins", "job TERM", "job ends"],
            _ => &["apply begins", "apply ends", "job begins", "job ends"],
        };
        let expected = [expected, &["destroy begins", "destroy ends"]].concat();
        assert_eq!(bench.log(), expected, "{signal}");
    }
}

/// A second interrupt makes Terraform exit without storing what it created.
#[rstest]
fn a_second_ctrl_c_does_not_reach_terraform(
    #[values("dash", "bash", "busybox")] shell: &str,
    #[values("stacks/nightly-batch/run.sh", "ci/scripts/graceful")] script: &str,
) {
    if !is_installed(shell) {
        return;
    }
    let mut bench = Bench::set(&["terraform", "terraform-provider-damodel"]);
    let started = bench.start(shell, script, &["terraform", "apply", "-input=false"], "apply", "none");
    bench.until_logged("apply begins");
    started.send(Signal::SIGINT, Target::Group);
    bench.until_logged("apply TERM");
    started.send(Signal::SIGINT, Target::Group);
    bench.let_go();
    assert_eq!(started.code(), Some(130), "{:?}", bench.log());
    assert_eq!(bench.log()[..3], ["apply begins", "apply TERM", "apply ends"]);
}

#[rstest]
fn the_scripts_of_pipelines_end_after_terraform(
    #[values("dash", "bash", "busybox")] shell: &str,
    #[values(Target::Script, Target::Group)] target: Target,
    #[values("gpu-up", "apply")] script: &str,
) {
    if !is_installed(shell) {
        return;
    }
    for (signal, code) in SIGNALS {
        let mut bench = Bench::set(&["terraform", "terraform-provider-damodel"]);
        let mut command = shell_of(shell);
        command.arg(examples().join("ci/scripts").join(script)).current_dir(bench.root.path());
        for name in ["TERRAFORM", "WORK", "REPORTS", "POLICY", "GPU", "RUN", "DAMODEL_STACK", "DAMODEL_PENDING_DIR"] {
            command.env(name, name.to_lowercase());
        }
        bench.prepare(&mut command, "apply");
        let started = Started::start(command);
        bench.until_logged("apply begins");
        started.send(signal, target);
        bench.until_logged("apply TERM");
        bench.let_go();
        assert_eq!(started.code(), Some(code), "{signal} {:?}", bench.log());
        assert_eq!(bench.log(), ["apply begins", "apply TERM", "apply ends"], "{signal}");
    }
}

/// Terraform destroys what its tests created, for which it needs the sandbox.
#[rstest]
fn a_sandbox_of_tests_ends_last(
    #[values("dash", "bash", "busybox")] shell: &str,
    #[values(Target::Script, Target::Group)] target: Target,
) {
    if !is_installed(shell) {
        return;
    }
    for (signal, code) in SIGNALS {
        let mut bench = Bench::set(&["terraform", "terraform-provider-damodel"]);
        let script = bench.start(shell, "testing/test.sh", &[], "test", "none");
        bench.until_logged("test begins");
        script.send(signal, target);
        bench.let_go();
        assert_eq!(script.code(), Some(code), "{signal} {:?}", bench.log());
        bench.until_logged("sandbox ends");
        let log = bench.log();
        assert_eq!(log.last().unwrap(), "sandbox ends", "{signal} {log:?}");
        let has_ended = log.contains(&"test ends".to_owned());
        assert!(has_ended || matches!(target, Target::Group), "{signal} {log:?}");
    }
}

#[rstest]
fn the_code_of_the_nightly_batch_is_that_of_its_job(#[values("dash", "bash", "busybox")] shell: &str) {
    if !is_installed(shell) {
        return;
    }
    for (fails, interrupted, code) in
        [("none", false, 0), ("job", false, 3), ("destroy", false, 1), ("destroy", true, 1)]
    {
        let mut bench = Bench::set(&["terraform", "terraform-provider-damodel"]);
        let script = bench.start(shell, "stacks/nightly-batch/run.sh", &["job", "results"], "destroy", fails);
        bench.until_logged("destroy begins");
        if interrupted {
            script.send(Signal::SIGTERM, Target::Group);
        }
        bench.let_go();
        assert_eq!(script.code(), Some(code), "{fails} {:?}", bench.log());
    }
}

#[test]
fn without_setsid_the_nightly_batch_creates_nothing() {
    let bench = Bench::set(&["terraform", "terraform-provider-damodel"]);
    let mut command = Command::new("/bin/sh");
    command.arg(examples().join("stacks/nightly-batch/run.sh")).args(["job", "results"]);
    bench.prepare(&mut command, "none");
    let run = command.current_dir(bench.root.path()).env("PATH", bench.path("bin")).output().unwrap();
    assert_eq!(run.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&run.stderr).contains("setsid"), "{run:?}");
    assert!(bench.log().is_empty());
}

/// With Terraform and the provider: an instance that is being created is released, and so is one in its job.
#[rstest]
#[case::apply("apply", Signal::SIGHUP, 129)]
#[case::job("job", Signal::SIGTERM, 143)]
fn an_interrupted_batch_leaves_no_instance(#[case] held: &str, #[case] signal: Signal, #[case] code: i32) {
    each_cli(|cli| {
        let site = Site::with(Options { creation: Duration::from_secs(2), ..Site::options() });
        let workspace = Workspace::installed(cli, &site, Installation::Mirror);
        workspace.set_env("DAMODEL_REGION", "cn-east-1");
        for file in files(&examples().join("stacks/nightly-batch")) {
            fs::copy(&file, workspace.directory().join(file.file_name().unwrap())).unwrap();
        }
        let mut bench = Bench::set(&["terraform-provider-damodel"]);
        let terraform = workspace.command(&[]);
        let mut command = Command::new("/bin/sh");
        for (name, value) in terraform.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let output = File::create(bench.path("output")).unwrap();
        command.arg("run.sh").arg(bench.path("job")).arg(bench.path("results")).current_dir(workspace.directory());
        command.env("TERRAFORM", terraform.get_program()).stderr(output.try_clone().unwrap()).stdout(output);
        bench.prepare(&mut command, held);
        let mut script = Started::start(command);
        let output = || fs::read_to_string(bench.path("output")).unwrap();
        wait_until("the batch is where it is interrupted", || {
            assert_eq!(script.0.try_wait().unwrap(), None, "{}", output());
            if held == "apply" { !site.live().is_empty() } else { bench.log() == ["job begins"] }
        });
        script.send(signal, Target::Group);
        bench.let_go();
        let ended = script.code();
        let output = fs::read_to_string(bench.path("output")).unwrap();
        assert_eq!(ended, Some(code), "{output}");
        assert_eq!(site.live(), Vec::<String>::new(), "{output}");
        assert_eq!(site.balance().created, 1, "{output}");
    });
}
