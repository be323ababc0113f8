//! The documentation: current, complete, linked, and with valid configurations.

mod blocks;
mod markdown;
mod mirrors;
mod reviews;

use std::{
    collections::BTreeSet,
    fs,
    path::{Component, Path, PathBuf},
    process::{Command, Output},
};

use damodel::api::Code;
use regex::Regex;

use self::markdown::Page;
use crate::support::plugin::BINARY;

/// The most bytes of a page that the registry shows (plugin protocol, documentation layout).
const LARGEST: usize = 500_000;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All published pages: the folder that the registry reads.
fn published() -> Vec<Page> {
    let mut pages = Vec::new();
    collect(&root().join("docs"), &mut pages);
    assert!(pages.len() > 10, "{pages:?}");
    pages
}

/// All pages for people, including those for contributors.
fn written() -> Vec<Page> {
    let top = fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<Page> = top.filter(|path| is_markdown(path)).map(|path| Page::read(&path)).collect();
    collect(&root().join("docs"), &mut pages);
    collect(&root().join("examples"), &mut pages);
    collect(&crate::house::examples::modules(), &mut pages);
    pages
}

fn collect(folder: &Path, pages: &mut Vec<Page>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(&path, pages);
        } else if is_markdown(&path) {
            pages.push(Page::read(&path));
        }
    }
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

fn docs(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(BINARY).arg("docs").args(arguments).current_dir(folder).output().unwrap()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target)
        } else {
            fs::copy(entry.path(), target).map(drop).unwrap()
        }
    }
}

#[test]
fn they_are_current() {
    let check = docs(&root(), &["--check"]);
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr));
}

#[test]
fn what_is_not_current_is_found_and_settled() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["docs", "examples"] {
        copy(&root().join(name), &folder.path().join(name));
    }
    let page = |name: &str| folder.path().join("docs").join(name);
    let made = fs::read_to_string(page("resources/instance.md")).unwrap();
    fs::write(page("resources/instance.md"), made.replace("(Required)", "").replace("gpu_num", "gpus")).unwrap();
    fs::remove_file(page("index.md")).unwrap();
    fs::write(page("resources/machine.md"), &made).unwrap();
    fs::write(page("guides/own.md"), "# By hand\n").unwrap();

    let check = docs(folder.path(), &["--check"]);
    assert_eq!(check.status.code(), Some(1));
    let said = String::from_utf8(check.stderr).unwrap();
    for difference in [
        "resources/instance.md differs",
        "index.md is missing",
        "resources/machine.md describes a resource that no longer exists",
    ] {
        assert!(said.contains(difference), "{said}");
    }
    assert!(!said.contains("own.md") && !page("index.md").exists(), "{said}");

    assert!(docs(folder.path(), &[]).status.success());
    assert!(docs(folder.path(), &["--check"]).status.success());
    assert_eq!(fs::read_to_string(page("resources/instance.md")).unwrap(), made);
    assert!(page("guides/own.md").exists() && !page("resources/machine.md").exists());
}

#[test]
fn away_from_the_repository_it_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let run = docs(folder.path(), &[]);
    assert_eq!(run.status.code(), Some(1));
    let said = String::from_utf8(run.stderr).unwrap();
    assert!(said.contains("examples/provider/provider.tf"), "{said}");
    assert!(!folder.path().join("docs").exists(), "half a documentation was written");
}

#[test]
fn front_matter_is_what_the_registry_reads() {
    for page in published() {
        let name = page.path.display();
        let keys: Vec<&str> =
            page.front_matter.lines().filter_map(|line| line.split_once(':')).map(|(key, _)| key).collect();
        let keys: Vec<&str> = keys.into_iter().filter(|key| !key.starts_with(' ')).collect();
        // The registry groups guides by it, and does not permit it in the index.
        let groups = if page.path.parent().unwrap().ends_with("guides") { &["subcategory"][..] } else { &[] };
        assert_eq!(keys, [&["page_title"], groups, &["description"]].concat(), "{name}");
        let value = |key: &str| {
            let line = page.front_matter.lines().find_map(|line| line.strip_prefix(&format!("{key}: "))).unwrap();
            line.trim_matches('"').to_owned()
        };
        assert!(!value("page_title").is_empty(), "{name}");
        let (_, description) = page.front_matter.split_once("description: |-\n").expect("a description in a block");
        assert!(description.lines().all(|line| line.starts_with("  ") && line.len() > 10), "{name}: {description}");
        assert!(page.length < LARGEST, "{name}");
    }
}

/// The guides, by name.
fn guides() -> Vec<(String, Page)> {
    let guides = published().into_iter().filter(|page| page.path.parent().unwrap().ends_with("guides"));
    guides.map(|page| (page.path.file_stem().unwrap().to_str().unwrap().to_owned(), page)).collect()
}

/// The guides with the most words that each may have outside of front matter and code, as `scripts/lines` counts them.
const WORDS: [(&str, usize); 11] = [
    ("access-and-secrets", 800),
    ("costs", 1300),
    ("getting-started", 1100),
    ("interrupted-runs", 1200),
    ("model-memory", 750),
    ("model-to-endpoint", 1800),
    ("pipelines", 1300),
    ("reviews", 1000),
    ("tested-and-assumed", 900),
    ("testing-modules", 850),
    ("troubleshooting", 2000),
];

#[test]
fn the_guides_are_these_and_short() {
    let guides = guides();
    assert_eq!(guides.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), WORDS.map(|(name, _)| name));
    for ((name, page), (_, most)) in guides.iter().zip(WORDS) {
        let (_, prose) = page.text.split_once("\n---\n").unwrap();
        let outside = prose.split("\n```").step_by(2);
        let words: usize = outside.map(|part| part.split_once('\n').unwrap().1.split_whitespace().count()).sum();
        assert!(words <= most, "{name}: {words} words");
    }
}

#[test]
fn the_first_configurations_are_the_same_on_both_pages() {
    let [readme, guide] = ["README.md", "docs/guides/getting-started.md"].map(first_configurations);
    assert_eq!(readme, guide);
}

/// The first two configurations of a page: an instance, and what makes it an endpoint.
pub(in crate::house) fn first_configurations(page: &str) -> [String; 2] {
    let mut blocks = Page::read(&root().join(page)).blocks.into_iter().filter(|it| it.language == "terraform");
    [(); 2].map(|()| blocks.next().unwrap().text)
}

#[test]
fn the_example_of_the_index_repeats_no_default() {
    let index = fs::read_to_string(root().join("docs/index.md")).unwrap();
    let (example, schema) = index.split_once("## Schema").unwrap();
    let argument = Regex::new(r"(?m)^  (\w+) += (.+)$").unwrap();
    let block = example.split_once("provider \"damodel\" {").unwrap().1.split_once("\n}\n").unwrap().0;
    let mut arguments = argument.captures_iter(block).peekable();
    assert!(arguments.peek().is_some(), "{block}");
    for found in arguments {
        let line = schema.lines().find(|line| line.starts_with(&format!("- `{}` (", &found[1]))).unwrap();
        let value = found[2].trim_matches('"');
        assert!(!line.contains(&format!("Default: `{value}`")), "{line}");
    }
}

/// A reader sees which values to replace. The page about the sandbox has nothing else.
#[test]
fn an_example_with_a_value_of_the_sandbox_says_so() {
    const VALUES: [&str; 4] = ["gpu.rtx4090.1", "cn-east-1", "PyTorch 2.5.1", "tiny.gguf"];
    for (name, page) in guides().into_iter().filter(|(name, _)| name != "testing-modules") {
        for block in page.blocks {
            let mut comments = block.text.lines().filter_map(|line| line.split_once('#'));
            let says = comments.any(|(_, comment)| comment.contains("sandbox"));
            assert!(says || !VALUES.iter().any(|value| block.text.contains(value)), "{name}:\n{}", block.text);
        }
    }
}

/// The first element of an empty list is an error of Terraform that names no cause.
#[test]
fn no_example_takes_the_first_of_a_list() {
    for page in written() {
        assert!(!page.text.contains("specs[0]") && !page.text.contains("images[0]"), "{}", page.path.display());
    }
    let folders = crate::house::examples::folders(&root().join("examples"));
    for file in folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap()).map(|file| file.unwrap().path()) {
        if file.extension().is_some_and(|extension| extension == "tf") {
            let text = fs::read_to_string(&file).unwrap();
            assert!(!text.contains("specs[0]") && !text.contains("images[0]"), "{}", file.display());
        }
    }
}

/// A default is a secret that everybody knows.
#[test]
fn no_secret_has_a_default() {
    let variable = Regex::new(r#"(?ms)^variable "(\w+)" \{(.*?)^\}"#).unwrap();
    let secret = Regex::new(r"(?i)(key|token|password|secret)$").unwrap();
    let sensitive = Regex::new(r"(?m)^\s*sensitive\s*=\s*true\b").unwrap();
    let default = Regex::new(r"(?m)^\s*default\s*=\s*(.*)").unwrap();
    let has_default = |text: &str| {
        let known = variable.captures_iter(text).find(|found| {
            let is_secret = secret.is_match(&found[1]) || sensitive.is_match(&found[2]);
            is_secret && default.captures(&found[2]).is_some_and(|default| default[1].trim() != "null")
        });
        known.map(|found| found[1].to_owned())
    };
    assert!(has_default("variable \"api_key\" {\n  default = \"k\"\n}\n").is_some());
    assert!(has_default("variable \"x\" {\n  default = \"k\"\n  sensitive = true\n}\n").is_some());
    let mut faults = Vec::new();
    for page in written() {
        let blocks = page.blocks.iter().filter(|block| ["hcl", "terraform"].contains(&&*block.language));
        faults.extend(blocks.filter_map(|block| Some((page.path.clone(), has_default(&block.text)?))));
    }
    let folders = ["examples", "modules"].map(|name| crate::house::examples::folders(&root().join(name))).concat();
    for file in folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap()).map(|file| file.unwrap().path()) {
        if file.extension().is_some_and(|extension| extension == "tf") {
            faults.extend(has_default(&fs::read_to_string(&file).unwrap()).map(|name| (file, name)));
        }
    }
    assert!(faults.is_empty(), "{faults:?}");
}

#[test]
fn links_lead_somewhere() {
    let pages = written();
    let mut faults = Vec::new();
    for page in &pages {
        faults.extend(
            page.links
                .iter()
                .filter_map(|link| Some(format!("{}: {link}: {}", page.path.display(), fault(page, link, &pages)?))),
        );
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// What is wrong with a link; `None` for a right one, and for one that leads out of the repository.
fn fault(page: &Page, link: &str, pages: &[Page]) -> Option<&'static str> {
    const REPOSITORY: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/");
    let is_published = page.path.starts_with(root().join("docs"));
    if let Some(rest) = link.strip_prefix(REPOSITORY) {
        let path = rest.split_once("/main/").map_or(rest, |(_, path)| path);
        return (!root().join(path).exists()).then_some("the repository has no such file");
    }
    if link.contains("://") {
        return (!link.starts_with("https://")).then_some("not https");
    }
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
    let target = if path.is_empty() { page.path.clone() } else { resolve(page.path.parent().unwrap(), path) };
    if !target.exists() {
        return Some("there is no such file");
    }
    if is_published && !target.starts_with(root().join("docs")) {
        return Some("leaves what is published; link to the repository instead");
    }
    let anchor = anchor?;
    let known = pages.iter().find(|page| page.path == target).is_some_and(|page| page.anchors.contains(anchor));
    (!known).then_some("there is no such anchor")
}

fn resolve(folder: &Path, link: &str) -> PathBuf {
    let mut path = folder.to_owned();
    for component in Path::new(link).components() {
        match component {
            Component::ParentDir => drop(path.pop()),
            Component::Normal(name) => path.push(name),
            Component::CurDir | Component::Prefix(_) | Component::RootDir => {}
        }
    }
    path
}

#[test]
fn a_broken_link_is_found() {
    let pages = written();
    let page = pages.iter().find(|page| page.path.ends_with("docs/index.md")).unwrap();
    for link in ["guides/none.md", "#none", "resources/instance.md#none", "../README.md", "http://example.com"] {
        assert!(fault(page, link, &pages).is_some(), "{link}");
    }
    for link in ["resources/instance.md#schema", "#schema", "https://example.com"] {
        assert_eq!(fault(page, link, &pages), None, "{link}");
    }
}

#[test]
fn every_guide_is_in_the_index() {
    let pages = published();
    let index = pages.iter().find(|page| page.path.ends_with("docs/index.md")).unwrap();
    let guides = root().join("docs/guides");
    for guide in pages.iter().filter(|page| page.path.starts_with(&guides)) {
        let link = format!("guides/{}", guide.path.file_name().unwrap().display());
        assert!(index.links.contains(&link), "{link}");
    }
}

/// Service API, Errors: the page has the numbers of all documented codes.
#[test]
fn every_code_of_the_service_is_explained() {
    let troubleshooting = Page::read(&root().join("docs/guides/troubleshooting.md"));
    let codes: Vec<Code> = (100_000..200_000).map(Code::from_number).filter(|code| code.name().is_some()).collect();
    assert_eq!(codes.len(), 25);
    for code in codes {
        let anchor = format!("{}-{}", code.number(), code.name().unwrap().to_lowercase());
        assert!(troubleshooting.anchors.contains(&anchor), "{anchor}");
    }
}

/// No page names something that does not exist.
#[test]
fn what_pages_name_exists() {
    let help = Command::new(BINARY).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let listed = help.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    // `docs` is not in the help.
    let commands: BTreeSet<&str> = listed.chain(["docs"]).collect();
    assert!(commands.contains("sandbox"), "{help}");
    let command = Regex::new(r"(?m)^terraform-provider-damodel ([a-z]+)|`terraform-provider-damodel ([a-z]+)").unwrap();
    let type_name = Regex::new(r"(?:^|[^-\w])(damodel_[a-z_]+)").unwrap();
    let pages = published();
    let types: BTreeSet<String> =
        pages.iter().map(|page| format!("damodel_{}", page.path.file_stem().unwrap().to_str().unwrap())).collect();
    for page in &pages {
        for found in command.captures_iter(&page.text) {
            let name = found.get(1).or_else(|| found.get(2)).unwrap().as_str();
            assert!(commands.contains(name), "{}: {name}", page.path.display());
        }
        for found in type_name.captures_iter(&page.text) {
            assert!(types.contains(&found[1]), "{}: {}", page.path.display(), &found[1]);
        }
    }
}

#[test]
fn what_a_page_shows_of_a_file_is_that_file() {
    let mut shown = 0;
    for page in published() {
        for (file, block) in page.blocks.iter().filter_map(|block| Some((block.file.as_ref()?, block))) {
            let text = fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
            assert_eq!(block.text.trim_end(), text.trim_end(), "{}: {file}", page.path.display());
            shown += 1;
        }
    }
    assert!(shown > 0);
}
