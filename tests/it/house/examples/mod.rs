//! Every example does what it says: formatted, valid, planned, applied, settled, imported and destroyed, on the
//! sandbox.

mod pipelines;
mod stage;

use std::{
    env, fs,
    io::{self, Write},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use damodel::{
    commands::terraform::{Cli, Mirror, ProgramEnvironment},
    framework::{Ends, OfferKind, Server},
    provider::{self, Damodel},
    sandbox::{LedgerObject, StateList},
};
use futures_util::{StreamExt as _, stream};
use serde_json::json;

use self::stage::{Stage, is_import_block};
use crate::support::plugin::BINARY;

/// How many examples run at a time: one waits for its instances while another computes.
const AT_A_TIME: usize = 4;

/// Terraform, or OpenTofu if only that is installed. Without either the test prints a message, and fails if CI is set.
pub(crate) async fn cli() -> Option<Cli> {
    match Cli::find(None, ProgramEnvironment::of(env::vars_os())).await {
        Ok(cli) => Some(cli),
        Err(error) => {
            assert!(env::var_os("CI").is_none_or(|value| value.is_empty()), "{error}");
            // Output of print macros is captured, and not shown for a test that passes.
            let mut stderr = io::stderr();
            writeln!(stderr, "SKIPPED: {error}").unwrap();
            None
        }
    }
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

/// The folders with a configuration in them.
pub(crate) fn folders(below: &Path) -> Vec<PathBuf> {
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = files(below).into_iter().partition(|path| path.is_dir());
    let is_configuration = files.iter().any(|file| file.extension().is_some_and(|extension| extension == "tf"));
    let own = is_configuration.then(|| below.to_owned());
    own.into_iter().chain(folders.iter().flat_map(|folder| self::folders(folder))).collect()
}

/// Whether a command line reads an example: only the newest versions support actions.
fn is_known_to(cli: &Cli, example: &Path) -> bool {
    const FIRST_WITH_ACTIONS: u64 = 14;
    let mut numbers = cli.version().split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse::<u64>().ok());
    let minor = numbers.nth(1).unwrap_or(0);
    let is_terraform = cli.name().contains("terraform");
    !example.starts_with(examples().join("actions")) || (is_terraform && minor >= FIRST_WITH_ACTIONS)
}

async fn prove(cli: Cli, example: &Path) {
    let stage = Stage::set(cli, example).await;
    stage.run(&["fmt", "-check", "-diff"]).await;
    stage.run(&["init", "-no-color"]).await;
    stage.run(&["validate", "-no-color"]).await;
    let before = stage.living();
    stage.run(&["plan", "-no-color", "-out=tfplan"]).await;
    // A check that fails is a warning. So is the first login to an instance, whose host key nobody can pin before.
    let applied = stage.run(&["apply", "-no-color", "tfplan"]).await;
    let first_logins = applied.matches("Warning: The SSH host key of the instance is not pinned").count();
    assert_eq!(applied.matches("Warning:").count(), first_logins, "{}: {applied}", example.display());
    stage.expect_nothing_to_do().await;
    if let Ok(script) = fs::read_to_string(stage.configuration().join("import.sh")) {
        for file in files(example).iter().filter(|file| is_import_block(file)) {
            import_by_block(&stage, file, &script).await;
        }
        import(&stage, &script).await;
    }
    stage.run(&["destroy", "-no-color", "-auto-approve"]).await;
    assert_eq!(stage.living(), before, "{}", example.display());
}

/// Removes the example's resource from the state and imports it again by its script, with the real id.
async fn import(stage: &Stage, script: &str) {
    let (address, _) = target_of(script);
    let id = stage.id_of(address).await;
    stage.run(&["state", "rm", address]).await;
    stage.run(&["import", "-no-color", address, &id]).await;
    let plan = stage.run(&["plan", "-no-color"]).await;
    assert!(!plan.contains("must be replaced") && !plan.contains("will be created"), "{plan}");
}

/// The address that a script imports to, and the id that it shows.
fn target_of(script: &str) -> (&str, &str) {
    let command = script.lines().find(|line| !line.starts_with('#')).unwrap();
    let [program, subcommand, address, id] = command.split(' ').collect::<Vec<_>>().try_into().unwrap();
    assert_eq!((program, subcommand), ("terraform", "import"), "{command}");
    (address, id)
}

/// Removes it from the state and plans its import by the block, with the real id instead of the script's; then restores
/// the state.
async fn import_by_block(stage: &Stage, file: &Path, script: &str) {
    let by_identity = file.ends_with("import-by-identity.tf");
    if by_identity && !stage.knows_identities() {
        let _ = writeln!(io::stderr(), "SKIPPED: {} needs Terraform 1.12", file.display());
        return;
    }
    let block = fs::read_to_string(file).unwrap();
    let (address, shown) = target_of(script);
    assert!(block.contains(&format!("to = {address}\n")) && block.contains(shown), "{block}");
    let id = stage.id_of(address).await;
    let written = stage.configuration().join("import.tf");
    // An identity has the instance and the port in two attributes.
    let real = if by_identity { id.split(':').next().unwrap() } else { &id };
    fs::write(&written, block.replace(shown, real)).unwrap();
    stage.run(&["fmt", "-check", "-diff"]).await;
    fs::copy(stage.configuration().join("terraform.tfstate"), stage.configuration().join("kept")).unwrap();
    stage.run(&["state", "rm", address]).await;
    stage.run(&["plan", "-no-color", "-out=import"]).await;
    let plan = stage.json(&["show", "-json", "import"]).await;
    let changes = plan["resource_changes"].as_array().unwrap();
    let change = changes.iter().find(|change| change["address"] == address).unwrap();
    let importing = &change["change"]["importing"];
    assert!(importing["identity"].is_object() || importing["id"] == json!(id), "{change:#}");
    assert_eq!(importing["id"].is_null(), by_identity, "{change:#}");
    for change in changes {
        let actions = &change["change"]["actions"];
        assert!(
            [json!(["no-op"]), json!(["update"]), json!(["read"])].contains(actions),
            "{}: {change:#}",
            stage.name()
        );
    }
    fs::remove_file(written).unwrap();
    fs::rename(stage.configuration().join("kept"), stage.configuration().join("terraform.tfstate")).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_lives_its_whole_life() {
    let Some(cli) = cli().await else { return };
    let folders: Vec<PathBuf> = folders(&examples()).into_iter().filter(|folder| is_known_to(&cli, folder)).collect();
    assert!(folders.len() >= 5, "{folders:?}");
    stream::iter(folders)
        .for_each_concurrent(AT_A_TIME, |folder| {
            let cli = cli.clone();
            async move { prove(cli, &folder).await }
        })
        .await;
}

/// The flow in the comments of image-factory: the builder is removed and the image stays, and a release makes a new
/// image and new instances before the old ones are removed.
#[tokio::test]
async fn an_image_outlives_its_builder_and_gives_way_to_the_next_release() {
    let Some(cli) = cli().await else { return };
    let stage = Stage::set(cli, &examples().join("stacks/image-factory")).await;
    stage.run(&["init", "-no-color"]).await;
    let seeded = stage.living_of(LedgerObject::PrivateImage);
    let apply = async |variables: &[&str]| {
        stage.run(&[&["apply", "-no-color", "-auto-approve"], variables].concat()).await;
        let image = stage.id_of("damodel_private_image.release").await;
        let worker = stage.id_of("damodel_instance.worker[0]").await;
        (image, worker, stage.living_of(LedgerObject::Instance).len())
    };
    let first = apply(&[]).await;
    let without_builder = apply(&["-var=keep_builder=false"]).await;
    assert_eq!(without_builder, (first.0.clone(), first.1.clone(), first.2 - 1));
    let second = apply(&["-var=release=2"]).await;
    assert!(second.0 != first.0 && second.1 != first.1, "{second:?}");
    let images = stage.living_of(LedgerObject::PrivateImage);
    assert!(images.contains(&second.0) && !images.contains(&first.0), "{images:?}");
    stage.run(&["destroy", "-no-color", "-auto-approve"]).await;
    assert_eq!(
        (stage.living_of(LedgerObject::Instance), stage.living_of(LedgerObject::PrivateImage)),
        (vec![], seeded)
    );
}

/// The stack that is created in any region with a GPU, while stock changes.
#[tokio::test]
async fn a_stack_with_candidates_is_created_while_stock_flaps() {
    let Some(cli) = cli().await else { return };
    let stage = Stage::set(cli, &examples().join("stacks/stock-proof")).await;
    stage.run(&["init", "-no-color"]).await;
    let set = |spec_id: i64, stock: i64| {
        stage.sandbox().set(StateList::Specs, &spec_id.to_string(), &json!({ "stock": stock })).unwrap();
    };
    set(103, 0);
    // Always one of the others has stock, but only briefly.
    let flap = async {
        for round in 0_usize.. {
            for (place, spec) in [101, 102, 201].into_iter().enumerate() {
                set(spec, if place == round % 3 { 8 } else { 0 });
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        () = flap => {}
        _ = stage.run(&["apply", "-no-color", "-auto-approve"]) => {}
    }
    assert_eq!(stage.living_of(LedgerObject::Instance).len(), 2);
    stage.expect_nothing_to_do().await;
    stage.run(&["destroy", "-no-color", "-auto-approve"]).await;
    assert!(stage.living_of(LedgerObject::Instance).is_empty());
}

/// The example of `terraform test`, by the script that a person or a pipeline runs.
#[tokio::test]
async fn the_tests_of_the_example_module_pass_on_a_sandbox() {
    let Some(cli) = cli().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let mirror = Mirror::make(folder.path(), Path::new(BINARY)).unwrap();
    let (bin, module) = (folder.path().join("bin"), folder.path().join("module"));
    fs::create_dir(&bin).unwrap();
    symlink(BINARY, bin.join("terraform-provider-damodel")).unwrap();
    let program = Command::new("sh").args(["-c", "command -v \"$0\"", &cli.name()]).output().unwrap();
    symlink(String::from_utf8(program.stdout).unwrap().trim(), bin.join("terraform")).unwrap();
    fs::create_dir_all(module.join("tests")).unwrap();
    for file in ["main.tf", "test.sh", "tests/module.tftest.hcl"] {
        fs::copy(examples().join("testing").join(file), module.join(file)).unwrap();
    }
    let formatted =
        Command::new(bin.join("terraform")).args(["fmt", "-check", "-recursive"]).current_dir(&module).output();
    assert!(formatted.unwrap().status.success());
    let path = env::join_paths([bin].into_iter().chain(env::split_paths(&env::var_os("PATH").unwrap()))).unwrap();
    let mut script = Command::new(module.join("test.sh"));
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("DAMODEL_")) {
        script.env_remove(name);
    }
    script.current_dir(&module).env("PATH", path).env("TF_CLI_CONFIG_FILE", mirror.cli_config).env("NO_COLOR", "1");
    let run = tokio::task::spawn_blocking(move || script.output()).await.unwrap().unwrap();
    let said = String::from_utf8(run.stdout).unwrap();
    assert!(
        run.status.success() && said.contains("4 passed, 0 failed"),
        "{said}{}",
        String::from_utf8_lossy(&run.stderr)
    );
}

/// Everything that the provider offers has an example in the registry's layout, and there are no other examples.
#[tokio::test]
async fn everything_has_its_example() {
    let Some(cli) = cli().await else { return };
    let stage = Stage::set(cli, &examples().join("provider")).await;
    stage.run(&["init", "-no-color"]).await;
    let schemas = stage.json(&["providers", "schema", "-json"]).await;
    // Editors and other programs read nothing but the schema.
    let text = schemas.to_string();
    assert!(text.len() < 15_000_000, "{}", text.len());
    let fact = "`Monthly`. All but `Hourly` are prepaid, and the service may refuse to release a prepaid instance \
                before its term ends. Default: `Hourly`. Forces replacement.";
    assert!(text.contains(fact));
    let [schema] = schemas["provider_schemas"].as_object().unwrap().values().collect::<Vec<_>>().try_into().unwrap();
    for (kind, folder) in [
        ("resource_schemas", "resources"),
        ("data_source_schemas", "data-sources"),
        ("ephemeral_resource_schemas", "ephemeral-resources"),
        ("functions", "functions"),
        ("list_resource_schemas", "list-resources"),
        ("action_schemas", "actions"),
    ] {
        // Older versions do not list the newer kinds.
        let Some(offered) = schema[kind].as_object() else { continue };
        let offered: Vec<&String> = offered.keys().collect();
        let shown: Vec<String> = files(&examples().join(folder))
            .iter()
            .map(|folder| folder.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(shown.iter().collect::<Vec<_>>(), offered, "examples/{folder}");
    }
}

/// The same for the kinds that older versions do not list.
#[test]
fn the_newest_kinds_have_their_examples() {
    let provider = Damodel::new(provider::Environment::default());
    let server = Server::new(provider, Ends::default());
    for (offered, folder, example) in [
        (OfferKind::ListResource, "list-resources", "list-resource.tfquery.hcl"),
        (OfferKind::Action, "actions", "action.tf"),
    ] {
        let shown = files(&examples().join(folder));
        let names: Vec<_> = shown.iter().map(|folder| folder.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(
            names,
            server.registry().of(offered).map(|entry| entry.name).collect::<Vec<_>>(),
            "examples/{folder}"
        );
        assert!(shown.iter().all(|folder| folder.join(example).is_file()), "examples/{folder}");
    }
}

#[test]
fn scripts_are_shell() {
    for folder in folders(&examples()) {
        for script in files(&folder).iter().filter(|file| file.extension().is_some_and(|extension| extension == "sh")) {
            assert!(Command::new("sh").arg("-n").arg(script).status().unwrap().success(), "{}", script.display());
        }
    }
}
