//! The dependencies between the layers within a crate; Cargo holds those between the crates. Every path in src/, in
//! `use` lines and anywhere else, is compared with two tables: which folder may name which, and which folder may name a
//! crate from outside.

use std::{collections::BTreeSet, fs, path::Path, sync::LazyLock};

use regex::Regex;

use super::{crates, files, root, sources};

/// The crates that are one layer. In the others each folder of `src` is one.
const CRATES: &[(&str, &str)] = &[
    ("crates/damodel-llama", "llama"),
    ("crates/damodel-review", "review"),
    ("crates/damodel-sandbox", "sandbox"),
    ("crates/damodel-ssh", "ssh"),
];

/// The folders that a folder may name besides itself. A new edge is argued in the commit that changes this table.
const EDGES: &[(&str, &[&str])] = &[
    ("api", &[]),
    ("commands", &["api", "creation", "framework", "plugin", "protocol", "provider", "review", "sandbox", "ssh"]),
    ("creation", &["api"]),
    ("framework", &[]),
    ("llama", &[]),
    ("plugin", &["process"]),
    ("process", &[]),
    ("program", &["framework", "plugin", "protocol"]),
    ("protocol", &["framework"]),
    ("provider", &["api", "creation", "framework", "llama", "review", "ssh"]),
    ("review", &[]),
    ("sandbox", &[]),
    ("ssh", &[]),
    ("testing", &["framework", "plugin", "protocol"]),
];

/// Names from outside that only some modules may use: the beginning of a path, and the modules.
const OUTSIDE: &[(&str, &[&str])] = &[
    ("hyper", &["sandbox", "ssh"]),
    ("hyper_util", &["sandbox", "ssh", "testing"]),
    ("prost", &["plugin", "protocol"]),
    ("prost_types", &["plugin", "protocol"]),
    ("rcgen", &["plugin", "testing"]),
    ("reqwest", &["api"]),
    ("russh", &["sandbox", "ssh"]),
    ("rustls", &["plugin", "testing"]),
    // The rest of it is named by its folders, which the library shows as its own.
    ("terraform_plugin::process", &["api", "commands", "creation"]),
    ("terraform_plugin", &[]),
    ("tokio_rustls", &["plugin", "testing"]),
    ("tonic", &["plugin", "protocol", "testing"]),
    ("tonic_prost", &["plugin", "protocol"]),
    ("winsafe", &["process"]),
    // The environment, without compile-time variables. Commands read it through clap, or get it as an argument.
    ("std::env", &["plugin", "program", "provider::environment", "testing"]),
    // An end of the process without cleanup.
    ("std::process::abort", &[]),
    ("std::process::exit", &[]),
    // The library's own name: `crate` means the same. It shows the other crates by the names of their layers.
    ("damodel", &[]),
    ("damodel_client::api", &["llama"]),
    ("damodel_client", &[]),
    ("damodel_llama", &[]),
    ("damodel_review", &[]),
    ("damodel_sandbox", &[]),
    ("damodel_ssh", &["llama"]),
];

/// The pipeline of `review`: each step names only those before it. `mod.rs` and the tests of whole plans name all.
const REVIEW_ORDER: &[&str] = &[
    "rules",
    "address",
    "values",
    "plan",
    "facts::money",
    "facts::cost",
    "facts::losses",
    "facts::changes",
    "facts::secrets",
    "facts",
    "policy",
    "findings",
    "verdict",
    "document",
    "render",
];

/// Exceptions within those beginnings.
const HARMLESS: &[&str] = &["std::env::consts"];

/// The faults of a source, as the modules that its path in src/ names.
fn faults(module: &[&str], source: &str) -> Vec<String> {
    static PATTERNS: LazyLock<[Regex; 4]> = LazyLock::new(|| {
        [
            // Texts and comments; and a visibility, which names who may use an item.
            r##"(?s)r#".*?"#|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])'|//[^\n]*|\bpub\(in [^)]*\)"##,
            r"\buse\s+([^;]+);",
            // After a type (`>::`), a field or a method, the next name is not a crate.
            r"(?:^|[^\w:>.])(?:::)?(\w+(?:::\w+)+)",
            r"\bmod \w+ \{",
        ]
        .map(|pattern| Regex::new(pattern).unwrap())
    });
    let [unread, imports, named, nested] = &*PATTERNS;
    let source = unread.replace_all(source, "");
    let elsewhere = imports.replace_all(&source, |import: &regex::Captures<'_>| " ".repeat(import[0].len()));
    let mut found: Vec<(usize, String)> = Vec::new();
    for import in imports.captures_iter(&source) {
        found.extend(branches(&import[1]).into_iter().map(|path| (import.get(0).unwrap().start(), path)));
    }
    found.extend(named.captures_iter(&elsewhere).map(|path| (path.get(1).unwrap().start(), path[1].to_owned())));
    let modules: Vec<usize> = nested.find_iter(&source).map(|module| module.start()).collect();
    let fault = |(at, path): (usize, String)| {
        // What follows a nested module counts as inside it, which permits it one `super` more.
        let depth = modules.iter().filter(|module| **module < at).count();
        fault(&[module, &vec!["nested"; depth]].concat(), &path)
    };
    found.into_iter().filter_map(fault).collect()
}

/// The paths of the tree of a `use`.
fn branches(tree: &str) -> Vec<String> {
    let Some((before, rest)) = tree.split_once('{') else {
        return vec![tree.split(" as ").next().unwrap_or_default().split_whitespace().collect()];
    };
    let inner = rest.rsplit_once('}').unwrap().0;
    let mut depth = 0;
    let parts = inner.split(|sign| {
        depth += i32::from(sign == '{') - i32::from(sign == '}');
        sign == ',' && depth == 0
    });
    let parts = parts.filter(|part| !part.trim().is_empty());
    parts.flat_map(|part| branches(&format!("{}{}", before.trim(), part.trim()))).collect()
}

fn fault(module: &[&str], path: &str) -> Option<String> {
    // main.rs and lib.rs may use everything.
    let own = *module.first()?;
    let mut path: Vec<&str> = path.split("::").filter(|name| !name.is_empty() && *name != "*").collect();
    let mut place = match path.first() {
        // A layer that is a crate of its own.
        Some(&"crate") => [own].into_iter().filter(|own| CRATES.iter().any(|(_, layer)| layer == own)).collect(),
        Some(&"self" | &"super") => module.to_vec(),
        // `provider/mod.rs` may name its `instance` without `self`.
        _ => return outside(module, &path.join("::")),
    };
    while let Some(step @ ("crate" | "self" | "super")) = path.first().copied() {
        if step == "super" {
            place.pop();
        }
        path.remove(0);
    }
    place.extend(path);
    let Some(other) = place.first() else {
        return Some(format!("{own} names the crate's root, which hides what it uses"));
    };
    if *other != own {
        let (_, permitted) = EDGES.iter().find(|(folder, _)| *folder == own)?;
        return (!permitted.contains(other)).then(|| format!("{own} names crate::{}", place.join("::")));
    }
    match own {
        "provider" => resources(module, &place),
        "review" => steps(module, &place),
        _ => None,
    }
}

fn outside(module: &[&str], path: &str) -> Option<String> {
    let (_, places) = OUTSIDE.iter().find(|(outside, _)| is_in(path, outside))?;
    let at_home = module.join("::");
    let is_home = |place: &&str| is_in(&at_home, place);
    let is_permitted = places.iter().any(is_home) || HARMLESS.iter().any(|harmless| is_in(path, harmless));
    (!is_permitted).then(|| format!("{at_home} names {path}"))
}

fn is_in(path: &str, beginning: &str) -> bool {
    path == beginning || path.starts_with(&format!("{beginning}::"))
}

/// A resource's folder is used by itself and by the registry, and the registry by `mod.rs`, which shows its names.
fn resources(module: &[&str], path: &[&str]) -> Option<String> {
    let resource = path.get(1).filter(|name| is_resource(name))?;
    match module.get(1) {
        None | Some(&"registry") => None,
        Some(own) if own == resource => None,
        Some(own) => Some(format!("provider::{own} names the folder of another resource, provider::{resource}")),
    }
}

/// A name that the folder's `mod.rs` shows hides its step, and counts as a later one.
fn steps(module: &[&str], path: &[&str]) -> Option<String> {
    if matches!(module.get(1), None | Some(&"tests")) {
        return None;
    }
    let place = |path: &[&str]| REVIEW_ORDER.iter().position(|step| is_in(&path[1..].join("::"), step));
    let is_before = place(path).zip(place(module)).is_some_and(|(other, own)| other <= own);
    (!is_before).then(|| format!("{} names the later {}", module.join("::"), path.join("::")))
}

/// All resources that are created and released share `lifecycle`, and all that log in to instances `login`.
fn is_resource(name: &str) -> bool {
    let registry = ["registry", "ADDRESS", "Damodel", "arguments", "loggable_fields"];
    let shared = ["lifecycle", "login"];
    registry.contains(&name) || !shared.contains(&name) && root().join("src/provider").join(name).is_dir()
}

/// The modules that the path of a source names, the first of them its layer: `src/provider/login/mod.rs` is
/// `provider::login`.
pub(super) fn module(file: &Path) -> Vec<String> {
    let names = file.with_extension("");
    let names = names.iter().skip_while(|name| *name != "src").skip(1).map(|name| name.to_str().unwrap());
    let layer = CRATES.iter().find(|(name, _)| file.starts_with(name)).map(|(_, layer)| *layer);
    let names = layer.into_iter().chain(names).filter(|name| !["mod", "lib", "main"].contains(name));
    names.map(str::to_owned).collect()
}

/// The faults of a file.
fn faults_of(file: &Path, source: &str) -> Vec<String> {
    let module = module(file);
    let module: Vec<&str> = module.iter().map(String::as_str).collect();
    faults(&module, source).into_iter().map(|fault| format!("{}: {fault}", file.display())).collect()
}

#[test]
fn dependencies_point_one_way() {
    let sources = sources("src");
    assert!(sources.len() > 300, "{}", sources.len());
    let of = |file: &Path| faults_of(file.strip_prefix(root()).unwrap(), &fs::read_to_string(file).unwrap());
    let faults: Vec<String> = sources.iter().flat_map(|file| of(file)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_folder_is_in_the_table() {
    let modules = sources("src").into_iter().map(|file| module(file.strip_prefix(root()).unwrap()));
    let layers: BTreeSet<String> = modules.filter_map(|module| module.first().cloned()).collect();
    let table: BTreeSet<String> = EDGES.iter().map(|(folder, _)| (*folder).to_owned()).collect();
    assert_eq!(layers, table);
    let missing = CRATES.iter().filter(|(name, _)| !crates().iter().any(|found| found == Path::new(name)));
    assert_eq!(missing.count(), 0);
}

#[test]
fn the_framework_names_nothing_of_damodel() {
    let files = files(&root().join("crates/terraform-plugin"));
    assert!(files.len() > 80, "{files:?}");
    for file in files {
        let text = fs::read_to_string(&file).unwrap_or_default();
        assert!(!text.to_lowercase().contains("damodel"), "{}", file.display());
    }
}

#[test]
fn a_forbidden_arrow_is_found_however_it_is_written() {
    for (file, line) in [
        ("crates/damodel-client/src/api/client/mod.rs", "use crate::framework::Attr;"),
        ("crates/damodel-client/src/api/client/mod.rs", "use terraform_plugin::{framework, process};"),
        ("crates/damodel-client/src/api/client/mod.rs", "use crate::{api::Error, sandbox::{Form, Sandbox}};"),
        ("crates/damodel-client/src/api/client/mod.rs", "fn f() -> crate::provider::Client { todo() }"),
        ("crates/damodel-client/src/creation/pending/entry.rs", "use super::super::super::framework;"),
        ("crates/damodel-client/src/api/mod.rs", "mod tests { use super::super::sandbox::Sandbox; }"),
        ("crates/damodel-client/src/api/client/mod.rs", "use crate as everything;"),
        ("crates/damodel-client/src/api/client/mod.rs", "use crate::*;"),
        ("crates/damodel-client/src/api/client/mod.rs", "fn f() { tokio::select! { x = crate::sandbox::f() => {} } }"),
        (
            "crates/damodel-client/src/api/client/mod.rs",
            "/// [`X`](crate::x)\n#[serde(with = \"x\")]\nstruct S(crate::protocol::X);",
        ),
        ("crates/terraform-plugin/src/framework/value/mod.rs", "use crate::api::Error;"),
        ("src/framework/value/mod.rs", "use tonic::Status;"),
        ("src/framework/value/mod.rs", "fn f(x: &::prost::bytes::Bytes) {}"),
        ("src/framework/path.rs", "use {std::fmt, prost_types as t};"),
        ("src/plugin/mod.rs", "use crate::protocol;"),
        ("src/protocol/mod.rs", "use crate::provider::Damodel;"),
        ("src/provider/instance/mod.rs", "use crate::provider::specs;"),
        ("src/provider/instance/read.rs", "use super::super::specs::List;"),
        ("src/provider/words.rs", "use super::instance::Resource;"),
        ("src/provider/instance/read.rs", "use crate::provider::Damodel;"),
        ("src/provider/client.rs", "use crate::sandbox::Sandbox;"),
        ("src/provider/client.rs", "fn f() { std::env::var(\"X\"); }"),
        ("src/commands/demo/mod.rs", "use std::{env, fs};"),
        ("src/commands/demo/mod.rs", "use damodel::api;"),
        ("crates/damodel-llama/src/decide.rs", "use terraform_plugin::framework::Value;"),
        ("crates/damodel-sandbox/src/server.rs", "use std::process; fn f() { std::process::exit(1) }"),
        ("crates/damodel-sandbox/src/server.rs", "use reqwest::Client;"),
        ("crates/damodel-review/src/address.rs", "use super::values::Values;"),
        ("crates/damodel-review/src/plan/read.rs", "use super::super::facts::Money;"),
        ("crates/damodel-review/src/facts/cost.rs", "use super::{changes::Object, money::Money};"),
        ("crates/damodel-review/src/facts/money.rs", "fn f() -> super::Sums { todo() }"),
        ("crates/damodel-review/src/policy.rs", "use crate::{address::Address, verdict::Level};"),
        ("crates/damodel-review/src/findings.rs", "fn f(page: &super::document::Page) {}"),
        ("crates/damodel-review/src/document.rs", "use super::{Facts, Finding};"),
        ("crates/damodel-review/src/document.rs", "use super::*;"),
        ("crates/damodel-review/src/verdict.rs", "mod tests { use super::super::render::Format; }"),
        ("crates/damodel-review/src/another.rs", "use super::address::Address;"),
    ] {
        assert!(!faults_of(Path::new(file), line).is_empty(), "{file}: {line}");
    }
}
