//! The objects in states and pending records. Other parts of a state are not kept, because they have secrets.

use std::{collections::BTreeSet, path::PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{
    api::ObjectKind,
    commands::Failure,
    creation::{CreatePhase, Journal},
    provider::{Environment, words::type_name},
    review::{DocumentError, added_text, decoded},
};

/// The format of state files.
const FORMAT: u64 = 4;

/// The objects of a state.
#[derive(Clone, Debug, Default)]
pub(in crate::commands) struct AuditedState {
    /// Its path, or the name of the stream.
    pub(in crate::commands) source: String,
    pub(in crate::commands) held: Vec<Held>,
    /// What identifies it, unless it is the output of `show -json`.
    pub(in crate::commands) file: Option<StateFile>,
}

/// The identity of a state of format 4.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::commands) struct StateFile {
    /// The files with this content; none for standard input.
    pub(in crate::commands) paths: Vec<PathBuf>,
    pub(in crate::commands) lineage: String,
    pub(in crate::commands) serial: u64,
    /// The hash of its content, whatever its layout.
    pub(in crate::commands) digest: String,
}

/// The limits of an instance's age, as the state has them; a disk has its protection only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::commands) struct AgeTerms {
    pub(in crate::commands) max_age: Option<String>,
    pub(in crate::commands) is_protected: bool,
    pub(in crate::commands) is_prepaid: bool,
}

/// An object in a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::commands) struct Held {
    pub(in crate::commands) kind: ObjectKind,
    /// Its import id.
    pub(in crate::commands) id: String,
    /// What identifies it in all accounts, if the state has it.
    pub(in crate::commands) uid: Option<String>,
    pub(in crate::commands) address: String,
    /// The configuration of its provider; empty if the state does not have it.
    pub(in crate::commands) provider: String,
    /// Extra local disk of an instance in GB, which is billed with it.
    pub(in crate::commands) extra_disk: i64,
    /// The cloud disks that were created with an instance, as configured.
    pub(in crate::commands) new_disks: Vec<OrderedDisk>,
    /// The ids of the cloud disks that are mounted in an instance, without those that existed before.
    pub(in crate::commands) mounted: Vec<String>,
    /// The attributes that decide which disks are deleted with an instance.
    pub(in crate::commands) attributes: Value,
    pub(in crate::commands) age: AgeTerms,
}

/// A cloud disk that was created with an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::commands) struct OrderedDisk {
    pub(in crate::commands) size_gb: i64,
    pub(in crate::commands) spec_id: Option<i64>,
    pub(in crate::commands) mount_path: Option<String>,
}

/// The reason why a document is not a readable state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::commands) enum NotAState {
    /// It is not the bare output of a program.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// OpenTofu encrypted it.
    #[error("it is encrypted by OpenTofu. Pipe the output of `tofu state pull` instead, which decrypts it")]
    Encrypted,
    /// It is empty. Usual cause: the backend has no state in this workspace.
    #[error("it is empty")]
    Empty,
    /// It is the file in which `init` records the backend.
    #[error("it is the configuration of the backend, not the state. Pass the output of `terraform state pull`")]
    Backend,
    /// It is the log of a plan or an apply.
    #[error("it is the log of a run with -json. Pass the output of `terraform state pull`")]
    Log,
    /// A required part is missing or malformed.
    #[error("it is unreadable at {0}")]
    Odd(String),
    /// It is another document.
    #[error("it is JSON, but not the output of `terraform state pull` or `terraform show -json`")]
    Other,
    /// It is a plan.
    #[error("it is a plan, not a state")]
    Plan,
    /// It is not JSON.
    #[error("it is not JSON ({0}). Pass the output of `terraform state pull`")]
    Syntax(String),
    /// Its format is another one.
    #[error("its format is version {0}, and this program reads version 4")]
    Version(u64),
}

impl AuditedState {
    /// Reads a state file, or the output of `show -json` for one.
    pub(in crate::commands) fn read(source: &str, document: &[u8]) -> Result<Self, NotAState> {
        let document = &*decoded(document)?;
        if document.iter().all(u8::is_ascii_whitespace) {
            return Err(NotAState::Empty);
        }
        if document.starts_with(b"PK\x03\x04") {
            return Err(NotAState::Plan);
        }
        let root: Value = serde_json::from_slice(document).map_err(|error| {
            // Only line and column, never a part of the document.
            let syntax = || NotAState::Syntax(format!("line {}, column {}", error.line(), error.column()));
            if document.trim_ascii_start().starts_with(b"{\"@level\"") {
                return NotAState::Log;
            }
            added_text(document).map_or_else(syntax, NotAState::from)
        })?;
        if root.get("encrypted_data").is_some() {
            return Err(NotAState::Encrypted);
        }
        let mut identity = None;
        let held = match (root["version"].as_u64(), root["format_version"].as_str()) {
            (Some(FORMAT), _) => {
                identity = Some(StateFile {
                    paths: Vec::new(),
                    lineage: root["lineage"].as_str().unwrap_or_default().to_owned(),
                    serial: root["serial"].as_u64().unwrap_or_default(),
                    digest: hex::encode(Sha256::digest(root.to_string())),
                });
                file(&root)?
            }
            (Some(_), _) if root.get("backend").is_some() => return Err(NotAState::Backend),
            (Some(other), _) => return Err(NotAState::Version(other)),
            (None, Some(_)) if root.get("planned_values").or_else(|| root.get("resource_changes")).is_some() => {
                return Err(NotAState::Plan);
            }
            (None, Some(_)) if root.get("provider_schemas").or_else(|| root.get("diagnostics")).is_some() => {
                return Err(NotAState::Other);
            }
            (None, Some(_)) => {
                let mut held = Vec::new();
                match &root["values"]["root_module"] {
                    Value::Null => {}
                    module => shown(module, &mut held)?,
                }
                held
            }
            (None, None) => return Err(NotAState::Other),
        };
        Ok(Self { source: source.to_owned(), held, file: identity })
    }
}

/// States of format 4, each once.
///
/// # Errors
///
/// The output of `show -json`, which lacks what identifies a state, and two versions of one state.
pub(in crate::commands) fn distinct(states: Vec<AuditedState>) -> Result<Vec<AuditedState>, Failure> {
    let mut distinct: Vec<AuditedState> = Vec::new();
    for state in states {
        let Some(file) = &state.file else {
            return Err(Failure::new(format!(
                "{} is the output of show -json. Name a state file, or pipe the output of `terraform state pull`",
                state.source
            )));
        };
        let known = distinct.iter_mut().find(|known| {
            known.file.as_ref().is_some_and(|known| !known.lineage.is_empty() && known.lineage == file.lineage)
        });
        match known.map(|known| (&known.source, known.file.as_mut())) {
            Some((_, Some(same))) if same.digest == file.digest => same.paths.extend(file.paths.clone()),
            Some((source, Some(other))) => {
                return Err(Failure::new(format!(
                    "{source} (serial {}) and {} (serial {}) are versions of one state. Name only the current one",
                    other.serial, state.source, file.serial
                )));
            }
            _ => distinct.push(state),
        }
    }
    Ok(distinct)
}

/// A state file.
fn file(root: &Value) -> Result<Vec<Held>, NotAState> {
    let mut held = Vec::new();
    for (number, resource) in list(root, "resources")?.iter().enumerate() {
        let odd = || NotAState::Odd(format!("resources[{number}]"));
        let (Some(mode), Some(kind), Some(name)) =
            (resource["mode"].as_str(), resource["type"].as_str(), resource["name"].as_str())
        else {
            return Err(odd());
        };
        if mode != "managed" || kind_of(kind).is_none() {
            continue;
        }
        let module = resource["module"].as_str().map(|module| format!("{module}.")).unwrap_or_default();
        for instance in list(resource, "instances").map_err(|_| odd())? {
            let key = match &instance["index_key"] {
                Value::Null => String::new(),
                key => format!("[{key}]"),
            };
            let deposed = instance["deposed"].as_str();
            let deposed = deposed.map(|key| format!(" (deposed {key})")).unwrap_or_default();
            let address = format!("{module}{kind}.{name}{key}{deposed}");
            // With `for_each` in its provider block, OpenTofu writes it for each instance instead, and with a key.
            let provider = resource["provider"].as_str().or_else(|| instance["provider"].as_str()).unwrap_or_default();
            take(&mut held, kind, address, provider, &instance["attributes"]).ok_or_else(odd)?;
        }
    }
    Ok(held)
}

/// A module in the form of `show -json`, and its child modules.
fn shown(module: &Value, held: &mut Vec<Held>) -> Result<(), NotAState> {
    for resource in list(module, "resources")? {
        let odd = || NotAState::Odd("values".to_owned());
        let (Some(address), Some(kind)) = (resource["address"].as_str(), resource["type"].as_str()) else {
            return Err(odd());
        };
        if resource["mode"] == "managed" {
            let deposed = resource["deposed_key"].as_str();
            let deposed = deposed.map(|key| format!(" (deposed {key})")).unwrap_or_default();
            // This form has the provider's source address, and not which of its configurations it is.
            take(held, kind, format!("{address}{deposed}"), "", &resource["values"]).ok_or_else(odd)?;
        }
    }
    list(module, "child_modules")?.iter().try_for_each(|module| shown(module, held))
}

/// Adds an object; `None` if it has no id. Types that are not billed are skipped.
fn take(held: &mut Vec<Held>, kind: &str, address: String, provider: &str, attributes: &Value) -> Option<()> {
    let Some(kind) = kind_of(kind) else { return Some(()) };
    let id = attributes["id"].as_str().filter(|id| !id.is_empty())?;
    let uid = match kind {
        ObjectKind::CloudDisk => attributes["uid"].as_str(),
        ObjectKind::Instance => Some(id),
        ObjectKind::PrivateImage => attributes["image_uuid"].as_str(),
    };
    let elements = |name: &str| attributes[name].as_array().map(Vec::as_slice).unwrap_or_default();
    let number = |value: &Value| value.as_i64().map(|number| number.to_string());
    let existed: BTreeSet<String> =
        elements("exist_disks").iter().filter_map(|disk| number(&disk["disk_id"])).collect();
    let mounted = attributes["reported"]["cloud_disks"].as_array().into_iter().flatten().filter_map(|document| {
        let record: Value = serde_json::from_str(document.as_str()?).ok()?;
        number(&record["id"]).or_else(|| number(&record["disk_id"]))
    });
    held.push(Held {
        kind,
        id: id.to_owned(),
        uid: uid.filter(|uid| !uid.is_empty()).map(str::to_owned),
        address,
        provider: provider.to_owned(),
        extra_disk: attributes["data_disk_expand_size_gb"].as_i64().unwrap_or(0),
        new_disks: elements("new_disks")
            .iter()
            .map(|disk| OrderedDisk {
                size_gb: disk["size_gb"].as_i64().unwrap_or_default(),
                spec_id: disk["spec_id"].as_i64(),
                mount_path: disk["mount_path"].as_str().map(str::to_owned),
            })
            .collect(),
        mounted: mounted.filter(|id| !existed.contains(id)).collect(),
        attributes: ATTRIBUTES.map(|name| (name.to_owned(), attributes[name].clone())).into_iter().collect(),
        age: AgeTerms {
            max_age: attributes["max_age"].as_str().map(str::to_owned),
            is_protected: attributes["deletion_protection"] == true,
            is_prepaid: attributes["payment_type"].as_str().is_some_and(|payment| payment != "Hourly"),
        },
    });
    Some(())
}

/// The attributes of instances and cloud disks in [`Held::attributes`].
const ATTRIBUTES: [&str; 8] =
    ["binding_instances", "exist_disks", "id", "name", "new_disks", "release_with_instance", "reported", "size_gb"];

fn kind_of(kind: &str) -> Option<ObjectKind> {
    ObjectKind::ALL.into_iter().find(|known| type_name(*known) == kind)
}

/// A list that may be missing.
fn list<'a>(within: &'a Value, key: &str) -> Result<&'a [Value], NotAState> {
    match within.get(key) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(elements)) => Ok(elements),
        Some(_) => Err(NotAState::Odd(key.to_owned())),
    }
}

/// A pending record of a create.
#[derive(Clone, Debug)]
pub(in crate::commands) struct Note {
    pub(in crate::commands) kind: ObjectKind,
    /// Its import id, once it is known.
    pub(in crate::commands) id: Option<String>,
    /// The name under which the create was sent.
    pub(in crate::commands) marker: String,
    /// The address that it was sent to.
    pub(in crate::commands) base_url: String,
    /// Whether the create is finished: the object was returned to Terraform.
    pub(in crate::commands) is_finished: bool,
    /// The pending directory, as named by the user.
    pub(in crate::commands) source: String,
}

/// Reads the pending records of all directories; one failure fails all.
pub(in crate::commands) fn read(directories: &[PathBuf], environment: &Environment) -> Result<Vec<Note>, Failure> {
    let mut notes = Vec::new();
    // An empty variable counts as not set.
    for directory in directories.iter().filter(|directory| !directory.as_os_str().is_empty()) {
        let path = environment.path(directory)?;
        if !path.is_dir() {
            return Err(Failure::new(format!("no pending directory at {}", directory.display())));
        }
        let failed = |path: PathBuf, reason: String| {
            Failure::because(format!("cannot read the pending directory {}", path.display()), reason)
        };
        let report = Journal::new(&path).list().map_err(|error| failed(path, error.to_string()))?;
        if let Some(file) = report.unreadable.into_iter().next() {
            return Err(failed(file.path, file.reason));
        }
        notes.extend(report.entries.into_iter().map(|entry| Note {
            kind: entry.record.kind,
            id: entry.record.ids.map(|ids| ids.id),
            marker: entry.record.marker,
            base_url: entry.record.base_url,
            is_finished: entry.record.phase == CreatePhase::Finished,
            source: directory.display().to_string(),
        }));
    }
    Ok(notes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(state: &Value) -> Result<Vec<String>, NotAState> {
        let state = AuditedState::read("state", state.to_string().as_bytes())?;
        Ok(state.held.iter().map(|held| format!("{} {} {}", type_name(held.kind), held.id, held.address)).collect())
    }

    #[test]
    fn every_format_tells_what_it_holds() {
        let instance = |id: &str, more: Value| {
            let mut instance = json!({"attributes": {"id": id, "ssh_password": "hunter2"}});
            instance.as_object_mut().unwrap().append(&mut more.as_object().unwrap().clone());
            instance
        };
        let file = json!({"version": 4, "terraform_version": "1.11.4", "serial": 1, "lineage": "x", "outputs": {},
            "resources": [
            {"module": "module.a[\"x.y\"]", "mode": "managed", "type": "damodel_instance", "name": "i", "instances": [
                instance("ins-1", json!({"index_key": 0})), instance("ins-2", json!({"index_key": 0,
                    "deposed": "abcd1234"}))]},
            {"mode": "managed", "type": "damodel_cloud_disk", "name": "d", "instances": [instance("7",
                json!({"index_key": "k"}))]},
            {"mode": "data", "type": "damodel_instance", "name": "read", "instances": [instance("ins-9", json!({}))]},
            {"mode": "managed", "type": "aws_instance", "name": "other", "instances": [instance("i-1", json!({}))]}]});
        assert_eq!(
            read(&file).unwrap(),
            [
                "damodel_instance ins-1 module.a[\"x.y\"].damodel_instance.i[0]",
                "damodel_instance ins-2 module.a[\"x.y\"].damodel_instance.i[0] (deposed abcd1234)",
                "damodel_cloud_disk 7 damodel_cloud_disk.d[\"k\"]",
            ]
        );
        let shown = json!({"format_version": "1.0",
            "values": {"root_module": {"child_modules": [{"address": "module.a", "resources": [
            {"address": "module.a.damodel_private_image.p", "mode": "managed", "type": "damodel_private_image",
                "values": {"id": "951"}}]}]}}});
        assert_eq!(read(&shown).unwrap(), ["damodel_private_image 951 module.a.damodel_private_image.p"]);
        // An empty state is valid.
        assert_eq!(read(&json!({"format_version": "1.0"})), Ok(Vec::new()));
    }

    /// OpenTofu's `provider = damodel.by[each.key]` (its internal/states/statefile/version4.go, v1.9.4 and 1.13-dev),
    /// and `show -json`, which has no configuration of a provider.
    #[test]
    fn a_provider_is_known_with_its_key_or_not_at_all() {
        let providers = |state: &Value| -> Vec<String> {
            let state = AuditedState::read("state", state.to_string().as_bytes()).unwrap();
            state.held.into_iter().map(|held| held.provider).collect()
        };
        let file = |resource: Value, instance: Value| {
            let mut resource =
                json!({"mode": "managed", "type": "damodel_instance", "name": "i", "provider": resource});
            let instance = |id: &str| json!({"attributes": {"id": id}, "provider": instance[id]});
            resource["instances"] = ["a", "b"].map(instance).into_iter().collect();
            json!({"version": 4, "resources": [resource]})
        };
        assert_eq!(providers(&file("p".into(), Value::Null)), ["p", "p"]);
        assert_eq!(providers(&file(Value::Null, json!({"a": "p[1]", "b": "p[2]"}))), ["p[1]", "p[2]"]);
        assert_eq!(providers(&file("".into(), Value::Null)), ["", ""]);
        let shown = json!({"format_version": "1.0", "values": {"root_module": {"resources": [
            {"address": "damodel_instance.i", "mode": "managed", "type": "damodel_instance", "provider_name": "p",
                "values": {"id": "a"}}]}}});
        assert_eq!(providers(&shown), [""]);
    }

    #[test]
    fn a_state_counts_once_and_has_one_version() {
        let state = |source: &str, lineage: &str, serial: u64, layout: fn(&Value) -> String| {
            let document = layout(&json!({"version": 4, "serial": serial, "lineage": lineage, "resources": []}));
            let mut state = AuditedState::read(source, document.as_bytes()).unwrap();
            state.file.as_mut().unwrap().paths.push(source.into());
            state
        };
        let short: fn(&Value) -> String = Value::to_string;
        let long: fn(&Value) -> String = |value| format!("{value:#}\n");
        let paths = |states| {
            let states: Result<Vec<AuditedState>, Failure> = distinct(states);
            states
                .map(|states| states.into_iter().map(|state| state.file.unwrap().paths.len()).collect::<Vec<_>>())
                .map_err(|error| error.to_string())
        };
        let one = || state("one", "x", 1, short);
        assert_eq!(paths(vec![one(), state("copy", "x", 1, long), state("other", "y", 1, short)]), Ok(vec![2, 1]));
        // States without a lineage are different ones.
        assert_eq!(paths(vec![state("a", "", 1, short), state("b", "", 1, short)]), Ok(vec![1, 1]));
        let versions = paths(vec![one(), state("newer", "x", 2, short)]).unwrap_err();
        assert!(versions.starts_with("one (serial 1) and newer (serial 2) are versions of one state"), "{versions}");
        let shown = AuditedState::read("shown", br#"{"format_version":"1.0"}"#).unwrap();
        assert!(paths(vec![shown]).unwrap_err().starts_with("shown is the output of show -json"));
    }

    #[test]
    fn what_is_no_state_is_told_from_one_and_shows_nothing_of_it() {
        let is = |document: &str| AuditedState::read("x", document.as_bytes()).unwrap_err();
        assert_eq!(is(" \n"), NotAState::Empty);
        assert_eq!(is("[]"), NotAState::Other);
        assert_eq!(
            is(r#"{"meta":{"key_provider.pbkdf2.k":"e30="},"encrypted_data":"AAAA","encryption_version":"v0"}"#),
            NotAState::Encrypted
        );
        assert_eq!(is(r#"{"format_version":"1.2","planned_values":{}}"#), NotAState::Plan);
        assert_eq!(is(r#"{"format_version":"1.0","provider_schemas":{}}"#), NotAState::Other);
        for version in [3, 5] {
            assert_eq!(is(&json!({"version": version, "modules": []}).to_string()), NotAState::Version(version));
        }
        let backend = is(r#"{"version":3,"terraform_version":"1.11.4","backend":{"type":"pg","config":{}}}"#);
        assert_eq!(backend, NotAState::Backend);
        assert_eq!(is(r#"{"version":4,"resources":7}"#), NotAState::Odd("resources".to_owned()));
        let without_id =
            r#"{"version":4,"resources":[{"mode":"managed","type":"damodel_instance","name":"i","instances":[{}]}]}"#;
        assert_eq!(is(without_id), NotAState::Odd("resources[0]".to_owned()));
        assert!(!is(r#"{"password": "hunter2" oops"#).to_string().contains("hunter2"));
        for wrapped in ["[command]/tmp/terraform-bin state pull\n{}", "{}\n::debug::exited with code 0\n"] {
            assert!(is(wrapped).to_string().contains("terraform_wrapper: false"), "{}", is(wrapped));
        }
        assert_eq!(is("{\"@level\":\"info\"}\n{\"@level\":\"info\"}\n"), NotAState::Log);
        for before in ["Warning: x\n\n", "12:01:02.003 STDOUT terraform: ", "[module] "] {
            let preceded = is(&format!("{before}{{\n  \"version\": 4,\n  \"resources\": []\n}}\n"));
            assert_eq!(preceded, NotAState::Document(DocumentError::Preceded), "{before}");
        }
        assert!(is("oops").to_string().contains("terraform state pull"));
        let odd = AuditedState::read("x", b"\xff\xfe{\0}").unwrap_err().to_string();
        assert!(odd.contains("not valid UTF-16"), "{odd}");
    }
}
