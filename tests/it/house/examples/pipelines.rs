//! The pipelines of examples/ci: their scripts on the sandbox, with a repository, a release and a forge of their own;
//! the workflows by actionlint.

use std::{
    env,
    fs::{self, File},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

use regex::Regex;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::{examples, files};
use crate::{
    house::root,
    support::{
        plugin::BINARY,
        program,
        record::skipped,
        terraform::{Cli, Run, Site, each_cli},
    },
};

/// An instance of 1.98 an hour.
const INSTANCE: &str = r#"
resource "damodel_instance" "x" {
  name       = "x"
  spec_id    = 103
  gpu_num    = 1
  image_id   = 902
  image_type = "public"
}
"#;

const CONFIGURATION: &str = r#"
terraform {
  required_providers {
    damodel = {
      source = "damodel/damodel"
    }
  }
}

provider "damodel" {}
"#;

/// `gh api` with comments in a file, and `--jq` by jq.
const GH: &str = r#"#!/bin/sh
set -eu
comments=$COMMENTS
shift
method=GET
while [ $# -gt 0 ]; do
  case $1 in
  --method) method=$2 && shift ;;
  --jq) filter=$2 && shift ;;
  -F) body=$(cat "${2#body=@}") && shift ;;
  --paginate) ;;
  *) path=$1 ;;
  esac
  shift
done
case $method in
GET) [ ! -e "$comments.unread" ] && jq -r "$filter" "$comments" ;;
POST) jq --arg body "$body" '. + [{ id: (length + 1), user: { login: "github-actions[bot]" }, body: $body }]' \
  "$comments" >"$comments.new" && mv "$comments.new" "$comments" ;;
PATCH) jq --arg body "$body" --argjson id "${path##*/}" 'map(if .id == $id then .body = $body else . end)' \
  "$comments" >"$comments.new" && mv "$comments.new" "$comments" ;;
esac
"#;

/// The provider's zip of a release as `scripts/release` makes it, without the symbols of the program under test.
fn zip() -> &'static Path {
    static ZIP: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pipelines");
        if folder.exists() {
            fs::remove_dir_all(&folder).unwrap();
        }
        fs::create_dir_all(&folder).unwrap();
        let program = folder.join("terraform-provider-damodel");
        let mut strip = Command::new("strip");
        Ended(Run::of(strip.arg("-o").arg(&program).arg(BINARY).output().unwrap())).expect_code(0);
        let mut command = Command::new(root().join("scripts/release"));
        command.arg("--out").arg(folder.join("release")).arg("--binary").arg(program).args(["--cli", "none"]);
        command.env_remove("CARGO_TARGET_DIR").env("ZIPOPT", "-1");
        Ended(Run::of(command.output().unwrap())).expect_code(0);
        let is_zip = |file: &PathBuf| file.extension().is_some_and(|end| end == "zip");
        files(&folder.join("release")).into_iter().find(is_zip).unwrap()
    });
    &ZIP
}

/// A runner: a checkout with its origin, and programs that come first on PATH.
struct Runner<'a> {
    cli: &'a Cli,
    site: &'a Site,
    root: TempDir,
}

impl<'a> Runner<'a> {
    fn set(cli: &'a Cli, site: &'a Site) -> Self {
        let runner = Self { cli, site, root: tempfile::tempdir().unwrap() };
        let origin = runner.path("origin");
        fs::create_dir_all(origin.join("scripts/ci")).unwrap();
        for script in files(&examples().join("ci/scripts")) {
            fs::copy(&script, origin.join("scripts/ci").join(script.file_name().unwrap())).unwrap();
        }
        fs::create_dir(origin.join("policy")).unwrap();
        fs::write(origin.join("policy/review.toml"), "version = 1\n\n[limits]\nmax_monthly_increase = 100\n").unwrap();
        fs::write(origin.join("main.tf"), CONFIGURATION).unwrap();
        runner.git(&origin, &["init", "-q", "-b", "main"]);
        // The lock file is a part of the repository.
        runner.script("install", &origin, &[]).expect_code(0);
        runner.terraform(&origin, &["init", "-input=false"]);
        fs::remove_dir_all(origin.join(".terraform")).unwrap();
        runner.git(&origin, &["add", "."]);
        runner.git(&origin, &["commit", "-q", "-m", "main"]);
        runner.git(runner.root.path(), &["clone", "-q", "origin", "checkout"]);
        fs::create_dir(runner.path("bin")).unwrap();
        runner.tool("gh", GH);
        fs::write(runner.path("comments"), "[]").unwrap();
        runner
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn tool(&self, name: &str, script: &str) {
        program::put(&self.path("bin").join(name), script);
    }

    fn git(&self, folder: &Path, arguments: &[&str]) {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=Team", "-c", "user.email=team@example.com"]).args(arguments).current_dir(folder);
        Ended(Run::of(git.output().unwrap())).expect_code(0);
    }

    fn terraform(&self, folder: &Path, arguments: &[&str]) {
        let mut command = Command::new(&self.cli.program);
        command.args(arguments).current_dir(folder).env("TF_CLI_CONFIG_FILE", self.path("tools/cli.tfrc"));
        Ended(Run::of(command.output().unwrap())).expect_code(0);
    }

    /// Runs a script in a folder as a step of a workflow: with the inputs of all scripts, and further ones.
    fn script(&self, name: &str, folder: &Path, inputs: &[(&str, &str)]) -> Ended {
        let sum = hex::encode(Sha256::digest(fs::read(zip()).unwrap()));
        let mut command = Command::new(folder.join("scripts/ci").join(name));
        for (variable, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("DAMODEL_")) {
            command.env_remove(variable);
        }
        let paths = [self.path("bin"), self.path("tools/bin")];
        let path = env::join_paths(paths.into_iter().chain(env::split_paths(&env::var_os("PATH").unwrap()))).unwrap();
        command
            .current_dir(folder)
            .env("PATH", path)
            .env("TF_CLI_CONFIG_FILE", self.path("tools/cli.tfrc"))
            .env("TERRAFORM", &self.cli.program)
            .env("PROVIDER_ZIP", format!("file://{}", zip().display()))
            .env("PROVIDER_SHA256", sum)
            .env("TOOLS", self.path("tools"))
            .env("WORK", self.path("work"))
            .env("REPORTS", self.path("reports"))
            .env("COMMENTS", self.path("comments"))
            .env("POLICY", "policy/review.toml")
            .env("DAMODEL_BASE_URL", self.site.base_url())
            .env("DAMODEL_API_TOKEN", self.site.token())
            .env("DAMODEL_REGION", "cn-east-1")
            .env("DAMODEL_STACK", "prod")
            .env("DAMODEL_PENDING_DIR", self.path("pending"))
            .env_remove("GITHUB_ACTIONS")
            .env_remove("GITLAB_CI")
            .envs(inputs.iter().copied());
        Ended(Run::of(command.output().unwrap()))
    }

    /// The preview of the checkout as a pull request to main, with the variable that a forge sets.
    fn preview(&self, forge: &str) -> Ended {
        let checkout = self.path("checkout");
        self.script("plan", &checkout, &[]).expect_code(0);
        self.script("preview", &checkout, &[("BASE", "main"), ("NAME", "prod"), (forge, "true")])
    }

    fn comment(&self) -> Ended {
        let inputs = [
            ("GH_TOKEN", "token"),
            ("REPOSITORY", "team/infrastructure"),
            ("NUMBER", "7"),
            ("AUTHOR", "github-actions[bot]"),
            ("NAME", "prod"),
        ];
        self.script("comment", &self.path("checkout"), &inputs)
    }

    fn comments(&self) -> Vec<Value> {
        serde_json::from_slice(&fs::read(self.path("comments")).unwrap()).unwrap()
    }
}

/// A script that has ended.
struct Ended(Run);

impl Ended {
    fn expect_code(self, code: i32) -> Run {
        assert_eq!(self.0.code, Some(code), "{}{}", self.0.stdout, self.0.stderr);
        self.0
    }
}

#[test]
fn a_pull_request_changes_neither_the_policy_nor_another_ones_comment() {
    each_cli(|cli| {
        let site = Site::start();
        let runner = Runner::set(cli, &site);
        let checkout = runner.path("checkout");
        fs::write(checkout.join("main.tf"), format!("{CONFIGURATION}{INSTANCE}")).unwrap();
        fs::write(checkout.join("policy/review.toml"), "version = 1\n").unwrap();
        let run = runner.preview("GITHUB_ACTIONS").expect_code(3);
        let change = "+1,445.40 a month (0.00 → 1,445.40)";
        assert!(run.stdout.starts_with(&format!("❌ prod: {change}, 1 rule violated\n")), "{}", run.stdout);
        assert_eq!(run.stderr.matches("violation: ").count(), 1, "{}", run.stderr);
        let annotation = |line: &&str| line.starts_with("::error file=") && line.contains("max-monthly-increase::");
        assert_eq!(run.stdout.lines().filter(annotation).count(), 1, "{}", run.stdout);
        let names = || {
            let reports = files(&runner.path("reports")).into_iter();
            reports.map(|file| file.file_name().unwrap().to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(), ["comment.md", "report.html", "report.json", "report.sarif"]);

        // A comment with the marker by somebody else is not the bot's.
        let stranger = r#"[{"id": 1, "user": {"login": "stranger"}, "body": "<!-- damodel-review: prod --> hello"}]"#;
        fs::write(runner.path("comments"), stranger).unwrap();
        runner.comment().expect_code(0);
        // A list that cannot be read does not stand for one without a comment.
        fs::write(runner.path("comments.unread"), "").unwrap();
        runner.comment().expect_code(1);
        fs::remove_file(runner.path("comments.unread")).unwrap();
        runner.comment().expect_code(0);
        let comments = runner.comments();
        assert_eq!(comments.len(), 2, "{comments:?}");
        assert!(comments[0]["body"].as_str().unwrap().ends_with("hello"), "{comments:?}");
        assert!(comments[1]["body"].as_str().unwrap().contains("damodel_instance.x"), "{comments:?}");

        // A policy that the base branch has takes effect.
        let origin = runner.path("origin");
        fs::write(origin.join("policy/review.toml"), "version = 1\n\n[limits]\nmax_monthly_increase = 2000\n").unwrap();
        runner.git(&origin, &["add", "."]);
        runner.git(&origin, &["commit", "-q", "-m", "policy"]);
        let run = runner.preview("GITLAB_CI").expect_code(0);
        assert!(
            run.stdout.starts_with(&format!("✅ prod: {change}\n")) && !run.stdout.contains("::error"),
            "{}",
            run.stdout
        );
        assert_eq!(names()[1], "gl-code-quality-report.json");
        assert!(site.live().is_empty());
    });
}

/// A report with a path and a text of every kind.
const SARIF: &str = r#"{"runs": [{"results": [
  {"ruleId": "destroy-data", "level": "error", "partialFingerprints": {"damodelReview/v1": "f1"},
   "message": {"text": "damodel_instance.x\\[\"a\\\\b\"\\]: 50% gone, a: b\r\n::stop-commands::x"},
   "locations": [{"physicalLocation": {"region": {"startLine": 7},
     "artifactLocation": {"uri": "modules/%C3%A4%2C%3A%20%E4%B8%AD%F0%9F%98%80%25/main.tf"}}}]},
  {"ruleId": "prepaid", "level": "warning", "partialFingerprints": {"damodelReview/v1": "f2"},
   "message": {"text": "it is prepaid"},
   "locations": [{"physicalLocation": {"region": {"startLine": 1}, "artifactLocation": {"uri": "main.tf"}}}]}
]}]}"#;

fn annotations(forge: &str, sarif: &str) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.sarif");
    fs::write(&file, sarif).unwrap();
    let mut command = Command::new(examples().join("ci/scripts/annotations"));
    Run::of(command.arg(forge).stdin(File::open(file).unwrap()).output().unwrap())
}

/// Workflow commands (GitHub, workflow commands for GitHub Actions): no text of a plan is a command or ends one.
#[test]
fn annotations_of_github_are_escaped() {
    let run = Ended(annotations("github", SARIF)).expect_code(0);
    let expected = [
        "::error file=modules/ä%2C%3A 中😀%25/main.tf,line=7,title=destroy-data::damodel_instance.x[\"a\\b\"]: 50%25 \
         gone, a: b%0D%0A::stop-commands::x",
        "::warning file=main.tf,line=1,title=prepaid::it is prepaid",
    ];
    assert_eq!(run.stdout.lines().collect::<Vec<_>>(), expected);
}

/// Code Quality report (GitLab, Code Quality, report format).
#[test]
fn annotations_of_gitlab_are_a_code_quality_report() {
    let report = |sarif: &str| -> Value {
        serde_json::from_str(&Ended(annotations("gitlab", sarif)).expect_code(0).stdout).unwrap()
    };
    let expected = json!([
        {"description": "damodel_instance.x[\"a\\b\"]: 50% gone, a: b\r\n::stop-commands::x",
         "check_name": "destroy-data", "fingerprint": "f1", "severity": "critical",
         "location": {"path": "modules/ä,: 中😀%/main.tf", "lines": {"begin": 7}}},
        {"description": "it is prepaid", "check_name": "prepaid", "fingerprint": "f2", "severity": "minor",
         "location": {"path": "main.tf", "lines": {"begin": 1}}},
    ]);
    assert_eq!(report(SARIF), expected);
    assert_eq!(report(r#"{"runs": [{"results": []}]}"#), json!([]));
    for (forge, sarif) in [("gitlab", ""), ("gitlab", "{}"), ("gitea", SARIF)] {
        assert!(annotations(forge, sarif).code.is_some_and(|code| code > 0), "{forge}: {sarif}");
    }
}

#[test]
fn the_gate_stands_before_the_apply_of_the_same_plan() {
    each_cli(|cli| {
        let site = Site::start();
        let runner = Runner::set(cli, &site);
        let checkout = runner.path("checkout");
        fs::write(checkout.join("main.tf"), format!("{CONFIGURATION}{INSTANCE}")).unwrap();
        let run = runner.script("apply", &checkout, &[]).expect_code(3);
        assert_eq!(run.stderr.matches("violation: ").count(), 1, "{}", run.stderr);
        assert!(site.live().is_empty());
        assert!(runner.path("reports/report.json").is_file());
        let plan = fs::metadata(runner.path("work/plan.json")).unwrap();
        assert_eq!(plan.permissions().mode() & 0o077, 0);

        fs::write(checkout.join("policy/review.toml"), "version = 1\n\n[limits]\nmax_monthly_increase = 2000\n")
            .unwrap();
        runner.script("apply", &checkout, &[]).expect_code(0);
        assert_eq!(site.live().len(), 1);

        // The sandbox's own objects are in no state.
        let audit = runner.script("audit", &checkout, &[("OLDER_THAN", "0s")]).expect_code(3).stdout;
        let holder = |name: &str| audit.lines().find(|line| line.contains(&format!(" {name} "))).unwrap();
        assert!(holder("x").contains("damodel_instance.x in "), "{audit}");
        assert!(holder("scratch").ends_with("unmanaged"), "{audit}");
    });
}

/// `init` writes the file; the first pipeline may run before anybody has committed it.
#[test]
fn a_repository_without_a_lock_file_is_planned_audited_and_expired() {
    each_cli(|cli| {
        let site = Site::start();
        let runner = Runner::set(cli, &site);
        let checkout = runner.path("checkout");
        for (script, code) in [("plan", 0), ("audit", 3), ("expire", 0)] {
            fs::remove_file(checkout.join(".terraform.lock.hcl")).unwrap();
            let inputs = [("OLDER_THAN", "0s")];
            let run = runner.script(script, &checkout, &inputs).expect_code(code);
            assert_eq!(run.stderr.matches("No .terraform.lock.hcl is committed.\n").count(), 1, "{}", run.stderr);
            let run = runner.script(script, &checkout, &inputs).expect_code(code);
            assert!(!run.stderr.contains("lock.hcl"), "{}", run.stderr);
        }
        // What is committed is obeyed.
        fs::write(checkout.join(".terraform.lock.hcl"), "").unwrap();
        assert_ne!(runner.script("plan", &checkout, &[]).0.code, Some(0));
    });
}

#[test]
fn a_gpu_ends_with_its_job_and_one_that_did_not_fails_the_audit() {
    each_cli(|cli| {
        let site = Site::start();
        let runner = Runner::set(cli, &site);
        let checkout = runner.path("checkout");
        let gpu = checkout.join("ci-gpu");
        fs::create_dir(&gpu).unwrap();
        for file in files(&examples().join("stacks/ci-gpu")) {
            fs::copy(&file, gpu.join(file.file_name().unwrap())).unwrap();
        }
        let job = |number| [("GPU", "ci-gpu"), ("RUN", number)];
        // A lock file is never changed. This one lacks the provider.
        let lock = gpu.join(".terraform.lock.hcl");
        fs::write(&lock, "").unwrap();
        runner.script("gpu-up", &checkout, &job("1")).expect_code(1);
        assert!(site.live().is_empty());
        // The example has no lock file: the first run writes it.
        fs::remove_file(&lock).unwrap();
        runner.script("gpu-up", &checkout, &job("1")).expect_code(0);
        assert!(lock.is_file());
        assert_eq!(site.live().len(), 1);
        let state = fs::metadata(runner.path("work/gpu.tfstate")).unwrap();
        assert_eq!(state.permissions().mode() & 0o077, 0);
        runner.script("gpu-down", &checkout, &job("1")).expect_code(0);
        assert!(site.live().is_empty());

        // The runner of this job vanishes, with its state and its pending records.
        runner.script("gpu-up", &checkout, &job("2")).expect_code(0);
        fs::remove_dir_all(runner.path("work")).unwrap();
        fs::remove_dir_all(runner.path("pending")).unwrap();
        let audit = runner.script("audit", &checkout, &[("OLDER_THAN", "0s")]).expect_code(3).stdout;
        let left = audit.lines().find(|line| line.contains(" ci-gpu-2 ")).unwrap();
        assert!(left.ends_with("unmanaged"), "{audit}");
    });
}

/// The instance of the examples, older than its max_age.
fn old_instance(site: &Site) {
    assert_eq!(site.live().len(), 1);
    site.started_hours_ago(&site.live()[0], 9);
}

#[test]
fn a_schedule_releases_what_is_too_old() {
    each_cli(|cli| {
        let site = Site::start();
        let runner = Runner::set(cli, &site);
        let checkout = runner.path("checkout");
        // Before the first apply.
        runner.script("expire", &checkout, &[]).expect_code(0);
        let aged = INSTANCE.replace("  gpu_num", "  max_age    = \"8h\"\n  gpu_num");
        fs::write(checkout.join("main.tf"), format!("{CONFIGURATION}{aged}")).unwrap();
        fs::write(checkout.join("policy/review.toml"), "version = 1\n").unwrap();
        runner.script("apply", &checkout, &[]).expect_code(0);
        old_instance(&site);
        runner.script("expire", &checkout, &[]).expect_code(0);
        assert!(site.live().is_empty());

        // The line for cron, with a local state.
        runner.script("apply", &checkout, &[]).expect_code(0);
        old_instance(&site);
        let home = runner.path("home");
        for folder in [".config", "gpu"] {
            fs::create_dir_all(home.join(folder)).unwrap();
        }
        let (base_url, token) = (site.base_url(), site.token());
        let settings = format!("DAMODEL_BASE_URL={base_url}\nDAMODEL_API_TOKEN={token}\nPROGRAM={BINARY}\n");
        fs::write(home.join(".config/damodel.env"), settings).unwrap();
        fs::copy(checkout.join("terraform.tfstate"), home.join("gpu/terraform.tfstate")).unwrap();
        let crontab = fs::read_to_string(examples().join("expire/crontab")).unwrap();
        let line = crontab.lines().find_map(|line| line.strip_prefix("23 * * * * ")).unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).env_clear().env("HOME", &home).env("PATH", env::var_os("PATH").unwrap());
        Ended(Run::of(shell.output().unwrap())).expect_code(0);
        assert!(site.live().is_empty());
    });
}

#[test]
fn the_units_of_the_timer_are_valid() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["damodel-expire.service", "damodel-expire.timer"];
    for name in names {
        fs::copy(examples().join("expire").join(name), folder.path().join(name)).unwrap();
    }
    let mut verify = Command::new("systemd-analyze");
    let Ok(run) = verify.arg("verify").args(names.map(|name| folder.path().join(name))).output() else {
        skipped("systemd-analyze is not on PATH");
        return;
    };
    Ended(Run::of(run)).expect_code(0);
}

#[test]
fn a_provider_with_another_sum_is_not_installed() {
    each_cli(|cli| {
        let site = Site::start();
        let runner = Runner::set(cli, &site);
        let checkout = runner.path("checkout");
        let settings = runner.path("settings");
        let run = runner.script("install", &checkout, &[("GITHUB_ENV", settings.to_str().unwrap())]).expect_code(0);
        let expected = format!("TF_CLI_CONFIG_FILE={}/cli.tfrc\n", runner.path("tools").display());
        assert_eq!(fs::read_to_string(&settings).unwrap(), expected);
        assert!(run.stdout.starts_with(&expected), "{}", run.stdout);
        fs::remove_dir_all(runner.path("tools")).unwrap();
        let wrong = "0".repeat(64);
        let run = runner.script("install", &checkout, &[("PROVIDER_SHA256", &wrong)]);
        assert!(
            run.0.code != Some(0) && !runner.path("tools/bin/terraform-provider-damodel").exists(),
            "{:?}",
            run.0.code
        );
    });
}

/// The workflows of the examples call these scripts, each with one line; those of the project call scripts of the
/// project.
#[test]
fn each_step_of_a_workflow_is_one_line_that_calls_a_script() {
    let folders = [examples().join("ci/github"), root().join(".github/workflows")];
    let pinned = Regex::new(r"^[\w/-]+@[0-9a-f]{40} # v[\d.]+\n").unwrap();
    for workflow in folders.iter().flat_map(|folder| files(folder)) {
        let text = fs::read_to_string(&workflow).unwrap();
        assert!(!text.contains("pull_request_target"), "{}", workflow.display());
        for action in text.split(" uses: ").skip(1).filter(|_| workflow.starts_with(&folders[0])) {
            assert!(pinned.is_match(action), "{}: {action}", workflow.display());
        }
        for step in text.lines().filter_map(|line| line.trim_start().trim_start_matches("- ").strip_prefix("run: ")) {
            let program = step.split(' ').next().unwrap();
            let script = program.strip_prefix("scripts/ci/").map(|name| examples().join("ci/scripts").join(name));
            assert!(script.unwrap_or_else(|| root().join(program)).is_file(), "{}: {step}", workflow.display());
        }
    }
    let Ok(run) = Command::new("actionlint").args(folders.iter().flat_map(|folder| files(folder))).output() else {
        skipped("actionlint is not on PATH");
        return;
    };
    Ended(Run::of(run)).expect_code(0);
}

#[test]
fn the_scripts_pass_shellcheck() {
    let scripts = files(&examples().join("ci/scripts")).into_iter().chain(files(&root().join("scripts")));
    let scripts = scripts.chain(["stacks/nightly-batch/run.sh", "testing/test.sh"].map(|name| examples().join(name)));
    let Ok(run) = Command::new("shellcheck").args(scripts).output() else {
        skipped("shellcheck is not on PATH");
        return;
    };
    Ended(Run::of(run)).expect_code(0);
}
