//! A directory with a configuration, and the command line that runs in it.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use damodel::{
    framework::Provider,
    llama::Silence,
    provider::{ADDRESS, Damodel, Environment},
};
use tempfile::TempDir;
use terraform_plugin::testing::Reattached;

use super::{Cli, Diagnostic, Plan, Site, State, plan};
use crate::support::{plugin::BINARY, program, record};

/// How the command line finds the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Installation {
    /// From a filesystem mirror, by `init`.
    Mirror,
    /// By `dev_overrides`, without `init`.
    Override,
}

/// Makes short commands of Go programs cheap: their garbage collection is a seventh of the processor time, and on one
/// thread, beside others, each is a tenth cheaper.
const LIGHT: [(&str, &str); 3] = [("GOGC", "off"), ("GOMEMLIMIT", "1GiB"), ("GOMAXPROCS", "1")];

/// A working directory of its own, with an environment of its own.
pub(crate) struct Workspace<'a> {
    pub(crate) cli: &'a Cli,
    pub(crate) site: &'a Site,
    root: TempDir,
    environment: RefCell<BTreeMap<String, String>>,
    transcript: RefCell<String>,
    /// The patience of the provider that is served in this process; none if the provider is the program.
    here: Cell<Option<Silence>>,
    served: RefCell<Option<Reattached>>,
}

/// The result of a command.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl<'a> Workspace<'a> {
    /// A workspace whose provider is served in this process, a new one for each command: Terraform starts no program
    /// three times, which is more than half of the time of a short command.
    pub(crate) fn new(cli: &'a Cli, site: &'a Site) -> Self {
        let workspace = Self::with_program(cli, site);
        workspace.here.set(Some(Silence::default()));
        workspace
    }

    /// From here on the provider is the program under test, as a user runs it: a process of its own, which can be
    /// killed, and which owns its records and has a log.
    pub(crate) fn run_program(&self) {
        self.here.set(None);
    }

    /// From here on the provider waits this long for a model server that may hang.
    pub(crate) fn wait_for_servers(&self, silence: Silence) {
        self.here.set(Some(silence));
    }

    /// Serves another provider in this process besides, under a short address; ours is the program from here on.
    pub(crate) fn attach(&self, other: impl Provider, address: &str) {
        let served = Reattached::serve(other, address);
        self.run_program();
        self.set_env("TF_REATTACH_PROVIDERS", &served.variable);
        self.served.replace(Some(served));
    }

    /// A workspace whose provider is the program under test, by `dev_overrides`.
    pub(crate) fn with_program(cli: &'a Cli, site: &'a Site) -> Self {
        Self::installed(cli, site, Installation::Override)
    }

    /// The same with another way to find it.
    pub(crate) fn installed(cli: &'a Cli, site: &'a Site, installation: Installation) -> Self {
        let root = tempfile::tempdir().unwrap();
        for directory in ["bin", "home", "work"] {
            fs::create_dir(root.path().join(directory)).unwrap();
        }
        let provider = root.path().join("bin").join("terraform-provider-damodel");
        std::os::unix::fs::symlink(BINARY, provider).unwrap();
        fs::write(root.path().join("cli.tfrc"), cli_config(root.path(), installation)).unwrap();
        let environment = [("DAMODEL_BASE_URL", site.base_url()), ("DAMODEL_API_TOKEN", site.token())];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self {
            cli,
            site,
            root,
            environment: RefCell::new(environment.into()),
            transcript: RefCell::default(),
            here: Cell::new(None),
            served: RefCell::default(),
        }
    }

    /// Puts a shell script before the program; it ends with `exec "$PROVIDER"`.
    pub(crate) fn wrap_provider(&self, script: &str) {
        self.run_program();
        let program = self.root.path().join("bin").join("terraform-provider-damodel");
        fs::remove_file(&program).unwrap();
        program::put(&program, &format!("#!/bin/sh\nPROVIDER='{BINARY}'\n{script}\n"));
    }

    /// Sets a variable for the commands that follow.
    pub(crate) fn set_env(&self, name: &str, value: &str) {
        self.environment.borrow_mut().insert(name.to_owned(), value.to_owned());
    }

    pub(crate) fn remove_env(&self, name: &str) {
        self.environment.borrow_mut().remove(name);
    }

    /// The working directory.
    pub(crate) fn directory(&self) -> PathBuf {
        self.root.path().join("work")
    }

    /// A path beside the working directory.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Writes the configuration.
    pub(crate) fn write(&self, config: &str) {
        fs::write(self.directory().join("main.tf"), config).unwrap();
    }

    /// The command line with these arguments, not yet run.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        record::command();
        let mut command = Command::new(&self.cli.program);
        for (name, _) in env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("TF_") || text.starts_with("DAMODEL_") {
                command.env_remove(&name);
            }
        }
        command
            .args(arguments)
            .current_dir(self.directory())
            .env("CHECKPOINT_DISABLE", "1")
            .envs(LIGHT)
            .env("HOME", self.root.path().join("home"))
            .env("TF_CLI_CONFIG_FILE", self.root.path().join("cli.tfrc"))
            .env("TF_IN_AUTOMATION", "1")
            .env("TF_LOG_PROVIDER", "WARN")
            .env("TF_LOG_PATH", self.root.path().join("log"))
            .envs(&*self.environment.borrow())
            .stdin(Stdio::null());
        if let Some(silence) = self.here.get()
            && !self.has_aliases()
        {
            self.serve(&mut command, silence);
        }
        command
    }

    /// Whether Terraform needs several processes of the provider: one for each alias.
    fn has_aliases(&self) -> bool {
        let files = fs::read_dir(self.directory()).unwrap().map(|file| file.unwrap().path());
        let mut configurations = files.filter(|file| file.extension().is_some_and(|extension| extension == "tf"));
        configurations.any(|file| fs::read_to_string(file).is_ok_and(|config| config.contains("  alias ")))
    }

    /// Serves the provider in this process, with the environment of a command, until the next one.
    fn serve(&self, command: &mut Command, silence: Silence) {
        let has_log = self.environment.borrow().keys().any(|name| name.starts_with("TF_LOG"));
        assert!(!has_log, "only the program has a log with levels");
        let text = |(name, value): (&OsStr, &OsStr)| Some((name.to_str()?.to_owned(), value.to_str()?.to_owned()));
        let set: BTreeMap<_, _> = command.get_envs().collect();
        let inherited: Vec<_> = env::vars_os().filter(|(name, _)| !set.contains_key(&**name)).collect();
        let inherited = inherited.iter().map(|(name, value)| (&**name, &**value));
        let own = set.iter().filter_map(|(name, value)| Some((*name, (*value)?)));
        let variables: Vec<_> = inherited.chain(own).filter_map(text).collect();
        let environment = Environment::made_of(variables, self.directory()).with_silence(silence);
        let served = Reattached::serve_logged(Damodel::new(environment), ADDRESS, &self.beside("log"));
        command.env("TF_REATTACH_PROVIDERS", &served.variable);
        self.served.replace(Some(served));
    }

    /// Runs a command, which may fail.
    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        let output = self.command(arguments).output().unwrap();
        self.note(arguments, Run::of(output))
    }

    /// Stores the output of a command. Fails if the service's answer differed from a plan: a default that the service
    /// does not have, or a plan that is too specific.
    pub(crate) fn note(&self, arguments: &[&str], run: Run) -> Run {
        let log = fs::read_to_string(self.root.path().join("log")).unwrap_or_default();
        let otherwise: Vec<&str> = log.lines().filter(|line| line.contains(damodel::framework::OTHERWISE)).collect();
        assert!(otherwise.is_empty(), "{arguments:?}\n{}", otherwise.join("\n"));
        let mut transcript = self.transcript.borrow_mut();
        transcript.extend(["$ ", &arguments.join(" "), "\n", &run.stdout, &run.stderr]);
        run
    }

    /// The output of all commands so far.
    pub(crate) fn transcript(&self) -> String {
        self.transcript.borrow().clone()
    }

    /// Runs a command that must succeed.
    pub(crate) fn run_ok(&self, arguments: &[&str]) -> Run {
        let run = self.run(arguments);
        assert_eq!(run.code, Some(0), "{arguments:?}\n{}{}", run.stdout, run.stderr);
        run
    }

    /// Runs `init`, if the provider comes from a mirror.
    pub(crate) fn init(&self) {
        self.run_ok(&["init", "-no-color", "-input=false"]);
    }

    /// Plans into the file `plan` with further arguments, and shows the plan.
    pub(crate) fn plan(&self, arguments: &[&str]) -> Plan {
        self.run_ok(&[&["plan", "-no-color", "-input=false", "-out=plan"], arguments].concat());
        self.saved_plan()
    }

    /// Plans into the file `plan` with further arguments; it must succeed.
    pub(crate) fn save_plan(&self, arguments: &[&str]) -> Vec<Diagnostic> {
        Diagnostic::of_lines(
            &self.run_ok(&[&["plan", "-json", "-input=false", "-out=plan"], arguments].concat()).stdout,
        )
    }

    /// Shows the plan in the file `plan`.
    pub(crate) fn saved_plan(&self) -> Plan {
        Plan::parse(&self.show(&["show", "-json", "plan"]))
    }

    /// Plans without a file; it may fail.
    pub(crate) fn try_plan(&self, arguments: &[&str]) -> Vec<Diagnostic> {
        let mut all = vec!["plan", "-json", "-input=false"];
        all.extend(arguments);
        Diagnostic::of_lines(&self.run(&all).stdout)
    }

    /// Applies the last plan.
    pub(crate) fn apply_plan(&self) -> Run {
        self.run_ok(&["apply", "-no-color", "-input=false", "plan"])
    }

    /// Plans and applies at once; it may fail. The first value is whether it succeeded.
    pub(crate) fn try_apply(&self, arguments: &[&str]) -> (bool, Vec<Diagnostic>) {
        let mut all = vec!["apply", "-json", "-auto-approve", "-input=false"];
        all.extend(arguments);
        let run = self.run(&all);
        (run.code == Some(0), Diagnostic::of_lines(&run.stdout))
    }

    /// A step of terraform-plugin-testing: writes the configuration, applies, and checks that nothing is left to do.
    pub(crate) fn apply_ok(&self, config: &str) {
        self.write(config);
        self.run_ok(&["apply", "-auto-approve", "-no-color", "-input=false"]);
        self.settled();
    }

    /// The same, and returns the addresses that changed, with `create`, `update`, `replace` or `delete`.
    pub(crate) fn applied(&self, config: &str) -> Vec<(String, String)> {
        self.write(config);
        let run = self.run_ok(&["apply", "-json", "-auto-approve", "-input=false"]);
        self.settled();
        plan::changes(&run.stdout).map(|(address, action, _)| (address, action)).collect()
    }

    /// The same with a plan in a file, which is returned.
    pub(crate) fn plan_and_apply_ok(&self, config: &str) -> Plan {
        self.write(config);
        let plan = self.plan(&[]);
        self.apply_plan();
        self.settled();
        plan
    }

    /// Checks that nothing is left to do, with and without refresh: no action and no changed output. If the refresh
    /// finds no drift, one plan proves both: without refresh it starts from the same values, and from the same private
    /// data as far as a plan reads it, because a refresh only notes the account there. With drift (a disk that was
    /// mounted by an instance since, an import) the plan without refresh is made too. The data source of a check is
    /// read again in every apply, which is no change, but has its exit code.
    pub(crate) fn settled(&self) {
        let plan = |refresh: &str| {
            let run = self.run(&["plan", "-json", "-input=false", "-detailed-exitcode", refresh]);
            let is_empty = run.code == Some(0) || run.code == Some(2) && plan::only_reads_checks(&run.stdout);
            assert!(is_empty, "the plan is not empty ({refresh})\n{}{}", run.stdout, run.stderr);
            run.stdout
        };
        if plan("-refresh=true").contains(r#""type":"resource_drift""#) {
            plan("-refresh=false");
        }
    }

    /// The state, from its local file.
    pub(crate) fn state(&self) -> State {
        let selected = fs::read_to_string(self.directory().join(".terraform/environment")).unwrap_or_default();
        let folder = match selected.trim() {
            "" | "default" => String::new(),
            name => format!("terraform.tfstate.d/{name}"),
        };
        let file = self.directory().join(folder).join("terraform.tfstate");
        State::of_file(&fs::read_to_string(file).unwrap_or_default())
    }

    /// The state as Terraform shows it, which also tells what is sensitive.
    pub(crate) fn shown_state(&self) -> State {
        State::parse(&self.show(&["show", "-json"]))
    }

    /// Shows without adding to the transcript: this command prints sensitive values by design.
    fn show(&self, arguments: &[&str]) -> String {
        let run = Run::of(self.command(arguments).output().unwrap());
        assert_eq!(run.code, Some(0), "{arguments:?}\n{}", run.stderr);
        run.stdout
    }

    /// Destroys everything.
    pub(crate) fn destroy_ok(&self) -> Run {
        self.run_ok(&["destroy", "-auto-approve", "-no-color", "-input=false"])
    }

    /// Destroys; it may fail.
    pub(crate) fn try_destroy(&self) -> (bool, Vec<Diagnostic>) {
        self.try_apply(&["-destroy"])
    }

    /// Destroys everything and checks that no instance is left and none was created twice.
    pub(crate) fn finish(&self) {
        self.destroy_ok();
        assert!(self.state().addresses().is_empty());
        assert_eq!(self.site.live(), Vec::<String>::new(), "not all machines are released");
        assert_eq!(self.site.ledger().duplicates(damodel::sandbox::LedgerObject::Instance), Vec::<Vec<String>>::new());
    }
}

impl Run {
    pub(crate) fn of(output: std::process::Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

fn cli_config(root: &Path, installation: Installation) -> String {
    let addresses = ["registry.terraform.io", "registry.opentofu.org"].map(|host| format!("{host}/damodel/damodel"));
    let path = |name: &str| root.join(name).display().to_string();
    match installation {
        Installation::Override => {
            let overrides = addresses.map(|address| format!("    {address:?} = {:?}\n", path("bin"))).concat();
            format!("provider_installation {{\n  dev_overrides {{\n{overrides}  }}\n  direct {{}}\n}}\n")
        }
        Installation::Mirror => {
            for address in addresses {
                let version = env!("CARGO_PKG_VERSION");
                let package = root.join("mirror").join(address).join(version).join(platform());
                fs::create_dir_all(&package).unwrap();
                let file = package.join(format!("terraform-provider-damodel_v{version}"));
                std::os::unix::fs::symlink(BINARY, file).unwrap();
            }
            format!("provider_installation {{\n  filesystem_mirror {{\n    path = {:?}\n  }}\n}}\n", path("mirror"))
        }
    }
}

/// The platform in Terraform's form, such as `linux_amd64`.
fn platform() -> String {
    let system = if env::consts::OS == "macos" { "darwin" } else { env::consts::OS };
    let machine = match env::consts::ARCH {
        "aarch64" => "arm64",
        "x86_64" => "amd64",
        other => other,
    };
    format!("{system}_{machine}")
}
