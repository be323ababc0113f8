//! Every example does what it says: formatted, planned, applied, settled, imported and destroyed, on the
//! sandbox.

mod endpoints;
mod first;
mod mocks;
mod opa;
mod pipelines;
mod signals;
mod stage;

use std::{
    collections::BTreeSet,
    env, fs,
    io::{self, Write},
    net::TcpStream,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    sync::mpsc::{RecvTimeoutError, channel},
    thread,
    time::Duration,
};

use damodel::{
    commands::terraform::Mirror,
    framework::{Ends, OfferKind, Server},
    provider::{self, Damodel},
    sandbox::LedgerObject,
};
use rstest::rstest;
use serde_json::{Value, json};

use self::stage::{Stage, each_stage, is_import_block};
use crate::{
    commands::ssh::SshHome,
    support::{
        plugin::BINARY,
        ports::free_port,
        terraform::{Diagnostic, Installation, Run, Site, Workspace, each_cli, each_cli_since},
        wait::wait_until,
    },
};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}

/// The modules for configurations of users.
pub(crate) fn modules() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("modules")
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

fn prove(stage: &Stage<'_>) {
    let example = stage.example.display();
    let before = stage.living();
    let planned = Diagnostic::of_lines(&stage.run(&["plan", "-json", "-out=tfplan"]));
    let shown = stage.workspace.command(&["show", "-json", "tfplan"]).output().unwrap().stdout;
    fs::write(stage.path("shown.json"), shown).unwrap();
    let mut review = Command::new(BINARY);
    review.args(["review", "shown.json", "--deny", "no-max-age"]).current_dir(stage.workspace.directory());
    let review = Run::of(review.output().unwrap());
    assert_eq!(review.code, Some(0), "{example}: {}{}", review.stdout, review.stderr);
    // Not even what the plan has warned of is said again. A check that fails is a warning too.
    let applied = Diagnostic::of_lines(&stage.run(&["apply", "-json", "tfplan"]));
    assert!(applied.is_empty(), "{example}: {planned:#?} {applied:#?}");
    stage.workspace.settled();
    run_printed(stage);
    if let Ok(script) = fs::read_to_string(stage.path("import.sh")) {
        for file in files(stage.example).iter().filter(|file| is_import_block(file)) {
            import_by_block(stage, file, &script);
        }
        import(stage, &script);
    }
    stage.run(&["destroy", "-no-color", "-auto-approve"]);
    assert_eq!(stage.living(), before, "{example}");
}

/// Runs each command that the outputs print: it logs in, and a tunnel is open.
fn run_printed(stage: &Stage<'_>) {
    let outputs: Value = serde_json::from_str(&stage.run(&["output", "-json"])).unwrap();
    let mut texts = Vec::new();
    let mut values: Vec<&Value> = outputs.as_object().unwrap().values().map(|output| &output["value"]).collect();
    while let Some(value) = values.pop() {
        match value {
            Value::String(text) => texts.push(text.clone()),
            Value::Array(list) => values.extend(list),
            Value::Object(map) => values.extend(map.values()),
            _ => {}
        }
    }
    assert!(!texts.iter().any(|text| text.starts_with("ssh ")), "{texts:?}");
    let mut commands = texts.iter().filter_map(|text| text.strip_prefix("terraform-provider-damodel ")).peekable();
    if commands.peek().is_none() {
        return;
    }
    let Some(home) = SshHome::new(stage.workspace) else { return };
    for line in commands {
        let port = free_port();
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let tunnel = words.iter().position(|word| word == "-L").map(|at| at + 1);
        match tunnel {
            Some(at) => {
                // The port of the example may be in use here.
                let (_, end) = words[at].rsplit_once(":127.0.0.1:").unwrap();
                words[at] = format!("{port}:127.0.0.1:{end}");
            }
            None => words.push("true".to_owned()),
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = home.command(stage.workspace, BINARY, &words);
        if tunnel.is_none() {
            let run = Run::of(command.output().unwrap());
            assert_eq!(run.code, Some(0), "{line}: {}", run.stderr);
            continue;
        }
        let mut running = command.spawn().unwrap();
        wait_until("the tunnel is open", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        running.kill().unwrap();
        running.wait().unwrap();
    }
}

/// Removes the example's resource from the state and imports it again by its script, with the real id.
fn import(stage: &Stage<'_>, script: &str) {
    let (address, _) = target_of(script);
    let id = stage.id_of(address);
    stage.run(&["state", "rm", address]);
    stage.run(&["import", "-no-color", address, &id]);
    let plan = stage.run(&["plan", "-no-color"]);
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
fn import_by_block(stage: &Stage<'_>, file: &Path, script: &str) {
    let by_identity = file.ends_with("import-by-identity.tf");
    if by_identity && !stage.workspace.cli.has(12, u64::MAX) {
        let _ = writeln!(io::stderr(), "SKIPPED: {} needs Terraform 1.12", file.display());
        return;
    }
    let block = fs::read_to_string(file).unwrap();
    let (address, shown) = target_of(script);
    assert!(block.contains(&format!("to = {address}\n")) && block.contains(shown), "{block}");
    let id = stage.id_of(address);
    let written = stage.path("import.tf");
    // An identity has the instance and the port in two attributes.
    let real = if by_identity { id.split(':').next().unwrap() } else { &id };
    fs::write(&written, block.replace(shown, real)).unwrap();
    fs::copy(stage.path("terraform.tfstate"), stage.path("kept")).unwrap();
    stage.run(&["state", "rm", address]);
    let plan = stage.workspace.plan(&[]);
    let change = plan.change(address);
    let importing = change.importing();
    assert!(importing["identity"].is_object() || importing["id"] == json!(id), "{change:#?}");
    assert_eq!(importing["id"].is_null(), by_identity, "{change:#?}");
    for change in plan.changes() {
        let is_harmless = ["no-op", "update", "read"].contains(&&*change.actions());
        assert!(is_harmless, "{}: {change:#?}", stage.example.display());
    }
    fs::remove_file(written).unwrap();
    fs::rename(stage.path("kept"), stage.path("terraform.tfstate")).unwrap();
}

/// The test of every example, by the file that each has one of.
#[rstest]
fn every_example_lives_its_whole_life(
    #[files("examples/**/main.tf")]
    #[files("modules/*/examples/*/main.tf")]
    #[files("examples/**/provider.tf")]
    #[files("examples/**/resource.tf")]
    #[files("examples/**/data-source.tf")]
    #[files("examples/**/ephemeral-resource.tf")]
    #[files("examples/**/function.tf")]
    #[files("examples/**/action.tf")]
    file: PathBuf,
) {
    each_stage(file.parent().unwrap(), prove);
}

#[test]
fn each_example_has_one_file_that_its_test_is_found_by() {
    for folder in folders(&examples()) {
        let kinds = ["main", "provider", "resource", "data-source", "ephemeral-resource", "function", "action"];
        let found = kinds.iter().filter(|kind| folder.join(format!("{kind}.tf")).is_file());
        assert_eq!(found.count(), 1, "{}", folder.display());
    }
}

/// A folder is listed with the title of its page. Pages and versions are where a person copies a folder.
#[test]
fn the_list_of_examples_has_the_titles_of_their_pages() {
    let folder = examples();
    let mut expected = BTreeSet::new();
    for page in super::files(&folder).iter().filter(|page| page.ends_with("README.md")) {
        let title = fs::read_to_string(page).unwrap().lines().next().unwrap().trim_start_matches("# ").to_owned();
        let name = page.parent().unwrap().strip_prefix(&folder).unwrap().display().to_string();
        expected.insert(format!("- [{name}]({name}): {title}"));
    }
    assert!(expected.remove("- [](): Examples"));
    let list = fs::read_to_string(folder.join("README.md")).unwrap();
    let listed = list.lines().filter(|line| line.starts_with("- ")).map(str::to_owned);
    assert_eq!(listed.collect::<BTreeSet<_>>(), expected);
    let is_copied = |it: &PathBuf| it.join("main.tf").is_file() && !it.starts_with(folder.join("resources"));
    for copied in folders(&folder).iter().filter(|folder| is_copied(folder)) {
        assert!(["README.md", "versions.tf"].iter().all(|file| copied.join(file).is_file()), "{}", copied.display());
    }
    for file in super::files(&folder) {
        let uses_target = fs::read_to_string(&file).is_ok_and(|text| text.contains("-target="));
        assert!(!uses_target, "{}: -target is for repairs", file.display());
    }
}

/// The flow on the page of image-factory: the builder is removed and the image stays, and a release makes a new
/// image and new instances before the old ones are removed.
#[test]
fn an_image_outlives_its_builder_and_gives_way_to_the_next_release() {
    each_stage(&examples().join("stacks/image-factory"), |stage| {
        let seeded = stage.living_of(LedgerObject::PrivateImage);
        let apply = |variables: &[&str]| {
            stage.run(&[&["apply", "-no-color", "-auto-approve"], variables].concat());
            let image = stage.id_of("damodel_private_image.release[0]");
            let worker = stage.id_of("damodel_instance.worker[0]");
            (image, worker, stage.living_of(LedgerObject::Instance).len())
        };
        let first = apply(&[]);
        let without_builder = apply(&["-var=keep_builder=false"]);
        assert_eq!(without_builder, (first.0.clone(), first.1.clone(), first.2 - 1));
        let second = apply(&["-var=release=2"]);
        assert!(second.0 != first.0 && second.1 != first.1, "{second:?}");
        let images = stage.living_of(LedgerObject::PrivateImage);
        assert!(images.contains(&second.0) && !images.contains(&first.0), "{images:?}");
        stage.run(&["destroy", "-no-color", "-auto-approve"]);
        assert_eq!(stage.living_of(LedgerObject::Instance), Vec::<String>::new());
        assert_eq!(stage.living_of(LedgerObject::PrivateImage), seeded);
    });
}

/// The stack that is created in any region with a GPU, while stock changes.
#[test]
fn a_stack_with_candidates_is_created_while_stock_flaps() {
    each_stage(&examples().join("stacks/stock-proof"), |stage| {
        let site = stage.site;
        site.set_spec(103, None, Some(0));
        let (end, ended) = channel::<()>();
        thread::scope(|scope| {
            // Always one of the others has stock, but only briefly.
            scope.spawn(move || {
                for round in 0_usize.. {
                    for (place, spec) in [101, 102, 201].into_iter().enumerate() {
                        site.set_spec(spec, None, Some(if place == round % 3 { 8 } else { 0 }));
                    }
                    if ended.recv_timeout(Duration::from_millis(20)) == Err(RecvTimeoutError::Disconnected) {
                        break;
                    }
                }
            });
            // Dropped after the apply, however that ends.
            let _end = end;
            stage.run(&["apply", "-no-color", "-auto-approve"]);
        });
        assert_eq!(stage.living_of(LedgerObject::Instance).len(), 2);
        stage.workspace.settled();
        stage.run(&["destroy", "-no-color", "-auto-approve"]);
        assert!(stage.living_of(LedgerObject::Instance).is_empty());
    });
}

/// The filter of a list that a module gets may match nothing one day, when its instance has long been bought.
#[test]
fn an_empty_list_of_candidates_changes_no_endpoint() {
    each_stage(&modules().join("llm-endpoint/examples/basic"), |stage| {
        stage.run(&["apply", "-no-color", "-auto-approve"]);
        let (main, from) = (stage.path("main.tf"), "data.damodel_specs.gpu.specs");
        fs::write(&main, fs::read_to_string(&main).unwrap().replace(from, "[]")).unwrap();
        stage.workspace.settled();
        stage.run(&["destroy", "-no-color", "-auto-approve"]);
        let plan = stage.workspace.try_plan(&[]);
        assert!(plan.iter().any(|said| said.is_error() && said.text().contains("No candidates")), "{plan:#?}");
    });
}

/// Copies the example of a module, with further files.
fn copy_module(to: &Path, further: &[&str]) {
    for file in ["main.tf", "outputs.tf", "variables.tf", "versions.tf"].iter().chain(further) {
        fs::copy(examples().join("testing").join(file), to.join(file)).unwrap();
    }
}

/// The example of `terraform test`, by the script that a person or a pipeline runs.
#[test]
fn the_tests_of_the_example_module_pass_on_a_sandbox() {
    each_cli(|cli| {
        let folder = tempfile::tempdir().unwrap();
        let mirror = Mirror::make(folder.path(), Path::new(BINARY)).unwrap();
        let (bin, module) = (folder.path().join("bin"), folder.path().join("module"));
        fs::create_dir(&bin).unwrap();
        symlink(BINARY, bin.join("terraform-provider-damodel")).unwrap();
        symlink(&cli.program, bin.join("terraform")).unwrap();
        fs::create_dir_all(module.join("tests")).unwrap();
        copy_module(&module, &["test.sh", "tests/module.tftest.hcl"]);
        let path = env::join_paths([bin].into_iter().chain(env::split_paths(&env::var_os("PATH").unwrap()))).unwrap();
        let mut script = Command::new(module.join("test.sh"));
        for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("DAMODEL_")) {
            script.env_remove(name);
        }
        script.current_dir(&module).env("PATH", path).env("TF_CLI_CONFIG_FILE", mirror.cli_config).env("NO_COLOR", "1");
        let run = Run::of(script.output().unwrap());
        let has_passed = run.code == Some(0) && run.stdout.contains("4 passed, 0 failed");
        assert!(has_passed, "{}{}", run.stdout, run.stderr);
    });
}

/// The example of `mock_provider`, by the command of the guide, without a service.
#[test]
fn the_mocked_tests_of_the_example_module_pass_without_a_service() {
    each_cli_since(7, 8, |cli| {
        let folder = tempfile::tempdir().unwrap();
        let mirror = Mirror::make(folder.path(), Path::new(BINARY)).unwrap();
        let module = folder.path().join("module");
        fs::create_dir_all(module.join("mocked")).unwrap();
        copy_module(&module, &["mocked/module.tftest.hcl"]);
        let run = |arguments: &[&str]| {
            let mut command = Command::new(&cli.program);
            for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("DAMODEL_")) {
                command.env_remove(name);
            }
            command.args(arguments).current_dir(&module).env("TF_CLI_CONFIG_FILE", &mirror.cli_config);
            Run::of(command.output().unwrap())
        };
        assert_eq!(run(&["init", "-no-color"]).code, Some(0));
        let tested = run(&["test", "-no-color", "-test-directory=mocked"]);
        let has_passed = tested.code == Some(0) && tested.stdout.contains("1 passed, 0 failed");
        assert!(has_passed, "{}{}", tested.stdout, tested.stderr);
    });
}

/// All that the provider offers has an example in the registry's layout, nothing else has one, and all are formatted.
#[test]
fn everything_has_its_example() {
    each_cli(|cli| {
        let site = Site::start();
        let workspace = Workspace::installed(cli, &site, Installation::Mirror);
        workspace.write(&fs::read_to_string(examples().join("provider/provider.tf")).unwrap());
        workspace.init();
        for folder in [examples(), modules()] {
            workspace.run_ok(&["fmt", "-check", "-diff", "-recursive", folder.to_str().unwrap()]);
        }
        let text = workspace.run_ok(&["providers", "schema", "-json"]).stdout;
        // Editors and other programs read nothing but the schema.
        assert!(text.len() < 15_000_000, "{}", text.len());
        let fact = "`Monthly`. All but `Hourly` are prepaid, and the service may refuse to release a prepaid instance \
                    before its term ends. Default: `Hourly`. Forces replacement.";
        assert!(text.contains(fact));
        let schemas: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(undescribed(&schemas, ""), Vec::<String>::new());
        let [schema] =
            schemas["provider_schemas"].as_object().unwrap().values().collect::<Vec<_>>().try_into().unwrap();
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
    });
}

/// The attributes, parameters, blocks and functions in a schema that have no description of at least two words.
/// Articles do not count: "The name." says nothing alone.
fn undescribed(schema: &Value, place: &str) -> Vec<String> {
    let is_in = |kind: &str| place.ends_with(&format!(".{kind}"));
    let (members, are_described): (Vec<(String, &Value)>, bool) = match schema {
        Value::Object(members) => (
            members.iter().map(|(name, member)| (name.clone(), member)).collect(),
            is_in("attributes") || is_in("functions"),
        ),
        Value::Array(members) => {
            (members.iter().enumerate().map(|(name, member)| (name.to_string(), member)).collect(), is_in("parameters"))
        }
        _ => return Vec::new(),
    };
    let mut found = Vec::new();
    for (name, member) in members {
        let place = format!("{place}.{name}");
        let words = member["description"].as_str().unwrap_or_default().split_whitespace();
        let words = words.filter(|word| !["A", "An", "Its", "The"].contains(word)).count();
        if (are_described || ["block", "variadic_parameter"].contains(&&*name)) && words < 2 {
            found.push(place.clone());
        }
        found.extend(undescribed(member, &place));
    }
    found
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
