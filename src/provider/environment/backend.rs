//! The identity of a backend: its type and what names a state in it, as Terraform's data directory records them.

use std::path::Path;

use serde_json::Value;

use crate::creation::fingerprint;

/// The type of the backend without a file.
const LOCAL: &str = "local";

/// The arguments that name a state. Credentials and behaviour do not count.
const ARGUMENTS: [&str; 15] = [
    "bucket",
    "key",
    "prefix",
    "path",
    "container_name",
    "storage_account_name",
    "schema_name",
    "secret_suffix",
    "namespace",
    "config_context",
    "hostname",
    "organization",
    "workspaces",
    "workspace_key_prefix",
    "workspace_dir",
];

/// The arguments that are addresses: their credentials and queries do not count.
const ADDRESSES: [&str; 2] = ["address", "conn_str"];

/// The variables that backends read if the configuration leaves an argument out: type, argument and variable.
const FROM_ENVIRONMENT: [(&str, &str, &str); 5] = [
    ("cloud", "hostname", "TF_CLOUD_HOSTNAME"),
    ("cloud", "organization", "TF_CLOUD_ORGANIZATION"),
    ("http", "address", "TF_HTTP_ADDRESS"),
    ("pg", "conn_str", "PG_CONN_STR"),
    ("pg", "schema_name", "PG_SCHEMA_NAME"),
];

/// The variables of backends without Terraform's own prefix.
pub(super) const VARIABLES: [&str; 2] = ["PG_CONN_STR", "PG_SCHEMA_NAME"];

/// A backend, as a file of the data directory records it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Backend {
    /// A hash of its type and of what names a state in it.
    pub(super) identity: String,
    /// Whether its state is in the working directory.
    pub(super) is_local: bool,
    /// Whether anything names its state.
    pub(super) is_named: bool,
}

/// The backend in this file of the data directory. A file that is missing or cannot be read counts as the local backend
/// in its default place.
pub(super) fn read<'a>(file: &[u8], workspace: &str, variable: impl Fn(&str) -> Option<&'a str>) -> Backend {
    let file: Value = serde_json::from_slice(file).unwrap_or_default();
    let sections = ["backend", "cloud", "state_store"].into_iter().filter_map(|name| file.get(name));
    let backend = sections.into_iter().find(|section| section.is_object()).unwrap_or(&Value::Null);
    let (kind, config) = match backend.get("type").and_then(Value::as_str) {
        Some(kind) => (kind, backend.get("config").unwrap_or(&Value::Null)),
        None => (LOCAL, &Value::Null),
    };
    let value = |name: &str| {
        let configured = config.get(name).filter(|value| !value.is_null()).cloned();
        let of_this = |(of, argument, _): &&(&str, &str, &str)| *of == kind && *argument == name;
        let variable = || FROM_ENVIRONMENT.iter().find(of_this).and_then(|(.., name)| variable(name)).map(Value::from);
        configured.or_else(variable)
    };
    let named = ARGUMENTS.iter().filter_map(|name| Some(format!("{name}={}", value(name)?)));
    let addressed = ADDRESSES.iter().filter_map(|name| Some(format!("{name}={}", address(value(name)?.as_str()?))));
    let parts: Vec<String> = [kind.to_owned()].into_iter().chain(named).chain(addressed).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    // The local backend keeps the states of the other workspaces elsewhere.
    let folder = if workspace == "default" { "path" } else { "workspace_dir" };
    let is_absolute = config.get(folder).and_then(Value::as_str).is_some_and(|path| Path::new(path).is_absolute());
    Backend { identity: fingerprint(&parts), is_local: kind == LOCAL && !is_absolute, is_named: parts.len() > 1 }
}

/// Host, port and path of an address; host, port and database of a connection string.
fn address(text: &str) -> String {
    match url::Url::parse(text) {
        Ok(url) => format!("{}:{}{}", url.host_str().unwrap_or_default(), url.port().unwrap_or_default(), url.path()),
        Err(_) => {
            let words = text
                .split_whitespace()
                .filter(|word| ["host=", "port=", "dbname="].iter().any(|name| word.starts_with(name)));
            let mut words: Vec<&str> = words.collect();
            words.sort_unstable();
            words.join(" ")
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(file: &Value, variables: &[(&str, &'static str)]) -> Backend {
        within("default", file, variables)
    }

    fn within(workspace: &str, file: &Value, variables: &[(&str, &'static str)]) -> Backend {
        read(file.to_string().as_bytes(), workspace, |name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
        })
    }

    fn backend(kind: &str, config: Value) -> Value {
        json!({"backend": {"type": kind, "config": config}})
    }

    #[test]
    fn what_names_a_state_identifies_a_backend() {
        let s3 =
            |key: &str, region: &str| of(&backend("s3", json!({"bucket": "b", "key": key, "region": region})), &[]);
        assert_eq!(s3("a", "r1"), s3("a", "r2"));
        assert_ne!(s3("a", "r1"), s3("b", "r1"));
        let pg = |address: &str| of(&backend("pg", json!({"conn_str": address})), &[]);
        assert_eq!(pg("postgres://me:secret@db:5432/a?sslmode=disable"), pg("postgres://you@db:5432/a"));
        assert_ne!(pg("postgres://db/a"), pg("postgres://db/b"));
        assert_eq!(pg("host=db dbname=a password=x"), pg("dbname=a host=db"));
        let cloud = |name: &str| of(&json!({"cloud": {"type": "cloud", "config": {"organization": name}}}), &[]);
        assert_ne!(cloud("a"), cloud("b"));
        // Settings of libpq may name the database.
        assert!(s3("a", "r1").is_named && !of(&backend("pg", json!({"conn_str": null})), &[]).is_named);
    }

    #[test]
    fn a_local_state_with_an_absolute_path_is_not_tied_to_the_directory() {
        let local = |config: Value| backend("local", config);
        for (workspace, config, is_local) in [
            ("default", json!({"path": "/states/a.tfstate"}), false),
            ("default", json!({"path": "a.tfstate", "workspace_dir": "/states"}), true),
            ("dev", json!({"path": "/states/a.tfstate"}), true),
            ("dev", json!({"workspace_dir": "/states"}), false),
        ] {
            assert_eq!(within(workspace, &local(config.clone()), &[]).is_local, is_local, "{workspace} {config}");
        }
    }

    #[test]
    fn a_variable_counts_if_the_argument_is_left_out() {
        let schema = [("PG_SCHEMA_NAME", "one")];
        let (left_out, set) =
            (backend("pg", json!({"schema_name": null})), backend("pg", json!({"schema_name": "two"})));
        assert_ne!(of(&left_out, &schema), of(&left_out, &[]));
        assert_eq!(of(&set, &schema), of(&set, &[]));
        let cloud = json!({"backend": {"type": "cloud", "config": {"organization": null}}});
        let organization = |name| of(&cloud, &[("TF_CLOUD_ORGANIZATION", name)]);
        assert_ne!(organization("a"), organization("b"));
    }

    #[test]
    fn without_a_file_the_backend_is_local() {
        let none = read(b"", "default", |_| None);
        assert!(none.is_local);
        for file in ["{", "[]", "{\"backend\": null}", "{\"backend\": {\"config\": {}}}"] {
            assert_eq!(read(file.as_bytes(), "default", |_| None), none, "{file}");
        }
        let local = of(&backend("local", json!({"path": "other.tfstate"})), &[]);
        assert!(local.is_local && local.identity != none.identity);
        assert_eq!(of(&backend("local", json!({"path": null, "workspace_dir": null})), &[]), none);
    }
}
