//! The installation methods in the CLI configuration of Terraform and OpenTofu (CLI configuration, provider
//! installation).

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use hcl_edit::{
    expr::{Expression, ObjectKey},
    structure::{Block, Body},
};
use regex::Regex;
use serde_json::Value;

use super::{DIRECTORY, FILES, HOME, Place};
use crate::{
    commands::{
        Surroundings,
        terraform::{HOSTS, is_ignored},
    },
    provider::ADDRESS,
};

/// The ending of JSON files in a configuration directory.
const JSON: &str = ".tfrc.json";

/// A setting that keeps a command line from using the installed provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// dev_overrides name another directory for the provider.
    Overridden { file: PathBuf, address: String, directory: String },
    /// No configuration names the directory, which is not a default one.
    NotLookedInto,
    /// The methods take this provider from elsewhere.
    TurnedOff { file: PathBuf, address: String },
    /// The file cannot be parsed.
    Unreadable { file: PathBuf, reason: String },
}

/// The findings in the configurations of both command lines about a place.
pub(super) fn findings(place: &Place, surroundings: &Surroundings) -> Vec<Obstacle> {
    let mut findings = Vec::new();
    let mut silent = HOSTS.to_vec();
    for (file, hosts) in files(surroundings) {
        let is_said = match parse(&file) {
            Ok(body) => {
                let installation = body.get_blocks("provider_installation").next();
                if let Some(installation) = installation {
                    findings.extend(hosts.iter().filter_map(|host| judge(installation, host, &file, place)));
                }
                installation.is_some()
            }
            Err(reason) => {
                findings.push(Obstacle::Unreadable { file, reason });
                true
            }
        };
        if is_said {
            silent.retain(|host| !hosts.contains(host));
        }
    }
    if !silent.is_empty() && !place.is_implied {
        findings.push(Obstacle::NotLookedInto);
    }
    findings
}

/// The files of each command line, with the hosts of those that read them. A file named by a variable is the only one.
/// Otherwise one in the home directory and those of a directory beside it are read (CLI configuration, locations).
fn files(surroundings: &Surroundings) -> Vec<(PathBuf, Vec<&'static str>)> {
    let named = surroundings.path("TF_CLI_CONFIG_FILE").or_else(|| surroundings.path("TERRAFORM_CONFIG"));
    if let Some(file) = named {
        return vec![(file, HOSTS.to_vec())];
    }
    let [terraform, tofu] = HOSTS;
    let Some(home) = surroundings.path(HOME) else { return Vec::new() };
    let [old, new] = FILES.map(|name| home.join(name));
    // On Windows neither reads it.
    let xdg = surroundings.path("XDG_CONFIG_HOME").filter(|_| !cfg!(windows)).map(|xdg| xdg.join("opentofu"));
    // OpenTofu reads its own file, else Terraform's, else the one in the XDG directory.
    let mut files = if new.exists() {
        vec![(old, vec![terraform]), (new, vec![tofu])]
    } else if old.exists() {
        vec![(old, HOSTS.to_vec())]
    } else {
        vec![(old, vec![terraform]), (xdg.as_ref().map_or(new, |xdg| xdg.join("tofurc")), vec![tofu])]
    };
    // The same order applies to the directory.
    let directory = home.join(DIRECTORY);
    let of_tofu = xdg.filter(|_| !directory.is_dir());
    let is_shared = of_tofu.is_none();
    // A directory that cannot be read stands for its files: reading it fails again, and is told.
    let within = |directory: &Path| within(directory).unwrap_or_else(|_| vec![directory.to_owned()]);
    let hosts = if is_shared { HOSTS.to_vec() } else { vec![terraform] };
    files.extend(within(&directory).into_iter().map(|file| (file, hosts.clone())));
    files.extend(of_tofu.iter().flat_map(|of_tofu| within(of_tofu)).map(|file| (file, vec![tofu])));
    files
}

/// The files under XDG that OpenTofu does not read, because it reads the directory in the home directory.
pub(super) fn unread_by_tofu(surroundings: &Surroundings) -> Vec<PathBuf> {
    let is_hidden = surroundings.path(HOME).is_some_and(|home| home.join(DIRECTORY).is_dir());
    let xdg = surroundings.path("XDG_CONFIG_HOME").filter(|_| !cfg!(windows) && is_hidden);
    let files = xdg.map(|xdg| within(&xdg.join("opentofu")).unwrap_or_default());
    files.unwrap_or_default()
}

/// The files of a configuration directory: those with these endings, without hidden files and copies of editors.
fn within(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let is_read = |name: &str| (name.ends_with(".tfrc") || name.ends_with(JSON)) && !is_ignored(name);
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()?,
    };
    let is_read =
        |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).is_some_and(is_read) && path.is_file();
    let mut files: Vec<PathBuf> = entries.into_iter().filter(is_read).collect();
    files.sort();
    Ok(files)
}

/// Reads a configuration file; a missing one is empty.
fn parse(file: &Path) -> Result<Body, String> {
    let text = match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        text => text.map_err(|error| error.to_string())?,
    };
    if file.to_string_lossy().ends_with(JSON) { json(&text) } else { native(&text) }
}

/// Translates the relevant part of a JSON configuration to HCL, whose literals are the same.
fn json(text: &str) -> Result<Body, String> {
    let root: Value = serde_json::from_str(text).map_err(|error| format!("line {}", error.line()))?;
    let mut text = String::new();
    for installation in each(root.get("provider_installation")) {
        text.push_str("provider_installation {\n");
        for (method, settings) in installation.as_object().into_iter().flatten() {
            for settings in each(Some(settings)) {
                let lines = settings.as_object().into_iter().flatten().map(|(name, value)| match method.as_str() {
                    "dev_overrides" => format!("{} = {value}\n", Value::from(name.as_str())),
                    _ => format!("{name} = {value}\n"),
                });
                text.extend([method.as_str(), " {\n"]);
                text.extend(lines);
                text.push_str("}\n");
            }
        }
        text.push_str("}\n");
    }
    native(&text)
}

/// The blocks of a JSON value, which is one block or a list of blocks.
fn each(value: Option<&Value>) -> Vec<&Value> {
    match value {
        Some(Value::Array(elements)) => elements.iter().collect(),
        other => other.into_iter().collect(),
    }
}

/// Parses a configuration. The format is an older HCL, in which the keys of a block may be quoted. dev_overrides has
/// such keys, so it is rewritten as an object of today's HCL.
fn native(text: &str) -> Result<Body, String> {
    static OVERRIDES: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?m)^(\s*)dev_overrides\s*\{").ok());
    let text = match &*OVERRIDES {
        Some(overrides) => overrides.replace_all(text, "${1}dev_overrides = {").into_owned(),
        None => text.to_owned(),
    };
    text.parse::<Body>().map_err(|error| format!("line {}", error.location().line()))
}

fn judge(installation: &Block, host: &str, file: &Path, place: &Place) -> Option<Obstacle> {
    let address = format!("{host}/{ADDRESS}");
    if let Some(directory) = overridden(installation, &address, host) {
        return Some(Obstacle::Overridden { file: file.to_owned(), address, directory });
    }
    let finds = installation.body.get_blocks("filesystem_mirror").any(|mirror| {
        let path = mirror.body.get_attribute("path").and_then(|path| path.value.as_str());
        path.is_some_and(|path| is_same(Path::new(path), &place.directory)) && takes(mirror, host)
    });
    (!finds).then(|| Obstacle::TurnedOff { file: file.to_owned(), address })
}

fn overridden(installation: &Block, address: &str, host: &str) -> Option<String> {
    let overrides = installation.body.get_attribute("dev_overrides")?.value.as_object()?;
    let is_it = |key: &ObjectKey| match key {
        ObjectKey::Expression(key) => key.as_str().is_some_and(|key| key == address || matches(key, host)),
        ObjectKey::Ident(_) => false,
    };
    let (_, directory) = overrides.iter().find(|(key, _)| is_it(key))?;
    directory.expr().as_str().map(str::to_owned)
}

/// Whether a method applies to this provider of a host.
fn takes(method: &Block, host: &str) -> bool {
    let patterns = |name: &str| {
        let list = method.body.get_attribute(name).and_then(|list| list.value.as_array());
        list.map(|list| list.iter().filter_map(Expression::as_str).any(|pattern| matches(pattern, host)))
    };
    patterns("include").unwrap_or(true) && !patterns("exclude").unwrap_or(false)
}

/// Whether a pattern for source addresses matches this provider; one without a host means the command line's own
/// registry.
fn matches(pattern: &str, host: &str) -> bool {
    let parts: Vec<&str> = pattern.split('/').collect();
    let address: Vec<&str> = [host].into_iter().chain(ADDRESS.split('/')).collect();
    let parts = if parts.len() == 2 { [&[host], parts.as_slice()].concat() } else { parts };
    parts.len() == address.len() && parts.iter().zip(address).all(|(part, own)| *part == "*" || *part == own)
}

fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    real(one) == real(other)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const PLACE: &str = "/home/me/.terraform.d/plugins";

    fn finding(text: &str, host: &str) -> Option<Obstacle> {
        let place = Place { directory: PLACE.into(), is_implied: true };
        let body = native(text).unwrap();
        body.get_blocks("provider_installation")
            .find_map(|installation| judge(installation, host, Path::new("rc"), &place))
    }

    fn at_home(home: &Path, more: &[(&str, &str)]) -> Surroundings {
        let home = [(HOME, home.to_str().unwrap())];
        let variables = home.iter().chain(more).map(|(name, value)| (name.into(), value.into())).collect();
        Surroundings { executable: PathBuf::new(), variables }
    }

    #[rstest]
    #[case("")]
    #[case("plugin_cache_dir = \"/x\"\ncredentials \"app.terraform.io\" {\n  token = \"t\"\n}\n")]
    #[case("provider_installation {\n  filesystem_mirror {\n    path = \"/home/me/.terraform.d/plugins\"\n  }\n}")]
    #[case(
        "provider_installation {\n  filesystem_mirror {\n    path = \"/home/me/.terraform.d/plugins\"\n    include = \
         [\"damodel/*\"]\n  }\n  direct {}\n}"
    )]
    fn what_leaves_the_place_on_is_no_finding(#[case] text: &str) {
        for host in HOSTS {
            assert_eq!(finding(text, host), None);
        }
    }

    #[rstest]
    #[case("direct {}")]
    #[case("filesystem_mirror {\n    path = \"/elsewhere\"\n  }")]
    #[case(
        "filesystem_mirror {\n    path = \"/home/me/.terraform.d/plugins\"\n    include = [\"example.com/*/*\"]\n  }"
    )]
    #[case(
        "filesystem_mirror {\n    path = \"/home/me/.terraform.d/plugins\"\n    exclude = [\"*/damodel/damodel\"]\n  }"
    )]
    #[case("network_mirror {\n    url = \"https://x/\"\n  }")]
    fn what_turns_the_place_off_is_found(#[case] method: &str) {
        let text = format!("provider_installation {{\n  {method}\n}}\n");
        for host in HOSTS {
            assert!(matches!(finding(&text, host), Some(Obstacle::TurnedOff { .. })), "{text}");
        }
    }

    #[test]
    fn an_override_is_found_for_its_host() {
        let text = "provider_installation {\n  dev_overrides {\n    \"registry.terraform.io/damodel/damodel\" = \
                    \"/build\"\n  }\n  direct {}\n}\n";
        let [terraform, tofu] = HOSTS;
        assert!(
            matches!(finding(text, terraform), Some(Obstacle::Overridden { directory, .. }) if directory == "/build")
        );
        assert!(matches!(finding(text, tofu), Some(Obstacle::TurnedOff { .. })));
        let short = text.replace("registry.terraform.io/", "");
        assert!(matches!(finding(&short, tofu), Some(Obstacle::Overridden { .. })));
    }

    #[test]
    fn each_command_line_reads_its_own_file() {
        let home = tempfile::tempdir().unwrap();
        let surroundings = |more: &[(&str, &str)]| at_home(home.path(), more);
        let [terraform, tofu] = HOSTS;
        let [old, new] = FILES.map(|name| home.path().join(name));
        let of_xdg = if cfg!(windows) { new.clone() } else { "/xdg/opentofu/tofurc".into() };
        assert_eq!(files(&surroundings(&[])), [(old.clone(), vec![terraform]), (new.clone(), vec![tofu])]);
        let xdg = [("XDG_CONFIG_HOME", "/xdg"), ("TF_CLI_CONFIG_FILE", "")];
        assert_eq!(files(&surroundings(&xdg))[1], (of_xdg, vec![tofu]));
        fs::write(&old, "").unwrap();
        assert_eq!(files(&surroundings(&xdg)), [(old.clone(), HOSTS.to_vec())]);
        fs::write(&new, "").unwrap();
        assert_eq!(files(&surroundings(&xdg)), [(old, vec![terraform]), (new, vec![tofu])]);
        assert_eq!(files(&surroundings(&[("TF_CLI_CONFIG_FILE", "/rc")])), [("/rc".into(), HOSTS.to_vec())]);
    }

    #[test]
    fn the_files_of_the_directory_are_read_beside_it() {
        let home = tempfile::tempdir().unwrap();
        let (directory, xdg) = (home.path().join(DIRECTORY), home.path().join("xdg/opentofu"));
        for directory in [&directory, &xdg] {
            fs::create_dir_all(directory).unwrap();
            for name in ["b.tfrc", "a.tfrc.json", ".hidden.tfrc", "c.tfrc~", "credentials.json"] {
                fs::write(directory.join(name), "").unwrap();
            }
        }
        let variables = [("XDG_CONFIG_HOME", home.path().join("xdg"))];
        let variables = variables.each_ref().map(|(name, value)| (*name, value.to_str().unwrap()));
        let beside = |more: &[(&str, &str)]| files(&at_home(home.path(), more)).split_off(2);
        let [_, tofu] = HOSTS;
        let read = |directory: &Path, host: &[&'static str]| {
            ["a.tfrc.json", "b.tfrc"].map(|name| (directory.join(name), host.to_vec())).to_vec()
        };
        assert_eq!(beside(&[]), read(&directory, &HOSTS));
        assert_eq!(beside(&variables), read(&directory, &HOSTS));
        fs::remove_dir_all(&directory).unwrap();
        assert_eq!(beside(&variables), if cfg!(windows) { vec![] } else { read(&xdg, &[tofu]) });
        assert_eq!(beside(&[]), []);
        assert_eq!(files(&at_home(home.path(), &[("TERRAFORM_CONFIG", "/rc")])), [("/rc".into(), HOSTS.to_vec())]);
    }

    /// Only a file that does not exist is empty.
    #[test]
    fn what_cannot_be_read_is_told() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join(FILES[0])).unwrap();
        let place = Place { directory: home.path().join(DIRECTORY).join("plugins"), is_implied: true };
        let found = findings(&place, &at_home(home.path(), &[]));
        assert!(
            matches!(found.as_slice(), [Obstacle::Unreadable { file, .. }] if file.ends_with(FILES[0])),
            "{found:?}"
        );
        fs::remove_dir(home.path().join(FILES[0])).unwrap();
        fs::write(home.path().join(DIRECTORY), "no directory").unwrap();
        let found = findings(&place, &at_home(home.path(), &[]));
        assert!(
            matches!(found.as_slice(), [Obstacle::Unreadable { file, .. }] if file.ends_with(DIRECTORY)),
            "{found:?}"
        );
    }

    #[test]
    fn what_a_file_of_the_directory_says_counts() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join(DIRECTORY);
        fs::create_dir(&directory).unwrap();
        let plugins = directory.join("plugins");
        let found = |name: &str, text: &str, is_implied| {
            fs::write(directory.join(name), text).unwrap();
            let place = Place { directory: plugins.clone(), is_implied };
            let found = findings(&place, &at_home(home.path(), &[]));
            fs::remove_file(directory.join(name)).unwrap();
            found
        };
        for (name, text) in [
            ("x.tfrc", "provider_installation {\n  direct {}\n}\n"),
            ("x.tfrc.json", r#"{"provider_installation": {"direct": {}}}"#),
            ("x.tfrc.json", r#"{"provider_installation": [{"filesystem_mirror": [{"path": "/elsewhere"}]}]}"#),
        ] {
            let found = found(name, text, true);
            assert!(
                matches!(found.as_slice(), [Obstacle::TurnedOff { .. }, Obstacle::TurnedOff { .. }]),
                "{text}: {found:?}"
            );
        }
        let overridden = r#"{"provider_installation": {"dev_overrides": {"damodel/damodel": "/build"}}}"#;
        assert!(matches!(found("x.tfrc.json", overridden, true).as_slice(), [Obstacle::Overridden { .. }, _]));
        assert!(matches!(found("x.tfrc.json", "{", true).as_slice(), [Obstacle::Unreadable { .. }]));
        assert_eq!(found("x.tfrc", "plugin_cache_dir = \"/x\"\n", false), [Obstacle::NotLookedInto]);
        let text = serde_json::json!({"provider_installation": {"filesystem_mirror": {"path": plugins}}}).to_string();
        for is_implied in [false, true] {
            assert_eq!(found("x.tfrc.json", &text, is_implied), []);
        }
    }
}
