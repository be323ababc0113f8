//! The rules of the repository that no lint checks.

mod docs;
pub(crate) mod examples;
mod layers;
mod names;
mod reference;
mod texts;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The most columns of a line.
const COLUMNS: usize = 120;

/// Added to a configuration without `required_providers`: on a page, the first example has it for all.
const REQUIRED: &str =
    "terraform {\n  required_providers {\n    damodel = {\n      source = \"damodel/damodel\"\n    }\n  }\n}\n";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All files below a folder, without the output of builds and tools.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if [".git", ".terraform", "target"].contains(&name) {
            continue;
        }
        if path.is_dir() {
            files.extend(self::files(&path));
        } else {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The folders of the workspace's crates, from the repository's.
pub(crate) fn crates() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("crates")).unwrap();
    let crates = entries.map(|entry| Path::new("crates").join(entry.unwrap().file_name()));
    let mut crates: Vec<PathBuf> = [PathBuf::new()].into_iter().chain(crates).collect();
    crates.sort();
    assert!(crates.len() >= LEAST_CRATES, "{crates:?}");
    crates
}

/// Fewer crates, or fewer sources in a crate, are a search that does not find them.
const LEAST_CRATES: usize = 3;
const LEAST_SOURCES: usize = 8;

/// The sources in a folder, of each crate that has it. Each crate has `src`.
fn sources(folder: &str) -> Vec<PathBuf> {
    let mut sources = Vec::new();
    for name in crates() {
        let folder = root().join(&name).join(folder);
        let files = if folder.is_dir() { files(&folder) } else { Vec::new() };
        let found: Vec<PathBuf> = files.into_iter().filter(|file| file.extension() == Some("rs".as_ref())).collect();
        assert!(found.len() >= LEAST_SOURCES || !folder.ends_with("src"), "{}: {found:?}", folder.display());
        sources.extend(found);
    }
    assert!(!sources.is_empty(), "{folder}");
    sources
}

/// A file and the files of its modules, recursively.
fn reached(file: &Path) -> Vec<PathBuf> {
    let source = fs::read_to_string(file).unwrap();
    let folder = match file.file_stem().unwrap().to_str().unwrap() {
        "lib" | "main" | "mod" => file.parent().unwrap().to_owned(),
        _ => file.with_extension(""),
    };
    let mut reached = vec![file.to_owned()];
    for line in source.lines().map(str::trim_start) {
        let declared = ["mod ", "pub mod ", "pub(crate) mod ", "pub(super) mod "];
        let name = declared.iter().find_map(|start| line.strip_prefix(start)).and_then(|rest| rest.strip_suffix(';'));
        let candidates = name.map(|name| [folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs")]);
        let module = candidates.into_iter().flatten().find(|path| path.exists());
        reached.extend(module.iter().flat_map(|path| self::reached(path)));
    }
    reached
}

#[test]
fn no_file_is_forgotten() {
    for folder in ["src", "tests/it"] {
        let sources = sources(folder);
        let roots = sources.iter().filter(|file| ["lib.rs", "main.rs"].iter().any(|name| file.ends_with(name)));
        let reached: Vec<PathBuf> = roots.flat_map(|file| reached(file)).collect();
        let forgotten: Vec<&PathBuf> = sources.iter().filter(|file| !reached.contains(file)).collect();
        assert_eq!(forgotten, Vec::<&PathBuf>::new(), "no `mod` leads to these");
    }
    // All tests of a crate are in one binary. The stranger is a provider that `scripts/stranger` tries.
    assert_eq!(sources("tests"), [sources("tests/it"), sources("tests/stranger")].concat());
}

/// SECURITY.md says of each setting of the cryptographic library why it is safe.
#[test]
fn no_setting_of_the_cryptographic_library_is_unexplained() {
    let [settings, page] =
        [".cargo/config.toml", "SECURITY.md"].map(|file| fs::read_to_string(root().join(file)).unwrap());
    let names = settings.lines().filter(|line| line.starts_with("AWS_LC")).filter_map(|line| line.split(' ').next());
    let unexplained: Vec<&str> = names.filter(|name| !page.contains(name)).collect();
    assert_eq!(unexplained, Vec::<&str>::new());
}

/// A module with submodules is `name/mod.rs`, so that all of its files are in one folder.
#[test]
fn modules_have_one_form() {
    for file in [sources("src"), sources("tests")].concat() {
        assert!(!file.with_extension("").is_dir(), "{} lies beside its folder", file.display());
    }
}

#[test]
fn every_file_says_what_it_is_for() {
    for file in [sources("src"), sources("tests"), sources("benches")].concat() {
        assert!(fs::read_to_string(&file).unwrap().starts_with("//! "), "{}", file.display());
    }
}

/// Table rows in comments, and literals that cannot be broken, may be longer.
#[test]
fn no_line_is_too_wide() {
    let may_be_wider = |line: &str| {
        line.trim_start().starts_with("//! |") || ["r#\"", "\\\"", "://"].iter().any(|part| line.contains(part))
    };
    for file in [sources("src"), sources("tests"), sources("benches")].concat() {
        for (number, line) in fs::read_to_string(&file).unwrap().lines().enumerate() {
            let is_wide = line.chars().count() > COLUMNS && !may_be_wider(line);
            assert!(!is_wide, "{}:{}: {line}", file.display(), number + 1);
        }
    }
}

#[test]
fn a_test_that_is_ignored_says_why() {
    let bare = concat!("#[", "ignore]");
    for file in [sources("src"), sources("tests")].concat() {
        assert!(!fs::read_to_string(&file).unwrap().contains(bare), "{}", file.display());
    }
}

#[test]
fn no_file_names_the_place_where_it_was_written() {
    let root = root();
    let place = root.to_str().unwrap();
    for file in files(&root) {
        // Binary files are no sources.
        let Ok(text) = fs::read_to_string(&file) else { continue };
        assert!(!text.contains(place), "{}", file.display());
    }
}

#[test]
fn exceptions_for_dependencies_have_a_date_and_a_reason() {
    let text = fs::read_to_string(root().join("deny.toml")).unwrap();
    let is_exception =
        |line: &&str| line.starts_with("{ id = ") || line.starts_with("{ crate = ") && line.contains("allow =");
    let exceptions: Vec<&str> = text.lines().map(str::trim_start).filter(is_exception).collect();
    let dated = regex::Regex::new(r"(reason = .|# )20\d\d-\d\d-\d\d: \w+").unwrap();
    assert!(!exceptions.is_empty());
    for exception in exceptions {
        assert!(dated.is_match(exception), "{exception}");
    }
}

#[test]
fn what_the_pages_link_to_exists() {
    for page in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"] {
        let text = fs::read_to_string(root().join(page)).unwrap();
        let targets: Vec<&str> = text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
        assert!(!targets.is_empty(), "{page}");
        for target in targets.into_iter().filter(|target| !target.contains("://") && !target.starts_with('#')) {
            let file = target.split('#').next().unwrap_or_default();
            assert!(root().join(file).exists(), "{page}: {target}");
        }
    }
}

#[test]
fn what_the_page_says_to_look_at_is_there() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let table = page.split("## Where to look first").nth(1).unwrap().split("\n## ").next().unwrap();
    let named = regex::Regex::new(r"\]\(([^)]+)\)(?:, `(\w+)`)?").unwrap();
    for row in table.lines().filter(|line| line.starts_with("| ")).skip(1) {
        assert!(named.is_match(row), "{row}");
        for link in named.captures_iter(row) {
            let source = fs::read_to_string(root().join(&link[1])).unwrap();
            let item = format!(r"(?m)\b(fn|const) {0}\b|^{0}\(\)", link.get(2).expect(row).as_str());
            assert!(regex::Regex::new(&item).unwrap().is_match(&source), "{row}");
        }
    }
}

/// A suite of any length: more than the pipe between two programs of the script holds.
#[test]
fn the_slowest_are_told_of_any_number_of_tests() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["scripts", "target/tmp"] {
        fs::create_dir_all(folder.path().join(name)).unwrap();
    }
    let script = folder.path().join("scripts/slowest");
    fs::copy(root().join("scripts/slowest"), &script).unwrap();
    let took = (0..20_000).map(|test| format!("took\t{test}.5\t7\tmodule::test_{test}\n"));
    let skipped = ["skipped\tno tofu\t\tmodule::other\n".to_owned()];
    fs::write(folder.path().join("target/tmp/tests-it.tsv"), took.chain(skipped).collect::<String>()).unwrap();
    let run = Command::new(script).output().unwrap();
    assert!(run.status.success(), "{}", run.status);
    let told = String::from_utf8(run.stdout).unwrap();
    let told: Vec<_> = told.trim().lines().collect();
    assert_eq!(told.len(), 12, "{told:?}");
    assert_eq!(told[1], " 19999.5 s     7 commands  module::test_19999");
    assert_eq!(told[10], " 19990.5 s     7 commands  module::test_19990");
    assert_eq!(told[11], "skipped: module::other: no tofu");
}
