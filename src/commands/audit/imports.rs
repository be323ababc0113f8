//! Import blocks of unmanaged objects, whose configuration Terraform or OpenTofu generates.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs::File,
    io::Write as _,
    path::{Path, PathBuf},
};

use crate::{
    api::ObjectKind,
    commands::{
        Failure,
        account::{
            expired::LONGEST,
            holders::{Audit, Holder},
            inventory::BilledObject,
        },
        terraform::quoted,
    },
    provider::{Environment, words::type_name},
    review::visible,
};

/// The statuses of objects that no plan can keep.
const ENDING: [&str; 2] = ["failed", "releasing"];

/// The path of the file, if it does not exist yet.
pub(super) fn free(file: &Path, environment: &Environment) -> Result<PathBuf, Failure> {
    let path = environment.path(file)?;
    if path.symlink_metadata().is_ok() {
        return Err(Failure::new(format!("{} exists and is not overwritten. Name a new file", file.display())));
    }
    Ok(path)
}

/// Writes the blocks of the listed unmanaged objects, and returns what was done. Without an object no file is written.
pub(super) fn write(file: &Path, audit: &Audit, released: &[BilledObject]) -> Result<String, Failure> {
    let unmanaged = audit.objects.iter().filter(|object| object.holder == Holder::Unmanaged);
    let (left, objects): (Vec<_>, Vec<_>) = unmanaged.map(|object| &object.billed).partition(|object| {
        object.status.as_ref().is_some_and(|status| ENDING.contains(&status.to_ascii_lowercase().as_str()))
    });
    let mut said = if objects.is_empty() {
        "No unmanaged object to import. No file was written.\n".to_owned()
    } else {
        let text = blocks(&objects);
        let written = File::create_new(file).and_then(|mut new| new.write_all(text.as_bytes()));
        written.map_err(|error| Failure::writing(file.display(), error))?;
        let blocks = if objects.len() == 1 { "block" } else { "blocks" };
        format!(
            "Wrote {} import {blocks} to {}. In that folder: terraform plan -generate-config-out=generated.tf \
             -out=import.tfplan\n",
            objects.len(),
            file.display()
        )
    };
    for object in left {
        let (id, status) = (visible(&object.id, LONGEST), object.status.as_deref().unwrap_or_default());
        let _ = writeln!(said, "Left out {} {id}: it is {}.", object.kind.noun(), visible(status, LONGEST));
    }
    for BilledObject { kind, id, .. } in released {
        let _ = writeln!(said, "Left out {} {}: it is Released.", kind.noun(), visible(id, LONGEST));
    }
    Ok(said)
}

fn blocks(objects: &[&BilledObject]) -> String {
    let mut taken: BTreeSet<(ObjectKind, String)> = BTreeSet::new();
    let mut blocks = Vec::new();
    for object in objects {
        let label = label(object);
        let with_id = format!("{label}_{}", words(&object.id));
        let numbered = (2..).map(|number| format!("{with_id}_{number}"));
        let mut labels = [label, with_id.clone()].into_iter().chain(numbered);
        let Some(label) = labels.find(|label| taken.insert((object.kind, label.clone()))) else { continue };
        let id = quoted(Path::new(&object.id));
        blocks.push(format!(
            "import {{\n  to       = {}.{label}\n  id       = {id}\n  provider = damodel\n}}\n",
            type_name(object.kind)
        ));
    }
    blocks.join("\n")
}

/// The longest part of a name in a label.
const LONGEST_NAME: usize = 60;

/// A name in the letters of an identifier: that of the object, or else its id.
fn label(object: &BilledObject) -> String {
    let name = words(object.name.as_deref().unwrap_or_default());
    let label = if name.is_empty() { words(&object.id) } else { name };
    if label.starts_with(|first: char| first.is_ascii_alphabetic()) {
        label
    } else {
        format!("{}_{label}", object.kind.as_str())
    }
}

/// The ASCII letters and digits of a text in lower case, with one underscore for all characters between them.
fn words(text: &str) -> String {
    let mut words = String::new();
    for character in text.chars() {
        if character.is_ascii_alphanumeric() {
            words.push(character.to_ascii_lowercase());
        } else if !words.is_empty() && !words.ends_with('_') {
            words.push('_');
        }
    }
    words.truncate(LONGEST_NAME);
    words.trim_end_matches('_').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_unique_within_a_kind_and_identifiers() {
        let object = |(kind, id, name): &(ObjectKind, &str, &str)| BilledObject {
            kind: *kind,
            id: (*id).to_owned(),
            uid: None,
            name: Some((*name).to_owned()),
            region: None,
            status: None,
            since: None,
            payment_type: None,
            order: None,
            mounts: None,
        };
        let (disk, instance) = (ObjectKind::CloudDisk, ObjectKind::Instance);
        let objects = [
            (instance, "ins-0a1b", "Trainer-01"),
            (disk, "1", "trainer_01"),
            (disk, "2", "Trainer 01"),
            (disk, "7", "trainer 01 2"),
            (disk, "8", "${file(\"/x\")}\n\u{202e}"),
            (disk, "9", "4090"),
            (disk, "10", "数据"),
            (instance, "ins-${x}\"", ""),
        ];
        let objects = objects.each_ref().map(object);
        let text = blocks(&objects.iter().collect::<Vec<_>>());
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| line.starts_with(['t', 'i'])).collect();
        let labels: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("to       = damodel_")).collect();
        let expected = [
            "instance.trainer_01",
            "cloud_disk.trainer_01",
            "cloud_disk.trainer_01_2",
            "cloud_disk.trainer_01_2_7",
            "cloud_disk.file_x",
            "cloud_disk.cloud_disk_4090",
            "cloud_disk.cloud_disk_10",
            "instance.ins_x",
        ];
        assert_eq!(labels, expected);
        assert_eq!(lines.last(), Some(&r#"id       = "ins-$${x}\"""#));
    }
}
