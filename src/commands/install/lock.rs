//! The dependency lock file, which knows a package by its hash.

use std::{fs, path::Path};

use hcl_edit::{expr::Expression, structure::Body};

use super::{VERSION, place::Installed};
use crate::{commands::terraform::HOSTS, provider::ADDRESS};

/// What the lock file of a folder has against what was installed, and what to do.
pub(super) fn differences(folder: &Path, installed: &[Installed]) -> Vec<String> {
    let file = folder.join(".terraform.lock.hcl");
    let Ok(text) = fs::read_to_string(&file) else { return Vec::new() };
    let Ok(lock) = text.parse::<Body>() else {
        return vec!["The .terraform.lock.hcl of this folder could not be made out; init says more.".to_owned()];
    };
    HOSTS.iter().filter_map(|host| difference(&lock, host, installed)).collect()
}

fn difference(lock: &Body, host: &str, installed: &[Installed]) -> Option<String> {
    let address = format!("{host}/{ADDRESS}");
    let provider =
        lock.get_blocks("provider").find(|block| block.labels.iter().any(|label| label.as_str() == address))?;
    let attribute = |name: &str| provider.body.get_attribute(name).map(|attribute| &attribute.value);
    let version = attribute("version").and_then(Expression::as_str).unwrap_or_default();
    if version != VERSION {
        return Some(format!(
            "The .terraform.lock.hcl of this folder has {version} of {address}. To use {VERSION} here: init -upgrade."
        ));
    }
    let hashes = attribute("hashes").and_then(Expression::as_array);
    let mut known = hashes.into_iter().flat_map(|hashes| hashes.iter()).filter_map(Expression::as_str);
    let ours = &installed.iter().find(|package| package.host == host)?.hash;
    if known.any(|hash| hash == ours) {
        return None;
    }
    Some(format!(
        "The .terraform.lock.hcl of this folder knows {VERSION} of {address} by other hashes: it was locked with \
         another build. init will refuse this one. Remove the block provider \"{address}\" from it, and run init, \
         which locks what was installed ({ours})."
    ))
}
