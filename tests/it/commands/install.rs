//! `install`, in a home directory of its own, and the use of its result by the real command line.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::Command,
};

use damodel::commands::{
    Surroundings,
    install::{Arguments, run_to},
};
use tempfile::TempDir;

use crate::support::{
    plugin::BINARY,
    terraform::{Cli, Instance, Run, Site, config, each_cli},
};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A home directory and a folder with a configuration.
struct Scene {
    root: TempDir,
}

impl Scene {
    fn set() -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["home", "work"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        Self { root }
    }

    fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    /// A command in the folder, which sees only this home directory.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if ["TF_", "TERRAFORM_", "DAMODEL_", "XDG_"].iter().any(|start| text.starts_with(start)) {
                command.env_remove(&name);
            }
        }
        command.current_dir(self.work()).env("HOME", self.home()).env("CHECKPOINT_DISABLE", "1");
        command
    }

    /// Installs the binary under test, like a user.
    fn install(&self, arguments: &[&str]) -> String {
        let run = Run::of(self.command(Path::new(BINARY)).arg("install").args(arguments).output().unwrap());
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        run.stdout
    }

    /// Installs another build: a small file with this content.
    fn install_build(&self, content: &str) -> String {
        let executable = self.root.path().join("build");
        fs::write(&executable, content).unwrap();
        let surroundings = Surroundings { executable, variables: vec![("HOME".into(), self.home().into())] };
        let mut out = Vec::new();
        run_to(&Arguments::default(), &surroundings, &self.work(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// The program that was installed for a host.
    fn installed(&self, host: &str) -> PathBuf {
        let package = format!(".terraform.d/plugins/{host}/damodel/damodel/{VERSION}");
        let platform = fs::read_dir(self.home().join(package)).unwrap().next().unwrap().unwrap().path();
        platform.join(format!("terraform-provider-damodel_v{VERSION}"))
    }

    fn run(&self, cli: &Cli, site: &Site, arguments: &[&str]) -> Run {
        let mut command = self.command(&cli.program);
        command.args(arguments).env("DAMODEL_BASE_URL", site.base_url()).env("DAMODEL_API_TOKEN", site.token());
        Run::of(command.output().unwrap())
    }
}

#[test]
fn init_and_plan_find_what_was_installed() {
    each_cli(|cli| {
        let (scene, site) = (Scene::set(), Site::start());
        let said = scene.install(&[]);
        assert!(said.contains("terraform init and tofu init find it."), "{said}");
        // Its output contains a valid configuration.
        let block = &said[said.find("terraform {").unwrap()..said.find("\n}\n").unwrap() + 3];
        let body = config(Instance::new("a"));
        let body = &body[body.find("provider \"damodel\"").unwrap()..];
        fs::write(scene.work().join("main.tf"), format!("{block}{body}")).unwrap();
        let init = scene.run(cli, &site, &["init", "-no-color", "-input=false"]);
        assert_eq!(init.code, Some(0), "{}{}", init.stdout, init.stderr);
        assert!(
            init.stdout.contains(&format!("Installed damodel/damodel v{VERSION} (unauthenticated)")),
            "{}",
            init.stdout
        );
        let plan = scene.run(cli, &site, &["plan", "-no-color", "-input=false"]);
        assert!(plan.code == Some(0) && plan.stdout.contains("1 to add"), "{}{}", plan.stdout, plan.stderr);
        // A release's zip has the same two files, so that the lock file of one fits the other.
        let package = scene.installed("registry.terraform.io");
        let mut files: Vec<_> =
            fs::read_dir(package.parent().unwrap()).unwrap().map(|it| it.unwrap().file_name()).collect();
        files.sort();
        assert_eq!(files, ["LICENSE".into(), package.file_name().unwrap().to_owned()]);
        assert_eq!(fs::read(package.with_file_name("LICENSE")).unwrap(), include_bytes!("../../../LICENSE"));
        // The lock file has the same build, so there is no warning; a byte order mark is skipped, as Terraform does.
        let lock = scene.work().join(".terraform.lock.hcl");
        fs::write(&lock, format!("\u{feff}{}", fs::read_to_string(&lock).unwrap())).unwrap();
        let init = scene.run(cli, &site, &["init", "-no-color", "-input=false"]);
        assert_eq!(init.code, Some(0), "{}{}", init.stdout, init.stderr);
        let again = scene.install(&[]);
        assert!(again.starts_with("Already installed: ") && !again.contains("Warning"), "{again}");

        // The lock file refuses a rebuild of the same version; the warning has the solution, which works.
        let said = scene.install_build("another");
        let host = if cli.is_tofu { "registry.opentofu.org" } else { "registry.terraform.io" };
        assert!(said.contains(&format!("remove the block provider \"{host}/damodel/damodel\"")), "{said}");
        assert_eq!(said.matches("Warning").count(), 1, "{said}");
        let refused = scene.run(cli, &site, &["init", "-no-color", "-input=false"]);
        assert_ne!(refused.code, Some(0), "{}", refused.stdout);
        fs::remove_file(scene.work().join(".terraform.lock.hcl")).unwrap();
        let init = scene.run(cli, &site, &["init", "-no-color", "-input=false"]);
        assert_eq!(init.code, Some(0), "{}{}", init.stdout, init.stderr);
        let lock = fs::read_to_string(scene.work().join(".terraform.lock.hcl")).unwrap();
        let hash = said.split(['(', ')']).find(|part| part.starts_with("h1:")).unwrap();
        assert!(lock.contains(hash), "{hash} in {lock}");
        // A lock on another version has another warning.
        fs::write(scene.work().join(".terraform.lock.hcl"), lock.replace(VERSION, "0.0.1")).unwrap();
        let said = scene.install_build("another");
        assert!(said.contains("has 0.0.1 of") && said.contains("init -upgrade"), "{said}");
    });
}

#[test]
fn a_program_that_runs_is_not_disturbed() {
    let scene = Scene::set();
    scene.install_build("one");
    for host in ["registry.terraform.io", "registry.opentofu.org"] {
        let file = scene.installed(host);
        let before = fs::metadata(&file).unwrap();
        assert_eq!(before.permissions().mode() & 0o777, 0o755);
        // Once more: the same file, and its mode is repaired.
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        scene.install_build("one");
        let after = fs::metadata(&file).unwrap();
        assert_eq!((after.ino(), after.permissions().mode() & 0o777), (before.ino(), 0o755));
    }
    // Another build is installed under the same name, and the running program keeps its file.
    let file = scene.installed("registry.terraform.io");
    let running = fs::File::open(&file).unwrap();
    scene.install_build("another");
    assert_ne!(running.metadata().unwrap().ino(), fs::metadata(&file).unwrap().ino());
    assert_eq!(running.metadata().unwrap().len(), 3);
    // Only the packages are left.
    let left = fs::read_dir(scene.home().join(".terraform.d/plugins")).unwrap().count();
    assert_eq!(left, 2);
}

#[test]
fn what_turns_the_place_off_is_told() {
    let scene = Scene::set();
    fs::write(
        scene.home().join(".terraformrc"),
        "provider_installation {\n  dev_overrides {\n    \"damodel/damodel\" = \"/build\"\n  }\n  direct {}\n}\n",
    )
    .unwrap();
    let said = scene.install_build("one");
    assert!(said.contains("An entry for damodel/damodel there takes precedence"), "{said}");
    assert!(!said.contains("tofu init find it."), "{said}");
    fs::write(scene.home().join(".terraformrc"), "# provider_installation {\n  // dev_overrides\n").unwrap();
    assert!(scene.install_build("one").contains("tofu init find it."));
    let own = "provider_installation {\n  direct {}\n}\n";
    fs::write(scene.home().join(".terraformrc"), own).unwrap();
    let said = scene.install_build("one");
    let plugins = scene.home().join(".terraform.d/plugins");
    assert!(said.contains(&format!("which does not name {}. Add to that block:", plugins.display())), "{said}");
    assert_eq!(fs::read_to_string(scene.home().join(".terraformrc")).unwrap(), own);
    let added = &said[said.find("filesystem_mirror {").unwrap()..];
    fs::write(scene.home().join(".terraformrc"), format!("provider_installation {{\n{added}}}\n")).unwrap();
    assert!(scene.install_build("one").contains("tofu init find it."));
    fs::remove_file(scene.home().join(".terraformrc")).unwrap();
    // A directory in the place of a file.
    fs::create_dir(scene.home().join(".terraformrc")).unwrap();
    assert!(scene.install_build("one").contains(".terraformrc cannot be read ("));
    fs::remove_dir(scene.home().join(".terraformrc")).unwrap();
    fs::write(scene.home().join(".terraform.d/x.tfrc.json"), r#"{"provider_installation": {"direct": {}}}"#).unwrap();
    assert!(scene.install_build("one").contains("x.tfrc.json has a provider_installation block"));
    fs::remove_file(scene.home().join(".terraform.d/x.tfrc.json")).unwrap();
    let package = scene.installed("registry.terraform.io");
    fs::copy(&package, package.with_file_name("terraform-provider-damodel")).unwrap();
    let said = scene.install_build("one");
    assert!(said.contains("takes precedence over the installed program"), "{said}");
    fs::rename(package.with_file_name("terraform-provider-damodel"), package.with_file_name("README.md")).unwrap();
    let said = scene.install_build("one");
    assert!(said.contains("README.md is not part of the package"), "{said}");
}

#[test]
fn what_is_printed_for_another_place_works_there() {
    each_cli(|cli| {
        let (scene, site) = (Scene::set(), Site::start());
        let said = scene.install(&["--dir", "../mirror"]);
        let printed = &said[said.find("provider_installation {").unwrap()..];
        fs::write(scene.home().join(".terraformrc"), printed).unwrap();
        let said = scene.install(&["--dir", "../mirror"]);
        assert!(said.contains("tofu init find it."), "{said}");
        fs::write(scene.work().join("main.tf"), config(Instance::new("a"))).unwrap();
        let init = scene.run(cli, &site, &["init", "-no-color", "-input=false"]);
        assert_eq!(init.code, Some(0), "{}{}", init.stdout, init.stderr);
    });
}

#[test]
fn without_a_home_a_place_is_asked_for() {
    let scene = Scene::set();
    let surroundings = Surroundings { executable: BINARY.into(), variables: Vec::new() };
    let error = run_to(&Arguments::default(), &surroundings, &scene.work(), &mut Vec::new()).unwrap_err();
    let text = "cannot find the home directory: HOME is not set. Name a directory with --dir";
    assert_eq!(error.to_string(), text);
    scene.install(&["--dir", "~/mirror"]);
    assert!(scene.home().join("mirror").exists() && !scene.work().join("~").exists());
    // The working directory does not stand for it.
    let overrides = "provider_installation {\n  dev_overrides {\n    \"damodel/damodel\" = \"/build\"\n  }\n}\n";
    fs::write(scene.work().join(".terraformrc"), overrides).unwrap();
    let mut install = scene.command(Path::new(BINARY));
    let run = Run::of(install.args(["install", "--dir", "../mirror"]).env_remove("HOME").output().unwrap());
    assert!(run.code == Some(0) && !run.stdout.contains("dev_overrides"), "{}{}", run.stdout, run.stderr);
}

/// The commit is that of the sources, or unknown without a repository.
#[test]
fn the_version_names_the_commit() {
    let run = Run::of(Command::new(BINARY).arg("--version").output().unwrap());
    let commit = run.stdout.trim_end().strip_prefix(&format!("terraform-provider-damodel {VERSION} (commit "));
    let commit = commit.and_then(|rest| rest.strip_suffix(')')).unwrap();
    let git = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(env!("CARGO_MANIFEST_DIR")).output();
    match git {
        Ok(head) if head.status.success() => {
            assert!(commit.len() == 12 && String::from_utf8(head.stdout).unwrap().starts_with(commit), "{commit}");
        }
        _ => assert_eq!(commit, "unknown"),
    }
}
