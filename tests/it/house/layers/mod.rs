//! The dependencies between the layers. Every path in src/ is resolved, in `use` lines and anywhere else, and compared
//! with two tables: which folder may name which, and which folder may name a crate from outside.

mod paths;

use std::{
    fs,
    path::{Path, PathBuf},
};

use self::paths::{Found, paths};

/// The folders that a folder may name besides itself. A new edge is argued in the commit that changes this table.
const EDGES: &[(&str, &[&str])] = &[
    ("api", &["process"]),
    ("commands", &["api", "framework", "plugin", "process", "protocol", "provider", "review", "sandbox", "ssh"]),
    ("framework", &[]),
    ("model", &[]),
    ("plugin", &["process"]),
    ("process", &[]),
    ("protocol", &["framework"]),
    ("provider", &["api", "framework", "model", "ssh"]),
    ("review", &[]),
    ("sandbox", &[]),
    ("ssh", &[]),
];

/// Names from outside that only some modules may use: the beginning of a path, and the modules.
const OUTSIDE: &[(&str, &[&str])] = &[
    ("hyper", &["sandbox", "ssh"]),
    ("hyper_util", &["sandbox", "ssh"]),
    ("prost", &["plugin", "protocol"]),
    ("prost_types", &["plugin", "protocol"]),
    ("rcgen", &["plugin"]),
    ("reqwest", &["api"]),
    ("russh", &["sandbox", "ssh"]),
    ("rustls", &["plugin"]),
    ("tokio_rustls", &["plugin"]),
    ("tonic", &["plugin", "protocol"]),
    ("tonic_prost", &["plugin", "protocol"]),
    ("winsafe", &["process"]),
    // The environment, without compile-time variables. Commands read it through clap, or get it as an argument.
    ("std::env", &["plugin", "provider::environment"]),
    // An end of the process without cleanup.
    ("std::process::abort", &[]),
    ("std::process::exit", &[]),
    // The library's own name: `crate` means the same.
    ("damodel", &[]),
];

/// Exceptions within those beginnings.
const HARMLESS: &[&str] = &["std::env::consts"];

/// The faults of a file, a line each.
fn faults(file: &Path, source: &str) -> Vec<String> {
    let module = module_of(file);
    let mut faults: Vec<String> = paths(source, &module)
        .into_iter()
        .filter_map(|found| Some((found.line, fault(&module, &found)?)))
        .map(|(line, fault)| format!("{}:{line}: {fault}", file.display()))
        .collect();
    faults.dedup();
    faults
}

fn fault(module: &[String], found: &Found) -> Option<String> {
    let text = found.path.join("::");
    let Some(own) = module.first() else {
        // main.rs and lib.rs may use everything.
        return None;
    };
    if !found.inside {
        let is_in = |beginning: &str| text == beginning || text.starts_with(&format!("{beginning}::"));
        let (_, places) = OUTSIDE.iter().find(|(outside, _)| is_in(outside))?;
        let at_home = module.join("::");
        let is_home = |place: &&str| at_home == *place || at_home.starts_with(&format!("{place}::"));
        let is_permitted = places.iter().any(is_home) || HARMLESS.iter().any(|path| is_in(path));
        return (!is_permitted).then(|| format!("{at_home} names {text}"));
    }
    let Some(other) = found.path.first() else {
        return Some(format!("{own} names the crate's root, which hides what it uses"));
    };
    if other != own {
        let (_, permitted) = EDGES.iter().find(|(folder, _)| folder == own)?;
        return (!permitted.contains(&other.as_str())).then(|| format!("{own} names crate::{text}"));
    }
    (own == "provider").then(|| things(module, &found.path)).flatten()
}

/// A resource's folder is used by itself and by the registry, not by other resources or shared modules.
fn things(module: &[String], path: &[String]) -> Option<String> {
    let thing = path.get(1).filter(|name| is_thing(name))?;
    match module.get(1) {
        None => None,
        Some(own) if own == thing => None,
        Some(own) => Some(format!("provider::{own} names the folder of another thing, provider::{thing}")),
    }
}

/// All resources that are created and released share `lifecycle`.
fn is_thing(name: &str) -> bool {
    name != "lifecycle" && root().join("src/provider").join(name).is_dir()
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// `src/api/pending/entry.rs` is `api::pending::entry`.
fn module_of(file: &Path) -> Vec<String> {
    let mut module: Vec<String> = file
        .with_extension("")
        .components()
        .skip(1)
        .map(|component| component.as_os_str().to_str().unwrap().to_owned())
        .collect();
    let names_its_folder = ["mod", "lib", "main"];
    if module.last().is_some_and(|last| names_its_folder.contains(&last.as_str())) {
        module.pop();
    }
    module
}

/// All sources of the crate, relative to its root.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut sources = Vec::new();
    for entry in fs::read_dir(root().join(folder)).unwrap() {
        let path = folder.join(entry.unwrap().file_name());
        if root().join(&path).is_dir() {
            sources.extend(self::sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push(path);
        }
    }
    sources.sort();
    sources
}

#[test]
fn dependencies_point_one_way() {
    let sources = sources(Path::new("src"));
    assert!(sources.len() > 100, "{sources:?}");
    let faults: Vec<String> =
        sources.iter().flat_map(|file| faults(file, &fs::read_to_string(root().join(file)).unwrap())).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_folder_is_in_the_table() {
    for entry in fs::read_dir(root().join("src")).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let is_known = EDGES.iter().any(|(folder, _)| *folder == name);
        assert!(is_known || ["lib.rs", "main.rs"].contains(&name.as_str()), "{name}");
    }
}

#[test]
fn a_forbidden_arrow_is_found_however_it_is_written() {
    for (file, line) in [
        ("src/api/client/mod.rs", "use crate::framework::Attr;"),
        ("src/api/client/mod.rs", "use crate::{api::Error, sandbox::{Form, Sandbox}};"),
        ("src/api/client/mod.rs", "fn f() -> crate::provider::Client { todo() }"),
        ("src/api/pending/entry.rs", "use super::super::super::framework;"),
        ("src/api/mod.rs", "mod tests { use super::super::sandbox::Sandbox; }"),
        ("src/api/client/mod.rs", "use crate as everything;"),
        ("src/api/client/mod.rs", "use crate::*;"),
        ("src/api/client/mod.rs", "fn f() { tokio::select! { x = crate::sandbox::f() => {} } }"),
        ("src/api/client/mod.rs", "/// [`X`](crate::x)\n#[serde(with = \"x\")]\nstruct S(crate::protocol::X);"),
        ("src/framework/value/mod.rs", "use crate::api::Error;"),
        ("src/framework/value/mod.rs", "use tonic::Status;"),
        ("src/framework/value/mod.rs", "fn f(x: &::prost::bytes::Bytes) {}"),
        ("src/framework/path.rs", "use {std::fmt, prost_types as t};"),
        ("src/plugin/mod.rs", "use crate::protocol;"),
        ("src/protocol/mod.rs", "use crate::provider::Damodel;"),
        ("src/provider/instance/mod.rs", "use crate::provider::specs;"),
        ("src/provider/instance/read.rs", "use super::super::specs::List;"),
        ("src/provider/words.rs", "use super::instance::Resource;"),
        ("src/provider/client.rs", "use crate::sandbox::Sandbox;"),
        ("src/provider/client.rs", "fn f() { std::env::var(\"X\"); }"),
        ("src/commands/demo/mod.rs", "use std::{env, fs};"),
        ("src/commands/demo/mod.rs", "use damodel::api;"),
        ("src/sandbox/mod.rs", "use std::process; fn f() { std::process::exit(1) }"),
        ("src/sandbox/mod.rs", "use reqwest::Client;"),
    ] {
        assert!(!faults(Path::new(file), line).is_empty(), "{file}: {line}");
    }
}

#[test]
fn what_is_permitted_is_not_found() {
    for (file, line) in [
        ("src/main.rs", "use damodel::{api, sandbox}; fn f() { std::env::args() }"),
        ("src/commands/demo/mod.rs", "use crate::{api::Error, sandbox::Sandbox}; use std::env::consts::OS;"),
        (
            "src/api/client/mod.rs",
            "// use crate::framework;\nconst S: &str = \"crate::framework::x\"; use super::error::Error;",
        ),
        ("src/api/client/mod.rs", "mod tests { use super::super::error::Error; use super::*; }"),
        ("src/api/client/mod.rs", "use reqwest::Client; fn f() { env!(\"X\"); r#\"crate::sandbox\"#; }"),
        ("src/framework/path.rs", "fn f<T>() { T::tonic::<u8>(); self.rustls(); x.tonic }"),
        ("src/protocol/mod.rs", "use crate::framework::Provider; use tonic::Status;"),
        ("src/provider/mod.rs", "use instance::Resource; use self::specs::List;"),
        ("src/provider/instance/read.rs", "use super::{super::Client, model::Instance}; use crate::api::Error;"),
        ("src/provider/environment.rs", "use std::env;"),
    ] {
        assert_eq!(faults(Path::new(file), line), Vec::<String>::new(), "{file}: {line}");
    }
}
