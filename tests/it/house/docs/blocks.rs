//! The configurations and commands on pages. All configurations are modules of one, so that one `validate` checks them.

use std::{
    fmt::Write as _,
    fs,
    io::{self, Write as _},
    path::Path,
    process::Command,
};

use regex::Regex;

use super::{
    markdown::{Block, Page},
    published, root,
};
use crate::{
    house::REQUIRED,
    support::terraform::{Cli, Site, Workspace, each_cli, each_workspace},
};

/// Terraform does not validate a provider without resources.
const USED: &str = "data \"damodel_specs\" \"uses_the_provider\" {}\n";

/// Syntax of newer versions, with the first minor version of Terraform and of OpenTofu that reads it.
const NEWER: [(&str, u64, u64); 5] = [
    ("provider::damodel::", 8, 7),
    ("\nephemeral \"", 10, 11),
    ("_wo ", 11, 11),
    ("\n  identity = {", 12, u64::MAX),
    ("\naction \"", 14, u64::MAX),
];

/// A configuration on a page.
struct Configuration {
    place: String,
    text: String,
}

/// The configurations of all pages, in order.
fn configurations(pages: &[Page]) -> Vec<Configuration> {
    let mut configurations = Vec::new();
    for page in pages {
        let blocks: Vec<&Block> = page.blocks.iter().filter(|block| block.language == "terraform").collect();
        for (number, block) in blocks.iter().enumerate() {
            // An import on a page imports the resources of the page's first example; other blocks add to it.
            let is_bare_import = is_root_only(&block.text) && !block.text.contains("resource \"");
            let adds = block.text.contains("= damodel_instance.first.") && !block.text.contains("\"first\" {");
            let first = blocks.first().filter(|_| (is_bare_import || adds) && number > 0);
            let text = first.map_or_else(|| block.text.clone(), |first| format!("{}\n{}", first.text, block.text));
            let name = page.path.strip_prefix(root()).unwrap().display().to_string();
            configurations.push(Configuration { place: format!("{name}, block {}", number + 1), text });
        }
    }
    configurations
}

/// Whether the text is permitted only in a root module.
fn is_root_only(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("import {"))
}

/// A module call, with null for the variables that have no default.
fn call(name: &str, text: &str) -> String {
    let variable = Regex::new("(?ms)^variable \"(\\w+)\" \\{(.*?)^\\}").unwrap();
    let without_default = variable.captures_iter(text).filter(|found| !found[2].contains("default"));
    let arguments = without_default.fold(String::new(), |mut arguments, found| {
        let _ = writeln!(arguments, "  {} = null", &found[1]);
        arguments
    });
    format!("module \"{name}\" {{\n  source = \"./{name}\"\n{arguments}}}\n")
}

fn write_module(folder: &Path, text: &str) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("main.tf"), text).unwrap();
    fs::write(folder.join("used.tf"), USED).unwrap();
    if !text.contains("required_providers") {
        fs::write(folder.join("required.tf"), REQUIRED).unwrap();
    }
}

/// The configurations that this version reads, and the others, whose names are printed.
fn readable<'a>(cli: &Cli, all: &'a [Configuration]) -> (Vec<&'a Configuration>, Vec<&'a Configuration>) {
    let needs_newer = |configuration: &Configuration| {
        let text = format!("\n{}", configuration.text);
        NEWER.iter().any(|(mark, terraform, tofu)| text.contains(mark) && !cli.has(*terraform, *tofu))
    };
    let (newer, readable): (Vec<&Configuration>, Vec<&Configuration>) =
        all.iter().partition(|configuration| needs_newer(configuration));
    for configuration in &newer {
        let _ = writeln!(io::stderr(), "NOT VALIDATED, {} is too old: {}", cli.program.display(), configuration.place);
    }
    (readable, newer)
}

#[test]
fn every_configuration_is_formatted_and_valid() {
    let pages = published();
    let all = configurations(&pages);
    assert!(all.len() > 15, "{}", all.len());
    each_cli(|cli| {
        let site = Site::start();
        let (readable, newer) = readable(cli, &all);
        let (roots, modules): (Vec<_>, Vec<_>) =
            readable.into_iter().partition(|configuration| is_root_only(&configuration.text));
        let workspace = Workspace::new(cli, &site);
        let mut calls = String::new();
        let mut places = String::new();
        for (number, configuration) in newer.iter().enumerate() {
            write_module(&workspace.directory().join(format!("newer_{number}")), &configuration.text);
            let _ = writeln!(places, "newer_{number}: {}", configuration.place);
        }
        for (number, configuration) in modules.iter().enumerate() {
            let name = format!("block_{number}");
            write_module(&workspace.directory().join(&name), &configuration.text);
            calls.push_str(&call(&name, &configuration.text));
            let _ = writeln!(places, "{name}: {}", configuration.place);
        }
        let formatted = workspace.run(&["fmt", "-check", "-diff", "-recursive", "-no-color"]);
        assert_eq!(formatted.code, Some(0), "{}{}\n{places}", formatted.stdout, formatted.stderr);
        workspace.write(&calls);
        workspace.run_ok(&["get", "-no-color"]);
        let valid = workspace.run(&["validate", "-no-color"]);
        assert_eq!(valid.code, Some(0), "{}{}\n{places}", valid.stdout, valid.stderr);

        for configuration in roots {
            let workspace = Workspace::new(cli, &site);
            write_module(&workspace.directory(), &configuration.text);
            workspace.run_ok(&["fmt", "-check", "-diff", "-no-color"]);
            let valid = workspace.run(&["validate", "-no-color"]);
            assert_eq!(valid.code, Some(0), "{}: {}{}", configuration.place, valid.stdout, valid.stderr);
        }
    });
}

/// A server on a page is not open to everyone who reaches its port.
#[test]
fn servers_listen_on_the_loopback_address_or_have_a_key() {
    let server = Regex::new("(?ms)^resource \"damodel_llama_server\" .*?^\\}").unwrap();
    let closed = Regex::new("(?m)^ *(host += \"127.0.0.1\"|api_key(_wo)? +=)").unwrap();
    for configuration in configurations(&published()) {
        for found in server.find_iter(&configuration.text) {
            assert!(closed.is_match(found.as_str()), "{}:\n{}", configuration.place, found.as_str());
        }
    }
}

/// HCL that is not a configuration: settings of the command line, queries, and tests of modules.
#[test]
fn other_hcl_is_formatted() {
    let other = Regex::new("(?m)^(generate|list|provider_installation|run) ").unwrap();
    let pages = published();
    each_workspace(|_, workspace| {
        for page in &pages {
            let name = page.path.file_stem().unwrap().to_str().unwrap();
            for (number, block) in page.blocks.iter().filter(|block| block.language == "hcl").enumerate() {
                let place = page.path.display();
                assert!(
                    other.is_match(&block.text),
                    "{place}: mark a configuration as `terraform`, so that it is validated:\n{}",
                    block.text
                );
                fs::write(workspace.directory().join(format!("{name}_{number}.tf")), &block.text).unwrap();
            }
        }
        let formatted = workspace.run(&["fmt", "-check", "-diff", "-no-color"]);
        assert_eq!(formatted.code, Some(0), "{}{}", formatted.stdout, formatted.stderr);
    });
}

#[test]
fn every_block_is_in_a_language_that_is_checked_or_is_output() {
    for page in published() {
        for block in page.blocks {
            let known = ["console", "hcl", "json", "markdown", "shell", "terraform", "text", "toml", "yaml"];
            assert!(known.contains(&&*block.language), "{}: {:?}", page.path.display(), block.language);
            if block.language == "json" {
                serde_json::from_str::<serde_json::Value>(&block.text).unwrap();
            }
            if block.language == "toml" {
                toml::from_str::<toml::Table>(&block.text).unwrap();
            }
            if block.language == "shell" {
                let read = Command::new("sh").args(["-n", "-c", &block.text]).output().unwrap();
                assert!(read.status.success(), "{}: {}", page.path.display(), String::from_utf8_lossy(&read.stderr));
            }
        }
    }
}
