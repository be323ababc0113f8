//! The command lines' own configuration, as far as it says where providers come from (CLI configuration, provider installation).

use std::{
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use hcl_edit::{
    expr::{Expression, ObjectKey},
    structure::{Block, Body},
};
use regex::Regex;

use super::place::Place;
use crate::{
    commands::{Surroundings, terraform::HOSTS},
    provider::ADDRESS,
};

/// Something that stands between a command line and what was installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// The provider is taken from where it is built.
    Overridden { file: PathBuf, address: String, directory: String },
    /// Nothing says that the command lines should look into a place that they do not know.
    NotLookedInto,
    /// Providers come from elsewhere.
    TurnedOff { file: PathBuf, address: String },
    /// It is not known what it says.
    Unreadable { file: PathBuf, reason: String },
}

/// What the configurations of both command lines say of what is installed in a place.
pub(super) fn findings(place: &Place, surroundings: &Surroundings) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, hosts) in files(surroundings) {
        match parse(&fs::read_to_string(&file).unwrap_or_default()) {
            Ok(body) => findings.extend(hosts.iter().filter_map(|host| judge(&body, host, &file, place))),
            Err(reason) => findings.push(Finding::Unreadable { file, reason }),
        }
    }
    findings
}

/// The file that each command line reads, with the hosts of those that read it.
fn files(surroundings: &Surroundings) -> Vec<(PathBuf, Vec<&'static str>)> {
    let [terraform, tofu] = HOSTS;
    let named = surroundings.path("TF_CLI_CONFIG_FILE").or_else(|| surroundings.path("TERRAFORM_CONFIG"));
    if let Some(file) = named {
        return vec![(file, HOSTS.to_vec())];
    }
    let (home, names) = if cfg!(windows) {
        (surroundings.path("APPDATA"), ["terraform.rc", "tofu.rc"])
    } else {
        (surroundings.path("HOME"), [".terraformrc", ".tofurc"])
    };
    let [old, new] = names.map(|name| home.clone().unwrap_or_default().join(name));
    let xdg = surroundings.path("XDG_CONFIG_HOME").map(|xdg| xdg.join("opentofu/tofurc"));
    // OpenTofu takes its own file, then Terraform's, and looks elsewhere where there is neither.
    let of_tofu = if new.exists() {
        new
    } else if old.exists() {
        return vec![(old, HOSTS.to_vec())];
    } else {
        xdg.unwrap_or(new)
    };
    vec![(old, vec![terraform]), (of_tofu, vec![tofu])]
}

/// Reads a configuration. It is written in the older HCL, where the keys of a block may be quoted; dev_overrides has such keys, and
/// is an object to the HCL of today.
fn parse(text: &str) -> Result<Body, String> {
    static OVERRIDES: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?m)^(\s*)dev_overrides\s*\{").ok());
    let text = match &*OVERRIDES {
        Some(overrides) => overrides.replace_all(text, "${1}dev_overrides = {").into_owned(),
        None => text.to_owned(),
    };
    text.parse::<Body>().map_err(|error| format!("line {}", error.location().line()))
}

fn judge(body: &Body, host: &str, file: &Path, place: &Place) -> Option<Finding> {
    let Some(installation) = body.get_blocks("provider_installation").next() else {
        return (!place.is_implied).then_some(Finding::NotLookedInto);
    };
    let address = format!("{host}/{ADDRESS}");
    if let Some(directory) = overridden(installation, &address, host) {
        return Some(Finding::Overridden { file: file.to_owned(), address, directory });
    }
    let finds = installation.body.get_blocks("filesystem_mirror").any(|mirror| {
        let path = mirror.body.get_attribute("path").and_then(|path| path.value.as_str());
        path.is_some_and(|path| is_same(Path::new(path), &place.directory)) && takes(mirror, host)
    });
    (!finds).then(|| Finding::TurnedOff { file: file.to_owned(), address })
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

/// Whether a method takes this provider of a host.
fn takes(method: &Block, host: &str) -> bool {
    let patterns = |name: &str| {
        let list = method.body.get_attribute(name).and_then(|list| list.value.as_array());
        list.map(|list| list.iter().filter_map(Expression::as_str).any(|pattern| matches(pattern, host)))
    };
    patterns("include").unwrap_or(true) && !patterns("exclude").unwrap_or(false)
}

/// Whether a pattern for source addresses means this provider; one without a host means the registry of the command line itself.
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

    fn finding(installation: &str, host: &str) -> Option<Finding> {
        let place = Place { directory: PLACE.into(), is_implied: true };
        judge(&parse(installation).unwrap(), host, Path::new("rc"), &place)
    }

    #[rstest]
    #[case("")]
    #[case("plugin_cache_dir = \"/x\"\ncredentials \"app.terraform.io\" {\n  token = \"t\"\n}\n")]
    #[case("provider_installation {\n  filesystem_mirror {\n    path = \"/home/me/.terraform.d/plugins\"\n  }\n}")]
    #[case(
        "provider_installation {\n  filesystem_mirror {\n    path = \"/home/me/.terraform.d/plugins\"\n    include = [\"damodel/*\"]\n  }\n  direct {}\n}"
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
            assert!(matches!(finding(&text, host), Some(Finding::TurnedOff { .. })), "{text}");
        }
    }

    #[test]
    fn an_override_is_found_for_its_host() {
        let text = "provider_installation {\n  dev_overrides {\n    \"registry.terraform.io/damodel/damodel\" = \"/build\"\n  }\n  direct {}\n}\n";
        let [terraform, tofu] = HOSTS;
        assert!(
            matches!(finding(text, terraform), Some(Finding::Overridden { directory, .. }) if directory == "/build")
        );
        assert!(matches!(finding(text, tofu), Some(Finding::TurnedOff { .. })));
        let short = text.replace("registry.terraform.io/", "");
        assert!(matches!(finding(&short, tofu), Some(Finding::Overridden { .. })));
    }

    #[test]
    fn each_command_line_reads_its_own_file() {
        let home = tempfile::tempdir().unwrap();
        let surroundings = |more: &[(&str, &str)]| Surroundings {
            executable: PathBuf::new(),
            variables: [("HOME", home.path().to_str().unwrap())]
                .iter()
                .chain(more)
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        };
        let [terraform, tofu] = HOSTS;
        let (old, new) = (home.path().join(".terraformrc"), home.path().join(".tofurc"));
        assert_eq!(files(&surroundings(&[])), [(old.clone(), vec![terraform]), (new.clone(), vec![tofu])]);
        let xdg = [("XDG_CONFIG_HOME", "/xdg"), ("TF_CLI_CONFIG_FILE", "")];
        assert_eq!(files(&surroundings(&xdg))[1], ("/xdg/opentofu/tofurc".into(), vec![tofu]));
        fs::write(&old, "").unwrap();
        assert_eq!(files(&surroundings(&xdg)), [(old.clone(), HOSTS.to_vec())]);
        fs::write(&new, "").unwrap();
        assert_eq!(files(&surroundings(&xdg)), [(old, vec![terraform]), (new, vec![tofu])]);
        assert_eq!(files(&surroundings(&[("TF_CLI_CONFIG_FILE", "/rc")])), [("/rc".into(), HOSTS.to_vec())]);
    }
}
