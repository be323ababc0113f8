//! The commands for a mirror in the guide on getting started, run on the packed zips of a release.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::{markdown::Page, root};
use crate::support::{
    program,
    terraform::{Cli, Run, each_cli},
};

const REQUIRES: &str =
    "terraform {\n  required_providers {\n    damodel = {\n      source = \"damodel/damodel\"\n    }\n  }\n}\n";

/// A folder with the zips of a release, in which the commands run.
struct Scene<'a> {
    cli: &'a Cli,
    folder: PathBuf,
}

impl Scene<'_> {
    /// A text of the guide, adapted to this command line.
    fn fitted(&self, text: &str) -> String {
        let host = if self.cli.is_tofu { "registry.opentofu.org" } else { "registry.terraform.io" };
        let mirror = self.folder.join("mirror").display().to_string();
        text.replace("registry.terraform.io", host).replace("/srv/mirror", &mirror)
    }

    fn run(&self, script: &str) -> Run {
        let name = if self.cli.is_tofu { "terraform() { tofu \"$@\"; }\n" } else { "" };
        let path = format!("{}:/usr/bin:/bin", self.cli.program.parent().unwrap().display());
        let mut command = Command::new("bash");
        command.args(["-euc", &format!("{name}{script}")]).current_dir(&self.folder).env("PATH", path);
        command.env("TF_CLI_CONFIG_FILE", self.folder.join("cli.tfrc")).env("CHECKPOINT_DISABLE", "1");
        let run = Run::of(command.output().unwrap());
        assert_eq!(run.code, Some(0), "{script}\n{}{}", run.stdout, run.stderr);
        run
    }
}

#[test]
fn the_commands_of_the_guide_work() {
    let guide = Page::read(&root().join("docs/guides/getting-started.md"));
    let block = |mark: &str| guide.blocks.iter().find(|block| block.text.contains(mark)).unwrap().text.clone();
    let (fill, settings, lock) = (block("mkdir -p mirror"), block("filesystem_mirror"), block("providers lock"));
    each_cli(|cli| {
        let root = tempfile::tempdir().unwrap();
        let scene = Scene { cli, folder: root.path().to_owned() };
        // No step starts the program: a small one is packed faster.
        let program = root.path().join("program");
        let said = concat!("terraform-provider-damodel ", env!("CARGO_PKG_VERSION"), " (commit none)");
        program::put(&program, &format!("#!/bin/sh\necho '{said}'\n"));
        let program = program.to_str().unwrap();
        let release = Command::new(super::root().join("scripts/release"))
            .args(["--binary", program, "--sandbox", program, "--out"])
            .arg(root.path())
            .env("PATH", "/usr/bin:/bin")
            .output();
        assert!(release.unwrap().status.success());
        fs::write(root.path().join("main.tf"), REQUIRES).unwrap();
        fs::write(root.path().join("cli.tfrc"), scene.fitted(&settings)).unwrap();

        scene.run(&scene.fitted(&fill));
        scene.run(&scene.fitted(&lock.replace("linux_amd64", &platform(root.path()))));
        let locked = fs::read_to_string(root.path().join(".terraform.lock.hcl")).unwrap();
        assert!(locked.contains("damodel/damodel") && locked.contains("h1:"), "{locked}");
        let said = scene.run("terraform init -no-color");
        assert!(said.stdout.contains("Installed damodel/damodel"), "{}", said.stdout);
    });
}

/// The platform of the zip in the release.
fn platform(folder: &Path) -> String {
    let mut names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let zip = names.find(|name| name.ends_with(".zip") && name.starts_with("terraform-provider")).unwrap();
    zip.trim_end_matches(".zip").splitn(3, '_').nth(2).unwrap().to_owned()
}
