//! Which policy is for which plan.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use jiff::civil::Date;

use super::{Arguments, Error, inputs::Input};
use crate::review::{Deny, Exception, Limits, Policy};

/// The file beside a plan.
const FILE: &str = "review.toml";

/// What the options ask of all plans, and each file of the plans beside it.
pub(super) fn read(arguments: &Arguments, inputs: &[Input], today: Date) -> Result<Policy, Error> {
    let mut deny: Vec<_> = arguments.deny.clone();
    deny.sort();
    deny.dedup();
    let options = Limits {
        max_monthly_increase: arguments.max_monthly_increase.clone(),
        deny: deny.into_iter().map(Deny::from).collect(),
        ..Limits::default()
    };
    let mut whole = match &arguments.policy {
        Some(file) => policy(file, today)?,
        None => beside(inputs, today)?,
    };
    whole.limits.insert(0, options);
    Ok(whole)
}

/// The policies that lie beside plans, each for those.
fn beside(inputs: &[Input], today: Date) -> Result<Policy, Error> {
    let mut plans_of: BTreeMap<PathBuf, BTreeSet<usize>> = BTreeMap::new();
    for (index, input) in inputs.iter().enumerate() {
        let file = input.folder.join(FILE);
        if file.is_file() {
            plans_of.entry(file).or_default().insert(index);
        }
    }
    let mut whole = Policy::default();
    for (file, plans) in plans_of {
        let found = policy(&file, today)?;
        let plans = Some(plans);
        whole.limits.extend(found.limits.into_iter().map(|limits| Limits { plans: plans.clone(), ..limits }));
        whole.exceptions.extend(found.exceptions.into_iter().map(|one| Exception { plans: plans.clone(), ..one }));
    }
    Ok(whole)
}

fn policy(file: &Path, today: Date) -> Result<Policy, Error> {
    let place = file.display().to_string();
    let text = fs::read_to_string(file).map_err(|source| Error::Read { place: place.clone(), source })?;
    Policy::read(&text, today).map_err(|source| Error::NotAPolicy { place, source })
}
