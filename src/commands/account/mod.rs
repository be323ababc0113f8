//! The objects of the account and of states: what `audit`, `expire` and `release` share.

pub(super) mod expired;
pub(super) mod holders;
pub(super) mod inventory;
mod lock;
pub(super) mod released;
pub(super) mod states;

use std::{collections::BTreeSet, io::Read, path::PathBuf, time::Duration};

use self::states::AuditedState;
use super::Failure;
use crate::provider::Environment;

/// The time limit for all requests of a list.
pub(super) const PATIENCE: Duration = Duration::from_secs(300);

/// The reason for an object that is not in the account and is not judged.
pub(super) const UNSAID: &str = "not listed in the account, and the state has no provider configuration for it";

/// Reads states, each path once; `-` is standard input.
pub(super) fn read_states(
    paths: &[PathBuf],
    environment: &Environment,
    input: &mut impl Read,
) -> Result<Vec<AuditedState>, Failure> {
    let mut seen = BTreeSet::new();
    let once = paths.iter().filter(|path| seen.insert(environment.path(path).ok()));
    let states = once.map(|path| {
        let mut document = Vec::new();
        let (place, read) = if path.as_os_str() == "-" {
            ("standard input".to_owned(), input.read_to_end(&mut document).map(drop))
        } else {
            (path.display().to_string(), std::fs::read(environment.path(path)?).map(|content| document = content))
        };
        read.map_err(|error| Failure::reading(&place, error))?;
        let unread = |error| Failure::because(format!("cannot read {place} as a state"), error);
        let mut state = AuditedState::read(&place, &document).map_err(unread)?;
        if let Some(file) = state.file.as_mut().filter(|_| path.as_os_str() != "-") {
            file.paths.push(environment.path(path)?);
        }
        Ok(state)
    });
    states.collect()
}
